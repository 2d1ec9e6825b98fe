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
