"""What a stage is: an actor that asks resources for amounts of work, batch by batch."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from enum import StrEnum
from typing import Final, Protocol

from simulator.schema.scenario import Scenario
from simulator.terms import Term, quotient_of
from simulator.uncertainty.calibration import Calibration
from simulator.units import BytesPerSecond, Real, Seconds


class Resource(StrEnum):
    """What can be busy; the names users see in utilization and bottleneck."""

    GPU = "gpu"
    CPU = "cpu"
    STORAGE = "storage"
    NETWORK = "network"
    PCIE = "pcie"
    NVLINK = "nvlink"
    HOST_MEMORY = "host_memory"


class Path(StrEnum):
    """Which way a demand goes through the machine; `topology` knows the units on each way."""

    STORE_TO_HOST = "store-to-host"
    CACHE_TO_HOST = "cache-to-host"
    HOST_TO_STORE = "host-to-store"
    HOST_TO_TRAINER = "host-to-trainer"
    HOST_TO_DEVICE = "host-to-device"
    DEVICE_TO_HOST = "device-to-host"
    DEVICE_TO_DEVICE = "device-to-device"
    MACHINE_TO_MACHINE = "machine-to-machine"
    EXCHANGE = "exchange"
    CORES = "cores"
    MEMORY = "memory"
    COMPUTE = "compute"


OF_A_RANK: Final = frozenset(
    {Path.HOST_TO_DEVICE, Path.DEVICE_TO_HOST, Path.DEVICE_TO_DEVICE, Path.EXCHANGE}
)
"""Ways that differ from rank to rank, whatever is carried."""


class Phase(StrEnum):
    """Whether an epoch's reads find the page cache empty or as the last epoch left it."""

    COLD = "cold"
    WARM = "warm"


class Actor(StrEnum):
    """Who carries a stage out; each actor does its demands one after another."""

    WORKER = "worker"
    SENDER = "sender"
    RECEIVER = "receiver"
    COPY_ENGINE = "copy engine"
    RESULT_ENGINE = "result engine"
    COMPUTE_STREAM = "compute stream"
    COMMUNICATION_STREAM = "communication stream"
    WRITER = "writer"


