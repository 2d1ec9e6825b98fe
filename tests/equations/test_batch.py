"""Work on a batch: zero and one sample, and lengths of sequences."""

from __future__ import annotations

import numpy as np
import pytest

from simulator.equations import batch
from simulator.equations.batch import mean_square_length


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
    count = batch.iterations_per_epoch
    assert count(10, 4, drop_last=True) == 2
    assert count(10, 4, drop_last=False) == 3
    assert count(8, 4, drop_last=True) == count(8, 4, drop_last=False) == 2
    assert count(10, np.array([4, 5]), drop_last=np.array([True, False])) == pytest.approx([2, 2])
