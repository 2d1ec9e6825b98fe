"""When batches are ready to be taken, in many candidates at once."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from simulator.engine.maxplus.pipeline import Pipeline
from simulator.engine.maxplus.stacked import Leg, Stacks, Times, walk
from simulator.engine.supply import Supply

Flags = NDArray[np.bool_]


class StackedMakers:
    """The loaders of all candidates, which all have as many workers and credits.

    `tied` says in which of them batches are not finished in turn: those are to be run alone.
    `limits`, the batches of each epoch, may be lowered while it runs. `supply` is that of any of
    them: their makers drift apart alike.
    """

    def __init__(  # noqa: PLR0913, PLR0917 - what all loaders need
        self,
        lines: Sequence[Pipeline],
        stacks: Stacks,
        start: Times,
        limits: NDArray[np.int64],
        ragged: Flags,
        supply: Supply,
    ) -> None:
        crew = lines[0].crew
        self.serial = crew.makers == 0
        self.credits = 0 if self.serial else crew.credits
        self.ahead = 1 if self.serial else crew.credits
        self._limits = limits
        self._ragged = ragged
        self._apart = crew.reads_ahead
        self._own_thread = lines[0].scenario.job.loader.pin_memory
        read, make = [line.read for line in lines], [line.make for line in lines]
        receive = [line.receive for line in lines]
        apart = self._apart
        both = make if apart else [(*r, *m) for r, m in zip(read, make, strict=True)]
        if self.serial:
            both = [(*b, *r) for b, r in zip(both, receive, strict=True)]
        self._stacks, self._supply = stacks, supply
        self._pieces = (read if apart else [], both)
        self._read, self._make = self._legs(1.0)
        self._receive = () if self.serial else stacks.chain(receive)
        self._free = [start] * max(1, crew.makers)
        self._read_free = start
        self._came_last = start
        self._finish: list[Times] = []
        self._pull: list[Times] = []
        self._came: list[Times] = []
        self._next = 0
        self.tied = np.zeros(len(lines), dtype=bool)
        for batch in range(self.credits):
            self.issue(start, batch)

    def is_last(self, batch: int) -> Flags | None:
        """For whom a batch is a last one of less than full size."""
        last: Flags = self._ragged & (self._limits == batch + 1)
        return last if last.any() else None

    def take(self, ready: Times, batch: int) -> Times:
        """When each candidate takes a batch that its program is ready for."""
        if self.serial:
            return walk(self._make, ready, self.is_last(batch))
        if self._own_thread:
            return np.maximum(ready, self._came[batch])
        pull = np.maximum(ready, self._finish[batch])
        came = walk(self._receive, pull, self.is_last(batch))
        self._pull.append(pull)
        self._came.append(came)
        return came

    def issue(self, now: Times, batch: int) -> None:
        """Ask for a batch."""
        if self.serial:
            return
        self._next = max(0, batch + 1 - self.credits)
        asked = np.where(batch < self._limits, now, math.inf)
        worker, last = batch % len(self._free), self.is_last(batch)
        phase = self._supply.phase(batch)
        read, make = (self._read, self._make) if phase == 1.0 else self._legs(phase)
        if self._apart:
            asked = walk(read, np.maximum(asked, self._read_free), last)
            self._read_free = asked
        begun = np.maximum(asked, self._free[worker])
        finish = walk(make, begun, last)
        self._free[worker] = finish
        there = finish < math.inf
        if len(self._free) > 1:
            self.tied |= there & (finish == begun)
        if self._finish:
            before = self._finish[-1]
            self.tied |= there & (finish < before)
            if last is not None:
                self.tied |= there & last & (finish == before)
            if phase != self._supply.phase(batch - 1):
                self.tied |= there & (finish == before)
        self._finish.append(finish)
        if self._own_thread:
            self._pull.append(np.maximum(finish, self._came_last))
            self._came_last = walk(self._receive, self._pull[-1], last)
            self._came.append(self._came_last)

    def _legs(self, scale: float) -> tuple[tuple[Leg, ...], tuple[Leg, ...]]:
        """Reading and making a batch with so many times the work, for all candidates."""
        read, make = self._pieces
        parts = [scale] * len(make)
        return (self._stacks.chain(read, parts) if read else (), self._stacks.chain(make, parts))

    def waiting(self, now: Times) -> NDArray[np.int64]:
        """Finished batches that wait to be taken at an instant, in each candidate."""
        found = np.zeros(len(now), dtype=np.int64)
        if self.serial:
            return found
        for batch in range(self._next, len(self._finish)):
            found += self._finish[batch] <= now
            if batch < len(self._pull):
                found -= self._pull[batch] <= now
                found += self._came[batch] <= now
        return found
