"""Work on a batch: zero and one sample, and parts that make up a whole."""

from __future__ import annotations

import numpy as np
import pytest

from simulator.equations import batch


def test_work_of_samples_and_of_the_batch() -> None:
    """Nothing is left of an empty batch but what a batch of any size takes."""
    sizes = np.array([0.0, 1.0, 32.0])
    assert batch.batch_work(sizes, 0.5, 2.0, 3.0) == pytest.approx([6.0, 7.5, 54.0])
    assert batch.decode_work(sizes, 0.5, 0.25, 2.0) == pytest.approx([0.0, 1.5, 48.0])


def test_bytes_of_a_batch() -> None:
    """A copy within memory reads and writes what there is."""
    size = batch.batch_bytes(32, 100.0)
    assert size == 3200.0
    assert batch.copied_bytes(size) == 6400.0


def test_a_step_on_all_cores() -> None:
    """Half a second on what 60 cores are worth is 30 core-seconds."""
    assert batch.cores_work(0.5, 60.0) == 30.0


def test_contention_lasts_as_long_as_compute_and_communication_are_together() -> None:
    """Longer communication than compute slows no more than all of the compute."""
    assert batch.contended(0.5, np.array([0.2, 9.0]), 0.5, 1.0) == pytest.approx([0.05, 0.5])


def test_an_update_reads_and_launches() -> None:
    """A gigabyte at a terabyte a second is a millisecond, and launches come on top."""
    assert batch.optimizer_time(1e9, 1e12, 0.25) == pytest.approx(0.251)


def test_exchange_hidden_entirely_is_not_waited_for() -> None:
    """Compute that is longer than the exchange beside it leaves sends alone to be waited for."""
    assert batch.waited_exchange(np.array([-1.0, 1.0]), 0.5, 2.0) == pytest.approx([1.0, 3.0])
