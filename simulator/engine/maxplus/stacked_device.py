"""When devices are done with a batch, and where their time goes, in many candidates at once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from simulator.engine.maxplus.pipeline import Piece, Pipeline
from simulator.engine.maxplus.stacked import Leg, Stacks, Times, walk

Flags = NDArray[np.bool_]

STALL, H2D, COMPUTE, COMMUNICATION, BUBBLE, OTHER, HIDDEN = range(7)
"""Entries of a ledger, in the order of `rank.Ledger`."""


class StackedDevice:
    """The devices of all candidates; every batch closes a step."""

    def __init__(self, lines: Sequence[Pipeline], stacks: Stacks) -> None:
        self._beside = lines[0].copies_beside
        self._meets = lines[0].meets
        works = [line.work for line in lines]

        def chain(name: str, *, whole: bool = False) -> tuple[Leg, ...]:
            pieces: list[Sequence[Piece]] = [getattr(work, name) for work in works]
            legs = stacks.chain(pieces)
            return tuple((full, full, log) for full, _, log in legs) if whole else legs

        self._copy, self._forward = chain("copy"), chain("forward")
        self._exchange, self._result = chain("exchange"), chain("result")
        self._wait, self._bubble = chain("wait", whole=True), chain("bubble", whole=True)
        self._gather, self._update = chain("gather", whole=True), chain("update", whole=True)
        self._program, self._slowest = chain("program", whole=True), chain("slowest", whole=True)
        self._backward = () if self._meets else chain("backward")
        self._buckets: list[tuple[tuple[Leg, ...], list[tuple[Leg, ...]]]] = []
        for number in range(len(works[0].bucket_shares) if self._meets else 0):
            parts = [work.bucket_shares[number] for work in works]
            flows = [
                tuple(
                    (full, full, log)
                    for full, _, log in stacks.chain([[work.reduce[i]] for work in works], parts)
                )
                for i in range(len(works[0].reduce))
            ]
            backward = stacks.chain([work.backward for work in works], parts)
            self._buckets.append((backward, flows))
        nothing = np.zeros(len(lines))
        self._free = self._copier_free = self._reducer_free = self._reducing = nothing
        self.ledger = np.zeros((7, len(lines)))

    def run(self, handed: Times, last: Flags | None) -> tuple[Times, Times]:
        """When a batch that is handed over has been copied, and when it is done."""
        ledger = self.ledger = self.ledger.copy()
        now = np.maximum(handed, self._free)
        ledger[STALL] += now - self._free
        if self._beside:
            begun = np.maximum(handed, self._copier_free)
            copied = self._copier_free = walk(self._copy, begun, last)
        else:
            copied = walk(self._copy, now, last)
        started, now = now, np.maximum(now, copied)
        ledger[H2D] += now - started
        now = self._compute(ledger, now, last)
        end = walk(self._result, now, last)
        ledger[OTHER] += end - now
        self._free = end
        return copied, end

    def _compute(self, ledger: NDArray[np.float64], now: Times, last: Flags | None) -> Times:
        now = self._passed(ledger, COMPUTE, self._forward, now, last)
        if self._meets:
            now = self._backward_with_reductions(ledger, now, last)
        else:
            now = self._passed(ledger, COMPUTE, self._backward, now, last)
        now = self._passed(ledger, COMMUNICATION, self._exchange, now, last)
        now = self._passed(ledger, OTHER, self._slowest, now, None)
        now = self._passed(ledger, BUBBLE, self._bubble, now, None)
        now = self._passed(ledger, COMMUNICATION, self._gather, now, None)
        now = self._passed(ledger, COMPUTE, self._update, now, None)
        return self._passed(ledger, OTHER, self._program, now, None)

    @staticmethod
    def _passed(
        ledger: NDArray[np.float64],
        entry: int,
        legs: Sequence[Leg],
        start: Times,
        last: Flags | None,
    ) -> Times:
        if not legs:
            return start
        now = walk(legs, start, last)
        ledger[entry] += now - start
        return now

    def _backward_with_reductions(
        self, ledger: NDArray[np.float64], now: Times, last: Flags | None
    ) -> Times:
        runs: list[tuple[Times, Times]] = []
        for backward, flows in self._buckets:
            now = self._passed(ledger, COMPUTE, backward, now, last)
            started = end = np.maximum(now, self._reducer_free)
            for flow in flows:
                end = np.maximum(end, walk(flow, started, None))
            self._reducer_free = end
            runs.append((started, end))
        computed, reduced = now, self._reducing
        for started, end in runs:
            spent = np.minimum(end, computed) - started
            reduced = np.where(started < computed, reduced + spent, reduced)
            self._reducing = self._reducing + (end - started)
            ledger[HIDDEN] += end - started
        now = self._reducer_free
        exposed = self._reducing - reduced
        ledger[COMMUNICATION] += exposed
        ledger[OTHER] += (now - computed) - exposed
        ledger[HIDDEN] -= exposed
        return self._passed(ledger, OTHER, self._wait, now, None)
