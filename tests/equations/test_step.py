"""The training step: sum of its parts, exposed communication, optimizer on the host."""

from __future__ import annotations

import numpy as np
import pytest

from simulator.equations import step
from simulator.equations.step import (
    expected_slowest,
    harmonic,
    host_update_bytes,
    late_copies,
    left_to_wait,
    mean_delay,
    mean_square_length,
    wait_for_slow_device,
    wait_for_slowest,
)
from simulator.pipeline.stages.waiting import expected_largest


def test_the_step_is_the_sum_of_its_parts() -> None:
    """Each part counts once, and those not given count nothing."""
    parts = {
        "data_stall": 1.0,
        "h2d": 2.0,
        "compute": 4.0,
        "communication": 8.0,
        "bubble": 16.0,
        "checkpoint": 32.0,
        "other": 64.0,
    }
    assert step.step_time(**parts) == 127.0
    assert step.step_time(data_stall=1.0, h2d=2.0, compute=4.0) == 7.0


def test_the_last_collective_is_always_exposed() -> None:
    """What starts after the backward pass cannot hide under it."""
    windows = np.array([0.0, 0.01, 0.1])
    exposed = step.exposed_communication(0.03, windows, 0.002)
    assert exposed == pytest.approx([0.03, 0.02, 0.002])


def test_host_update_bytes() -> None:
    """Gradient, weight, two moments and copy of Adam by hand; of SGD without the moments."""
    assert host_update_bytes(1.0, 8.0) == 4.0 + 3.0 * (4.0 + 4.0) + 2.0
    assert host_update_bytes(2.0, 0.0) == 2.0 * (4.0 + 8.0 + 2.0)


@pytest.mark.parametrize(
    ("copies", "behind", "parts", "waited"),
    [(1.0, 0.0, 10.0, 1.0), (1.0, 5.0, 10.0, 0.1), (1.0, 0.5, 10.0, 0.5), (1.0, 5.0, 1.0, 1.0)],
)
def test_late_copies(copies: float, behind: float, parts: float, waited: float) -> None:
    """All of them, the last part, what is too long, or all of a single part."""
    assert float(late_copies(copies, behind, parts)) == pytest.approx(waited)


def test_contention_lasts_as_long_as_compute_and_communication_are_together() -> None:
    """Longer communication than compute slows no more than all of the compute."""
    assert step.contended(0.5, np.array([0.2, 9.0]), 0.5, 1.0) == pytest.approx([0.05, 0.5])


def test_an_update_reads_and_launches() -> None:
    """A gigabyte at a terabyte a second is a millisecond, and launches come on top."""
    assert step.optimizer_time(1e9, 1e12, 0.25) == pytest.approx(0.251)


def test_exchange_hidden_entirely_is_not_waited_for() -> None:
    """Compute that is longer than the exchange beside it leaves sends alone to be waited for."""
    assert step.waited_exchange(np.array([-1.0, 1.0]), 0.5, 2.0) == pytest.approx([1.0, 3.0])


def test_work_of_samples_and_of_the_batch() -> None:
    """Nothing is left of an empty batch but what a batch of any size takes."""
    sizes = np.array([0.0, 1.0, 32.0])
    assert step.batch_work(sizes, 0.5, 2.0, 3.0) == pytest.approx([6.0, 7.5, 54.0])
    assert step.decode_work(sizes, 0.5, 0.25, 2.0) == pytest.approx([0.0, 1.5, 48.0])


def test_bytes_of_a_batch() -> None:
    """A copy within memory reads and writes what there is."""
    size = step.batch_bytes(32, 100.0)
    assert size == 3200.0
    assert step.copied_bytes(size) == 6400.0


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


def test_iterations_with_and_without_the_last_batch() -> None:
    """A batch that is not full counts unless dropped; a full one always counts."""
    count = step.iterations_per_epoch
    assert count(10, 4, drop_last=True) == 2
    assert count(10, 4, drop_last=False) == 3
    assert count(8, 4, drop_last=True) == count(8, 4, drop_last=False) == 2
    assert count(10, np.array([4, 5]), drop_last=np.array([True, False])) == pytest.approx([2, 2])


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
