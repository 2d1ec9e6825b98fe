"""Scores of predictions: errors, coverage and width of intervals, and naive baselines."""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from simulator.records import dataclass
from simulator.schema.measurement import Baseline, MeasurementSet, Row, Split
from simulator.units import Seconds
from simulator.validation.features import Features

Vector: TypeAlias = NDArray[np.float64]

MISS_SHARE: Final = 0.2
"""Share of measured values that should be outside an interval from P10 to P90."""
LEAST_FOR_RANKS: Final = 3
"""Minimum number of rows for a rank correlation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One metric of one row: predicted value, its interval, measured value and naive baseline."""

    predicted: float
    measured: float
    p10: float | None = None
    p90: float | None = None
    baseline: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """Errors of the predictions of some rows.

    `median`, `mean`, `p90` and `largest` are of absolute errors, `bias` is the mean signed error.
    `coverage` is the share of measured values within P10 to P90, `interval_score` the mean Winkler
    score of these intervals (their width, plus 10 times the distance of values outside).
    `baseline_mean` and `baseline_median` are of the absolute errors of the naive baseline. None:
    not enough rows, or no interval or baseline.
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
    """Score the predictions of one metric on some rows; return None if there are no rows.

    Parameters
    ----------
    points : sequence of Point
        Predicted and measured values, in any order.
    absolute : bool
        If true, an error is the difference to the measured value, else a share of it.
    """
    if not points:
        return None
    predicted = _values([p.predicted for p in points])
    measured = _values([p.measured for p in points])
    signed = errors(predicted, measured, absolute=absolute)
    size = np.abs(signed)
    known = [p for p in points if p.p10 is not None and p.p90 is not None]
    rival = [p for p in points if p.baseline is not None]
    naive, there = _values([p.baseline for p in rival]), _values([p.measured for p in rival])
    naive = np.abs(errors(naive, there, absolute=absolute))
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
    """Return signed errors: predicted / measured - 1, or with `absolute` the difference.

    Examples
    --------
    >>> errors(np.array([1.1, 0.9]), np.array([1.0, 1.0]), absolute=True).round(3).tolist()
    [0.1, -0.1]
    """
    difference = predicted - measured
    return difference if absolute else difference / measured


def rank_correlation(predicted: Vector, measured: Vector) -> float | None:
    """Return Spearman's rank correlation; None for fewer than three rows or constant values.

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
    """Return the ranks of the values, starting at 0; ties get their mean rank."""
    _, place, count = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(count) - 1.0
    middle = last - (count - 1.0) / 2.0
    return np.asarray(middle[place], dtype=np.float64)


def coverage(points: Sequence[Point]) -> float | None:
    """Return the share of measured values within P10 to P90; None if there are no points."""
    if not points:
        return None
    within = [_low(p) <= p.measured <= _high(p) for p in points]
    return sum(within) / len(within)


def interval_score(points: Sequence[Point], *, absolute: bool = False) -> float | None:
    """Return the mean Winkler score of the intervals, divided by the measured value.

    With `absolute`, it is not divided. None if there are no points.

    Notes
    -----
    ``(high - low) + 2 / 0.2 * (distance of the measured value from the interval)``
    [1]_: wide intervals and values outside both increase the score.

    References
    ----------
    .. [1] R. L. Winkler, "A decision-theoretic approach to interval estimation", JASA 67 (1972),
       https://doi.org/10.1080/01621459.1972.10481224

    Examples
    --------
    Width 0.2, and the measured value is 0.1 outside: 0.2 + 10 * 0.1.

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
    return (high - low + 2.0 / MISS_SHARE * missed) / scale


def constant_width(points: Sequence[Point], *, absolute: bool = False) -> float | None:
    """Return the half-width of constant intervals with the best score; None without points.

    The half-width is a share of the predicted value (a difference if `absolute`). The intervals of
    the model should score better. The score is convex, with its minimum at a width for which an
    interval just reaches a measured value, so only those widths are tried.
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
    """Return the points with intervals of a constant half-width around the predicted values."""
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


