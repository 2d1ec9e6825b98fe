"""The training step: sum of its parts, exposed communication, optimizer on the host."""

from __future__ import annotations

import numpy as np
import pytest

from simulator.equations import step
from simulator.equations.step import host_update_bytes, late_copies


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
