"""Which parameters a Jacobian can tell apart."""

from __future__ import annotations

import numpy as np
import pytest

from simulator.calibration.calibrate import identifiability

PRIOR = np.full(2, 0.004)


def test_independent_parameters() -> None:
    """Each moves rows of its own."""
    found = identifiability(["a", "b"], np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]]), PRIOR)
    assert found.correlated == ()
    assert found.faint == ()
    assert found.correlations[0] == pytest.approx((1.0, 0.0))
    assert found.effects == pytest.approx(((2 / 3) ** 0.5, (1 / 3) ** 0.5))


@pytest.mark.parametrize(("ratio", "sign"), [(2.0, -1.0), (-0.5, 1.0)])
def test_parameters_that_move_all_rows_alike(ratio: float, sign: float) -> None:
    """The pair is named with its sign, and so is the direction that changes nothing."""
    column = np.array([1.0, 0.5, 0.8])
    found = identifiability(["a", "b"], np.column_stack([column, ratio * column]), PRIOR)
    ((first, second, correlation),) = found.correlated
    assert {first, second} == {"a", "b"}
    assert correlation == pytest.approx(sign, abs=1e-3)
    ((weights, effect),) = found.faint
    assert effect < 1e-6
    assert weights["a"] / weights["b"] == pytest.approx(-ratio)


def test_a_parameter_without_effect_is_a_faint_direction_of_its_own() -> None:
    """It is not taken for a relative of others."""
    found = identifiability(["a", "b"], np.array([[1.0, 0.0], [0.7, 0.0]]), PRIOR)
    assert found.correlated == ()
    assert [weights for weights, _ in found.faint] == [{"b": pytest.approx(1.0)}]


def test_fewer_rows_than_parameters() -> None:
    """One row knows one direction of two."""
    found = identifiability(["a", "b"], np.array([[1.0, 1.0]]), PRIOR)
    assert len(found.effects) == 2
    assert len(found.faint) == 1
    assert len(found.correlated) == 1
