"""Sequences of unequal lengths."""

from __future__ import annotations

import numpy as np
import pytest

from simulator.equations.lengths import mean_square_length


@pytest.mark.parametrize(("least", "most"), [(0.0, 1.0), (0.0, 0.6), (0.25, 1.0)])
def test_it_is_the_second_moment_of_even_lengths(least: float, most: float) -> None:
    """Lengths drawn evenly from as wide a range as their mean allows."""
    drawn = np.random.default_rng(5).uniform(least, most, 200_000)
    expected = mean_square_length((least + most) / 2.0)
    assert expected == pytest.approx(float(np.mean(drawn**2)), rel=0.01)


def test_candidates_may_differ() -> None:
    """An array of means gives one figure each, never below the square of the mean."""
    means = np.array([0.1, 0.5, 0.9, 1.0])
    squares = mean_square_length(means)
    assert np.all(squares >= means**2)
    assert squares[-1] == 1.0
