"""Quasi-random points are scipy's, and fill every dimension evenly."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm, qmc

from simulator.schema.uncertainty import MOST_DIMENSIONS, Rate, normal_points, sobol


@pytest.mark.parametrize("bits", [1, 3, 6, 9])
def test_points_are_those_of_scipy(bits: int) -> None:
    """Point by point and dimension by dimension the same Sobol sequence."""
    theirs = qmc.Sobol(MOST_DIMENSIONS, scramble=False).random(2**bits)
    np.testing.assert_array_equal(sobol(bits, MOST_DIMENSIONS) / 2**bits, theirs)


def test_every_rate_has_a_dimension() -> None:
    """There are direction numbers for all rates that may be uncertain."""
    assert len(Rate) <= MOST_DIMENSIONS


def test_each_class_is_met_once() -> None:
    """In every dimension, whatever the seed, points are the midpoints of equally likely classes."""
    points = normal_points(6, 5, seed=3)
    middles = norm.ppf((np.arange(64) + 0.5) / 64)
    for column in range(5):
        np.testing.assert_allclose(np.sort(points[:, column]), middles, rtol=1e-9)


def test_dimensions_are_independent() -> None:
    """No two of ten dimensions are correlated beyond what 256 even points allow."""
    table = np.corrcoef(normal_points(8, 10, seed=0).T) - np.eye(10)
    assert np.max(np.abs(table)) < 0.05


def test_a_seed_decides() -> None:
    """The same seed gives the same points, another one others."""
    first, again, other = (normal_points(5, 3, seed=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert np.any(first != other)
