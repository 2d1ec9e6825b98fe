"""Checkpoints: how long training waits for one, and how long it takes to write and to load it.

The copy to host RAM uses the device's own link. From there each process serializes its share, and
the shares of a machine are written to the store together, over units that sample reads also use: an
asynchronous write and these reads slow each other down, as in a fair queue. Predictions of a run
and forecasts with failures both use these times.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final, NamedTuple, TypeAlias

import numpy as np

from simulator.physics.footprint import checkpoint_shares
from simulator.pipeline.loads import alone
from simulator.pipeline.program import CHECKPOINTING
from simulator.pipeline.stages.base import (
    Demand,
    Path,
    Phase,
    Resource,
    StageDemands,
    ask,
    asking,
)
from simulator.pipeline.stages.waiting import AGREEING
from simulator.pipeline.topology import Location, Topology, build
from simulator.records import dataclass
from simulator.schema.long_run import Near, Target
from simulator.schema.scenario import Scenario
from simulator.schema.storage import Storage
from simulator.units import Real, Seconds, at_least, at_most

RESTART_SHARE: Final = 0.215
"""Share of a store's read rate that loads at restarts reached: 21.5% of 700 GB/s on 60 machines of
8 B200 (Lablup, arXiv 2605.09370, 2026-05). One cluster: `checkpoint.load` states another time."""
MIN_FAIR_SHARE: Final = 0.5
"""Share of a unit that one of two flows gets at least, where both want more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointTimes:
    """Times of one checkpoint [s].

    Training waits for `blocking`; the checkpoint is in the store after `durable`, and a restart
    loads it in `load`. `dragged` is the training time lost because an asynchronous write slows down
    sample reads; `near` is a copy in host RAM or on local drives, if any. `shared` are the units
    that a write in the background shares with training: the time that it needs of each [s], and
    the utilization by training.
    """

    blocking: Seconds
    durable: Seconds
    load: Seconds
    dragged: Seconds = 0.0
    near: Near | None = None
    shared: tuple[tuple[Seconds, float], ...] = ()

    def pause(self, interval: Seconds) -> Seconds:
        """Return the training time lost for one checkpoint in each `interval` of training [s].

        A store takes one checkpoint at a time: the next one waits until the last one is written.
        No unit does more than all it can.
        """
        full = [busy + used * interval - interval for busy, used in self.shared]
        return max(self.blocking + self.dragged, self.durable - interval, *full)


def checkpoint_stages(scenario: Scenario) -> tuple[StageDemands, ...]:
    """Return the demands of a checkpoint, whether or not the run writes any."""
    job = scenario.job
    writing = replace(job.train, checkpoint_every_steps=1.0)
    return ask(CHECKPOINTING, replace(scenario, jobs=(replace(job, train=writing),)), Phase.WARM)


class Write(NamedTuple):
    """The parts of a checkpoint: the copy to host RAM [s], the write [s], and its demand."""

    snapshot: Seconds | Real
    stored: Seconds | Real
    demand: Demand | None


def write_of(scenario: Scenario, topology: Topology) -> Write:
    """Return the parts of a checkpoint, all ranks writing at once; 0 without a model.

    `calibration.checkpoint` divides both times.
    """
    demands = [demand for stage in checkpoint_stages(scenario) for demand in stage.demands]
    place, faster = Location(rank=0), scenario.calibration.value("checkpoint")
    copies = [one for one in demands if one.path is Path.DEVICE_TO_HOST]
    writes = [one for one in demands if one.path is Path.HOST_TO_STORE]
    snapshot = sum((alone(topology, one, place) for one in copies), 0.0) / faster
    stored = sum((alone(topology, one, place) for one in writes), 0.0) / faster
    return Write(snapshot, stored, writes[0] if writes else None)


def blocking_time(scenario: Scenario, topology: Topology) -> Seconds | Real:
    """Return the time that training waits for one checkpoint without other load of the store [s].

    It is the stated one; else that of the nearest copy, or of the copy to host RAM and the
    negotiation of the processes if the write is asynchronous.
    """
    given = scenario.checkpoints
    if given.blocking is not None:
        return given.blocking
    write = write_of(scenario, topology)
    durable = write.snapshot + write.stored if given.durable is None else given.durable
    if given.asynchronous:
        return at_most(durable, AGREEING + write.snapshot)
    near = _near_write(scenario, write.snapshot)
    return durable if near is None else near


def longest_pause(scenario: Scenario, topology: Topology) -> Seconds | Real:
    """Return an upper bound on `CheckpointTimes.pause` at any load of the store [s].

    A write in the background takes at most twice as long, and costs at most half of the training
    meanwhile; the next one then waits at most for all of it.
    """
    waits = blocking_time(scenario, topology)
    if not in_background(scenario):
        return waits
    write = write_of(scenario, topology)
    whole = write.snapshot + write.stored / MIN_FAIR_SHARE
    return at_least(waits + write.stored, at_least(whole, scenario.checkpoints.durable or 0.0))


def in_background(scenario: Scenario) -> bool:
    """Return whether checkpoints go to the store while training continues."""
    given = scenario.checkpoints
    return given.asynchronous or _near_write(scenario, 0.0) is not None


