"""The step: its parts, its limits, and lengths of runs."""

from __future__ import annotations

import numpy as np
import pytest

from simulator.equations import step


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


def test_overlap_is_never_slower_than_no_overlap() -> None:
    """Loading ahead gives between the slower part and the sum."""
    load, compute = np.meshgrid([0.01, 0.1, 1.0], [0.01, 0.1, 1.0])
    ahead = step.overlapped_step(load, compute)
    assert np.all(ahead < step.serial_step(load, compute))
    assert np.all(ahead >= compute)
    assert step.serial_step(load, compute) == pytest.approx(load + compute)


def test_workers_up_to_the_device() -> None:
    """More workers help until the device is busy all the time."""
    steps = step.overlapped_step(0.12, 0.02, np.array([1, 2, 4, 6, 12]))
    assert steps == pytest.approx([0.12, 0.06, 0.03, 0.02, 0.02])


@pytest.mark.parametrize(("load", "compute"), [(0.38, 0.055), (0.3, 0.1), (0.7, 0.1), (0.05, 0.1)])
def test_the_workers_needed_are_enough_and_not_too_many(load: float, compute: float) -> None:
    """With that many the device is always busy, with one less it is not."""
    workers = step.workers_needed(load, compute)
    assert float(workers).is_integer()
    assert step.overlapped_step(load, compute, workers) == pytest.approx(compute)
    if workers > 1:
        assert step.overlapped_step(load, compute, workers - 1) > compute * (1 + 1e-9)


def test_the_last_collective_is_always_exposed() -> None:
    """What starts after the backward pass cannot hide under it."""
    windows = np.array([0.0, 0.01, 0.1])
    exposed = step.exposed_communication(0.03, windows, 0.002)
    assert exposed == pytest.approx([0.03, 0.02, 0.002])


def test_iterations_with_and_without_the_last_batch() -> None:
    """A batch that is not full counts unless dropped; a full one always counts."""
    count = step.iterations_per_epoch
    assert count(10, 4, drop_last=True) == 2
    assert count(10, 4, drop_last=False) == 3
    assert count(8, 4, drop_last=True) == count(8, 4, drop_last=False) == 2
    assert count(10, np.array([4, 5]), drop_last=np.array([True, False])) == pytest.approx([2, 2])


def test_time_and_throughput_agree() -> None:
    """Samples over the time of a run is its throughput, and a deadline asks for just that."""
    time = step.training_time(0.2, 1000, 3)
    rate = step.throughput(32, 0.2)
    assert rate * time == pytest.approx(32 * 1000 * 3)
    assert step.throughput_for_deadline(32 * 1000, 3, time) == pytest.approx(rate)
