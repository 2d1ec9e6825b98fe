"""Where tokens go."""

from __future__ import annotations

import numpy as np
import pytest

from simulator.equations.dispatch import distinct_places


def test_drawn_places_are_as_many_as_said() -> None:
    """The mean number of different places of random draws."""
    draws = np.random.default_rng(11).integers(0, 8, (20_000, 4))
    mean = np.mean([len(set(row)) for row in draws.tolist()])
    assert distinct_places(8.0, 4.0) == pytest.approx(mean, rel=0.01)


def test_limits() -> None:
    """One place is hit by any draw; never more places than draws or places."""
    assert distinct_places(1.0, 5.0) == 1.0
    assert distinct_places(8.0, 1.0) == pytest.approx(1.0)
    assert distinct_places(4.0, 1000.0) == pytest.approx(4.0)
