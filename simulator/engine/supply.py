"""Which batches an epoch has, and how much each one differs from the mean batch.

Makers of equal batches begin an epoch together, and nothing would ever part them: all would read,
work and write at the same time, which no two real ones do for long. So their *phases* are spread:
with W makers the j-th batch of the second wave (batches W to 2 W - 1) takes
1/2 + (j + 1/2) / W times as long as any other. From then on the makers are a W-th of a batch's time
apart. Samples stay equal, and so does the work of a wave, as the factors' mean is 1: no bound
moves, and the first batches come when they do. Where the times of all tasks are fixed, phases don't
matter to the mean step, which is the largest mean of any cycle [1]_; where tasks slow each other
they decide who meets whom, and the spread ones stand for the many that a real run goes through.

References
----------
.. [1] F. Baccelli, G. Cohen, G. J. Olsder, J.-P. Quadrat, "Synchronization and Linearity", Wiley,
   1992, section 3.7, https://www.rocq.inria.fr/metalau/cohen/documents/BCOQ-book.pdf
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from simulator.scenario import Scenario
from simulator.workload.loader import Straggler
from simulator.workload.spread import Shape, Spread

WAVES: Final = 4
"""Waves of makers that an epoch must have for them to drift apart in it."""


def drifting(scenario: Scenario, makers: int) -> int:
    """How many makers of a rank come to be out of step; 0 where they are to stay in step."""
    return 0 if scenario.job.loader.in_step else makers


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
    makers : int
        Makers whose phases are spread; 0: all stay in step.
    """

    def __init__(
        self,
        batches: int,
        last_share: float = 1.0,
        stragglers: Sequence[Straggler] = (),
        makers: int = 0,
    ) -> None:
        self.limit = batches
        self.makers = makers if makers > 1 and batches >= WAVES * makers else 0
        self._last_share = last_share
        self._stragglers = tuple(stragglers)

    def has(self, batch: int) -> bool:
        """Whether the epoch has this batch."""
        return batch < self.limit

    def share(self, batch: int) -> float:
        """Samples of the batch as a share of a full one."""
        return self._last_share if batch == self.limit - 1 else 1.0

    def phase(self, batch: int) -> float:
        """How many times longer than any other a batch takes, for makers to part."""
        place = batch - self.makers
        return 0.5 + (place + 0.5) / self.makers if 0 <= place < self.makers else 1.0

    def slowness(self, rank: int, worker: int, batch: int) -> float:
        """How many times longer this worker of a rank takes for this batch."""
        factor = self.phase(batch)
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
