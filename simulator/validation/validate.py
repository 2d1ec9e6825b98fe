"""Validate: predict every measured row, and say how wrong that is, family by family.

Groups with anchors are fitted to them first; everything else is predicted from its description
alone. Test rows are judged against the set's tolerances, fit rows are shown next to them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Final

from simulator.results.metrics import measurable
from simulator.schema.measurement import (
    REGIME_SEPARATOR,
    Baseline,
    MeasurementSet,
    Row,
    Split,
    Tolerance,
)
from simulator.studies.search.workers import Progress, cores, local_workers
from simulator.units import Unit
from simulator.validation.forecast import Forecasts, GroupKey, forecast_all
from simulator.validation.scores import (
    Bands,
    Figure,
    Point,
    Score,
    Seen,
    bands,
    baseline,
    constant_width,
    interval_score,
    score,
    with_width,
)

EVERY_FAMILY: Final = "*"
"""The family of a tolerance that holds for all rows of a set together."""
LEVELS: Final = ("median", "mean", "p90", "largest")
FAR_OFF: Final = 100.0
"""Factor between predicted and measured beyond which a slip of units is more likely."""
TOLD: Final = 3
"""Rows of a set that are named one by one in a warning."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """One measured figure of one row with its prediction."""

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
        """Signed error: a share of the measured value, or a difference."""
        difference = self.point.predicted - self.point.measured
        return difference if self.absolute else difference / self.point.measured


@dataclass(frozen=True, slots=True, kw_only=True)
class Left:
    """A row that was not predicted, and why."""

    set: str
    id: str
    family: str
    split: Split
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """Errors of one family in one split and metric; `name` is `EVERY_FAMILY` for all of a set.

    `over` says which tolerances it exceeds. `constant_width_score` is the interval score of one
    width for all, fitted on the set's fit rows: what intervals have to beat.
    """

    set: str
    name: str
    split: Split
    metric: str
    absolute: bool
    score: Score | None
    excluded: int
    baseline: Baseline
    tolerances: tuple[Tolerance, ...] = ()
    over: tuple[str, ...] = ()
    constant_width_score: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Validated:
    """Result of a validation.

    `totals` are over all families of a set, `regimes` over the rows of a regime. `unfitted` lists
    groups that no constant was fitted for, with the reason. `bands` judges the intervals over all
    sets. `warnings` are uncertainties about the measured figures, `bugs` what rows met that a bug
    of ours left without a prediction.
    """

    sets: tuple[MeasurementSet, ...]
    judged: tuple[Judged, ...]
    left: tuple[Left, ...]
    families: tuple[Family, ...]
    totals: tuple[Family, ...]
    regimes: tuple[Family, ...]
    constants: Mapping[GroupKey, tuple[str, ...]]
    unfitted: Mapping[GroupKey, str]
    bands: Bands | None = None
    warnings: tuple[str, ...] = ()
    bugs: tuple[str, ...] = ()

    @property
    def over(self) -> tuple[Family, ...]:
        """Families, and whole sets, beyond a tolerance."""
        return tuple(f for f in (*self.families, *self.totals) if f.over)


def validate(
    sets: Sequence[MeasurementSet],
    *,
    processes: int | None = None,
    progress: Progress | None = None,
    profiles: tuple[Path, ...] = (),
) -> Validated:
    """Predict every row of the sets and score the predictions.

    Parameters
    ----------
    sets : sequence of MeasurementSet
        What was measured.
    processes : int, optional
        How many to spread the work over; all cores by default.
    progress : callable, optional
        Called with the finished share, 0 to 1.
    profiles : tuple of pathlib.Path
        Folders of hardware profiles that come before the usual ones.

    Raises
    ------
    InputError
        With all mistakes in the scenarios of rows at once.
    """
    with local_workers(processes or cores()) as workers:
        forecasts = forecast_all(sets, workers, progress=progress, profiles=profiles)
    judged = tuple(one for found in sets for one in judge(found, forecasts))
    left = tuple(one for found in sets for one in _left(found, forecasts))
    families, totals, regimes = [], [], []
    for found in sets:
        own = [one for one in judged if one.set == found.name]
        out = [one for one in left if one.set == found.name]
        families += list(_families(found, own, out))
        totals += list(_totals(found, own, out))
        regimes += list(_regimes(found, own))
    return Validated(
        sets=tuple(sets),
        judged=judged,
        left=left,
        families=tuple(families),
        totals=tuple(totals),
        regimes=tuple(regimes),
        constants={group.key: group.overrides for group in forecasts.groups if group.overrides},
        unfitted={group.key: group.unfitted for group in forecasts.groups if group.unfitted},
        bands=bands([_figure(one) for one in judged]),
        warnings=tuple(text for found in sets for text in _implausible(found, judged)),
        bugs=tuple(one.refused for one in forecasts.rows.values() if one.bug),
    )


def _figure(one: Judged) -> Figure:
    name = f"{one.set}, {one.family}, {one.metric}"
    return Figure(family=name, split=one.split, point=one.point, absolute=one.absolute)


def judge(found: MeasurementSet, forecasts: Forecasts) -> Iterator[Judged]:
    """The rows that were predicted, metric by metric."""
    seen = [
        Seen(row=row, features=answer.features)
        for row in found.rows
        if (answer := forecasts.rows.get((found.name, row.id))) and answer.features is not None
    ]
    for metric in found.metrics:
        naive = baseline(found, seen, metric)
        for one in seen:
            answer = forecasts.rows[found.name, one.row.id]
            if metric not in one.row.measured or metric not in answer.figures:
                continue
            low, high = answer.intervals.get(metric, (None, None))
            point = Point(
                predicted=answer.figures[metric],
                measured=one.row.measured[metric],
                p10=low,
                p90=high,
                baseline=naive.get(one.row.id),
            )
            yield _judged(found, one.row, metric, point)


def _judged(found: MeasurementSet, row: Row, metric: str, point: Point) -> Judged:
    return Judged(
        set=found.name,
        id=row.id,
        family=row.family,
        split=row.split,
        metric=metric,
        point=point,
        anchor=row.anchor,
        absolute=metric in found.absolute,
        spread=row.spread.get(metric),
    )


def _left(found: MeasurementSet, forecasts: Forecasts) -> Iterator[Left]:
    """The rows that were not predicted."""
    for row in found.rows:
        reason = row.excluded or _refusal(found, row, forecasts)
        if reason:
            yield Left(set=found.name, id=row.id, family=row.family, split=row.split, reason=reason)


def _refusal(found: MeasurementSet, row: Row, forecasts: Forecasts) -> str:
    answer = forecasts.rows[found.name, row.id]
    if answer.refused:
        return answer.refused if answer.bug else f"not modelled: {answer.refused}"
    judged = [metric for metric in found.metrics if metric in row.measured]
    if any(metric in answer.figures for metric in judged):
        return ""
    return f"{judged[0]} does not apply to its scenario"


def _families(
    found: MeasurementSet, judged: Sequence[Judged], left: Sequence[Left]
) -> Iterator[Family]:
    """Every family in both splits, in the order of the rows; test rows first."""
    names = dict.fromkeys(row.family for row in found.rows)
    widths = {metric: _width(judged, metric) for metric in found.metrics}
    for name in names:
        for split in (Split.TEST, Split.FIT):
            out = [one for one in left if (one.family, one.split) == (name, split)]
            own = [one for one in judged if (one.family, one.split) == (name, split)]
            metrics = [m for m in found.metrics if any(one.metric == m for one in own)]
            for metric in metrics or (found.metrics[:1] if out else ()):
                rows = [one for one in own if one.metric == metric]
                family = _family(found, name, split, metric, rows)
                yield _finished(family, rows, len(out), widths[metric])


def _totals(
    found: MeasurementSet, judged: Sequence[Judged], left: Sequence[Left]
) -> Iterator[Family]:
    """All rows of the set together, in both splits."""
    for split in (Split.TEST, Split.FIT):
        out = sum(one.split is split for one in left)
        for metric in found.metrics:
            rows = [one for one in judged if (one.metric, one.split) == (metric, split)]
            if rows:
                family = _family(found, EVERY_FAMILY, split, metric, rows)
                yield _finished(family, rows, out, _width(judged, metric))


def _regimes(found: MeasurementSet, judged: Sequence[Judged]) -> Iterator[Family]:
    """Rows of each regime together, in both splits; a row may lie in several."""
    if not found.regime:
        return
    lie = {row.id: row.labels.get(found.regime, "").split(REGIME_SEPARATOR) for row in found.rows}
    names = sorted({name for regimes in lie.values() for name in regimes if name})
    widths = {metric: _width(judged, metric) for metric in found.metrics}
    for metric, name, split in product(found.metrics, names, (Split.TEST, Split.FIT)):
        own = [one for one in judged if (one.metric, one.split) == (metric, split)]
        rows = [one for one in own if name in lie[one.id]]
        if rows:
            family = replace(_family(found, name, split, metric, rows), tolerances=())
            yield _finished(family, rows, 0, widths[metric])


def _family(
    found: MeasurementSet, name: str, split: Split, metric: str, rows: Sequence[Judged]
) -> Family:
    absolute = metric in found.absolute
    return Family(
        set=found.name,
        name=name,
        split=split,
        metric=metric,
        absolute=absolute,
        score=score([one.point for one in rows], absolute=absolute),
        excluded=0,
        baseline=found.baseline,
        tolerances=tuple(_tolerances(found, name, metric)) if split is Split.TEST else (),
    )


def _finished(family: Family, rows: Sequence[Judged], excluded: int, width: float | None) -> Family:
    points = [one.point for one in rows]
    rival = None
    if width is not None:
        with_one = with_width(points, width, absolute=family.absolute)
        rival = interval_score(with_one, absolute=family.absolute)
    over = tuple(_over(family))
    return replace(family, excluded=excluded, over=over, constant_width_score=rival)


def _width(judged: Sequence[Judged], metric: str) -> float | None:
    rows = [one for one in judged if one.metric == metric and one.split is Split.FIT]
    return constant_width([one.point for one in rows], absolute=any(o.absolute for o in rows))


def _tolerances(found: MeasurementSet, family: str, metric: str) -> Iterator[Tolerance]:
    """Return the tolerances of a family: its own, else those of every family."""
    about = [t for t in found.tolerances if t.metric == metric]
    own = [t for t in about if t.family == family]
    general = [t for t in about if not t.family] if family != EVERY_FAMILY else []
    yield from own or general


def _over(family: Family) -> Iterator[str]:
    """The tolerances that a family exceeds, in words."""
    for tolerance in family.tolerances if family.score is not None else ():
        for level in LEVELS:
            allowed, reached = getattr(tolerance, level), getattr(family.score, level)
            if allowed is not None and reached > allowed:
                yield f"{level} error {100.0 * reached:.3g}%, tolerance {100.0 * allowed:.3g}%"


def _implausible(found: MeasurementSet, judged: Sequence[Judged]) -> Iterator[str]:
    """Measured figures so far from the predicted ones that their unit may be another."""
    for metric in found.metrics if judged else ():
        unit = _unit(metric)
        own = [one for one in judged if (one.set, one.metric) == (found.name, metric)]
        far = [one for one in own if not one.absolute and _factor(one.point) >= FAR_OFF]
        for one in far[:TOLD]:
            yield (
                f"{found.name}, row {one.id}: measured.{metric} is {one.point.measured:.4g}, "
                f"{one.point.predicted:.4g} is predicted: a factor of {_factor(one.point):,.0f}. "
                f"Is it in {unit.symbol if unit else 'the right unit'}?"
            )
        if len(far) > TOLD:
            more = f"{len(far) - TOLD} more of {len(own)} rows"
            yield f"{found.name}: measured.{metric} is as far from what is predicted in {more}"


def _unit(metric: str) -> Unit | None:
    known = measurable(metric)
    return None if known is None else known.unit


def _factor(point: Point) -> float:
    least, most = sorted((abs(point.predicted), abs(point.measured)))
    return most / least if least > 0.0 else FAR_OFF
