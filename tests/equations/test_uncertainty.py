"""How deviations grow with the distance from what was measured."""

from __future__ import annotations

import numpy as np
import pytest

from simulator.equations.uncertainty import doublings_outside, stretched_deviation


def test_no_distance_inside() -> None:
    """From end to end of the range nothing is extrapolated."""
    assert np.all(doublings_outside(np.array([1.0, 3.0, 8.0]), 1.0, 8.0) == 0.0)


def test_both_sides_count() -> None:
    """A factor of four is two doublings, below as above."""
    assert doublings_outside(0.25, 1.0, 8.0) == pytest.approx(2.0)
    assert doublings_outside(32.0, 1.0, 8.0) == pytest.approx(2.0)


def test_distance_adds_in_squares() -> None:
    """Nothing is added at no distance; far away only the distance counts."""
    assert stretched_deviation(0.03, 0.02, 0.0) == pytest.approx(0.03)
    assert stretched_deviation(0.03, 0.02, 2.0) == pytest.approx(0.05)
    assert stretched_deviation(0.03, 0.02, 1e4) == pytest.approx(200.0)
