"""Validation: predict every measured row and score the errors of each family of rows.

The constants of groups are fitted to their anchors first; everything else is predicted from the
scenario alone. Test rows are compared with the tolerances of the set; fit rows are only listed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Final, TypeAlias

from simulator.records import dataclass
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
from simulator.validation.forecast import Forecast, GroupKey, forecast_all
from simulator.validation.scores import (
    Bands,
    Judged,
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

Forecasts: TypeAlias = Mapping[tuple[str, str], Forecast]
"""Forecasts by name of the set and id of the row."""

EVERY_FAMILY: Final = "*"
"""Name of the family, in tolerances and scores, that includes all rows of a set."""
SPLITS: Final = (Split.TEST, Split.FIT)
"""Order in which the splits of a set are shown."""
LEVELS: Final = ("median", "mean", "p90", "largest")
FAR_OFF: Final = 100.0
"""Factor between predicted and measured above which a wrong unit is the likely cause."""
TOLD: Final = 3
"""Maximum number of rows of a set that are listed one by one in warnings."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Left:
    """A row that was not predicted, and the reason."""

    set: str
    id: str
    family: str
    split: Split
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """Errors of one family of rows in one split and metric.

    `name` is `EVERY_FAMILY` for all rows of a set. `over` are texts about the tolerances that the
    errors exceed. `constant_width_score` is the interval score of intervals of one width, fitted on
    the fit rows of the set; the intervals of the model should score better.
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

    `totals` are over all families of a set, `regimes` over the rows of a regime. `left` are rows
    that were not predicted. `unfitted` maps groups without fitted constants to the reason. `bands`
    scores the intervals over all sets. `warnings` are about implausible measured values, `bugs` are
    internal errors that prevented predictions.
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
        """Families, and totals of sets, whose errors exceed a tolerance."""
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
        Measurement sets to predict.
    processes : int, optional
        Number of worker processes; all cores by default.
    progress : callable, optional
        Called with the finished share, 0 to 1.
    profiles : tuple of pathlib.Path
        Folders of hardware profiles, searched before the usual ones.

    Raises
    ------
    InputError
        With all mistakes in the scenarios of rows at once.
    """
    with local_workers(processes or cores()) as workers:
        forecasts, groups = forecast_all(sets, workers, progress=progress, profiles=profiles)
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
        constants={group.key: group.overrides for group in groups if group.overrides},
        unfitted={group.key: group.unfitted for group in groups if group.unfitted},
        bands=bands(judged),
        warnings=tuple(text for found in sets for text in _implausible(found, judged)),
        bugs=tuple(one.refused for one in forecasts.values() if one.bug),
    )


def judge(found: MeasurementSet, forecasts: Forecasts) -> Iterator[Judged]:
    """Yield measured and predicted values of the rows that were predicted, metric by metric."""
    seen = [
        Seen(row=row, features=answer.features)
        for row in found.rows
        if (answer := forecasts.get((found.name, row.id))) and answer.features is not None
    ]
    for metric in found.metrics:
        naive = baseline(found, seen, metric)
        for one in seen:
            answer = forecasts[found.name, one.row.id]
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
            yield Judged(
                set=found.name,
                id=one.row.id,
                family=one.row.family,
                split=one.row.split,
                metric=metric,
                point=point,
                anchor=one.row.anchor,
                absolute=metric in found.absolute,
                spread=one.row.spread.get(metric),
            )


def _left(found: MeasurementSet, forecasts: Forecasts) -> Iterator[Left]:
    """Yield the rows that were not predicted, with the reason."""
    for row in found.rows:
        reason = row.excluded or _refusal(found, row, forecasts)
        if reason:
            yield Left(set=found.name, id=row.id, family=row.family, split=row.split, reason=reason)


def _refusal(found: MeasurementSet, row: Row, forecasts: Forecasts) -> str:
    answer = forecasts[found.name, row.id]
    if answer.refused:
        return answer.refused if answer.bug else f"not modelled: {answer.refused}"
    judged = [metric for metric in found.metrics if metric in row.measured]
    if any(metric in answer.figures for metric in judged):
        return ""
    return f"{judged[0]} does not apply to its scenario"


def _families(
    found: MeasurementSet, judged: Sequence[Judged], left: Sequence[Left]
) -> Iterator[Family]:
    """Yield the errors of every family in both splits, in the order of the rows."""
    for name, split in product(dict.fromkeys(row.family for row in found.rows), SPLITS):
        out = sum((one.family, one.split) == (name, split) for one in left)
        own = [one for one in judged if (one.family, one.split) == (name, split)]
        metrics = [m for m in found.metrics if any(one.metric == m for one in own)]
        for metric in metrics or (found.metrics[:1] if out else ()):
            rows = [one for one in own if one.metric == metric]
            tolerances = _tolerances(found, name, metric)
            yield _family(found, name, (split, metric), rows, judged, out, tolerances)


