"""Tasks done one after another, each of a fixed length, and what they keep busy meanwhile."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import TypeAlias

from simulator.engine.fixed_delays import Use, busy_times
from simulator.engine.maxplus.pipeline import OnDevice, Piece
from simulator.units import Seconds

Log: TypeAlias = list[tuple[Seconds, Seconds]]
"""When something got busy, and for how long [s]."""

Chain: TypeAlias = tuple[tuple[Seconds, Log | None], ...]
"""Lengths of tasks [s], each with the log of what it keeps busy."""


class Logs:
    """What was busy when: the compute stream, and every use of units."""

    def __init__(self) -> None:
        self._device: Log = []
        self._uses: dict[Use, Log] = {}

    def chain(self, pieces: Iterable[Piece], scale: float) -> Chain:
        """The lengths of pieces of work, for so many times the work.

        A length of 0 is left out: adding it would change nothing.
        """
        found: list[tuple[Seconds, Log | None]] = []
        for piece in pieces:
            if isinstance(piece, OnDevice):
                found.append((piece.seconds * scale, self._device))
            else:
                found += [(piece.waits(scale), None), (piece.works(scale), self._of(piece.use))]
        return tuple((seconds, log) for seconds, log in found if seconds > 0.0)

    def _of(self, use: Use) -> Log | None:
        return self._uses.setdefault(use, []) if use.units else None

    def busy(self, now: Seconds, units: Iterable[str], device: str) -> Mapping[str, Seconds]:
        """How long each unit and the stream of that name were busy up to `now` [s]."""
        spent = busy_times((use, _total(log, now)) for use, log in self._uses.items())
        found = {unit: 0.0 + spent.get(unit, 0.0) for unit in units}
        asked, free_at = 0.0, 0.0
        for start, seconds in self._device:
            if start > now:
                break
            asked += seconds
            free_at = start + seconds
        return found | {device: asked - max(0.0, free_at - now)}


def _total(log: Log, now: Seconds) -> Seconds:
    """Time under way up to `now` [s], rounded once."""
    begun = [(start, min(start + seconds, now)) for start, seconds in log if start <= now]
    return math.fsum([end for _, end in begun] + [-start for start, _ in begun])


def walk(chain: Chain, start: Seconds) -> Seconds:
    """When tasks that begin at `start` have been done [s]."""
    now = start
    for seconds, log in chain:
        if log is not None:
            log.append((now, seconds))
        now += seconds
    return now