PRODUCERS = frozenset({Actor.WORKER, Actor.SENDER})
"""Actors that make batches and hand them over; groups of machines may share their work."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """What one batch of one rank asks of one resource.

    `amount` is in the resource's own unit: bytes for storage, links and memory, core-seconds (of
    an unshared core of this machine) for the CPU, busy seconds for a device's streams.
    `operations` counts requests where the resource also limits those. `ceiling` is the fastest
    this one flow can go (None: as fast as the path), `latency` passes first and uses nothing.
    `threads` is how many threads share a CPU demand, `sharers` how many machines share their store
    for it (None: all that reach it), `outward` which share of an exchange's bytes leaves the
    machine. `term` is the equation that gave the amount (or the latency,
    where nothing but time is asked for), with what it was given; `delay` is the one that gave the
    latency of a demand for more.

    Stages make demands with `asking` and `passing` only, which take amounts from their terms.
    """

    resource: Resource
    path: Path
    amount: Real
    operations: Real = 0.0
    ceiling: BytesPerSecond | Real | None = None
    latency: Seconds | Real = 0.0
    threads: float = 1.0
    sharers: Real | None = None
    outward: Real = 0.0
    term: Term | None = None
    delay: Term | None = None


def asking(  # noqa: PLR0913 - the parts of a demand
    amount: Term,
    resource: Resource,
    path: Path,
    *,
    operations: Real = 0.0,
    ceiling: BytesPerSecond | Real | None = None,
    latency: Term | Seconds | Real = 0.0,
    threads: float = 1.0,
    sharers: Real | None = None,
    outward: Real = 0.0,
) -> Demand:
    """A demand for what an equation gave."""
    return Demand(
        resource=resource,
        path=path,
        amount=amount.value,
        operations=operations,
        ceiling=ceiling,
        latency=latency.value if isinstance(latency, Term) else latency,
        threads=threads,
        sharers=sharers,
        outward=outward,
        term=amount,
        delay=latency if isinstance(latency, Term) else None,
    )


def passing(seconds: Term, resource: Resource) -> Demand:
    """Time that passes and keeps nothing busy [s]; `resource` is what it is counted under."""
    return Demand(
        resource=resource,
        path=Path.MEMORY,
        amount=0.0 * seconds.value,
        latency=seconds.value,
        term=seconds,
    )


class Stage(Protocol):
    """One stage of a pipeline."""

    @property
    def name(self) -> str:
        """What the stage is called in tables."""

    def demands(self, scenario: Scenario, phase: Phase) -> tuple[Demand, ...]:
        """What one batch of one rank asks for, in the order it is asked."""


class Per(StrEnum):
    """How often a slot comes.

    ``batch``: for every batch a rank takes, a micro-batch where several are accumulated. ``step``:
    after a step's last batch. ``bucket``: once a step as well, in parts: a bucket of gradients goes
    through the slot when its part of the slot in front is done, beside the rest of that.
    ``checkpoint``: at a checkpoint, while training waits.
    """

    BATCH = "batch"
    BUCKET = "bucket"
    STEP = "step"
    CHECKPOINT = "checkpoint"


class Entry(StrEnum):
    """Entries of a step's ledger: the arguments of `equations.step.step_time`."""

    DATA_STALL = "data_stall"
    H2D = "h2d"
    COMPUTE = "compute"
    COMMUNICATION = "communication"
    BUBBLE = "bubble"
    CHECKPOINT = "checkpoint"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Slot:
    """A stage's place in the step program.

    `stream` carries the stage out, `per` says how often, and time that a device spends on it, or
    waits for it, counts for `entry` of the step's ledger. `shown` is what a timeline calls it
    (empty: the stage's name).

    `forward_only`: it belongs to a pass without training too. `reads`: a loader that reads ahead
    does it on a thread beside the one that works on samples. `by_sample`: a worker does it for one
    sample after another, in turn with the other slots of this kind. `after_late`: ranks that have
    waited for a late batch wait only for what is left of it.
    """

    stage: Stage
    stream: Actor
    per: Per
    entry: Entry
    _: KW_ONLY
    shown: str = ""
    forward_only: bool = False
    reads: bool = False
    by_sample: bool = False
    after_late: bool = False

    @property
    def name(self) -> str:
        """What the stage is called in tables."""
        return self.stage.name

    @property
    def label(self) -> str:
        """What a timeline calls it."""
        return self.shown or self.name

    @property
    def beside_compute(self) -> bool:
        """Whether it goes on beside the compute of the batch that it belongs to."""
        return self.stream is Actor.COMMUNICATION_STREAM and self.per is not Per.BUCKET

    @property
    def once_a_step(self) -> bool:
        """Whether it runs once for all accumulated batches of a step."""
        return self.per in {Per.BUCKET, Per.STEP}


@dataclass(frozen=True, slots=True, kw_only=True)
class StageDemands:
    """A slot of the step program with what its stage asks for when it runs.

    `group` names the machines it runs on; empty: those that train. It runs `times` for each
    batch: less than once where several batches are accumulated in a step.
    """

    slot: Slot
    demands: tuple[Demand, ...]
    group: str = ""
    times: float = 1.0

    @property
    def stage(self) -> str:
        """What the stage is called in tables."""
        return self.slot.name

    @property
    def actor(self) -> Actor:
        """Who carries it out."""
        return self.slot.stream


def ask(slots: tuple[Slot, ...], scenario: Scenario, phase: Phase) -> tuple[StageDemands, ...]:
    """The demand table: what every slot's stage asks for one batch of one rank."""
    return tuple(
        StageDemands(
            slot=slot,
            demands=tuple(
                calibrated(demand, scenario.calibration)
                for demand in slot.stage.demands(scenario, phase)
            ),
            group=scenario.at,
            times=1.0 / scenario.job.train.accumulation if slot.once_a_step else 1.0,
        )
        for slot in slots
    )


_FACTORS: Final = {
    Path.CORES: "cpu",
    Path.DEVICE_TO_DEVICE: "collective",
    Path.MACHINE_TO_MACHINE: "collective",
}
"""Calibration factors of work, by the way it takes: above 1 the work shrinks."""


def calibrated(demand: Demand, calibration: Calibration) -> Demand:
    """The demand with its work and latency divided by the factor of its path."""
    name = _FACTORS.get(demand.path, "")
    factor = calibration.value(name)
    if factor == 1.0:
        return demand
    return replace(
        demand,
        amount=demand.amount / factor,
        operations=demand.operations / factor,
        latency=demand.latency / factor,
        term=_corrected(demand.term, factor),
        delay=_corrected(demand.delay, factor),
    )


def _corrected(made: Term | None, factor: float) -> Term | None:
    return None if made is None else quotient_of(uncalibrated=made, calibration=factor)
