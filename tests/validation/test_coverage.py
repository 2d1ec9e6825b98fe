"""Intervals over everything held out: coverage, the rival of one width, families that are off."""

from __future__ import annotations

import pytest

from simulator.schema.measurement import Split
from simulator.validation.scores import MIN_FIGURES, Judged, Point, bands


def figures(  # noqa: PLR0913 - each part of a figure
    count: int,
    measured: float,
    *,
    family: str = "a",
    split: Split = Split.TEST,
    width: float | None = 0.1,
    absolute: bool = False,
) -> list[Judged]:
    """Equal figures, all predicted as 1."""
    low, high = (None, None) if width is None else (1.0 - width, 1.0 + width)
    point = Point(predicted=1.0, measured=measured, p10=low, p90=high)
    figure = Judged(
        set="s", id="1", family=family, split=split, metric="m", point=point, absolute=absolute
    )
    return [figure] * count


def test_coverage_is_that_of_test_figures_with_intervals() -> None:
    """Eight of ten; fit figures and those without an interval don't count."""
    found = bands(
        [
            *figures(8, 1.05),
            *figures(2, 1.2),
            *figures(50, 3.0, split=Split.FIT),
            *figures(50, 3.0, width=None),
        ]
    )
    assert found is not None
    assert (found.figures, found.coverage) == (10, 0.8)
    assert found.holds


@pytest.mark.parametrize(("inside", "holds"), [(6, False), (8, True), (10, False)])
def test_too_narrow_and_too_wide_are_both_off(inside: int, *, holds: bool) -> None:
    """60% is too little of 80%, and 100% too much."""
    found = bands([*figures(inside, 1.05), *figures(10 - inside, 1.2)])
    assert found is not None
    assert found.holds is holds


def test_a_large_family_is_judged_by_itself() -> None:
    """30 figures all inside are off although the whole holds; 29 are not judged."""
    rest = [*figures(10, 1.05, family="b"), *figures(10, 1.2, family="b")]
    for count, off in ((MIN_FIGURES, (("s, a, m", 1.0),)), (MIN_FIGURES - 1, ())):
        found = bands([*figures(count, 1.05), *rest])
        assert found is not None
        assert found.off == off


def test_the_rival_is_fitted_on_fit_figures() -> None:
    """Fit figures are off by 50%, so one width is 50%; ours of 10% score better on test figures."""
    found = bands([*figures(5, 1.05), *figures(5, 1.5, split=Split.FIT)])
    assert found is not None
    assert found.interval_score == pytest.approx(0.2 / 1.05)
    assert found.constant_score == pytest.approx(1.0 / 1.05)


def test_shares_have_no_relative_width() -> None:
    """Figures judged by differences count for coverage, not for the scores."""
    found = bands([*figures(5, 1.05), *figures(5, 9.0, absolute=True)])
    assert found is not None
    assert found.coverage == 0.5
    assert found.interval_score == pytest.approx(0.2 / 1.05)


def test_nothing_to_judge() -> None:
    """Without intervals on test rows there is no verdict."""
    assert bands(figures(3, 1.0, split=Split.FIT)) is None
