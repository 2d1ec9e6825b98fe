"""The trace of a simulated epoch: events of its ranks, and the utilization of each unit.

The engine simulates a pipeline-parallel model on its slowest stage, with the bubble as one wait.
The operations of each stage in a steady step come from the pipeline schedule.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final, TypeAlias

from simulator.physics.device_time import pipeline_of
from simulator.physics.schedule import Activity, Pipeline, timelines
from simulator.physics.training_step import TrainingStep
from simulator.pipeline.loads import resource_name
from simulator.pipeline.stages.base import Actor, Entry, Resource, Slot
from simulator.pipeline.stages.communication import step_of
from simulator.pipeline.topology import CPU, Topology, compute_stream
from simulator.records import dataclass
from simulator.results.prediction import PIPELINE, Counter, Sample, Slice, Trace
from simulator.schema.scenario import Scenario
from simulator.schema.training import Parallelism
from simulator.units import Seconds, in_common

if TYPE_CHECKING:
    from simulator.engine.recorder import Epoch


COMPUTE = "compute"
COMMUNICATION = "communication"
COPY = "copy"
COPY_BACK = "copy back"
PIN_MEMORY = "pin memory"
MAIN = "main thread"

_LANES = {
    Actor.COPY_ENGINE: COPY,
    Actor.RESULT_ENGINE: COPY_BACK,
    Actor.COMMUNICATION_STREAM: COMMUNICATION,
}


def lane_of(slot: Slot) -> str:
    """Return the name of the lane on which the timeline shows a device slot."""
    exchanges = slot.entry is Entry.COMMUNICATION
    return _LANES.get(slot.stream, COMMUNICATION if exchanges else COMPUTE)


def shown_on_device(slot: Slot) -> str:
    """Return the label of a slot in the compute lane: its own, or "waits for" it."""
    if slot.stream is Actor.RESULT_ENGINE:
        return f"waits for {COPY_BACK}"
    works = slot.entry in {Entry.COMPUTE, Entry.BUBBLE}
    return slot.label if works else f"waits for {slot.label}"


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceEvent:
    """An event on a lane of a rank: `name` from `started` [s] until now, for a step or a batch.

    `machine` is the name of its machine if that is a helper.
    """

    rank: int
    lane: str
    name: str
    started: Seconds
    step: int | None = None
    batch: int | None = None
    machine: str = ""


RecordEvent: TypeAlias = Callable[[TraceEvent], None]
"""Called at the end of an event."""


class Meter:
    """Records the utilization of units by shared work and by fixed-delay tasks.

    Parameters
    ----------
    names : mapping of str to sequence of str
        The units that each simulated unit represents.

    Examples
    --------
    >>> meter = Meter({"link": ["link", "its twin"]})
    >>> meter.shared(0.0, "link", 0.5)
    >>> meter.fixed(1.0, "link", 0.25)
    >>> [(sample.unit, sample.time, sample.value) for sample in meter.samples][2:]
    [('link', 1.0, 0.75), ('its twin', 1.0, 0.75)]
    """

    def __init__(self, names: Mapping[str, Sequence[str]]) -> None:
        self._names = names
        self._shared: dict[str, float] = {}
        self._fixed: dict[str, float] = {}
        self.samples: list[Sample] = []

    def shared(self, time: Seconds, unit: str, value: float) -> None:
        """Record the utilization of a unit by shared work from `time` on, 0 to 1."""
        self._shared[unit] = value
        self._note(time, unit)

    def fixed(self, time: Seconds, unit: str, value: float) -> None:
        """Record the utilization of a unit by fixed-delay tasks from `time` on, 0 to 1."""
        self._fixed[unit] = value
        self._note(time, unit)

    def _note(self, time: Seconds, unit: str) -> None:
        value = self._shared.get(unit, 0.0) + self._fixed.get(unit, 0.0)
        names = self._names.get(unit, (unit,))
        self.samples += [Sample(unit=name, time=time, value=value) for name in names]


def trace_of(scenario: Scenario, topology: Topology, epoch: Epoch) -> Trace:
    """Return the timeline of a simulated epoch: events of ranks and utilization of units.

    A pipeline-parallel model is simulated on its slowest stage; the operations of all stages in one
    steady step are added from the schedule.

    Parameters
    ----------
    scenario, topology : Scenario, Topology
        The job and its units.
    epoch : Epoch
        The epoch, with its recorded slices and samples.
    """
    reduction = epoch.reduction
    counters = tuple(_counters(topology, epoch))
    idle = (Sample(unit=counter.unit, time=0.0, value=0.0) for counter in counters)
    return Trace(
        slices=(*epoch.slices, *stage_slices(scenario, epoch)),
        samples=(*idle, *epoch.samples),
        start=0.0,
        end=epoch.end,
        ends=tuple(snapshot.time for snapshot in epoch.snapshots[1:]),
        first=epoch.first,
        last=epoch.last,
        counters=counters,
        shown_as={lane: rank for rank in reduction.ranks for lane in reduction.lanes(rank)},
        stands_for={
            lane: reduction.count(rank)
            for rank in reduction.ranks
            for lane in reduction.lanes(rank)
        },
        machines=scenario.cluster.trainers.count,
    )


def _counters(topology: Topology, epoch: Epoch) -> Iterator[Counter]:
    """Yield a counter for each unit that may be sampled, in display order."""
    home = topology.sites[0].group.name
    helpers = [site.prefix for site in topology.sites[1:]]
    units = {site.prefix + CPU: home for site in topology.sites}
    units |= {name: unit.owner for name, unit in topology.units.items()}
    for unit, owner in units.items():
        machine = next((prefix.strip() for prefix in helpers if unit.startswith(prefix)), owner)
        yield Counter(unit=unit, machine=machine, resource=resource_name(topology, unit))
    if topology.host.gpu is not None:
        lanes = sorted(
            lane for rank in epoch.reduction.ranks for lane in epoch.reduction.lanes(rank)
        )
        for lane in lanes:
            yield Counter(unit=compute_stream(lane), machine=home, resource=str(Resource.GPU))


ALL_SHOWN: Final = 4
"""Largest number of stages that are all shown; of more, the first, a middle one and the last."""


def stage_slices(scenario: Scenario, epoch: Epoch) -> Iterator[Slice]:
    """Yield the operations of all pipeline stages in the last step of the steady window."""
    degrees = scenario.job.parallelism
    if in_common(degrees.pipeline) == 1:
        return
    step = step_of(scenario)
    start = _begin(epoch)
    if step is None or start is None:
        return
    found = timelines(degrees.schedule, _as_late(step, degrees), int(step.micro_batches))
    for stage in _shown(len(found)):
        track = f"{PIPELINE} stage {stage + 1} of {len(found)}"
        for stretch in found[stage]:
            yield Slice(
                track=track,
                name=_name(stretch),
                start=start + stretch.start,
                length=stretch.length,
                step=epoch.last - 1,
                batch=None if stretch.slot is None else stretch.slot.micro_batch,
                process=PIPELINE,
            )


def _as_late(step: TrainingStep, degrees: Parallelism) -> Pipeline:
    """Return the pipeline with its passes scaled to those of the slowest stage of the step."""
    pipeline = pipeline_of(step, degrees)
    passes = [a + b for a, b in zip(pipeline.forward, pipeline.backward, strict=True)]
    slowest = max(passes) * pipeline.chunks
    late = float(step.forward + step.backward + step.exchange) / slowest
    return Pipeline(
        devices=pipeline.devices,
        forward=_times(late, pipeline.forward),
        backward=_times(late, pipeline.backward),
        weights=_times(late, pipeline.weights),
        send=late * pipeline.send,
    )


def _times(factor: float, lengths: Sequence[Seconds]) -> list[Seconds]:
    return [factor * length for length in lengths]


def _begin(epoch: Epoch) -> Seconds | None:
    """Return the start of compute in the last steady step, from the start of the epoch [s]."""
    starts = [s.start for s in epoch.slices if s.name == "forward" and s.step == epoch.last - 1]
    return min(starts, default=None)


def _shown(stages: int) -> tuple[int, ...]:
    return tuple(range(stages)) if stages <= ALL_SHOWN else (0, stages // 2, stages - 1)


def _name(stretch: Activity) -> str:
    if stretch.slot is None:
        return "bubble"
    return "gradients of weights" if stretch.put_off else stretch.slot.kind.value
