"""Few parameters, few observations, few evaluations."""

from __future__ import annotations

import numpy as np
import pytest

from simulator.calibration.solvers import Vector, solve

LOW, HIGH = np.array([-5.0]), np.array([5.0])


class Counted:
    """A function that counts how often it is asked."""

    def __init__(self, slopes: list[list[float]], truth: list[float], floor: float) -> None:
        self.slopes, self.truth, self.floor, self.calls = slopes, truth, floor, 0

    def __call__(self, x: Vector) -> Vector:
        """Log errors of times that are the longer of what x imposes and of a floor."""
        self.calls += 1
        there, best = (np.array(self.slopes) @ np.asarray(v) for v in (x, self.truth))
        return np.asarray(np.maximum(there, self.floor) - np.maximum(best, self.floor))


def test_a_straight_line_takes_three_evaluations() -> None:
    """Start, slope, solution."""
    errors = Counted([[-1.0]], [1.5], floor=-9.0)
    found = solve(errors, np.array([0.0]), LOW, HIGH)
    assert found.x == pytest.approx([1.5], abs=1e-3)
    assert errors.calls == 3


def test_a_parameter_that_does_nothing_at_first_is_found_from_its_bound() -> None:
    """The store is fast enough where the search begins, but a slower one explains the rows."""
    errors = Counted([[-1.0]], [-2.0], floor=1.0)
    found = solve(errors, np.array([4.0]), LOW, HIGH)
    assert found.x == pytest.approx([-2.0], abs=1e-3)
    assert found.moved == (True,)
    assert errors.calls <= 6


def test_a_parameter_that_is_not_to_blame_stays() -> None:
    """The rows are slower than any store can make them: the store keeps its prior."""

    def errors(x: Vector) -> Vector:
        return np.array([0.3 + 0.0 * x[0]])

    found = solve(errors, np.array([2.0]), LOW, HIGH)
    assert found.x.tolist() == [2.0]
    assert found.moved == (False,)
    assert found.worst == pytest.approx(0.3)


def test_two_parameters_to_two_observations() -> None:
    """Each observation feels both."""
    errors = Counted([[-1.0, 0.3], [0.2, 1.0]], [1.0, -0.7], floor=-9.0)
    found = solve(errors, np.zeros(2), np.full(2, -5.0), np.full(2, 5.0))
    assert found.x == pytest.approx([1.0, -0.7], abs=5e-3)
    assert errors.calls <= 5


def test_parameters_that_only_count_together_stay_near_their_start() -> None:
    """Of all points on the ridge the one that deviates least is taken."""
    found = solve(
        Counted([[1.0, 1.0], [0.9, 0.9], [0.2, 0.2]], [1.0, 1.0], floor=-9.0),
        np.zeros(2),
        np.full(2, -5.0),
        np.full(2, 5.0),
    )
    assert found.x == pytest.approx([1.0, 1.0], abs=0.02)


def test_slopes_are_taken_anew_where_kinks_mislead() -> None:
    """Twelve rows, two resources: from far away both are found, though each hides the other."""
    sizes = np.linspace(-2.0, 2.0, 12)

    def times(x: Vector) -> Vector:
        return np.asarray(np.maximum(sizes - x[0], -sizes - x[1]))

    truth = np.array([1.0, -1.5])
    found = solve(lambda x: times(x) - times(truth), np.zeros(2), np.full(2, -5.0), np.full(2, 5.0))
    assert found.x == pytest.approx(truth, abs=0.01)


def test_the_solution_stays_between_the_bounds() -> None:
    """What would need more than the bound allows stops there."""
    errors = Counted([[-1.0]], [9.0], floor=-19.0)
    found = solve(errors, np.array([0.0]), LOW, HIGH)
    assert found.x.tolist() == [5.0]


def test_a_parameter_that_does_nothing_is_not_blamed_for_what_another_explains() -> None:
    """Late ranks or a slow store would do; only late ranks change anything, so they are late."""

    def errors(x: Vector) -> Vector:
        late, store = x
        return np.array([np.maximum(0.2 * late + 0.5, 1.0 - store) - 0.9])

    found = solve(errors, np.array([0.0, 4.0]), np.full(2, -5.0), np.full(2, 5.0))
    assert found.x == pytest.approx([2.0, 4.0], abs=0.02)
    assert found.moved == (True, False)


def test_what_one_parameter_leaves_unexplained_is_another_ones() -> None:
    """Late ranks cannot explain a slow first step; the store can, and then both are found."""

    def errors(x: Vector) -> Vector:
        late, store = x
        return np.array([0.2 * late - 0.1, np.maximum(0.0, 3.0 - store) - 1.0])

    found = solve(errors, np.array([0.0, 4.0]), np.full(2, -5.0), np.full(2, 5.0))
    assert found.x == pytest.approx([0.5, 2.0], abs=0.02)
    assert found.moved == (True, True)
