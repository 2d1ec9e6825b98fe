"""Epochs of many pipelines of equal structure, all at once."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from types import MappingProxyType
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from simulator.engine.courses import busy_times
from simulator.engine.machine import device
from simulator.engine.maxplus.pipeline import OnDevice, Piece, Pipeline
from simulator.engine.maxplus.stacked import Stacks, Times
from simulator.engine.maxplus.stacked_device import StackedDevice
from simulator.engine.maxplus.stacked_makers import StackedMakers
from simulator.engine.rank import RUN_AHEAD
from simulator.engine.recorder import Epoch, Observer, Plan, Snapshot
from simulator.engine.supply import Supply, drifting
from simulator.engine.watch import LEAST_WINDOW, REPEATS, SAME, longest_period, window_of
from simulator.plant import CPU, Plant
from simulator.results import Solver
from simulator.units import Seconds

Flags = NDArray[np.bool_]

NOTHING: Mapping[str, Seconds] = MappingProxyType({})

WIDER = 1.0 + 1e-9
"""By how much steps may differ more than is the same, to be looked at one by one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A candidate's pipeline, its units, and how its epoch is to be run."""

    pipeline: Pipeline
    plant: Plant
    plan: Plan


def structure(run: Run) -> Hashable:
    """What candidates must have in common to be run at once; None: it is run alone."""
    line, plan = run.pipeline, run.plan
    job, crew, work = line.scenario.job, line.crew, line.work
    if job.train.accumulation > 1 or plan.progress is not None:
        return None
    lists = (line.read, line.make, line.receive, work.copy, work.forward, work.backward)
    more = (work.update, work.reduce, work.wait, work.program, work.result)
    last = (work.exchange, work.slowest, work.gather, work.bubble)
    return (
        (crew.makers, crew.credits, crew.reads_ahead, job.loader.pin_memory),
        (_supply(run).makers,),
        (line.copies_beside, job.train.sync_every_step, line.meets, len(work.bucket_shares)),
        (plan.most_steps, plan.replay),
        tuple(tuple(_kind(piece) for piece in pieces) for pieces in (*lists, *more, *last)),
    )


def _supply(run: Run) -> Supply:
    drift = drifting(run.pipeline.scenario, run.pipeline.crew.makers)
    return Supply(run.plan.batches, run.plan.last_share, makers=drift)


def _kind(piece: Piece) -> str:
    if isinstance(piece, OnDevice):
        return "device"
    return "busy" if piece.use.units else "passing"


K = TypeVar("K", bound=Hashable)


def together(runs: Mapping[K, Run | None]) -> dict[K, Epoch]:
    """Epochs of all runs that have the structure of another, as far as the recursion finds them."""
    groups: dict[Hashable, list[K]] = {}
    for key, run in runs.items():
        if run is not None and (alike := structure(run)) is not None:
            groups.setdefault(alike, []).append(key)
    found: dict[K, Epoch] = {}
    for keys in groups.values():
        if len(keys) > 1:
            epochs = run_epochs([run for key in keys if (run := runs[key]) is not None])
            found |= {key: epoch for key, epoch in zip(keys, epochs, strict=True) if epoch}
    return found


def run_epochs(runs: Sequence[Run]) -> tuple[Epoch | None, ...]:
    """Find out what the epochs of candidates of equal structure take.

    Returns
    -------
    tuple of (Epoch or None)
        What `single.run_epoch` returns for each, with ledgers after the first step and at both ends
        of the steady window alone; None where batches may be finished out of turn.
    """
    with np.errstate(invalid="ignore"):
        return _Batch(runs).run()