def _totals(
    found: MeasurementSet, judged: Sequence[Judged], left: Sequence[Left]
) -> Iterator[Family]:
    """Yield the errors over all rows of the set, for each split and metric."""
    for split, metric in product(SPLITS, found.metrics):
        rows = [one for one in judged if (one.split, one.metric) == (split, metric)]
        out = sum(one.split is split for one in left)
        if rows:
            tolerances = _tolerances(found, EVERY_FAMILY, metric)
            yield _family(found, EVERY_FAMILY, (split, metric), rows, judged, out, tolerances)


def _regimes(found: MeasurementSet, judged: Sequence[Judged]) -> Iterator[Family]:
    """Yield the errors of each regime, for each split and metric.

    A regime is the set of rows with one value of the label `found.regime`; regimes may overlap.
    """
    if not found.regime:
        return
    lie = {row.id: row.labels.get(found.regime, "").split(REGIME_SEPARATOR) for row in found.rows}
    names = sorted({name for regimes in lie.values() for name in regimes if name})
    for metric, name, split in product(found.metrics, names, SPLITS):
        own = [one for one in judged if (one.metric, one.split) == (metric, split)]
        rows = [one for one in own if name in lie[one.id]]
        if rows:
            yield _family(found, name, (split, metric), rows, judged, 0, ())


def _family(  # noqa: PLR0913, PLR0917 - rows, and what they are judged by
    found: MeasurementSet,
    name: str,
    part: tuple[Split, str],
    rows: Sequence[Judged],
    judged: Sequence[Judged],
    excluded: int,
    tolerances: Sequence[Tolerance],
) -> Family:
    """Return the errors of `rows`, a family in one split and metric.

    `part`: the split and metric. `judged`: all predictions of the set, for the constant width.
    `excluded`: number of rows that were not predicted.
    """
    split, metric = part
    absolute, points = metric in found.absolute, [one.point for one in rows]
    scored = score(points, absolute=absolute)
    tolerances = tuple(tolerances) if split is Split.TEST else ()
    fit = [one.point for one in judged if (one.metric, one.split) == (metric, Split.FIT)]
    width = constant_width(fit, absolute=absolute)
    rival = None
    if width is not None:
        rival = interval_score(with_width(points, width, absolute=absolute), absolute=absolute)
    return Family(
        set=found.name,
        name=name,
        split=split,
        metric=metric,
        absolute=absolute,
        score=scored,
        excluded=excluded,
        baseline=found.baseline,
        tolerances=tolerances,
        over=() if scored is None else tuple(_over(scored, tolerances)),
        constant_width_score=rival,
    )


def _tolerances(found: MeasurementSet, family: str, metric: str) -> Sequence[Tolerance]:
    """Return the tolerances of a family: its own if there are any, else those of all families."""
    about = [t for t in found.tolerance if t.metric == metric]
    own = [t for t in about if t.family == family]
    general = [t for t in about if not t.family] if family != EVERY_FAMILY else []
    return own or general


def _over(scored: Score, tolerances: Sequence[Tolerance]) -> Iterator[str]:
    """Yield a text for each tolerance that the errors exceed."""
    for tolerance, level in product(tolerances, LEVELS):
        allowed, reached = getattr(tolerance, level), getattr(scored, level)
        if allowed is not None and reached > allowed:
            yield f"{level} error {100.0 * reached:.3g}%, tolerance {100.0 * allowed:.3g}%"


def _implausible(found: MeasurementSet, judged: Sequence[Judged]) -> Iterator[str]:
    """Yield warnings about measured values so far from predictions that a unit may be wrong."""
    for metric in found.metrics if judged else ():
        known = measurable(metric)
        unit = "the right unit" if known is None or not known.unit else known.unit.symbol
        own = [one for one in judged if (one.set, one.metric) == (found.name, metric)]
        far = [one for one in own if not one.absolute and _factor(one.point) >= FAR_OFF]
        for one in far[:TOLD]:
            yield (
                f"{found.name}, row {one.id}: measured.{metric} is {one.point.measured:.4g}, "
                f"{one.point.predicted:.4g} is predicted: a factor of {_factor(one.point):,.0f}. "
                f"Is it in {unit}?"
            )
        if len(far) > TOLD:
            more = f"{len(far) - TOLD} more of {len(own)} rows"
            yield f"{found.name}: measured.{metric} is as far from what is predicted in {more}"


def _factor(point: Point) -> float:
    least, most = sorted((abs(point.predicted), abs(point.measured)))
    return most / least if least > 0.0 else FAR_OFF