def checkpoint_times(
    scenario: Scenario, usage: Mapping[str, float] | None = None, topology: Topology | None = None
) -> CheckpointTimes:
    """Return the times of a checkpoint of a scenario.

    Parameters
    ----------
    scenario : Scenario
        The job, its store, the machines that write to it, and its [checkpoint] section, whose
        stated times take precedence over computed ones.
    usage : mapping of str to float, optional
        Utilization of each resource by training, which competes with an asynchronous write; None:
        no other load.
    topology : Topology, optional
        That of the scenario, if known.
    """
    given = scenario.checkpoints
    if scenario.job.model is None:
        stated = given.durable or given.blocking or 0.0
        return CheckpointTimes(
            blocking=given.blocking or 0.0, durable=stated, load=given.load or 0.0
        )
    topology = build(scenario) if topology is None else topology
    write = write_of(scenario, topology)
    near = _near(scenario, float(write.snapshot))
    behind = usage is not None and in_background(scenario) and write.demand is not None
    slower, dragged = _ALONE
    shared: tuple[tuple[Seconds, float], ...] = ()
    if behind and usage is not None and write.demand is not None:
        slower, dragged = _meeting(topology, write.demand, usage)
        shared = _needed(topology, write.demand, usage)
    stored = float(write.stored)
    blocking = float(blocking_time(scenario, topology))
    durable = float(write.snapshot) + stored * slower if given.durable is None else given.durable
    if given.blocking is not None and given.durable is None and not in_background(scenario):
        durable = blocking
    return CheckpointTimes(
        blocking=blocking,
        durable=max(blocking, durable),
        load=_loaded(scenario, topology) if given.load is None else given.load,
        dragged=stored * slower * dragged,
        near=near if near is None else replace(near, durable=max(blocking, near.durable)),
        shared=tuple((min(busy, max(blocking, durable)), used) for busy, used in shared),
    )


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


def _near_write(scenario: Scenario, snapshot: Seconds | Real) -> Seconds | Real | None:
    """Return the time until a nearer copy is written [s]; None if there is none."""
    given, host = scenario.checkpoints, scenario.cluster.trainers.host
    if scenario.job.model is None:
        return None
    shares = checkpoint_shares(scenario)
    if given.to is Target.PEER and host.network is not None:
        # RAM is sent without serialization. Each machine sends one share and receives one.
        return snapshot + shares.machine.value / host.network.bandwidth
    if given.to is Target.LOCAL and host.local_storage is not None:
        each = scenario.job.train.checkpoint_process_rate * shares.processes
        drives = _write_rate(host.local_storage) * host.drive_count
        return snapshot + shares.machine.value / at_most(each, drives)
    return None


def _near(scenario: Scenario, snapshot: Seconds) -> Near | None:
    """Return the copy in the RAM of a peer machine or on local drives; None without one."""
    durable, host = _near_write(scenario, snapshot), scenario.cluster.trainers.host
    if durable is None:
        return None
    if scenario.checkpoints.to is Target.PEER or host.local_storage is None:
        return Near(durable=float(durable), load=float(durable), outlives_machine=True)
    shares, drives = checkpoint_shares(scenario), host.local_storage
    each = float(scenario.job.train.checkpoint_process_rate * shares.processes)
    read = float(shares.machine.value) / min(each, drives.read_rate * host.drive_count)
    return Near(durable=float(durable), load=snapshot + read, outlives_machine=False)


def _write_rate(drives: Storage) -> float:
    return drives.read_rate if drives.write_bandwidth is None else drives.write_bandwidth


_Meeting: TypeAlias = tuple[float, float]
"""A write meets reads: how many times as long it takes, and which share of training is lost."""
_ALONE: Final[_Meeting] = (1.0, 0.0)


def _meeting(topology: Topology, write: Demand, usage: Mapping[str, float]) -> _Meeting:
    """Return the contention of a checkpoint write with training, on the unit with the most."""
    place = Location(rank=0)
    longest = float(alone(topology, write, place)) or 1.0
    found = [_ALONE]
    for name, use in topology.way(write, place):
        unit = topology.units[name]
        wanted = float(write.amount * use / unit.capacity) / longest
        used = min(1.0, usage.get(str(unit.resource), 0.0))
        found.append(_shared(wanted, used))
    slower, dragged = zip(*found, strict=True)
    return max(slower), max(dragged)


def _needed(
    topology: Topology, write: Demand, usage: Mapping[str, float]
) -> tuple[tuple[Seconds, float], ...]:
    """Return the time that a write needs of each unit [s], with the utilization by training."""
    route = topology.way(write, Location(rank=0))
    units = [(topology.units[name], use) for name, use in route]
    return tuple(
        (float(write.amount * use / unit.capacity), min(1.0, usage.get(str(unit.resource), 0.0)))
        for unit, use in units
    )


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


def checkpoints_of(scenario: Scenario, steps: Real, training: Seconds | None = None) -> Real:
    """Return the number of checkpoints of a run of `steps` steps that trains for `training` [s].

    `checkpoint.interval` takes precedence over `train.checkpoint_every_steps`; it counts if the
    time of training is known.
    """
    every, interval = scenario.job.train.checkpoint_every_steps, scenario.checkpoints.interval
    if interval is not None:
        return 0.0 if training is None else np.floor(training / interval + _SAME_TIME)
    return 0.0 if every is None else steps // every


_SAME_TIME: Final = 1e-9
"""Share of an interval that rounding may take from a run."""
