"""Predictions of measured rows of jobs and services, with constants fitted to their groups.

A group is the rows of a set with the same labels in its `group_by` columns; its constants are
fitted to its anchors, rows that are measured for that purpose.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import cache, partial
from pathlib import Path
from typing import Final, TypeAlias

from simulator.calibration.samples import anchored
from simulator.errors import BrokenInvariant, InputError, NotModelled, PlanError, Problem
from simulator.predict import predict, predict_service
from simulator.reading.hardware.catalogue import Catalogue
from simulator.reading.merge_documents import chain_of, describes_service
from simulator.reading.scenario import load_scenario
from simulator.reading.service.figures import unseen
from simulator.reading.service.scenario import ServiceReader
from simulator.records import dataclass
from simulator.results.envelope import placed
from simulator.results.metrics import number_at, service_figures
from simulator.schema.calibration import TransferError
from simulator.schema.measurement import Baseline, MeasurementSet, Parameter, Row
from simulator.schema.serving import ClosedLoop, Service
from simulator.schema.uncertainty import Axis
from simulator.studies.search.outcome import bug_reason
from simulator.studies.search.workers import Progress, Workers
from simulator.uncertainty.scenario import before, calibrated, known_elsewhere
from simulator.validation.features import Features, features_of


@cache
def _reader(base: str, profiles: tuple[Path, ...]) -> ServiceReader | None:
    """Return the reader of a base that describes a service; None if it describes a job."""
    chain = chain_of(base)
    return ServiceReader(chain, base, profiles=profiles) if describes_service(chain) else None


GroupKey: TypeAlias = tuple[str, tuple[str, ...]]
"""Name of a measurement set, and the labels of one of its groups."""

Place: TypeAlias = tuple[tuple[Axis, float], ...]
"""Coordinates of a scenario along the axes of the evidence, such as ranks or machines."""

FIT_WEIGHT: Final = 10.0
"""Rough number of predictions of each anchor to fit one constant; for progress only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """Arguments of one prediction: a scenario and the metrics wanted of it.

    `slowest`: compute the step time of the bottleneck for the features too. `intervals`: compute
    intervals too. `fitted` are those keys of the overrides that were fitted to runs at the
    coordinates `anchors`, whose measured values have the log standard deviation `noise`. `unseen`:
    series to predict as if it and its siblings had not been measured. `elsewhere` are those keys of
    the overrides whose values were fitted on other systems.
    """

    base: str
    overrides: tuple[str, ...]
    metrics: tuple[str, ...]
    slowest: bool = False
    intervals: bool = True
    profiles: tuple[Path, ...] = ()
    fitted: tuple[str, ...] = ()
    anchors: tuple[Place, ...] = ()
    noise: float = 0.0
    unseen: str = ""
    elsewhere: tuple[TransferError, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """Prediction of a case: metrics, their intervals (P10, P90), and features of the scenario.

    `refused` is the reason why there is no prediction, and `bug` is true if the reason is an
    internal error; `problems` are mistakes in the scenario itself.
    """

    figures: Mapping[str, float] = field(default_factory=dict)
    intervals: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    features: Features | None = None
    refused: str = ""
    bug: bool = False
    problems: tuple[Problem, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Fitting:
    """Task to fit constants `fit` to the anchors of a group."""

    key: GroupKey
    anchors: tuple[Row, ...]
    fit: tuple[Parameter, ...]
    metrics: tuple[str, ...]
    profiles: tuple[Path, ...] = ()

    @property
    def weight(self) -> float:
        """Rough number of predictions that the fit takes; for progress only."""
        return FIT_WEIGHT * len(self.anchors) * len(self.fit)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fitted:
    """Overrides with the constants fitted to a group's anchors; `unfitted`: reason if empty.

    `anchors` are coordinates of the anchors along the axes of the evidence, `noise` is the log
    standard deviation of the mean of their measured values.
    """

    key: GroupKey
    overrides: tuple[str, ...] = ()
    unfitted: str = ""
    anchors: tuple[Place, ...] = ()
    noise: float = 0.0


def forecast_all(
    sets: Sequence[MeasurementSet],
    workers: Workers,
    *,
    progress: Progress | None = None,
    profiles: tuple[Path, ...] = (),
) -> tuple[dict[tuple[str, str], Forecast], list[Fitted]]:
    """Fit the constants of all groups to their anchors, then predict all rows not excluded.

    Returns
    -------
    dict
        Forecasts by name of the set and id of the row.
    list of Fitted
        Fitted constants of each group.

    Raises
    ------
    InputError
        With all mistakes in the scenarios of rows at once.
    """
    # Files may have changed since.
    forecast.cache_clear()
    known_profiles.cache_clear()
    wanted = sum(len(found.rows) for found in sets)
    weight = sum(f.weight for found in sets for f in _fittings(found, profiles))
    share = weight / ((weight + wanted) or 1.0)
    groups = fitted_groups(sets, workers, part(progress, 0.0, share), profiles)
    constants = {group.key: group for group in groups}
    asked = {
        (found.name, row.id): case_of(found, row, constants, profiles)
        for found in sets
        for row in found.rows
        if not row.excluded
    }
    return forecast_cases(asked, workers, part(progress, share, 1.0)), groups


def fitted_groups(
    sets: Sequence[MeasurementSet],
    workers: Workers,
    progress: Progress | None = None,
    profiles: tuple[Path, ...] = (),
) -> list[Fitted]:
    """Fit the constants of every group of the sets to the group's anchors."""
    fittings = [fitting for found in sets for fitting in _fittings(found, profiles)]
    return workers.map(fitted_group, fittings, progress, [f.weight for f in fittings])


def forecast_cases(
    asked: Mapping[tuple[str, str], Case], workers: Workers, progress: Progress | None = None
) -> dict[tuple[str, str], Forecast]:
    """Predict all cases in `asked`, keyed by set and row id; equal cases are predicted once.

    Raises
    ------
    InputError
        With all mistakes in the scenarios of rows at once.
    """
    cases = list(dict.fromkeys(asked.values()))
    answers = dict(zip(cases, workers.map(forecast, cases, progress), strict=True))
    rows = {place: answers[case] for place, case in asked.items()}
    _raise_problems(rows)
    return rows


def part(progress: Progress | None, start: float, end: float) -> Progress | None:
    """Return a progress callback for a part of the work that covers shares `start` to `end`."""
    if progress is None:
        return None
    return lambda share: progress(start + (end - start) * share)


def _fittings(found: MeasurementSet, profiles: tuple[Path, ...]) -> Iterator[Fitting]:
    if not found.fit:
        return
    groups: dict[tuple[str, ...], list[Row]] = defaultdict(list)
    for row in found.rows:
        if not row.excluded:
            groups[row.key(found.group_by)].append(row)
    for key, rows in groups.items():
        anchors = tuple(row for row in rows if row.anchor)
        yield Fitting(
            key=(found.name, key),
            anchors=anchors,
            fit=found.fit,
            metrics=found.metrics,
            profiles=profiles,
        )


def case_of(
    found: MeasurementSet,
    row: Row,
    constants: Mapping[GroupKey, Fitted],
    profiles: tuple[Path, ...],
) -> Case:
    """Return the arguments to predict a measured row, with the constants fitted to its group."""
    key = (found.name, row.key(found.group_by))
    group = constants.get(key, Fitted(key=key))
    return Case(
        base=row.base,
        overrides=(*row.overrides, *group.overrides),
        metrics=found.metrics,
        slowest=found.baseline is Baseline.SLOWEST_PART,
        profiles=profiles,
        fitted=tuple(override.partition("=")[0] for override in group.overrides),
        anchors=group.anchors,
        noise=group.noise,
    )


def fitted_group(task: Fitting) -> Fitted:
    """Fit the constants of a group to those of its anchors that can be predicted."""
    if not task.anchors:
        return Fitted(key=task.key, unfitted="no anchor")
    predicted = [row for row in task.anchors if not _refusal(row, task)]
    if not predicted:
        return Fitted(key=task.key, unfitted=_refusal(task.anchors[0], task))
    constants = anchored(predicted, task.fit, task.metrics, predictor=partial(_predicted, task))
    places = tuple(dict.fromkeys(_place(row, task.profiles) for row in predicted))
    return Fitted(key=task.key, overrides=constants, anchors=places, noise=noise(predicted))


def noise(anchors: Sequence[Row]) -> float:
    """Return the log standard deviation of the mean of the values measured on anchors.

    The range of a few repeats is about twice their standard deviation.
    """
    widest = [max(anchor.spread.values(), default=0.0) / 2.0 for anchor in anchors]
    return math.sqrt(sum(one**2 for one in widest)) / len(widest)


def _place(row: Row, profiles: tuple[Path, ...]) -> Place:
    scenario = load_scenario(row.base, overrides=row.overrides, profiles=profiles)
    return tuple(placed(scenario).items())


def _predicted(
    task: Fitting, row: Row, overrides: tuple[str, ...], metrics: Sequence[str]
) -> Mapping[str, float | None]:
    """Predict metrics of an anchor with more overrides, without intervals.

    Raises
    ------
    InputError, NotModelled
        If the anchor cannot be predicted.
    """
    given = (*row.overrides, *overrides)
    answer = forecast(_plain(task, row, given))
    if answer.problems:
        raise InputError(answer.problems)
    if answer.refused:
        raise NotModelled(answer.refused)
    return {metric: answer.figures.get(metric) for metric in metrics}


def _plain(task: Fitting, row: Row, overrides: tuple[str, ...]) -> Case:
    """Return the arguments to predict an anchor without intervals, which a fit does not need."""
    return Case(
        base=row.base,
        overrides=overrides,
        metrics=task.metrics,
        intervals=False,
        profiles=task.profiles,
    )


def _refusal(row: Row, task: Fitting) -> str:
    """Return the reason why an anchor cannot be predicted; empty if it can."""
    answer = forecast(_plain(task, row, row.overrides))
    if answer.problems:
        return "its anchor's scenario has mistakes"
    judged = [metric for metric in task.metrics if metric in row.measured]
    if not answer.refused and not any(metric in answer.figures for metric in judged):
        return "what was measured on its anchor does not apply to it"
    return answer.refused


@cache
def forecast(case: Case) -> Forecast:
    """Predict one case; errors are returned in the forecast instead of raised."""
    try:
        reader = _reader(case.base, case.profiles)
        if reader is not None:
            return _of_service(case, reader)
        catalogue = known_profiles(case.profiles)
        scenario = load_scenario(case.base, overrides=case.overrides, catalogue=catalogue)
        if case.fitted:
            places = [dict(place) for place in case.anchors]
            scenario = calibrated(scenario, case.fitted, places, case.noise)
        if case.elsewhere:
            scenario = known_elsewhere(scenario, case.elsewhere)
        if case.unseen:
            scenario = before(scenario, case.unseen)
        prediction = predict(scenario, intervals=case.intervals)
    except InputError as error:
        return Forecast(problems=error.problems)
    except NotModelled as error:
        return Forecast(refused=str(error))
    except BrokenInvariant as error:
        return Forecast(refused=bug_reason(error), bug=True)
    except PlanError as error:
        return Forecast(problems=(Problem(origin=case.base, message=str(error)),))
    figures = {name: number_at(prediction, name) for name in case.metrics}
    return Forecast(
        figures={name: value for name, value in figures.items() if value is not None},
        intervals={
            name: (band["p10"], band["p90"])
            for name, band in prediction.interval.items()
            if name in case.metrics
        },
        features=features_of(scenario, prediction if case.slowest else None),
    )


def _of_service(case: Case, reader: ServiceReader) -> Forecast:
    """Predict a case whose scenario is a service, without figures measured on its own model."""
    settings = dict(override.split("=", 1) for override in case.overrides)
    service = unseen(reader.read(settings), settings.get("model.name", ""))
    prediction = predict_service(service, intervals=case.intervals)
    every = service_figures(prediction)
    bands = {name: prediction.interval.get(name, {}) for name in case.metrics}
    return Forecast(
        figures={name: found for name in case.metrics if (found := every.get(name)) is not None},
        intervals={
            name: (low, high)
            for name, band in bands.items()
            if (low := band.get("p10")) is not None and (high := band.get("p90")) is not None
        },
        features=_features(service),
    )


def _features(service: Service) -> Features:
    """Return the features by which a service is compared with measured ones."""
    serving, load = service.serving, service.load
    ways = load.arrivals
    at_once = ways.concurrency if isinstance(ways, ClosedLoop) else load.requests or 1
    gpu = service.group.host.gpu
    return Features(
        devices=serving.tensor * serving.replicas,
        samples=float(at_once),
        operations=None,
        peak=None,
        numbers={
            "requests at once": float(at_once),
            "prompt": load.prompt.mean,
            "output": load.output.mean,
            "devices": float(serving.tensor * serving.replicas),
        },
        words={
            "engine": serving.rules.name,
            "weights": str(serving.weights),
            "accelerator": "" if gpu is None else gpu.name,
        },
    )


@cache
def known_profiles(profiles: tuple[Path, ...]) -> Catalogue:
    """Return the catalogue cached in this process, so that each profile is read only once."""
    return Catalogue.default(profiles)


def _raise_problems(rows: Mapping[tuple[str, str], Forecast]) -> None:
    """Raise InputError for mistakes in the scenarios of rows, each mistake listed once."""
    places: dict[Problem, list[str]] = defaultdict(list)
    for (name, row), answer in rows.items():
        for problem in answer.problems:
            places[problem].append(f"{name}, row {row}")
    problems = [
        replace(
            problem,
            origin=where[0] + (f" and {len(where) - 1} more" if len(where) > 1 else ""),
            line=None,
            key=problem.key or problem.origin,
        )
        for problem, where in places.items()
    ]
    if problems:
        raise InputError(tuple(problems))
