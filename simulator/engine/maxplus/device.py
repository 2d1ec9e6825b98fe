"""When the device is done with a batch, and where its time goes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from simulator.engine.maxplus.chains import Chain, Logs, walk
from simulator.engine.maxplus.pipeline import Pipeline
from simulator.engine.rank import Ledger
from simulator.units import Seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tasks:
    """What the device does for a batch of one size."""

    copy: Chain
    forward: Chain
    backward: Chain
    buckets: Sequence[Chain]
    exchange: Chain
    result: Chain


@dataclass(frozen=True, slots=True, kw_only=True)
class _Once:
    """What it does once a step; `reduce` holds the flows of each bucket."""

    reduce: Sequence[Sequence[Chain]]
    wait: Chain
    slowest: Chain
    bubble: Chain
    gather: Chain
    update: Chain
    program: Chain


class Device:
    """The device of the rank: takes batches one after another.

    Parameters
    ----------
    pipeline : Pipeline
        Tasks and rules.
    last_share : float
        Size of the last batch as a share of a full one.
    logs : Logs
        Told what is busy when.
    """

    def __init__(self, pipeline: Pipeline, last_share: float, logs: Logs) -> None:
        self._beside = pipeline.copies_beside
        self._meets = pipeline.meets
        self._full = _tasks(pipeline, 1.0, logs)
        self._partial = _tasks(pipeline, last_share, logs)
        self._once = _once(pipeline, logs)
        self._free = 0.0
        self._copier_free = 0.0
        self._reducer_free = 0.0
        self._reducing = 0.0
        self.ledger = Ledger()

    def run(self, handed: Seconds, share: float, *, closes: bool) -> tuple[Seconds, Seconds]:
        """When a batch that is handed over has been copied, and when it is done [s].

        `closes`: it is the last of its step.
        """
        tasks, ledger = self._full if share == 1.0 else self._partial, self.ledger
        now = max(handed, self._free)
        ledger.data_stall += now - self._free
        copied = self._copy(tasks, handed, now)
        ledger.h2d += max(now, copied) - now
        now = self._compute(tasks, max(now, copied), closes=closes)
        end = walk(tasks.result, now)
        ledger.other += end - now
        self._free = end
        return copied, end

    def _copy(self, tasks: _Tasks, handed: Seconds, now: Seconds) -> Seconds:
        if not self._beside:
            return walk(tasks.copy, now)
        self._copier_free = walk(tasks.copy, max(handed, self._copier_free))
        return self._copier_free

    def _compute(self, tasks: _Tasks, now: Seconds, *, closes: bool) -> Seconds:
        once, ledger = self._once, self.ledger
        now = self._busy(tasks.forward, now)
        if closes and self._meets:
            now = self._backward_with_reductions(tasks, now)
        else:
            now = self._busy(tasks.backward, now)
        started, now = now, walk(tasks.exchange, now)
        ledger.communication += now - started
        if not closes:
            return now
        started, now = now, walk(once.slowest, now)
        ledger.other += now - started
        started, now = now, walk(once.bubble, now)
        ledger.bubble += now - started
        started, now = now, walk(once.gather, now)
        ledger.communication += now - started
        now = self._busy(once.update, now)
        started, now = now, walk(once.program, now)
        ledger.other += now - started
        return now

    def _busy(self, chain: Chain, start: Seconds) -> Seconds:
        now = walk(chain, start)
        self.ledger.compute += now - start
        return now

    def _backward_with_reductions(self, tasks: _Tasks, now: Seconds) -> Seconds:
        runs: list[tuple[Seconds, Seconds]] = []
        for backward, flows in zip(tasks.buckets, self._once.reduce, strict=True):
            now = self._busy(backward, now)
            started = max(now, self._reducer_free)
            self._reducer_free = max((walk(flow, started) for flow in flows), default=started)
            runs.append((started, self._reducer_free))
        ledger, computed = self.ledger, now
        reduced = self._reduced(runs, computed)
        for started, end in runs:
            self._reducing += end - started
            ledger.hidden_communication += end - started
        now = self._reducer_free
        exposed = self._reducing - reduced
        ledger.communication += exposed
        ledger.other += (now - computed) - exposed
        ledger.hidden_communication -= exposed
        started, now = now, walk(self._once.wait, now)
        ledger.other += now - started
        return now

    def _reduced(self, runs: Sequence[tuple[Seconds, Seconds]], now: Seconds) -> Seconds:
        """Time spent on reductions up to `now` [s]."""
        spent = self._reducing
        for started, end in runs:
            if started < now:
                spent += min(end, now) - started
        return spent


def _tasks(pipeline: Pipeline, share: float, logs: Logs) -> _Tasks:
    work = pipeline.work
    return _Tasks(
        copy=logs.chain(work.copy, share),
        forward=logs.chain(work.forward, share),
        backward=logs.chain(work.backward, share),
        buckets=[logs.chain(work.backward, share * part) for part in work.bucket_shares],
        exchange=logs.chain(work.exchange, share),
        result=logs.chain(work.result, share),
    )


def _once(pipeline: Pipeline, logs: Logs) -> _Once:
    work = pipeline.work
    return _Once(
        reduce=[[logs.chain([flow], part) for flow in work.reduce] for part in work.bucket_shares],
        wait=logs.chain(work.wait, 1.0),
        slowest=logs.chain(work.slowest, 1.0),
        bubble=logs.chain(work.bubble, 1.0),
        gather=logs.chain(work.gather, 1.0),
        update=logs.chain(work.update, 1.0),
        program=logs.chain(work.program, 1.0),
    )