class _Batch:
    """The programs of all candidates, step by step together."""

    def __init__(self, runs: Sequence[Run]) -> None:
        first = runs[0].pipeline
        self._runs = runs
        self._beside = first.copies_beside
        self._waits = first.scenario.job.train.sync_every_step
        self._stacks = Stacks([run.plan.last_share for run in runs])
        lines = [run.pipeline for run in runs]
        self._device = StackedDevice(lines, self._stacks)
        self._limits = np.array([run.plan.batches for run in runs])
        self._ragged = np.array([run.plan.last_share < 1.0 for run in runs])
        start = np.array([run.plan.start_delay for run in runs], dtype=float)
        supplies = [_supply(run) for run in runs]
        self._makers = StackedMakers(
            lines, self._stacks, start, self._limits, self._ragged, supplies[0]
        )
        self._start = start
        self._observers = [
            Observer(run.plan, supply, run.pipeline.scenario.job, run.pipeline.fold)
            for run, supply in zip(runs, supplies, strict=True)
        ]
        for observer in self._observers:
            observer.begin(Snapshot(time=0.0, waiting=(0,), ledgers=((0.0,) * 7,), busy={}))
        self._ends: list[Times] = []
        self._spent: list[NDArray[np.float64]] = []
        self._ready: list[NDArray[np.int64]] = []
        self._seen = np.zeros(len(runs), dtype=int)
        self._shown = [0] * len(runs)
        self._steady = np.zeros(len(runs), dtype=bool)
        self._lowest = 0

    def run(self) -> tuple[Epoch | None, ...]:
        """Take all batches of all candidates."""
        makers, ready = self._makers, self._start
        done: list[Times] = []
        for taken in count():
            if not (taken < self._limits).any():
                break
            ready = np.where(taken < self._limits, ready, math.inf)
            if makers.serial:
                self._look(ready, taken)
            now = makers.take(ready, taken)
            self._look(now, taken + makers.ahead)
            makers.issue(now, taken + makers.credits)
            copied, end = self._device.run(now, makers.is_last(taken))
            done.append(end)
            self._ends.append(end)
            self._spent.append(self._device.ledger)
            self._ready.append(np.zeros(len(self._runs), dtype=np.int64))
            ready = np.maximum(now, done[taken + 1 - RUN_AHEAD]) if taken + 1 >= RUN_AHEAD else now
            ready = ready if self._beside else np.maximum(ready, copied)
            ready = np.maximum(ready, end) if self._waits else ready
        self._look(np.full(len(self._runs), math.inf), taken + makers.ahead)
        return self._epochs()

    def _look(self, until: Times, asked: int) -> None:
        """Look at the steps that ended before an instant, with `asked` batches asked for."""
        for step in range(self._lowest, len(self._ends)):
            end = self._ends[step]
            mask = (self._seen == step) & (end < until)
            if not mask.any():
                continue
            waiting = self._makers.waiting(end)
            self._ready[step] = np.where(mask, waiting, self._ready[step])
            self._seen[mask] += 1
            self._consider(mask & ~self._steady, step + 1, asked)
        while self._lowest < len(self._ends) and not self._open(self._lowest).any():
            self._lowest += 1

    def _open(self, step: int) -> Flags:
        flags: Flags = (self._seen <= step) & (self._ends[step] < math.inf)
        return flags

    def _consider(self, mask: Flags, steps: int, asked: int) -> None:
        """See which candidates have become steady, and end their epochs."""
        if not mask.any() or not self._observers[0].due(steps):
            return
        if not self._observers[0].over(steps):
            mask = mask & self._repeat(steps)
        chosen = np.flatnonzero(mask).tolist()
        self._show(chosen, steps)
        for index in chosen:
            observer = self._observers[index]
            observer.consider(min(asked, int(self._limits[index])))
            self._limits[index] = observer.supply.limit
            self._steady[index] = observer.settled

    def _repeat(self, steps: int) -> Flags:
        """Candidates whose steps may have begun to repeat."""
        ends = np.array(self._ends[:steps])
        lengths = np.diff(ends, axis=0, prepend=0.0)
        ready = np.array(self._ready[:steps])
        least = self._observers[0].least
        mean = lengths[-max(LEAST_WINDOW, least) :].mean(axis=0)
        slack = SAME * WIDER * np.maximum(mean, 1e-300)
        found = np.zeros(len(self._runs), dtype=bool)
        for period in range(1, min(longest_period(least), steps // (REPEATS + 1)) + 1):
            window = window_of(period, least)
            if window + period > steps:
                continue
            before = slice(steps - window - period, steps - period)
            differ = np.abs(lengths[-window:] - lengths[before]) > slack
            differ |= ready[-window:] != ready[before]
            found |= ~differ.any(axis=0)
        return found

    def _show(self, chosen: Sequence[int], steps: int) -> None:
        """Show the observers of candidates their steps up to one; `steps` at most."""
        ends = np.array(self._ends[:steps])[:, chosen].T.tolist()
        ready = np.array(self._ready[:steps])[:, chosen].T.tolist()
        for index, times, waiting in zip(chosen, ends, ready, strict=True):
            steps_of_it = slice(self._shown[index], min(steps, int(self._limits[index])))
            self._observers[index].add(
                [
                    Snapshot(time=time, waiting=(there,), ledgers=(), busy=NOTHING)
                    for time, there in zip(times[steps_of_it], waiting[steps_of_it], strict=True)
                ]
            )
            self._shown[index] = steps_of_it.stop

    def _epochs(self) -> tuple[Epoch | None, ...]:
        chosen = np.flatnonzero(~self._makers.tied).tolist()
        self._show(chosen, len(self._ends))
        found: list[Epoch | None] = [None] * len(self._runs)
        for index in chosen:
            end = float(self._ends[self._limits[index] - 1][index])
            found[index] = self._observers[index].epoch(end)
        first = self._busy([0.0 if e is None else e.snapshots[e.first].time for e in found])
        last = self._busy([0.0 if e is None else e.snapshots[e.last].time for e in found])
        for index in chosen:
            if (epoch := found[index]) is not None:
                snapshots = list(epoch.snapshots)
                kept = {1: NOTHING, epoch.first: first[index], epoch.last: last[index]}
                for at, busy in kept.items():
                    ledgers = snapshots[at].ledgers or (self._ledger(at, index),)
                    snapshots[at] = replace(snapshots[at], ledgers=ledgers, busy=busy)
                found[index] = replace(epoch, snapshots=snapshots, solver=Solver.RECURSION)
        return tuple(found)

    def _ledger(self, step: int, index: int) -> tuple[float, ...]:
        """A candidate's ledger after so many steps."""
        return tuple(self._spent[step - 1][:, index].tolist())

    def _busy(self, now: Sequence[Seconds]) -> list[dict[str, Seconds]]:
        """How long each unit and stream was busy, each candidate up to an instant of its own."""
        found: list[dict[str, Seconds]] = []
        for run, (uses, asked) in zip(self._runs, self._stacks.busy(np.array(now)), strict=True):
            spent = busy_times(uses.items())
            units = {unit: 0.0 + spent.get(unit, 0.0) for unit in _units(run)}
            found.append(units | {device(run.pipeline.fold.ranks[0]): asked})
        return found


def _units(run: Run) -> list[str]:
    pools = (site.prefix + CPU for site in run.plant.sites)
    return [*dict.fromkeys(run.pipeline.fold.units.values()), *pools]
