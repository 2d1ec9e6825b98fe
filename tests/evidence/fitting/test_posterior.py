"""The most likely figures, and how sure they are."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from fitting.posterior import fit, weights

Vector = NDArray[np.float64]
WIDE = (np.array([-9.0, -9.0]), np.array([9.0, 9.0]))


def test_what_runs_say_wins_and_what_they_do_not_say_stays_as_expected() -> None:
    """A figure that all runs depend on is found; one that none does keeps its whole spread."""

    def errors(x: Vector) -> Vector:
        return np.full(50, 0.1 * (x[0] - 2.0))

    found = fit(errors, np.ones(50), np.zeros(2), WIDE, 0.01)
    assert found.x == pytest.approx([2.0, 0.0], abs=0.01)
    assert found.errors[0] < 0.05
    assert found.errors[1] == pytest.approx(1.0)


def test_one_run_far_off_does_not_carry_the_others_away() -> None:
    """Errors far beyond the deviation count less than squared."""
    measured = np.array([1.0] * 20 + [8.0])

    def errors(x: Vector) -> Vector:
        return 0.1 * (x[0] - measured)

    assert fit(errors, np.ones(21), np.zeros(2), WIDE, 0.01).x[0] == pytest.approx(1.0, abs=0.1)


def test_figures_stay_within_bounds() -> None:
    """Where runs pull beyond what is possible, the fit ends at the bound."""
    narrow = (np.array([-1.0, -1.0]), np.array([1.0, 1.0]))

    def errors(x: Vector) -> Vector:
        return np.full(50, 0.1 * (x[0] - 2.0))

    assert fit(errors, np.ones(50), np.zeros(2), narrow, 0.01).x[0] == pytest.approx(1.0, abs=1e-6)


def test_many_runs_of_a_family_count_as_the_root_of_their_number() -> None:
    """900 runs count as 150, 4 as 4."""
    found = weights(["many"] * 900 + ["few"] * 4)
    assert np.sum(found[:900] ** 2) == pytest.approx(150.0)
    assert np.sum(found[900:] ** 2) == pytest.approx(4.0)
