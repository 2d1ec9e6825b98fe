"""The largest of many draws against tables and sums."""

from __future__ import annotations

import numpy as np
import pytest

from simulator.equations.stragglers import harmonic
from simulator.pipeline.stragglers import expected_largest, expected_largest_product


@pytest.mark.parametrize(
    ("draws", "score"),
    [(1, 0.0), (2, 0.564190), (3, 0.846284), (10, 1.538753), (100, 2.507594), (1000, 3.241436)],
)
def test_the_largest_of_normal_draws_is_that_of_tables(draws: int, score: float) -> None:
    """Expected values of the largest normal order statistic, as tabulated (Harter, 1961)."""
    assert expected_largest(lambda scores: scores, draws) == pytest.approx(score, abs=2e-6)


@pytest.mark.parametrize("draws", [1, 2, 50, 100_000])
def test_products_with_one_are_the_other_factor(draws: int) -> None:
    """Exponential factors times 1: harmonic numbers, however many there are."""

    def below(amounts: np.ndarray[tuple[int], np.dtype[np.float64]]) -> np.ndarray:  # type: ignore[type-arg] # as given
        return -np.expm1(-amounts)

    found = expected_largest_product(np.ones_like, below, draws, (1e-6, 80.0))
    assert found == pytest.approx(harmonic(draws), rel=1e-3)
