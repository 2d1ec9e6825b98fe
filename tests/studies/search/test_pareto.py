"""The Pareto front against comparing all with all."""

from __future__ import annotations

import warnings

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from simulator.studies.search.scoring import front, may_beat

FEW = settings(max_examples=150, deadline=None, derandomize=True)
VALUES = st.sampled_from([-9.0, -2.0, 0.0, 1.0, 1.5, 2.0, 3.0, np.inf])


def points(columns: int) -> st.SearchStrategy[np.ndarray]:
    """Few different values, so that points tie."""
    return arrays.arrays(float, st.tuples(st.integers(0, 30), st.just(columns)), elements=VALUES)


def beats(one: np.ndarray, other: np.ndarray) -> bool:
    """Whether a point is better somewhere and worse nowhere."""
    return bool((one <= other).all() and (one < other).any())


@FEW
@given(st.integers(1, 4).flatmap(points))
def test_the_front_is_what_nothing_beats(rows: np.ndarray) -> None:
    """As found by comparing every point with every other."""
    expected = [not any(beats(other, row) for other in rows) for row in rows]
    assert front(rows).tolist() == expected


@FEW
@given(
    st.integers(1, 3).flatmap(lambda columns: st.tuples(points(columns), points(columns))),
    st.sampled_from([None, 1, 3]),
    st.sampled_from([0.0, 0.1]),
)
def test_what_may_beat_is_all_that_no_found_point_rules_out(
    both: tuple[np.ndarray, np.ndarray], top: int | None, margin: float
) -> None:
    """As found by comparing every best case with every point found."""
    best, found = both
    with np.errstate(invalid="ignore"):
        worse = found + margin * np.abs(found) if margin else found
        mask = may_beat(best, found, top=top, margin=margin)
    for row, kept in zip(best, mask, strict=True):
        ruled_out = any(beats(point, row) for point in worse)
        better = sum(point[0] < row[0] for point in found)
        assert kept == (not ruled_out or (top is not None and better < top))


def test_points_of_no_objective_worse_than_the_margin_are_kept() -> None:
    """Within ten percent of the front, but not beyond."""
    best = np.array([[1.09, 1.0], [1.2, 1.2]])
    assert may_beat(best, np.array([[1.0, 1.0]]), margin=0.1).tolist() == [True, False]


def test_nothing_is_ruled_out_by_nothing() -> None:
    """Before anything was predicted all may be best; no points have an empty front."""
    assert may_beat(np.ones((3, 2)), np.empty((0, 2))).all()
    assert front(np.empty((0, 2))).tolist() == []


def test_an_unknown_figure_stays_unknown_with_a_margin() -> None:
    """Where one found has no cost, the others are still compared by time, without a warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        kept = may_beat(
            np.array([[1.0, np.inf], [3.0, np.inf]]), np.array([[2.0, np.inf]]), margin=0.1
        )
    assert kept.tolist() == [True, False]


def test_the_first_of_unknown_figures_are_no_mistake() -> None:
    """Where too few figures are known for the first ones, none is left out, and nothing warns."""
    unknown = np.array([[np.inf, 1.0], [np.inf, 2.0]])
    with np.errstate(all="raise"):
        assert may_beat(unknown, unknown, margin=-0.1, top=2).tolist() == [True, True]
