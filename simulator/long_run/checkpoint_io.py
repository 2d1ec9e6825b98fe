"""Times to write and to load a checkpoint, with the other load of the store.

The copy to host RAM uses the device's own link. From there each process serializes its share, and
the shares of a machine are written to the store together, over units that sample reads also use: an
asynchronous write and these reads slow each other down, as in a fair queue.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final, TypeAlias

from simulator.physics.footprint import checkpoint_shares
from simulator.pipeline.loads import alone
from simulator.pipeline.program import CHECKPOINTING
from simulator.pipeline.stages.base import Demand, Path, Phase, Resource, ask, asking
from simulator.pipeline.stages.waiting import AGREEING
from simulator.pipeline.topology import Location, Topology, build
from simulator.records import dataclass
from simulator.results.prediction import Timing
from simulator.schema.long_run import Checkpoints, Near, Target
from simulator.schema.scenario import Scenario
from simulator.schema.storage import Storage
from simulator.units import Seconds

RESTART_SHARE: Final = 0.215
"""Share of a store's read rate that loads at restarts reached: 21.5% of 700 GB/s on 60 machines of
8 B200 (Lablup, arXiv 2605.09370, 2026-05). One cluster: `checkpoint.load` states another time."""
WRITE_LOG_SD: Final = 0.28
"""Standard deviation of the logarithm of what a checkpoint takes, a guess: chosen so that its 80%
interval, 30% less to 43% more, holds the eight published times that are compared in
`docs/how-to/checkpoints.md`; no others were at hand to judge it by."""
MIN_FAIR_SHARE: Final = 0.5
"""Share of a unit that one of two flows gets at least, where both want more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointTimes:
    """Times of one checkpoint [s].

    Training waits for `blocking`; the checkpoint is in the store after `durable`, and a restart
    loads it in `load`. `dragged` is the training time lost because an asynchronous write slows down
    sample reads; `near` is a copy in host RAM or on local drives, if any.
    """

    blocking: Seconds
    durable: Seconds
    load: Seconds
    dragged: Seconds = 0.0
    near: Near | None = None


def checkpoint_times(
    scenario: Scenario, given: Checkpoints, timing: Timing | None = None
) -> CheckpointTimes:
    """Return the times of a checkpoint of a scenario.

    Parameters
    ----------
    scenario : Scenario
        The job, its store, and the machines that write to it.
    given : Checkpoints
        Stated times of checkpoints, which take precedence over computed ones.
    timing : Timing, optional
        The steady run, whose reads compete with an asynchronous write; None: no other load.
    """
    if scenario.job.model is None:
        stated = given.durable or given.blocking or 0.0
        return CheckpointTimes(
            blocking=given.blocking or 0.0, durable=stated, load=given.load or 0.0
        )
    topology = build(scenario)
    snapshot, write = _written(scenario, topology)
    stored = alone(topology, write, Location(rank=0))
    near = _near(scenario, given, float(snapshot))
    behind = given.asynchronous or near is not None
    slower, dragged = _meeting(scenario, topology, write, timing) if behind else _ALONE
    durable = float(snapshot + stored * slower) if given.durable is None else given.durable
    blocking = given.blocking
    if blocking is None:
        waits = durable if near is None or given.asynchronous else near.durable
        blocking = min(durable, AGREEING + float(snapshot)) if given.asynchronous else waits
    load = _loaded(scenario, topology) if given.load is None else given.load
    return CheckpointTimes(
        blocking=blocking,
        durable=max(blocking, durable),
        load=load,
        dragged=float(stored) * slower * dragged,
        near=near if near is None else replace(near, durable=max(blocking, near.durable)),
    )


def _written(scenario: Scenario, topology: Topology) -> tuple[Seconds, Demand]:
    """Return the time of the copy to host RAM [s], and the demand of the write to the store."""
    job = scenario.job
    writing = replace(job.train, checkpoint_every_steps=1.0)
    stages = ask(CHECKPOINTING, replace(scenario, jobs=(replace(job, train=writing),)), Phase.WARM)
    demands = [demand for stage in stages for demand in stage.demands]
    place = Location(rank=0)
    copies = [d for d in demands if d.path is Path.DEVICE_TO_HOST]
    write = next(d for d in demands if d.path is Path.HOST_TO_STORE)
    return sum(float(alone(topology, one, place)) for one in copies), write


