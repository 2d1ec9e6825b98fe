"""Scores of predictions, against figures worked by hand and against scipy."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import spearmanr

from simulator.validation.scores import (
    Point,
    constant_width,
    coverage,
    interval_score,
    rank_correlation,
    score,
    with_width,
)


def points(*pairs: tuple[float, float]) -> list[Point]:
    """Points of (predicted, measured)."""
    return [Point(predicted=p, measured=m) for p, m in pairs]


def test_errors_are_shares_of_what_was_measured() -> None:
    """+10%, -20%, 0 and +30% by hand."""
    found = score(points((1.1, 1.0), (1.6, 2.0), (3.0, 3.0), (5.2, 4.0)))
    assert found is not None
    assert found.rows == 4
    assert found.median == pytest.approx(0.15)
    assert found.mean == pytest.approx(0.15)
    assert found.p90 == pytest.approx(0.27)
    assert found.largest == pytest.approx(0.3)
    assert found.bias == pytest.approx(0.05)


def test_errors_of_shares_are_differences() -> None:
    """90% predicted and 45% measured are 45 points apart, not 100%."""
    found = score(points((0.9, 0.45), (0.5, 0.6)), absolute=True)
    assert found is not None
    assert (found.mean, found.bias) == pytest.approx((0.275, 0.175))


def test_nothing_has_no_score() -> None:
    """No rows, no intervals, no baseline: None rather than zero."""
    assert score([]) is None
    found = score(points((1.0, 1.0)))
    assert found is not None
    assert (found.coverage, found.interval_score, found.baseline_mean) == (None, None, None)
    assert found.rank_correlation is None


@pytest.mark.parametrize("seed", range(5))
def test_rank_correlation_is_spearmans(seed: int) -> None:
    """The same as scipy's, ties included."""
    draw = np.random.default_rng(seed)
    one, other = draw.integers(0, 8, 40).astype(float), draw.integers(0, 8, 40).astype(float)
    expected = float(spearmanr(one, other).statistic)
    assert rank_correlation(one, other) == pytest.approx(expected, abs=1e-12)


def test_coverage_counts_both_ends() -> None:
    """Values on the edges lie within; those beyond don't."""
    bands = [Point(predicted=1.0, measured=m, p10=0.9, p90=1.1) for m in (0.9, 1.1, 1.0, 1.2)]
    assert coverage(bands) == 0.75


def test_interval_score_by_hand() -> None:
    """Width over the measured value, and ten times what it lies outside by."""
    inside = Point(predicted=2.0, measured=2.0, p10=1.9, p90=2.3)
    above = Point(predicted=2.0, measured=4.0, p10=1.9, p90=2.3)
    below = Point(predicted=2.0, measured=1.0, p10=1.9, p90=2.3)
    assert interval_score([inside]) == pytest.approx(0.4 / 2.0)
    assert interval_score([above]) == pytest.approx((0.4 + 10.0 * 1.7) / 4.0)
    assert interval_score([below], absolute=True) == pytest.approx(0.4 + 10.0 * 0.9)


def test_rows_without_an_interval_are_left_out_of_its_score() -> None:
    """Coverage and score are those of the rows that have one; the baseline likewise."""
    rows = [
        Point(predicted=1.0, measured=1.0, p10=0.9, p90=1.1, baseline=1.5),
        Point(predicted=1.0, measured=9.0),
    ]
    found = score(rows)
    assert found is not None
    assert (found.coverage, found.baseline_mean) == (1.0, 0.5)


@pytest.mark.parametrize("absolute", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_the_constant_width_is_the_best_one(seed: int, *, absolute: bool) -> None:
    """No width of a fine grid scores better than the one found."""
    draw = np.random.default_rng(seed)
    rows = points(*zip(draw.uniform(1, 9, 30), draw.uniform(1, 9, 30), strict=True))
    best = constant_width(rows, absolute=absolute)
    assert best is not None
    grid = np.linspace(0.0, 9.0, 400)
    scores = [
        interval_score(with_width(rows, float(w), absolute=absolute), absolute=absolute)
        for w in grid
    ]
    own = interval_score(with_width(rows, best, absolute=absolute), absolute=absolute)
    assert own is not None
    assert own <= min(s for s in scores if s is not None) + 1e-12


def test_an_equal_width_of_nothing() -> None:
    """Without rows there is no width."""
    assert constant_width([]) is None


def test_perfect_predictions_need_no_width() -> None:
    """Where every prediction is right the best width is zero, and its score too."""
    rows = points((1.0, 1.0), (2.0, 2.0))
    assert constant_width(rows) == 0.0
    assert interval_score(with_width(rows, 0.0)) == 0.0
    assert not math.isnan(score(rows).mean)  # type: ignore[union-attr] # there are rows
