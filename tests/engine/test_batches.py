"""Batches of an epoch: their random amounts, and how the workers of equal ones come to part."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from simulator.engine.loader import DRAWN_AT_ONCE, Draws, Supply
from simulator.schema.fields import CONSTANT, Shape, Spread

SPREADS = (
    Spread(shape=Shape.GAMMA, relative_deviation=0.2),
    Spread(shape=Shape.LOGNORMAL, relative_deviation=0.5),
    Spread(shape=Shape.UNIFORM, relative_deviation=0.3),
    Spread(shape=Shape.EXPONENTIAL, relative_deviation=1.0),
)


@pytest.mark.parametrize("spread", SPREADS, ids=lambda s: s.shape.value)
def test_a_batch_is_what_it_is_whoever_asks_when(spread: Spread) -> None:
    """Its amount goes by its number, in whatever order batches are begun."""
    in_order = Draws(spread, 9, np.random.default_rng(3))
    jumping = Draws(spread, 9, np.random.default_rng(3))
    expected = [in_order.of(batch) for batch in range(3 * DRAWN_AT_ONCE)]
    order = [(7 * batch) % (3 * DRAWN_AT_ONCE) for batch in range(3 * DRAWN_AT_ONCE)]
    assert [jumping.of(batch) for batch in order] == [expected[batch] for batch in order]
    assert len(set(expected)) == len(expected)


@pytest.mark.parametrize("samples", [1, 16])
@pytest.mark.parametrize("spread", SPREADS, ids=lambda s: s.shape.value)
def test_a_batch_is_the_mean_of_its_samples(spread: Spread, samples: int) -> None:
    """Of 20,000 batches the mean is one, the deviation that of a sample over sqrt(samples)."""
    draws = Draws(spread, samples, np.random.default_rng(3))
    found = [draws.of(batch) for batch in range(20_000)]
    deviation = spread.deviation / samples**0.5
    assert np.mean(found) == pytest.approx(1.0, abs=5 * deviation / 20_000**0.5)
    assert np.std(found) == pytest.approx(deviation, rel=0.05)


def test_equal_samples_draw_nothing() -> None:
    """Without a spread the generator stays where it is."""
    generator = np.random.default_rng(3)
    assert Draws(CONSTANT, 9, generator).of(5) == 1.0
    assert generator.uniform() == np.random.default_rng(3).uniform()


@pytest.mark.parametrize("producers", [2, 7, 48])
def test_the_second_wave_spreads_producers_and_asks_for_no_more_work(producers: int) -> None:
    """The factors of its batches are 1 in the mean, rise evenly, and stand alone in the epoch."""
    supply = Supply(10 * producers, producers=producers)
    phases = [supply.phase(batch) for batch in range(10 * producers)]
    second = phases[producers : 2 * producers]
    assert sum(second) / producers == pytest.approx(1.0)
    assert [b - a for a, b in pairwise(second)] == pytest.approx(
        [1.0 / producers] * (producers - 1)
    )
    assert set(phases[:producers]) | set(phases[2 * producers :]) == {1.0}


def test_short_epochs_leave_no_time_to_drift() -> None:
    """Fewer than four waves, or a worker alone, stay as they are."""
    assert {Supply(27, producers=7).phase(batch) for batch in range(27)} == {1.0}
    assert {Supply(100, producers=1).phase(batch) for batch in range(100)} == {1.0}