COVERAGE: Final = (0.72, 0.88)
"""Target range of the share of held-out values within P10 to P90."""
FAMILY_COVERAGE: Final = (0.65, 0.95)
"""Target range of this share in every family of at least `MIN_FIGURES` rows."""
MIN_FIGURES: Final = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """One measured metric of one row with its prediction.

    `family` is the family of the row in its set, `anchor`: constants were fitted to this row,
    `absolute`: errors are differences, `spread` is the relative spread of repeats.
    """

    set: str
    id: str
    family: str
    split: Split
    metric: str
    point: Point
    anchor: bool = False
    absolute: bool = False
    spread: float | None = None

    @property
    def error(self) -> float:
        """Signed error: a share of the measured value, or with `absolute` the difference."""
        difference = self.point.predicted - self.point.measured
        return difference if self.absolute else difference / self.point.measured


@dataclass(frozen=True, slots=True, kw_only=True)
class Bands:
    """Share of held-out values within P10 to P90, and score of the intervals.

    `figures` is the number of held-out values. `constant_score` is the score of intervals of one
    relative width, fitted on rows of split ``fit``. `off` are the families, with their coverage,
    whose coverage is outside `FAMILY_COVERAGE`.
    """

    figures: int
    coverage: float
    interval_score: float | None
    constant_score: float | None
    off: tuple[tuple[str, float], ...]

    @property
    def holds(self) -> bool:
        """True if the coverage is in the target range, overall and in every family."""
        low, high = COVERAGE
        return low <= self.coverage <= high and not self.off


def bands(figures: Sequence[Judged]) -> Bands | None:
    """Evaluate the intervals of the values held out for testing; return None if there are none."""
    known = [f for f in figures if f.point.p10 is not None and f.point.p90 is not None]
    held = [f for f in known if f.split is Split.TEST]
    whole = coverage([f.point for f in held])
    if whole is None:
        return None
    tested = [f.point for f in held if not f.absolute]
    width = constant_width([f.point for f in known if f.split is Split.FIT and not f.absolute])
    low, high = FAMILY_COVERAGE
    families: dict[str, list[Point]] = defaultdict(list)
    for figure in held:
        families[f"{figure.set}, {figure.family}, {figure.metric}"].append(figure.point)
    shares = {
        name: coverage(points) or 0.0
        for name, points in families.items()
        if len(points) >= MIN_FIGURES
    }
    return Bands(
        figures=len(held),
        coverage=whole,
        interval_score=interval_score(tested),
        constant_score=None if width is None else interval_score(with_width(tested, width)),
        off=tuple((name, share) for name, share in shares.items() if not low <= share <= high),
    )


STEP_METRICS = ("step_time_s.mean", "step_time_s")
"""Endings of the names of metrics that are step times."""
RATE_METRIC = "samples_per_s"
"""Ending of the names of metrics that are samples per second; these grow with the devices."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A row that was predicted, and the features of its scenario."""

    row: Row
    features: Features


def is_speed(metric: str) -> bool:
    """Return whether a metric is a step time or a rate of samples."""
    return metric.endswith((*STEP_METRICS, RATE_METRIC))


def baseline(found: MeasurementSet, seen: Sequence[Seen], metric: str) -> Mapping[str, float]:
    """Return the naive predictions of `metric` by the baseline of the set `found`, by row id."""
    rows = [one for one in seen if metric in one.row.measured]
    return dict(_RULES[found.baseline](found, rows, metric))


Rule = Callable[[MeasurementSet, Sequence[Seen], str], Iterator[tuple[str, float]]]


