"""How wrong predictions are: errors, rank correlation, and how good their intervals are.

Every error is relative to the measured value, or a plain difference for a metric whose error is
one (a share of time). Pure functions of arrays.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

Vector: TypeAlias = NDArray[np.float64]

OUTSIDE: Final = 0.2
"""Share of measured values that an interval from P10 to P90 should leave out."""
LEAST_FOR_RANKS: Final = 3
"""Rows below which an order says nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One figure of one row: predicted with its interval, measured, and what a baseline says."""

    predicted: float
    measured: float
    p10: float | None = None
    p90: float | None = None
    baseline: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """How wrong the predictions of some rows are.

    `median`, `mean`, `p90` and `largest` are of absolute errors, `bias` is the mean signed one.
    `coverage` is the share of measured values within P10 to P90, `interval_score` the Winkler
    score of these intervals (their width, and 10 times what they miss by), `baseline_mean` and
    `baseline_median` are of the absolute errors of the naive baseline. None: too few rows, or
    nothing to score.
    """

    rows: int
    median: float
    mean: float
    p90: float
    largest: float
    bias: float
    rank_correlation: float | None
    coverage: float | None
    interval_score: float | None
    baseline_mean: float | None
    baseline_median: float | None = None


def score(points: Sequence[Point], *, absolute: bool = False) -> Score | None:
    """Score some rows of one metric; None without any.

    Parameters
    ----------
    points : sequence of Point
        In any order.
    absolute : bool
        Whether an error is a difference rather than a share of the measured value.
    """
    if not points:
        return None
    predicted = _values([p.predicted for p in points])
    measured = _values([p.measured for p in points])
    signed = errors(predicted, measured, absolute=absolute)
    size = np.abs(signed)
    known = [p for p in points if p.p10 is not None and p.p90 is not None]
    rival = [p for p in points if p.baseline is not None]
    naive = np.abs(
        errors(
            _values([p.baseline for p in rival]),
            _values([p.measured for p in rival]),
            absolute=absolute,
        )
    )
    return Score(
        rows=len(points),
        median=float(np.median(size)),
        mean=float(size.mean()),
        p90=float(np.quantile(size, 0.9)),
        largest=float(size.max()),
        bias=float(signed.mean()),
        rank_correlation=rank_correlation(predicted, measured),
        coverage=coverage(known),
        interval_score=interval_score(known, absolute=absolute),
        baseline_mean=None if not rival else float(naive.mean()),
        baseline_median=None if not rival else float(np.median(naive)),
    )


def errors(predicted: Vector, measured: Vector, *, absolute: bool) -> Vector:
    """Signed errors: predicted over measured less 1, or the difference.

    Examples
    --------
    >>> errors(np.array([1.1, 0.9]), np.array([1.0, 1.0]), absolute=True).round(3).tolist()
    [0.1, -0.1]
    """
    difference = predicted - measured
    return difference if absolute else difference / measured


def rank_correlation(predicted: Vector, measured: Vector) -> float | None:
    """Spearman's rank correlation, ties at their mean rank; None where there is no order.

    Examples
    --------
    >>> rank_correlation(np.array([1.0, 2.0, 4.0]), np.array([3.0, 5.0, 9.0]))
    1.0
    >>> rank_correlation(np.array([1.0, 1.0, 1.0]), np.array([3.0, 5.0, 9.0])) is None
    True
    """
    if len(predicted) < LEAST_FOR_RANKS:
        return None
    ranks = [_ranks(values) for values in (predicted, measured)]
    spreads = [float(np.std(r)) for r in ranks]
    if min(spreads) == 0.0:
        return None
    together = float(np.mean((ranks[0] - ranks[0].mean()) * (ranks[1] - ranks[1].mean())))
    return max(-1.0, min(1.0, together / (spreads[0] * spreads[1])))


def _ranks(values: Vector) -> Vector:
    """Ranks from 0, equal values at the mean of their ranks."""
    distinct, place, count = np.unique(values, return_inverse=True, return_counts=True)
    del distinct
    last = np.cumsum(count) - 1.0
    middle = last - (count - 1.0) / 2.0
    return np.asarray(middle[place], dtype=np.float64)


def coverage(points: Sequence[Point]) -> float | None:
    """Share of the measured values that lie within P10 to P90; None without intervals."""
    if not points:
        return None
    within = [_low(p) <= p.measured <= _high(p) for p in points]
    return sum(within) / len(within)


def interval_score(points: Sequence[Point], *, absolute: bool = False) -> float | None:
    """Mean Winkler score of the intervals from P10 to P90, over the measured value; less is better.

    Notes
    -----
    ``(high - low) + 2 / 0.2 * (what the measured value lies outside by)`` [1]_: wide intervals
    and missed values both cost.

    References
    ----------
    .. [1] R. L. Winkler, "A decision-theoretic approach to interval estimation", JASA 67 (1972),
       https://doi.org/10.1080/01621459.1972.10481224

    Examples
    --------
    Twice as wide as the value missed by: 0.2 + 10 * 0.1.

    >>> round(interval_score([Point(predicted=1.0, measured=1.0, p10=1.1, p90=1.3)]), 6)
    1.2
    """
    if not points:
        return None
    return float(np.mean([_winkler(p, absolute=absolute) for p in points]))


def _winkler(point: Point, *, absolute: bool) -> float:
    low, high = _low(point), _high(point)
    missed = max(0.0, low - point.measured) + max(0.0, point.measured - high)
    scale = 1.0 if absolute else point.measured
    return (high - low + 2.0 / OUTSIDE * missed) / scale


def constant_width(points: Sequence[Point], *, absolute: bool = False) -> float | None:
    """The one width whose intervals around the predictions score best; None without points.

    Half of an interval, as a share of the predicted value (a difference if `absolute`): what
    intervals of one's own have to beat. The score is convex and has its least value where an
    interval just reaches a measured value, so those widths are tried.
    """
    if not points:
        return None
    reach = sorted({_reach(p, absolute=absolute) for p in points})
    low, high = 0, len(reach) - 1
    while low < high:
        middle = (low + high) // 2
        here, beyond = (
            interval_score(with_width(points, width, absolute=absolute), absolute=absolute) or 0.0
            for width in reach[middle : middle + 2]
        )
        low, high = (low, middle) if here <= beyond else (middle + 1, high)
    return reach[low]


def with_width(points: Sequence[Point], width: float, *, absolute: bool = False) -> list[Point]:
    """The points with intervals of one width around what was predicted."""
    half = [width if absolute else width * p.predicted for p in points]
    return [
        Point(predicted=p.predicted, measured=p.measured, p10=p.predicted - h, p90=p.predicted + h)
        for p, h in zip(points, half, strict=True)
    ]


def _reach(point: Point, *, absolute: bool) -> float:
    difference = abs(point.measured - point.predicted)
    return difference if absolute or point.predicted == 0.0 else difference / point.predicted


def _low(point: Point) -> float:
    return -math.inf if point.p10 is None else point.p10


def _high(point: Point) -> float:
    return math.inf if point.p90 is None else point.p90


def _values(values: Sequence[float | None]) -> Vector:
    return np.array(values, dtype=np.float64)
