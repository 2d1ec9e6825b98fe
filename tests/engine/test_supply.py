"""Random batches: drawing many at once gives the numbers that drawing one by one gives."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from simulator.engine.supply import AHEAD, Draws, Supply
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


@pytest.mark.parametrize("makers", [2, 7, 48])
def test_the_second_wave_spreads_makers_and_asks_for_no_more_work(makers: int) -> None:
    """The factors of its batches are 1 in the mean, rise evenly, and stand alone in the epoch."""
    supply = Supply(10 * makers, makers=makers)
    phases = [supply.phase(batch) for batch in range(10 * makers)]
    second = phases[makers : 2 * makers]
    assert sum(second) / makers == pytest.approx(1.0)
    assert [b - a for a, b in pairwise(second)] == pytest.approx([1.0 / makers] * (makers - 1))
    assert set(phases[:makers]) | set(phases[2 * makers :]) == {1.0}


def test_short_epochs_leave_no_time_to_drift() -> None:
    """Fewer than four waves, or a maker alone, stay as they are."""
    assert {Supply(27, makers=7).phase(batch) for batch in range(27)} == {1.0}
    assert {Supply(100, makers=1).phase(batch) for batch in range(100)} == {1.0}
