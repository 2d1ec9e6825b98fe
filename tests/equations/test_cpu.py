"""Processors: pools, slowdown of busy threads and spinning processes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.theory import busy_threads, loader_rate

from simulator.equations import cpu
from simulator.equations.cpu import capacity_beside, thread_slowdown


def test_enough_is_never_short() -> None:
    """Spare vCPUs are no negative shortfall."""
    assert cpu.vcpus_short(240, 20, 8) == 0.0


def test_need_from_times() -> None:
    """Twelve vCPU-seconds a batch every half second take twenty-four vCPUs."""
    assert cpu.vcpus_to_feed(12.0, 0.5) == 24.0


def test_speed_ratios_chain() -> None:
    """From here to there and back again nothing changes."""
    there = cpu.speed_ratio(15_914, 13_237)
    assert there * cpu.speed_ratio(13_237, 15_914) == pytest.approx(1.0)


def test_capacity_by_busy_threads() -> None:
    """Cores fill first, second threads add their worth, further threads nothing."""
    busy = np.array([0.0, 1.0, 48.0, 72.0, 96.0, 400.0])
    capacity = cpu.pool_capacity(busy, 48, 96, 0.25)
    assert capacity == pytest.approx([0.0, 1.0, 48.0, 54.0, 60.0, 60.0])


@pytest.mark.parametrize("smt_worth", [0.0, 0.25, 1.0])
def test_a_cost_on_a_busy_vcpu(smt_worth: float) -> None:
    """With two threads a core, a vCPU second is worth (1 + smt_worth) / 2 core seconds."""
    full = cpu.pool_capacity(96, 48, 96, smt_worth)
    assert cpu.core_cost(0.002, full, 96) == pytest.approx(0.002 * (1 + smt_worth) / 2)


def test_a_cost_without_second_threads() -> None:
    """Where a vCPU is a core, nothing is converted."""
    assert cpu.core_cost(0.002, cpu.pool_capacity(8, 8, 8, 0.25), 8) == 0.002


def test_threads_of_programs_and_loaders_fill_a_step() -> None:
    """While devices starve, thread time for batches and for waiting programs is all there is."""
    device, making, threads = 0.1, 0.15, 96.0
    taken = float(cpu.threads_taken(8.0, device, making, threads))
    step = making * threads / (threads - taken)
    assert step * taken == pytest.approx(8.0 * device)


def test_programs_spin_all_the_time_where_devices_never_wait() -> None:
    """And leave half of a small machine to the others at least."""
    assert cpu.threads_taken(8.0, 0.1, 0.01, 96.0) == 8.0
    assert cpu.threads_taken(8.0, 0.1, 0.01, 4.0) == 2.0


checked = settings(max_examples=80, deadline=None, derandomize=True)
times = st.floats(1e-5, 1e-1)
counts = st.integers(1, 128)
fractions = st.floats(0.0, 1.0)


@pytest.mark.parametrize("busy", [0.0, 0.5, 1.0])
def test_one_thread_alone_is_not_slowed(busy: float) -> None:
    """A thread that is alone runs at full speed whatever the contention."""
    assert thread_slowdown(busy, 8.0, 16.0, 0.3, 0.5) == 1.0


def test_without_contention_threads_on_their_own_cores_run_at_full_speed() -> None:
    """Up to the number of cores nothing is shared."""
    assert np.array_equal(thread_slowdown(np.arange(1.0, 9.0), 8.0, 16.0, 0.3, 0.0), np.ones(8))


def test_beyond_the_hardware_threads_time_is_sliced() -> None:
    """Twice the hardware threads take twice as long each."""
    full = thread_slowdown(16.0, 8.0, 16.0, 0.3, 0.5)
    assert thread_slowdown(32.0, 8.0, 16.0, 0.3, 0.5) == pytest.approx(2.0 * full)


@checked
@given(st.floats(0.0, 256.0), st.floats(0.0, 32.0), counts, fractions, fractions)
def test_more_busy_threads_never_speed_one_up(
    busy: float, more: float, cores: int, smt_worth: float, contention: float
) -> None:
    """The slow-down is at least 1 and grows with the busy threads."""
    few = thread_slowdown(busy, cores, 2 * cores, smt_worth, contention)
    many = thread_slowdown(busy + more, cores, 2 * cores, smt_worth, contention)
    assert 1.0 <= few <= many * (1.0 + 1e-12)


@checked
@given(counts, times, times)
def test_busy_threads_are_the_rate_times_the_work(
    workers: int, worker_time: float, receive_time: float
) -> None:
    """Little's law for the threads, and never more than the workers and the receiver."""
    busy = busy_threads(workers, worker_time, receive_time)
    rate = loader_rate(workers, worker_time, receive_time)
    assert busy == pytest.approx(rate * (worker_time + receive_time))
    assert busy * (1.0 + 1e-12) >= 1.0
    assert busy <= (workers + 1.0) * (1.0 + 1e-12)


def test_one_worker_with_nothing_to_receive_works_alone() -> None:
    """A single worker delivers one image per its time."""
    assert loader_rate(1.0, 4.0e-3, 0.0) == pytest.approx(250.0)


@checked
@given(times, times, fractions)
def test_more_workers_never_deliver_less(
    worker_time: float, receive_time: float, contention: float
) -> None:
    """While every thread has a core, a worker more never lowers the rate."""
    workers = np.arange(1.0, 16.0)
    busy = busy_threads(workers, worker_time, receive_time)
    slowdown = thread_slowdown(busy, 16.0, 16.0, 1.0, contention)
    rates = loader_rate(workers, worker_time, receive_time, slowdown)
    assert np.all(np.diff(rates) >= -1e-9 * rates[1:])


def test_a_slower_decoder_has_a_lower_ceiling() -> None:
    """With workers to spare the rate is the receiver's, slowed by what the workers still do."""
    worker = np.array([1.0e-3, 2.0e-3])
    slowdown = thread_slowdown(busy_threads(8.0, worker, 0.5e-3), 8.0, 16.0, 0.25, 0.4)
    expected = 1.0 / (0.5e-3 + 0.4 / 8.0 * worker)
    assert loader_rate(8.0, worker, 0.5e-3, slowdown) == pytest.approx(expected)


def test_spinning_threads_take_cores_but_no_bandwidth() -> None:
    """With cores to spare they cost nothing; on a full machine their share of it."""

    def capacity(own: float, taken: float) -> float:
        figures = {"cores": 48.0, "threads": 96.0, "smt_worth": 0.0, "contention": 0.5}
        return float(capacity_beside(own, taken, **figures))

    assert capacity(40.0, 8.0) == pytest.approx(capacity(40.0, 0.0))
    assert capacity(88.0, 8.0) / capacity(88.0, 0.0) == pytest.approx(88.0 / 96.0)
    slowed = thread_slowdown(88.0, 48.0, 96.0, 0.0, 0.5)
    assert capacity(88.0, 0.0) == pytest.approx(88.0 / slowed)


def test_a_step_on_all_cores() -> None:
    """Half a second on what 60 cores are worth is 30 core-seconds."""
    assert cpu.cores_work(0.5, 60.0) == 30.0
