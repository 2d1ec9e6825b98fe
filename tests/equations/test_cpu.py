"""Processors: shortfalls, speed ratios, and threads that share a core."""

from __future__ import annotations

import numpy as np
import pytest

from simulator.equations import cpu


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
