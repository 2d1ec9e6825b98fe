"""One epoch by the recursion: batch by batch, each event the latest of what it waits for."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import replace

from simulator.engine.batches import Supply, drifting
from simulator.engine.machine import device
from simulator.engine.maxplus.chains import Logs
from simulator.engine.maxplus.device import Device
from simulator.engine.maxplus.makers import Makers, OwnThread, Workers
from simulator.engine.maxplus.pipeline import Pipeline
from simulator.engine.rank import RUN_AHEAD
from simulator.engine.recorder import Epoch, Observer, Plan, Snapshot
from simulator.pipeline.topology import CPU, Topology
from simulator.results.prediction import Solver
from simulator.units import Seconds


def run_epoch(pipeline: Pipeline, topology: Topology, plan: Plan) -> Epoch:
    """Find out what an epoch of a pipeline takes.

    Parameters
    ----------
    pipeline : Pipeline
        The pipeline in fixed times.
    topology : Topology
        Its units.
    plan : Plan
        How many batches, and when to stop.

    Returns
    -------
    Epoch
        What the event engine would return; only the snapshots at both ends of the steady window
        say how busy units were.

    Raises
    ------
    TieError
        If unlike batches are finished at one instant.
    """
    job = pipeline.scenario.job
    drift = drifting(pipeline.scenario, pipeline.crew.makers)
    supply, logs = Supply(plan.batches, plan.last_share, makers=drift), Logs()
    observer = Observer(plan, supply, job, pipeline.fold, pipeline.crew.makers)
    if pipeline.crew.makers:
        makers: Makers = Workers(pipeline, supply, logs, plan.start_delay)
    else:
        makers = OwnThread(pipeline, supply, logs)
    program = _Program(pipeline, Device(pipeline, plan.last_share, logs), makers, observer)
    epoch = observer.epoch(program.run(plan.start_delay))
    snapshots = list(epoch.snapshots)
    rank = device(pipeline.fold.ranks[0])
    pools = (site.prefix + CPU for site in topology.sites)
    units = [*dict.fromkeys(pipeline.fold.units.values()), *pools]
    for index in {epoch.first, epoch.last}:
        snapshot = snapshots[index]
        snapshots[index] = replace(snapshot, busy=logs.busy(snapshot.time, units, rank))
    return replace(epoch, snapshots=snapshots, solver=Solver.RECURSION)


class _Program:
    """The main thread: takes batches and hands them to the device, a few ahead of it."""

    def __init__(
        self, pipeline: Pipeline, device: Device, makers: Makers, observer: Observer
    ) -> None:
        train = pipeline.scenario.job.train
        self._per_step = train.accumulation
        self._waits = train.sync_every_step
        self._beside = pipeline.scenario.job.loader.copies_beside_compute
        self._serial = pipeline.crew.makers == 0
        self._device = device
        self._makers = makers
        self._observer = observer
        self._supply = observer.supply
        self._ended: deque[tuple[Seconds, tuple[float, ...]]] = deque()

    def run(self, start: Seconds) -> Seconds:
        """Take all batches; when the last is done [s]."""
        self._observer.begin(self._snapshot(0.0, self._device.ledger.totals(0.0), 0))
        ready, taken = start, 0
        done: list[Seconds] = []
        while self._supply.has(taken):
            if self._serial:
                self._look(ready)
            now = self._makers.take(ready, taken)
            self._look(now)
            self._makers.taken(now)
            share = self._supply.share(taken)
            taken += 1
            closes = taken % self._per_step == 0 or not self._supply.has(taken)
            copied, end = self._device.run(now, share, closes=closes)
            done.append(end)
            if closes:
                self._ended.append((end, self._device.ledger.totals(end)))
            ready = max(now, done[taken - RUN_AHEAD]) if taken >= RUN_AHEAD else now
            if not self._beside:
                ready = max(ready, copied)
            if self._waits and closes:
                ready = max(ready, end)
        self._look(math.inf)
        return done[-1]

    def _look(self, until: Seconds) -> None:
        """Show the steps that ended before an instant; what was asked for by then is known."""
        while self._ended and self._ended[0][0] < until:
            now, spent = self._ended.popleft()
            snapshot = self._snapshot(now, spent, self._makers.waiting(now))
            self._observer.step(snapshot, self._makers.issued)

    @staticmethod
    def _snapshot(now: Seconds, spent: tuple[float, ...], waiting: int) -> Snapshot:
        return Snapshot(time=now, waiting=(waiting,), ledgers=(spent,), busy={})
