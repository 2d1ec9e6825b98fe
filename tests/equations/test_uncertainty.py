"""How deviations grow with the distance from what was measured."""

from __future__ import annotations

import numpy as np
import pytest

from simulator.equations.uncertainty import (
    doublings_outside,
    probability,
    room,
    stretched_deviation,
)


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


def test_room_is_counted_in_deviations() -> None:
    """As much as there is leaves none; short is negative; a narrower uncertainty counts more."""
    assert room(80e9, 80e9, 0.1) == 0.0
    assert room(80e9, 60e9, 0.1) < 0.0
    assert room(70e9, 80e9, 0.05) == pytest.approx(2.0 * room(70e9, 80e9, 0.1))


def test_probabilities_are_those_of_tables() -> None:
    """Standard normal: 1.2816 deviations hold nine of ten, and both sides add up to one."""
    assert probability(1.2815515655446004) == pytest.approx(0.9)
    both = probability(np.array([0.7, -0.7]))
    assert both.sum() == pytest.approx(1.0)  # type: ignore[union-attr] # an array, as given
