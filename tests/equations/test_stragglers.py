"""Waiting for the slowest of many."""

from __future__ import annotations

import numpy as np
import pytest

from simulator.equations.stragglers import harmonic, wait_for_slowest


def test_harmonic_numbers_are_their_sums() -> None:
    """The series agrees with adding up, for one number and for many at once."""
    counts = np.array([1.0, 2.0, 3.0, 8.0, 100.0, 2100.0])
    sums = [sum(1.0 / k for k in range(1, int(n) + 1)) for n in counts]
    assert harmonic(counts) == pytest.approx(sums, abs=1e-6)


def test_the_slowest_of_many_draws_is_as_late_as_said() -> None:
    """The mean of drawn maxima, less the mean delay, lies within four standard errors."""
    draws = np.random.default_rng(5).exponential(0.2, (20_000, 60))
    late = draws.max(axis=1) - draws.mean(axis=1)
    error = late.std() / np.sqrt(len(late))
    assert abs(late.mean() - wait_for_slowest(0.2, 60)) < 4.0 * error


def test_one_rank_waits_for_nobody() -> None:
    """Alone there is nobody to wait for, and more ranks never wait less."""
    waits = wait_for_slowest(0.2, np.arange(1.0, 50.0))
    assert waits[0] == pytest.approx(0.0, abs=1e-6)
    assert np.all(np.diff(waits) > 0.0)
