"""Waiting for the slowest of many."""

from __future__ import annotations

import numpy as np
import pytest

from simulator.equations.stragglers import (
    expected_slowest,
    harmonic,
    left_to_wait,
    mean_delay,
    wait_for_slow_device,
    wait_for_slowest,
)
from simulator.pipeline.stragglers import expected_largest


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


def test_what_is_left_to_wait_is_never_negative_nor_more() -> None:
    """All of it after equal arrivals, next to nothing after one that is very late."""
    lags = np.array([0.0, 0.1, 1.0, 100.0])
    left = left_to_wait(0.5, lags)
    assert left[0] == 0.5
    assert np.all(np.diff(left) < 0.0)
    assert 0.0 < left[-1] < 0.002


def test_normal_causes_add_up_in_quadrature() -> None:
    """Late batches and slow devices, both drawn: the mean of maxima within four errors."""
    drawn = np.random.default_rng(8).normal(0.0, 1.0, (2, 20_000, 8)) * [[[0.3]], [[0.4]]]
    late, both = drawn[0].max(axis=1), drawn.sum(axis=0).max(axis=1)
    slow = 0.4 * expected_largest(lambda scores: scores, 8)
    error = both.std() / np.sqrt(len(both))
    lag = 0.3 * expected_largest(lambda scores: scores, 8)
    assert late.mean() == pytest.approx(lag, rel=0.02)
    assert abs(both.mean() - lag - left_to_wait(slow, lag)) < 4.0 * error


def test_delays_grow_with_the_compute_they_are_a_share_of() -> None:
    """A tenth of four batches of half a second is 0.2 s."""
    assert mean_delay(0.1, 0.5, 4.0) == pytest.approx(0.2)


def test_devices_all_alike_wait_for_nobody() -> None:
    """Only what the slowest takes beyond the mean one is waited for."""
    assert wait_for_slow_device(2.0, 1.0, 1.0) == 0.0
    assert wait_for_slow_device(2.0, 1.25, 2.0) == pytest.approx(0.25)


def test_the_slowest_of_normal_draws() -> None:
    """Within a sixth of the mean maximum of so many draws."""
    draws = np.random.default_rng(3).normal(size=(20_000, 16))
    for ranks in (4, 8, 16):
        mean = draws[:, :ranks].max(axis=1).mean()
        assert expected_slowest(float(ranks)) == pytest.approx(mean, rel=1.0 / 6.0)
    assert expected_slowest(1.0) == 0.0
