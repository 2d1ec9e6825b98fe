"""The recursion for many pipelines of equal structure at once: arrays instead of numbers.

One array holds a time of all candidates. Sums and maxima are those of `single`, element by element,
so each candidate's floats are the ones it would have alone. A batch that a candidate doesn't have
never comes: its times are infinite.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from simulator.engine.courses import Use
from simulator.engine.maxplus.pipeline import OnDevice, Piece
from simulator.units import Seconds

Times: TypeAlias = NDArray[np.float64]
"""A time of each candidate [s]."""

Log: TypeAlias = list[tuple[Times, Times]]
"""When something got busy, and for how long, in each candidate [s]."""

Leg: TypeAlias = tuple[Times, Times, Log | None]
"""Length of a task for a full batch and for the last one [s], and the log of what it keeps busy."""


class Stacks:
    """The tasks of all candidates, and what they kept busy when."""

    def __init__(self, last_shares: Sequence[float]) -> None:
        self._last_shares = last_shares
        self._device: Log = []
        self._uses: list[tuple[Sequence[Use], Log]] = []

    def chain(
        self, pieces: Sequence[Sequence[Piece]], part: Sequence[float] | None = None
    ) -> tuple[Leg, ...]:
        """The legs of a chain; `pieces` holds the candidates' own, `part` scales each of them."""
        parts = part or [1.0] * len(pieces)
        legs: list[Leg] = []
        for row in zip(*pieces, strict=True):
            full = [_lengths(piece, 1.0 * p) for piece, p in zip(row, parts, strict=True)]
            rest = [
                _lengths(piece, share * p)
                for piece, p, share in zip(row, parts, self._last_shares, strict=True)
            ]
            logs = self._logs(row)
            legs += [
                (np.array([f[i] for f in full]), np.array([r[i] for r in rest]), log)
                for i, log in enumerate(logs)
            ]
        return tuple(leg for leg in legs if leg[0].any() or leg[1].any())

    def _logs(self, row: Sequence[Piece]) -> tuple[Log | None, ...]:
        if isinstance(row[0], OnDevice):
            return (self._device,)
        uses = [piece.use for piece in row if not isinstance(piece, OnDevice)]
        log: Log = []
        if not any(use.units for use in uses):
            return (None, None)
        self._uses.append((uses, log))
        return (None, log)

    def busy(self, now: Times) -> list[tuple[dict[Use, Seconds], Seconds]]:
        """How long each use, and the compute stream, was under way up to `now` [s].

        One entry a candidate, each with an instant of its own.
        """
        terms: list[dict[Use, list[float]]] = [{} for _ in now]
        for uses, log in self._uses:
            for found, use, row in zip(terms, uses, _terms(log, now), strict=True):
                found.setdefault(use, []).extend(row)
        device = _asked(self._device, now).tolist()
        return [
            ({use: math.fsum(its) for use, its in found.items()}, spent)
            for found, spent in zip(terms, device, strict=True)
        ]


def _begun(log: Log, now: Times) -> tuple[Times, Times, NDArray[np.bool_]]:
    """Starts and lengths of work, and which had begun by `now` and takes any time."""
    starts, lengths = (np.array([entry[i] for entry in log]) for i in (0, 1))
    return starts, lengths, (starts <= now) & (lengths > 0.0)


def _terms(log: Log, now: Times) -> list[list[float]]:
    """Ends and starts whose sum is the time under way, candidate by candidate."""
    if not log:
        return [[] for _ in now]
    starts, lengths, begun = _begun(log, now)
    ends = np.where(begun, np.minimum(starts + lengths, now), 0.0)
    rows: list[list[float]] = np.concatenate([ends, np.where(begun, -starts, 0.0)]).T.tolist()
    return rows


def _asked(log: Log, now: Times) -> Times:
    """Time that the stream was busy up to `now` [s]: what was asked for, less what is left."""
    if not log:
        return np.zeros(len(now))
    starts, lengths, begun = _begun(log, now)
    asked: Times = np.cumsum(np.where(begun, lengths, 0.0), axis=0)[-1]
    free_at: Times = np.where(begun, starts + lengths, 0.0).max(axis=0)
    return asked - np.maximum(0.0, free_at - now)


def _lengths(piece: Piece, scale: float) -> tuple[Seconds, ...]:
    if isinstance(piece, OnDevice):
        return (piece.seconds * scale,)
    return (piece.waits(scale), piece.works(scale))


def walk(legs: Sequence[Leg], start: Times, last: NDArray[np.bool_] | None) -> Times:
    """When tasks that begin at `start` have been done; `last`: for whom it is the last batch."""
    now = start
    for full, partial, log in legs:
        seconds = full if last is None else np.where(last, partial, full)
        if log is not None:
            log.append((now, seconds))
        now = now + seconds
    return now
