"""Which candidates to predict next, given the best each can be and what others turned out to be.

A candidate is given up once another was predicted to be strictly better in one objective and no
worse in the others than this one can be at best. Candidates that tie are all kept: equally good
ones belong to the front alike. A round is chosen from the results of earlier rounds alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from simulator.scenario.goal import Objective
from simulator.studies.pareto import Mask, beats, front, may_beat
from simulator.studies.rivals import Rivals

FIRST: Final = 16
"""Candidates of the usual first round; each later one takes twice as many, up to `LARGEST`."""
LARGEST: Final = 128
"""Candidates of a round: the more, the longer all workers are busy; the fewer, the less is
predicted that a result of the same round would have ruled out."""


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
        self._least = least
        self._top = top
        self._margin = margin
        self._found = np.empty((0, least.shape[1]))
        self.taken = 0
        self._size = first
        # Where nothing can be ruled out, rounds would only make workers wait for one another.
        hopeless = not len(least) or bool(np.isneginf(least).any(axis=1).all())
        self._whole = hopeless and not top

    def next(self) -> tuple[int, ...]:
        """The candidates to predict now, in their order; empty if none is left."""
        left = np.flatnonzero(self.possible)
        if not len(left):
            return ()
        size = len(left) if self._whole else self._size
        self._size = min(2 * self._size, LARGEST)
        chosen = sorted(self._promising(left, size))
        self.possible[chosen] = False
        self.taken += len(chosen)
        return tuple(chosen)

    def tell(self, scores: Sequence[Sequence[float]]) -> None:
        """What predicted candidates that count turned out to be, a row each."""
        found = np.array(scores, dtype=float).reshape(-1, self._least.shape[1])
        self._found = np.vstack([self._found, found])
        self.possible &= may_beat(self._least, self._found, top=self._top, margin=self._margin)

    def rivals(self, objectives: tuple[Objective, ...]) -> Rivals | None:
        """What the candidates of the next round compete with; None before anything is found."""
        if not len(self._found):
            return None
        return Rivals(objectives=objectives, found=self._found, top=self._top, margin=self._margin)

    def _promising(self, left: NDArray[np.intp], size: int) -> list[int]:
        """The best by what they can be: the bounds' own front first, then the front behind it."""
        chosen: list[int] = []
        while len(left) and len(chosen) < size:
            on_front = front(self._least[left])
            layer, room = left[on_front], size - len(chosen)
            if len(layer) > room:
                layer = self._spread(layer, room)
            chosen += layer.tolist()
            left = left[~on_front]
        return chosen

    def _spread(self, layer: NDArray[np.intp], room: int) -> NDArray[np.intp]:
        """So many of a front, evenly along it."""
        order = np.lexsort((layer, self._least[layer, 0]))
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