def _constant(
    found: MeasurementSet, seen: Sequence[Seen], metric: str
) -> Iterator[tuple[str, float]]:
    """Predict `metric` by the median of the fit rows with the same labels, or of all such rows.

    The median of all rows with these labels is used if none is a fit row. Rates are per device.
    """
    for alike in _grouped(seen, found.baseline_by).values():
        fitted = _fitted([one.row for one in alike])
        size = {one.row.id: _size(metric, one.features) for one in alike}
        middle = statistics.median(row.measured[metric] / size[row.id] for row in fitted)
        yield from ((one.row.id, middle * size[one.row.id]) for one in alike)


def _size(metric: str, features: Features) -> float:
    return float(features.devices) if metric.endswith(RATE_METRIC) else 1.0


def _grouped(seen: Sequence[Seen], columns: tuple[str, ...]) -> Mapping[object, list[Seen]]:
    groups: dict[object, list[Seen]] = defaultdict(list)
    for one in seen:
        groups[one.row.key(columns)].append(one)
    return groups


def _fitted(rows: Sequence[Row]) -> Sequence[Row]:
    return [row for row in rows if row.split is Split.FIT] or rows


def _linear(
    found: MeasurementSet, seen: Sequence[Seen], metric: str
) -> Iterator[tuple[str, float]]:
    """Predict linear scaling from the throughput per device of the group's smallest anchor."""
    for group in _grouped(seen, found.group_by).values():
        anchors = [one for one in group if one.row.anchor]
        if not anchors or not is_speed(metric):
            continue
        anchor = min(anchors, key=lambda one: one.features.devices)
        alone = (
            _rate(anchor.row.measured[metric], metric, anchor.features) / anchor.features.devices
        )
        for one in group:
            yield one.row.id, _figure(alone * one.features.devices, metric, one.features)


def _slowest_part(
    found: MeasurementSet, seen: Sequence[Seen], metric: str
) -> Iterator[tuple[str, float]]:
    """Predict the largest of the step times that each resource alone would allow."""
    del found
    for one in seen:
        slowest = one.features.slowest
        if slowest and is_speed(metric):
            yield one.row.id, _figure(one.features.samples / slowest, metric, one.features)


def _constant_mfu(
    found: MeasurementSet, seen: Sequence[Seen], metric: str
) -> Iterator[tuple[str, float]]:
    """Predict a constant MFU: the median of the fit rows with the same labels.

    If no row with these labels is a fit row, the median of all fit rows.
    """
    known = [s for s in seen if math.isfinite(_ideal(s.features))]
    if not known or not is_speed(metric):
        return
    everywhere = _shares(known, metric)
    for alike in _grouped(known, found.baseline_by).values():
        own = any(one.row.split is Split.FIT for one in alike)
        share = statistics.median(_shares(alike, metric) if own else everywhere)
        for one in alike:
            rate = share * one.features.samples / _ideal(one.features)
            yield one.row.id, _figure(rate, metric, one.features)


def _shares(seen: Sequence[Seen], metric: str) -> list[float]:
    """Return the MFU of each fit row, by its measured value of `metric`."""
    fitted = {row.id for row in _fitted([s.row for s in seen])}
    return [
        _rate(s.row.measured[metric], metric, s.features) * _ideal(s.features) / s.features.samples
        for s in seen
        if s.row.id in fitted
    ]


def _ideal(features: Features) -> Seconds:
    if not features.operations or not features.peak:
        return math.inf
    return features.operations / features.peak


def _rate(value: float, metric: str, features: Features) -> float:
    return value if metric.endswith(RATE_METRIC) else features.samples / value


def _figure(rate: float, metric: str, features: Features) -> float:
    return rate if metric.endswith(RATE_METRIC) else features.samples / rate


_RULES: Mapping[Baseline, Rule] = {
    Baseline.CONSTANT: _constant,
    Baseline.LINEAR: _linear,
    Baseline.SLOWEST_PART: _slowest_part,
    Baseline.CONSTANT_MFU: _constant_mfu,
}
