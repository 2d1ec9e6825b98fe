"""When the device is done with a batch, and where its time goes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from simulator.engine.maxplus.chains import Chain, Logs, walk
from simulator.engine.maxplus.pipeline import Piece, Pipeline
from simulator.engine.rank import Part, Work
from simulator.pipeline.ledger import DATA_LINE, OTHER_RANKS_LINE, Ledger
from simulator.pipeline.stages.base import Per
from simulator.units import Seconds

Row: TypeAlias = tuple[int, Per, Chain]
"""A slot's line of the ledger, how often it comes, and its tasks."""


class _Rows:
    """The slots of a batch of one size, in fixed times; `buckets` are those of each bucket."""

    def __init__(self, work: Work[Piece], share: float, logs: Logs) -> None:
        def rows(parts: Sequence[Part[Piece]], of_all: float = 1.0) -> tuple[Row, ...]:
            return tuple(
                (part.line, part.slot.per, logs.chain(part.tasks, of_all * _size(part, share)))
                for part in parts
            )

        self.copies = rows(work.copies)
        self.beside = rows(work.beside)
        self.before = rows(work.before)
        self.filling = rows(work.filling)
        self.buckets = tuple(rows(work.filling, part) for part in work.shares)
        self.after = rows(work.after)


def _size(part: Part[Piece], share: float) -> float:
    return share if part.slot.per is Per.BATCH else 1.0


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
        work = pipeline.work
        self._beside = pipeline.scenario.job.loader.copies_beside_compute
        self._meets = pipeline.meets
        self._full = _Rows(work, 1.0, logs)
        self._partial = _Rows(work, last_share, logs)
        flows = [piece for part in work.reduce for piece in part.tasks]
        self._reduce = [[logs.chain([flow], part) for flow in flows] for part in work.shares]
        self._exposed_line = work.reduce[0].line if work.reduce else OTHER_RANKS_LINE
        self._free = 0.0
        self._copier_free = 0.0
        self._reducer_free = 0.0
        self._reducing = 0.0
        self.ledger = Ledger()

    def run(self, handed: Seconds, share: float, *, closes: bool) -> tuple[Seconds, Seconds]:
        """When a batch that is handed over has been copied, and when it is done [s].

        `closes`: it is the last of its step.
        """
        rows, ledger = self._full if share == 1.0 else self._partial, self.ledger
        now = max(handed, self._free)
        ledger.add(DATA_LINE, now - self._free, now)
        copied = self._copy(rows.copies, handed, now)
        if rows.copies and copied > now:
            ledger.add(rows.copies[0][0], copied - now, copied)
        end = self._compute(rows, max(now, copied), closes=closes)
        self._free = end
        return copied, end

    def _copy(self, rows: Sequence[Row], handed: Seconds, now: Seconds) -> Seconds:
        copied = max(handed, self._copier_free) if self._beside else now
        for _, _, chain in rows:
            copied = walk(chain, copied)
        if self._beside:
            self._copier_free = copied
        return copied

    def _compute(self, rows: _Rows, now: Seconds, *, closes: bool) -> Seconds:
        beside = [
            (line, walk(chain, now))
            for line, per, chain in rows.beside
            if closes or per is Per.BATCH
        ]
        now = self._carry_out(rows.before, now, closes=closes)
        if closes and self._meets:
            now = self._fill_buckets(rows, now)
        else:
            now = self._carry_out(rows.filling, now, closes=closes)
        for line, end in beside:
            self.ledger.add(line, max(0.0, end - now), max(now, end))
            now = max(now, end)
        return self._carry_out(rows.after, now, closes=closes)

    def _carry_out(self, rows: Sequence[Row], now: Seconds, *, closes: bool) -> Seconds:
        """Slots one after another, those that come with this batch; when the last is done [s]."""
        for line, per, chain in rows:
            if closes or per is Per.BATCH:
                started, now = now, walk(chain, now)
                self.ledger.add(line, now - started, now)
        return now

    def _fill_buckets(self, rows: _Rows, now: Seconds) -> Seconds:
        runs: list[tuple[Seconds, Seconds]] = []
        for filling, flows in zip(rows.buckets, self._reduce, strict=True):
            now = self._carry_out(filling, now, closes=True)
            started = max(now, self._reducer_free)
            self._reducer_free = max((walk(flow, started) for flow in flows), default=started)
            runs.append((started, self._reducer_free))
        ledger, computed = self.ledger, now
        reduced = self._reduced(runs, computed)
        for started, end in runs:
            self._reducing += end - started
            ledger.hidden += end - started
        now = self._reducer_free
        exposed = self._reducing - reduced
        ledger.hidden -= exposed
        ledger.add(self._exposed_line, exposed, now)
        ledger.add(OTHER_RANKS_LINE, (now - computed) - exposed, now)
        return now

    def _reduced(self, runs: Sequence[tuple[Seconds, Seconds]], now: Seconds) -> Seconds:
        """Time spent on reductions up to `now` [s]."""
        spent = self._reducing
        for started, end in runs:
            if started < now:
                spent += min(end, now) - started
        return spent
