"""Which candidates to look at next, given the best each can be and what others turned out to be.

A candidate is given up once another was predicted to be strictly better in one objective and no
worse in the others than this one can be at best. Candidates that tie are all kept: equally good
ones belong to the front alike. A round is chosen from the results of earlier rounds alone. Its
candidates may be looked at closer, which says better how good each can be at best; then they are
predicted a few at a time, those that seem best first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from simulator.studies.search.pareto import Mask, beats, front, may_beat

FIRST: Final = 16
"""Candidates of the usual first round; each later one takes twice as many, up to `LARGEST`."""
LARGEST: Final = 128
"""Candidates of a round: the more, the longer all workers are busy; the fewer, the less is
looked at that a result of the same round would have ruled out."""
CLOSEST: Final = 2
"""Of a round's candidates, how many are predicted before the others are compared with them."""


class Rounds:
    """The rounds of one search.

    Parameters
    ----------
    least : array
        A row for every candidate: the best each objective can be, less is better. Minus infinity:
        anything is possible.
    top : int, optional
        Also keep all that could be among so many best by the first objective.
    margin : float
        Also keep all that could be so close to the front, as a share; below zero: give up what
        could be better by no more than that.
    first : int
        Candidates of the first round.
    """

    def __init__(
        self,
        least: NDArray[np.float64],
        *,
        top: int | None = None,
        margin: float = 0.0,
        first: int = FIRST,
    ) -> None:
        self.possible: Mask = np.ones(len(least), dtype=bool)
        self._chosen: Mask = np.zeros(len(least), dtype=bool)
        self.least = np.array(least, dtype=float)
        self._top = top
        self._margin = margin
        self._found = np.empty((0, least.shape[1]))
        self.taken = 0
        self._size = first
        # Where nothing can be ruled out, rounds would only make workers wait for one another.
        hopeless = not len(least) or bool(np.isneginf(least).any(axis=1).all())
        self._whole = hopeless and not top

    def next(self) -> tuple[int, ...]:
        """The candidates of the next round, in their order; empty if none is left."""
        left = np.flatnonzero(self.possible)
        if not len(left):
            return ()
        size = len(left) if self._whole else self._size
        self._size = min(2 * self._size, LARGEST)
        chosen = sorted(self._promising(left, size))
        self.possible[chosen] = False
        self._chosen[chosen] = True
        self.taken += len(chosen)
        return tuple(chosen)

    @property
    def compares(self) -> bool:
        """Whether a closer look at the round's candidates may spare predictions.

        Those of the first round are predicted before any is ruled out.
        """
        return len(self._found) > 0 and not self._whole

    def know(self, rows: Sequence[int], least: Sequence[Sequence[float]]) -> None:
        """How good some candidates can be at best, as a closer look has told."""
        nearer = np.array(least, dtype=float).reshape(-1, self.least.shape[1])
        chosen = list(rows)
        self.least[chosen] = np.maximum(self.least[chosen], nearer)

    def closest(self) -> tuple[int, ...]:
        """Of the round's candidates those to predict now, in their order; empty if none is left.

        The others are compared with what these turn out to be.
        """
        chosen = np.flatnonzero(self._chosen)
        left = chosen[self._wanted(self.least[chosen])]
        self._chosen[:] = False
        if not self.compares:
            return tuple(left.tolist())
        now = sorted(self._promising(left, CLOSEST))
        self._chosen[left] = True
        self._chosen[now] = False
        return tuple(now)

    def tell(self, scores: Sequence[Sequence[float]]) -> None:
        """What predicted candidates that count turned out to be, a row each."""
        found = np.array(scores, dtype=float).reshape(-1, self.least.shape[1])
        self._found = np.vstack([self._found, found])
        self.possible &= self._wanted(self.least)

    def _wanted(self, least: NDArray[np.float64]) -> Mask:
        """Which rows may be wanted still."""
        return may_beat(least, self._found, top=self._top, margin=self._margin)

    def _promising(self, left: NDArray[np.intp], size: int) -> list[int]:
        """The best by what they can be: the bounds' own front first, then the front behind it."""
        chosen: list[int] = []
        while len(left) and len(chosen) < size:
            on_front = front(self.least[left])
            layer, room = left[on_front], size - len(chosen)
            if len(layer) > room:
                layer = self._spread(layer, room)
            chosen += layer.tolist()
            left = left[~on_front]
        return chosen

    def _spread(self, layer: NDArray[np.intp], room: int) -> NDArray[np.intp]:
        """So many of a front, evenly along it."""
        order = np.lexsort((layer, self.least[layer, 0]))
        places = np.linspace(0, len(layer) - 1, room).round().astype(int)
        return np.asarray(layer[order[places]])


def beaten_by(least: NDArray[np.float64], scores: Mapping[int, Sequence[float]]) -> tuple[int, ...]:
    """For every row of `least` the first name in `scores` whose row beats it; -1 if none does."""
    names = np.array(sorted(scores), dtype=int)
    points = np.array([scores[name] for name in names], dtype=float)
    first = np.full(len(least), -1)
    if len(names):
        kept = front(points)
        for name, point in zip(names[kept][::-1], points[kept][::-1], strict=True):
            first[beats(point, least)] = name
    return tuple(first.tolist())
