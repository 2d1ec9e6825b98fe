"""Which batches an epoch has, and how much each one differs from the mean batch.

Workers of equal batches begin an epoch together, and nothing would ever part them: all would read,
work and write at the same time, which no two real ones do for long. So their *phases* are spread:
with W workers the j-th batch of the second wave (batches W to 2 W - 1) takes
1/2 + (j + 1/2) / W times as long as any other. From then on the workers are a W-th of a batch's
time apart. Samples stay equal, and so does the work of a wave, as the factors' mean is 1: no bound
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

from simulator.schema.scenario import Scenario
from simulator.schema.workload.distribution import Shape, Spread
from simulator.schema.workload.loader import Straggler

WAVES: Final = 4
"""Waves of workers that an epoch must have for them to drift apart in it."""


def drifting(scenario: Scenario, producers: int) -> int:
    """How many workers of a rank come to be out of step; 0 where they are to stay in step."""
    return 0 if scenario.job.loader.in_step else producers


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
    producers : int
        Workers whose phases are spread; 0: all stay in step.
    """

    def __init__(
        self,
        batches: int,
        last_share: float = 1.0,
        stragglers: Sequence[Straggler] = (),
        producers: int = 0,
    ) -> None:
        self.limit = batches
        self.producers = producers if producers > 1 and batches >= WAVES * producers else 0
        self._last_share = last_share
        self._stragglers = tuple(stragglers)

    def has(self, batch: int) -> bool:
        """Whether the epoch has this batch."""
        return batch < self.limit

    def share(self, batch: int) -> float:
        """Samples of the batch as a share of a full one."""
        return self._last_share if batch == self.limit - 1 else 1.0

    def phase(self, batch: int) -> float:
        """How many times longer than any other a batch takes, for workers to part."""
        place = batch - self.producers
        return 0.5 + (place + 0.5) / self.producers if 0 <= place < self.producers else 1.0

    def slowness(self, rank: int, worker: int, batch: int) -> float:
        """How many times longer this worker of a rank takes for this batch."""
        factor = self.phase(batch)
        for straggler in self._stragglers:
            factor *= straggler.factor if straggler.hits(rank, worker, batch) else 1.0
        return factor


AHEAD: Final = 64
"""Batches drawn at once."""

ADDS_UP: Final = frozenset({Shape.GAMMA, Shape.EXPONENTIAL})
"""Shapes whose sum over samples is a gamma distribution itself: one draw does for a batch."""


class Draws:
    """Random batch amounts relative to the mean: the mean of as many draws as samples.

    A batch's amount goes by its number, whoever makes it and when: a job on more cores, with other
    workers or a faster store draws the same batches, so chance cancels where two are compared.

    Parameters
    ----------
    spread : Spread
        Distribution of one sample's amount.
    samples : int
        Samples of a batch.
    generator : numpy.random.Generator
        Where the randomness comes from; nobody else draws from it.
    """

    def __init__(self, spread: Spread, samples: int, generator: np.random.Generator) -> None:
        self._spread = spread
        self._samples = samples
        self._generator = generator
        self._drawn: list[float] = []

    def of(self, batch: int) -> float:
        """Amount of the batch of that number over that of the mean batch."""
        if not self._spread.varies:
            return 1.0
        while batch >= len(self._drawn):
            self._drawn += self._more()
        return self._drawn[batch]

    def _more(self) -> list[float]:
        if self._spread.shape in ADDS_UP:
            shape = self._samples * self._spread.relative_deviation**-2.0
            drawn: list[float] = (self._generator.gamma(shape, 1.0, AHEAD) / shape).tolist()
            return drawn
        each = self._sample(AHEAD * self._samples).reshape(AHEAD, self._samples)
        means: list[float] = (each.sum(axis=1) / self._samples).tolist()
        return means

    def _sample(self, count: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        deviation = self._spread.relative_deviation
        if self._spread.shape is Shape.UNIFORM:
            half = deviation * np.sqrt(3.0)
            return np.maximum(self._generator.uniform(1.0 - half, 1.0 + half, count), 0.0)
        sigma = np.sqrt(np.log1p(deviation**2))
        return self._generator.lognormal(-(sigma**2) / 2.0, sigma, count)