def _loaded(scenario: Scenario, topology: Topology) -> Seconds:
    """Return the time in which all machines load their shares from the store at once [s]."""
    shares, group = checkpoint_shares(scenario), scenario.cluster.trainers
    read = asking(
        shares.machine,
        Resource.STORAGE,
        Path.STORE_TO_HOST,
        latency=group.storage.read_latency,
    )
    from_store = float(alone(topology, read, Location(rank=0))) / RESTART_SHARE
    rate = scenario.job.train.checkpoint_process_rate * shares.processes
    return max(from_store, float(shares.machine.value / rate))


def _near(scenario: Scenario, given: Checkpoints, snapshot: Seconds) -> Near | None:
    """Return the copy in the RAM of a peer machine or on local drives; None without one."""
    shares, host = checkpoint_shares(scenario), scenario.cluster.trainers.host
    size = float(shares.machine.value)
    if given.to is Target.PEER and host.network is not None:
        # RAM is sent without serialization. Each machine sends one share and receives one.
        sent = size / host.network.bandwidth
        return Near(durable=snapshot + sent, load=snapshot + sent, outlives_machine=True)
    if given.to is Target.LOCAL and host.local_storage is not None:
        drives = host.local_storage
        each = float(scenario.job.train.checkpoint_process_rate * shares.processes)
        write = size / min(each, _write_rate(drives) * host.drive_count)
        read = size / min(each, drives.read_rate * host.drive_count)
        return Near(durable=snapshot + write, load=snapshot + read, outlives_machine=False)
    return None


def _write_rate(drives: Storage) -> float:
    return drives.read_rate if drives.write_bandwidth is None else drives.write_bandwidth


_Meeting: TypeAlias = tuple[float, float]
"""A write meets reads: how many times as long it takes, and which share of training is lost."""
_ALONE: Final[_Meeting] = (1.0, 0.0)


def _meeting(
    scenario: Scenario, topology: Topology, write: Demand, timing: Timing | None
) -> _Meeting:
    """Return the contention of a checkpoint write with training, on the unit with the most."""
    if timing is None:
        return _ALONE
    place = Location(rank=0)
    longest = float(alone(topology, write, place)) or 1.0
    found = [_ALONE]
    for name, use in topology.way(write, place):
        unit = topology.units[name]
        wanted = float(write.amount * use / unit.capacity) / longest
        found.append(_shared(wanted, _used(scenario, timing, unit.resource)))
    slower, dragged = zip(*found, strict=True)
    return max(slower), max(dragged)


def _used(scenario: Scenario, timing: Timing, resource: Resource) -> float:
    """Return the utilization of a resource by training, without checkpoints."""
    usage: Mapping[str, float] = {name: use.mean for name, use in timing.usage.items()}
    writing = scenario.job.train.checkpoint_every_steps is not None and timing.step_time.mean > 0.0
    own = timing.split.checkpoint / timing.step_time.mean if writing else 0.0
    return min(1.0, max(0.0, usage.get(str(resource), 0.0) - own))


def _shared(wanted: float, used: float) -> _Meeting:
    """Return the slowdown of a write on a unit, and the share of training's rate lost there.

    Examples
    --------
    >>> _shared(0.5, 0.4)
    (1.0, 0.0)
    >>> _shared(1.0, 1.0)
    (2.0, 0.5)
    """
    if wanted <= 0.0 or used <= 0.0 or wanted + used <= 1.0:
        return _ALONE
    got = min(wanted, max(MIN_FAIR_SHARE, 1.0 - used))
    left = min(used, max(MIN_FAIR_SHARE, 1.0 - wanted))
    return wanted / got, 1.0 - left / used
