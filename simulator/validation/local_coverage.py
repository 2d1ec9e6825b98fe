"""Measured runs most similar to a scenario, and the errors of their predictions."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from simulator.errors import PlanError
from simulator.reading.hardware.catalogue import Catalogue
from simulator.reading.scenario import load_scenario
from simulator.records import dataclass
from simulator.results.metrics import number_at
from simulator.results.prediction import Prediction
from simulator.schema.measurement import MeasurementSet, Row
from simulator.schema.scenario import Scenario
from simulator.validation.features import Features, features_of

if TYPE_CHECKING:
    from simulator.studies.search.workers import Progress, Workers
    from simulator.validation.scores import Judged, Score

MAX_NEIGHBOURS: Final = 10
"""Maximum number of similar rows that are shown."""
OTHER_WORD: Final = 2.0
"""Distance of two words that differ: equal to that of a factor of four."""
ONE_SIDED: Final = 2.0
"""Distance along a number that only one of the two scenarios has."""
MAX_DISTANCE: Final = 5.0
"""Maximum distance along one feature: that of a factor of 32."""
SCALE: Final = 3.0
"""Distance above which the error of a row says nothing about a scenario."""
SIMILAR: Final = 1.0
"""Distance up to which rows always count as similar: that of a factor of two."""
MAX_NAMED: Final = 3
"""Maximum number of differing features that are named for a row."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Near:
    """A measured row with its distance from a scenario and the errors of its predictions.

    `distance` 1 is a factor of two in one feature. `apart` maps the features that differ most to a
    text about the row relative to the scenario, such as {"batch size": "4x"}, largest difference
    first.
    """

    set: str
    row: Row
    distance: float
    apart: Mapping[str, str]
    judged: tuple[Judged, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbourhood:
    """The measured rows nearest to a scenario, nearest first, and scores of predictions by metric.

    Scores include those of `rows` that are within the distance `reach`: twice the distance of the
    nearest one, but between `SIMILAR` and `SCALE`. `compared` is the number of rows compared.
    """

    scenario: str
    rows: tuple[Near, ...]
    scores: Mapping[str, Score]
    compared: int
    reach: float = SCALE


def nearest(  # noqa: PLR0913 - what to compare, and how
    scenario: Scenario,
    sets: Sequence[MeasurementSet],
    *,
    most: int = MAX_NEIGHBOURS,
    processes: int | None = None,
    progress: Progress | None = None,
    profiles: tuple[Path, ...] = (),
) -> Neighbourhood:
    """Find the measured rows most similar to a scenario and predict them.

    Parameters
    ----------
    scenario : Scenario
        The scenario of the user.
    sets : sequence of MeasurementSet
        Measurement sets to search.
    most : int
        Maximum number of rows to return.
    processes, progress, profiles
        As for `validate`.
    """
    from simulator.studies.search.workers import cores, local_workers  # noqa: PLC0415 - few need it

    own = features_of(scenario)
    with local_workers(processes or cores()) as workers:
        features = _all_facts(sets, workers, progress, profiles)
    found = [
        Near(
            set=one.name,
            row=row,
            distance=distance(own, features[one.name, row.id]),
            apart=differences(own, features[one.name, row.id]),
        )
        for one in sets
        for row in one.rows
        if (one.name, row.id) in features
    ]
    rows = _judged(sets, sorted(found, key=lambda near: near.distance)[:most], profiles)
    reach = _reach(rows)
    return Neighbourhood(
        scenario=scenario.name,
        rows=rows,
        scores=_scores([near for near in rows if near.distance <= reach]),
        compared=len(features),
        reach=reach,
    )


def _reach(rows: Sequence[Near]) -> float:
    least = min((near.distance for near in rows), default=SCALE)
    return min(SCALE, max(SIMILAR, 2.0 * least))


def _all_facts(
    sets: Sequence[MeasurementSet],
    workers: Workers,
    progress: Progress | None,
    profiles: tuple[Path, ...],
) -> dict[tuple[str, str], Features]:
    """Return the features of every row whose scenario can be read, by set and row id."""
    asked = {
        (one.name, row.id): (row.base, row.overrides, profiles)
        for one in sets
        for row in one.rows
        if not row.excluded
    }
    distinct = list(dict.fromkeys(asked.values()))
    # Reading a scenario is a tenth of the work of predicting it.
    answers = workers.map(_facts, distinct, progress, [0.1] * len(distinct))
    known = dict(zip(distinct, answers, strict=True))
    return {place: features for place, ask in asked.items() if (features := known[ask]) is not None}


def _facts(ask: tuple[str, tuple[str, ...], tuple[Path, ...]]) -> Features | None:
    """Return the features of a scenario (base, overrides, profiles); None if it has mistakes."""
    from simulator.validation.forecast import known_profiles  # noqa: PLC0415 - few need it

    try:
        base, overrides, profiles = ask
        catalogue = known_profiles(profiles)
        return features_of(load_scenario(base, overrides=overrides, catalogue=catalogue))
    except PlanError:
        return None


def _judged(
    sets: Sequence[MeasurementSet], rows: Sequence[Near], profiles: tuple[Path, ...]
) -> tuple[Near, ...]:
    """Predict the rows, with constants fitted as in `validate`, and return them with results."""
    from simulator.validation.validate import validate  # noqa: PLC0415 - few need it

    parts = []
    for one in sets:
        wanted = {near.row.id for near in rows if near.set == one.name}
        groups = {near.row.key(one.group_by) for near in rows if near.set == one.name}
        kept = tuple(
            row
            for row in one.rows
            if row.id in wanted or (row.anchor and one.fit and row.key(one.group_by) in groups)
        )
        if wanted:
            parts.append(replace(one, rows=kept))
    judged = validate(parts, profiles=profiles).judged
    return tuple(
        replace(
            near,
            judged=tuple(one for one in judged if (one.set, one.id) == (near.set, near.row.id)),
        )
        for near in rows
    )


def _scores(rows: Sequence[Near]) -> dict[str, Score]:
    from simulator.validation.scores import score  # noqa: PLC0415 - few need it

    judged = [one for near in rows for one in near.judged]
    found = {}
    for metric in dict.fromkeys(one.metric for one in judged):
        own = [one for one in judged if one.metric == metric]
        scored = score([one.point for one in own], absolute=any(one.absolute for one in own))
        if scored is not None:
            found[metric] = scored
    return found


def distance(one: Features, other: Features) -> float:
    """Return the distance between two scenarios; 1 is a factor of two in one number.

    Examples
    --------
    >>> from simulator.validation.features import Features
    >>> rest = {"devices": 1, "samples": 1.0, "operations": None, "peak": None, "words": {}}
    >>> distance(*(Features(numbers={"batch": n}, **rest) for n in (8.0, 32.0)))
    2.0
    """
    return math.sqrt(sum(part**2 for part in _parts(one, other).values()))


def _parts(one: Features, other: Features) -> dict[str, float]:
    """Return the distance between two scenarios along each feature."""
    parts = {}
    for name in {**one.numbers, **other.numbers}:
        mine, theirs = one.numbers.get(name), other.numbers.get(name)
        if mine is None or theirs is None:
            parts[name] = ONE_SIDED
        else:
            parts[name] = min(MAX_DISTANCE, abs(math.log2(theirs / mine)))
    for name in one.words:
        parts[name] = 0.0 if one.words[name] == other.words.get(name) else OTHER_WORD
    return parts


def differences(own: Features, theirs: Features) -> dict[str, str]:
    """Describe how a row differs from a scenario, largest first: ``{"batch size": "4x"}``."""
    parts = sorted(_parts(own, theirs).items(), key=lambda item: -item[1])
    return {name: _said(name, own, theirs) for name, part in parts[:MAX_NAMED] if part > 0.0}


def _said(name: str, own: Features, theirs: Features) -> str:
    if name in own.words:
        return f"{theirs.words.get(name)}, not {own.words[name]}"
    mine, other = own.numbers.get(name), theirs.numbers.get(name)
    if mine is None or other is None:
        return "only one has any"
    return f"{other / mine:.3g}x"


SAME_SHARE: Final = 0.05
"""Distance below which a row has the same configuration: all numbers agree to 3.5%."""
LEFT_OUT: Final = 0.1
"""Share of the rows of the same configuration that may lie below the interval, and above it."""
_LENGTHS: Final = (
    *("step_time_s.mean", "epoch_time_s", "total_time_s"),
    *("cost.usd_per_step", "cost.usd_to_train", "cost.usd_for_machines"),
    "cost.time_to_train_s",
)
"""Metrics proportional to the step time."""
_RATES: Final = ("throughput_samples_per_s", "cost.samples_per_usd")
"""Metrics inversely proportional to the step time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Here:
    """One metric measured at the configuration that is predicted.

    `ratio` is the measured value divided by the value predicted for the row; `outside`: the
    measured value is outside the interval of the prediction.
    """

    set: str
    id: str
    metric: str
    measured: float
    ratio: float
    outside: bool


def runs_of(
    scenario: Scenario, rows: Sequence[tuple[str, Row]], profiles: tuple[Path, ...] = ()
) -> tuple[tuple[str, Row], ...]:
    """Return those of `rows` (name of the set, row) that have the configuration of the scenario.

    Their `distance` from it is less than `SAME_SHARE`.
    """
    own, catalogue = features_of(scenario), Catalogue.default(profiles)

    def same(row: Row) -> bool:
        try:
            other = load_scenario(row.base, overrides=row.overrides, catalogue=catalogue)
            return distance(own, features_of(other)) < SAME_SHARE
        except PlanError:
            return False

    return tuple((name, row) for name, row in rows if same(row))


def holding(
    prediction: Prediction, runs: Sequence[tuple[str, Row]]
) -> tuple[Prediction, tuple[Here, ...]]:
    """Widen intervals to include measured runs of the configuration; return metrics outside before.

    `runs` are pairs of set name and row. If there are many, a tenth of the measured values may stay
    below the interval and a tenth above. Values inside an interval do not change it.
    """
    here = [
        _here(prediction, (name, row.id, metric), measured, own)
        for name, row in runs
        for metric, measured in row.measured.items()
        if metric in prediction.interval
        and (own := number_at(prediction, metric)) is not None
        and own > 0.0 < measured
    ]
    wider = _held(prediction, here)
    before, after = prediction.interval, wider.interval
    moved = (one for one in here if one.outside and after[one.metric] != before[one.metric])
    return wider, tuple(moved)


def measured_here(prediction: Prediction, near: Neighbourhood) -> tuple[Here, ...]:
    """Return the metrics of rows with the same configuration as the scenario, nearest row first."""
    same = (row for row in near.rows if row.distance < SAME_SHARE)
    return tuple(
        _here(prediction, (one.set, one.id, one.metric), one.point.measured, one.point.predicted)
        for row in same
        for one in row.judged
        if not one.absolute and one.point.predicted > 0.0 < one.point.measured
    )


def _here(
    prediction: Prediction, place: tuple[str, str, str], measured: float, predicted: float
) -> Here:
    name, row, metric = place
    band, own = prediction.interval.get(metric), number_at(prediction, metric)
    outside = False
    if band is not None and own is not None:
        outside = not band["p10"] <= own * (measured / predicted) <= band["p90"]
    ratio = measured / predicted
    return Here(set=name, id=row, metric=metric, measured=measured, ratio=ratio, outside=outside)


def widened(prediction: Prediction, near: Neighbourhood) -> Prediction:
    """Widen the intervals of a prediction to include values measured at the same configuration.

    If there are many such rows, a tenth of them may stay below the interval and a tenth above.
    """
    return _held(prediction, measured_here(prediction, near))


def _held(prediction: Prediction, here: Iterable[Here]) -> Prediction:
    ratios: dict[str, list[float]] = {}
    for one in here:
        for metric, ratio in _implied(one.metric, one.ratio):
            ratios.setdefault(metric, []).append(ratio)
    interval = {
        name: _holding(name, band, ratios.get(name, ()), prediction)
        for name, band in prediction.interval.items()
    }
    return replace(prediction, interval=interval)


def _implied(metric: str, ratio: float) -> Iterator[tuple[str, float]]:
    """Yield the ratios of measured to predicted that the ratio of one metric implies for others."""
    if metric not in {*_LENGTHS, *_RATES}:
        yield metric, ratio
        return
    longer = ratio if metric in _LENGTHS else 1.0 / ratio
    yield from ((name, longer) for name in _LENGTHS)
    yield from ((name, 1.0 / longer) for name in _RATES)


def _holding(
    name: str, band: Mapping[str, float], ratios: Sequence[float], prediction: Prediction
) -> Mapping[str, float]:
    own = number_at(prediction, name)
    if own is None or not ratios:
        return band
    ordered = sorted(own * ratio for ratio in ratios)
    beyond = math.floor(LEFT_OUT * len(ordered))
    low, high = ordered[beyond], ordered[-1 - beyond]
    return {**band, "p10": min(band["p10"], low), "p90": max(band["p90"], high)}
