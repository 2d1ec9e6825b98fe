"""Random batches: drawing many at once gives the numbers that drawing one by one gives."""

from __future__ import annotations

import numpy as np
import pytest

from simulator.engine.supply import AHEAD, Draws
from simulator.workload.spread import CONSTANT, Shape, Spread

SPREADS = (
    Spread(shape=Shape.GAMMA, relative_deviation=0.2),
    Spread(shape=Shape.LOGNORMAL, relative_deviation=0.5),
    Spread(shape=Shape.UNIFORM, relative_deviation=0.3),
    Spread(shape=Shape.EXPONENTIAL, relative_deviation=1.0),
)


@pytest.mark.parametrize("samples", [1, 7, 8, 9, 32, 129, 1000])
@pytest.mark.parametrize("spread", SPREADS, ids=lambda s: s.shape.value)
def test_many_at_once_are_the_same(spread: Spread, samples: int) -> None:
    """To the last bit, also where the next lot begins."""
    alone = Draws(spread, samples, np.random.default_rng(3), shared=False)
    generator = np.random.default_rng(3)
    one_by_one = Draws(spread, samples, generator)
    for _ in range(2 * AHEAD + 3):
        assert alone.next() == one_by_one.next()


@pytest.mark.parametrize("spread", SPREADS, ids=lambda s: s.shape.value)
def test_the_mean_of_a_batch_is_that_of_its_samples(spread: Spread) -> None:
    """One, within the error of 130 batches of 1,000 samples each."""
    draws = Draws(spread, 1000, np.random.default_rng(3), shared=False)
    found = [draws.next() for _ in range(130)]
    assert np.mean(found) == pytest.approx(1.0, abs=5 * spread.relative_deviation / 360)


def test_equal_samples_draw_nothing() -> None:
    """Without a spread the generator stays where it is."""
    generator = np.random.default_rng(3)
    assert Draws(CONSTANT, 9, generator, shared=False).next() == 1.0
    assert generator.uniform() == np.random.default_rng(3).uniform()
