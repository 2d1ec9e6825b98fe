"""Which batches an epoch has, and how much each one differs from the mean batch."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from simulator.workload.loader import Straggler
from simulator.workload.spread import Shape, Spread


class Supply:
    """Batches 0, 1, ... of one epoch; `limit` may be lowered while the epoch runs.

    Parameters
    ----------
    batches : int
        Batches of the epoch for each rank.
    last_share : float
        Size of the last batch as a share of a full one.
    stragglers : sequence of Straggler
        Workers or batches that take longer.
    """

    def __init__(
        self, batches: int, last_share: float = 1.0, stragglers: Sequence[Straggler] = ()
    ) -> None:
        self.limit = batches
        self._last_share = last_share
        self._stragglers = tuple(stragglers)

    def has(self, batch: int) -> bool:
        """Whether the epoch has this batch."""
        return batch < self.limit

    def share(self, batch: int) -> float:
        """Samples of the batch as a share of a full one."""
        return self._last_share if batch == self.limit - 1 else 1.0

    def slowness(self, rank: int, worker: int, batch: int) -> float:
        """How many times longer this worker of a rank takes for this batch."""
        factor = 1.0
        for straggler in self._stragglers:
            factor *= straggler.factor if straggler.hits(rank, worker, batch) else 1.0
        return factor


AHEAD = 64
"""Batches drawn at once."""


class Draws:
    """Random batch amounts relative to the mean: the mean of as many draws as samples.

    Parameters
    ----------
    spread : Spread
        Distribution of one sample's amount.
    samples : int
        Samples of a batch.
    generator : numpy.random.Generator
        Where the randomness comes from.
    shared : bool
        Whether others draw from the generator too. If not, many batches are drawn at once: the
        same numbers in less time.
    """

    def __init__(
        self, spread: Spread, samples: int, generator: np.random.Generator, *, shared: bool = True
    ) -> None:
        self._spread = spread
        self._samples = samples
        self._generator = generator
        self._ahead = 1 if shared else AHEAD
        self._drawn: list[float] = []

    def next(self) -> float:
        """Amount of the next batch over that of the mean batch."""
        if not self._spread.varies:
            return 1.0
        if not self._drawn:
            drawn = self._sample(self._ahead * self._samples).reshape(self._ahead, self._samples)
            self._drawn = (drawn.sum(axis=1) / self._samples).tolist()[::-1]
        return self._drawn.pop()

    def _sample(self, count: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        deviation = self._spread.relative_deviation
        match self._spread.shape:
            case Shape.UNIFORM:
                half = deviation * np.sqrt(3.0)
                return np.maximum(self._generator.uniform(1.0 - half, 1.0 + half, count), 0.0)
            case Shape.LOGNORMAL:
                sigma = np.sqrt(np.log1p(deviation**2))
                return self._generator.lognormal(-(sigma**2) / 2.0, sigma, count)
            case Shape.EXPONENTIAL:
                return self._generator.exponential(1.0, count)
            case Shape.GAMMA:
                return self._generator.gamma(deviation**-2.0, deviation**2.0, count)
            case Shape.CONSTANT:
                return np.ones(count)
