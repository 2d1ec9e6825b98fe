"""What the evidence says about how far rates may be off: errors of rows, and spreads of ratios."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from fitting.shares import steps
from simulator.engine.intervals import HALF_WIDTH, figures
from simulator.engine.run import SimulationInput
from simulator.equations.uncertainty import doublings_outside
from simulator.errors import NotModelled
from simulator.pipeline.program import demand_table
from simulator.pipeline.run_length import extras, lengths
from simulator.pipeline.stages.base import Phase
from simulator.pipeline.topology import build
from simulator.predict import predict
from simulator.reading.fitted.kernel_files import kernel_files
from simulator.reading.hardware.catalogue import Catalogue
from simulator.reading.measured.measurement_set import load_set
from simulator.reading.model_library import model_names
from simulator.reading.scenario import load_scenario
from simulator.results.envelope import placed
from simulator.schema.measurement import MeasurementSet, Row, Split
from simulator.schema.models import Model
from simulator.schema.scenario import Scenario
from simulator.schema.uncertainty import Axis, Grade, Rate
from simulator.studies.search.workers import cores, local_workers
from simulator.uncertainty.scenario import calibrated, rate_of, uncertainties_of
from simulator.validation.forecast import Fitted, Fitting, fitted_group, noise

STEP = 0.1
"""Change of a log rate over which the effect on a figure is taken."""
Location = Mapping[Axis, float]
Term = tuple[Rate, Grade]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One measured figure: the error of its prediction, and how each uncertainty moves it.

    `error` is log(measured / predicted). `effects` are changes of the log figure per log rate, by
    rate and grade; `distances` the doublings between anchors and row by axis, for calibrated
    rates. `chance` is what the simulation's own randomness adds, `given` what uncertainties add
    that are not fitted here, `step` the mean step and `first` the first one [s].
    """

    set: str
    id: str
    family: str
    split: Split
    metric: str
    error: float
    effects: Mapping[Term, float]
    distances: Mapping[tuple[Rate, Axis], float]
    chance: float
    given: float
    step: float
    first: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A row, and the anchors that constants are fitted to before it is predicted."""

    set: MeasurementSet
    row: Row
    anchors: tuple[Row, ...]
    family: str


def samples(names: Sequence[str]) -> list[Sample]:
    """All judged figures of the rows of some sets.

    An anchor is predicted from the anchors of other configurations of its group, as any other row
    of the group would be; one without such others says nothing and is left out. Where a whole
    curve against workers serves as anchors, it is also predicted from its least workers alone: so
    much can be said about distance.
    """
    sets = [found for found in map(load_set, names) if not found.serves]
    asked = [one for found in sets for one in (*_asked(found), *_extrapolated(found))]
    tasks = {(task := _task(one)).key: task for one in asked if one.anchors and one.set.fit}
    with local_workers(cores()) as workers:
        groups = {group.key: group for group in workers.map(fitted_group, list(tasks.values()))}
        fitted = [groups.get(_task(one).key) for one in asked]
        rows = workers.map(_of_row, list(zip(asked, fitted, strict=True)))
    return [sample for row in rows for sample in row]


def _asked(found: MeasurementSet) -> Iterator[Asked]:
    rows = [row for row in found.rows if not row.excluded]
    for row in rows:
        group = [r for r in rows if r.anchor and r.key(found.group_by) == row.key(found.group_by)]
        if not found.fit:
            group = []
        others = tuple(
            r for r in group if r.key(found.configuration) != row.key(found.configuration)
        )
        if row.anchor and found.fit and not others:
            continue
        anchors = others if row.anchor else tuple(group)
        yield Asked(set=found, row=row, anchors=anchors, family=row.family)


def _extrapolated(found: MeasurementSet) -> Iterator[Asked]:
    curves: dict[tuple[str, ...], list[tuple[float, Row]]] = defaultdict(list)
    for row in found.rows if found.fit else ():
        if row.anchor and not row.excluded:
            place = placed(load_scenario(row.base, overrides=row.overrides))
            curves[row.key(found.configuration)].append((place.get(Axis.WORKERS, 0.0), row))
    for curve in curves.values():
        least = min(workers for workers, _ in curve)
        anchors = tuple(row for workers, row in curve if workers == least)
        for workers, row in curve:
            if workers > least:
                family = f"{row.family}, from the least workers"
                yield Asked(set=found, row=row, anchors=anchors, family=family)


def _task(one: Asked) -> Fitting:
    key = (one.set.name, tuple(anchor.id for anchor in one.anchors))
    return Fitting(key=key, anchors=one.anchors, fit=one.set.fit, metrics=one.set.metrics)


def _of_row(task: tuple[Asked, Fitted | None]) -> list[Sample]:
    one, group = task
    row, fitted = one.row, () if group is None else group.overrides
    anchors = [placed(load_scenario(a.base, overrides=a.overrides)) for a in one.anchors]
    scenario = load_scenario(row.base, overrides=(*row.overrides, *fitted))
    keys = [override.partition("=")[0] for override in fitted]
    if keys:
        scenario = calibrated(scenario, keys, anchors, noise(one.anchors))
    try:
        effects, at, chance, step, first = _effects(scenario)
    except NotModelled:
        return []
    found = []
    grades = _grades(scenario)
    rates = dict.fromkeys(rate_of(key) for key in keys)
    place = placed(scenario)
    distances = {(rate, axis): _distance(axis, place, anchors) for rate in rates for axis in place}
    for metric in one.set.metrics:
        measured = row.measured.get(metric, 0.0)
        if metric not in at or measured <= 0.0 or at[metric] <= 0.0:
            continue
        own = effects[metric]
        others = (d for d in uncertainties_of(scenario) if d.warning or ", " not in d.name)
        extra = [d.log_sd * own.get(d.rate, 0.0) for d in others]
        sample = Sample(
            set=one.set.name,
            id=row.id,
            family=one.family,
            split=row.split,
            metric=metric,
            error=math.log(measured / at[metric]),
            effects={term: own.get(term[0], 0.0) for term in grades},
            distances={k: v * own.get(k[0], 0.0) for k, v in distances.items() if v > 0.0},
            chance=chance,
            given=math.hypot(*extra),
            step=step,
            first=first,
        )
        found.append(sample)
    return found


def _grades(scenario: Scenario) -> list[Term]:
    """Rate and grade of each uncertainty inside of the evidence, read from its name."""
    names = [
        component.name.partition(", ")
        for component in uncertainties_of(scenario)
        if not component.warning
    ]
    return [(Rate(rate), Grade(grade)) for rate, _, grade in names if grade]


def _distance(axis: Axis, place: Location, anchors: Sequence[Location]) -> float:
    seen = [anchor.get(axis, 1.0) for anchor in anchors]
    if not seen:
        return 0.0
    return float(doublings_outside(place[axis], min(seen), max(seen)))


Effects = tuple[dict[str, dict[Rate, float]], dict[str, float], float, float, float]
"""Change of each log figure per log rate, the figures, their chance, mean and first step [s]."""


def _effects(
    scenario: Scenario,
) -> Effects:
    """How the figures of a scenario depend on rates."""
    topology = build(scenario)
    demands = {phase: demand_table(scenario, phase) for phase in Phase}
    inputs = SimulationInput(
        scenario=scenario,
        topology=topology,
        demands=demands,
        lengths=lengths(scenario),
        extras=extras(scenario, topology, demands[Phase.WARM]),
    )
    prediction = predict(scenario)
    timing = prediction.timing
    at = {name: float(value[0]) for name, value in figures(inputs, prediction, {}).items()}
    effects: dict[str, dict[Rate, float]] = {name: {} for name in at}
    for rate in Rate:
        ends = np.exp(np.array([-STEP, STEP]))
        there = figures(inputs, prediction, {rate: ends})
        for name, value in there.items():
            low, high = value
            if low > 0.0 and high > 0.0:
                effects[name][rate] = abs(math.log(high / low)) / (2.0 * STEP)
    mean = timing.step_time.mean
    chance = timing.half_width / HALF_WIDTH / mean if mean else 0.0
    return effects, at, chance, mean, timing.first_steps[0] or timing.first_step


def without_steps(model: Model) -> Model:
    """A model of which no step was measured."""
    bare: Model = replace(model, step_times=())  # type: ignore[type-var]
    return bare


@cache
def roofline_errors() -> dict[str, list[float]]:
    """log(measured / computed) of every step time of the model library, by model."""
    files = kernel_files()
    return {
        name: errors
        for name in model_names()
        if (errors := [-math.log1p(step.error(files)) for step in steps(name)])
    }


def achieved_over_stated() -> dict[str, list[float]]:
    """log(achieved / data sheet) of every profile that has both rates, by kind."""
    catalogue = Catalogue.default()
    found: dict[str, list[float]] = {}
    for name in catalogue.names("gpu"):
        gpu = catalogue.gpu(name)
        ratios = [rate / gpu.peak[precision] for precision, rate in gpu.achievable.items()]
        found.setdefault("gpu", []).extend(math.log(ratio) for ratio in ratios)
    for name in catalogue.names("link"):
        link = catalogue.link(name)
        if link.achievable is not None:
            found.setdefault(link.kind, []).append(math.log(link.achievable / link.peak))
    for name in catalogue.names("storage"):
        store = catalogue.storage(name)
        achieved = store.achievable_read_bandwidth
        if achieved is not None and "read_bandwidth" in store.sources:
            found.setdefault("storage", []).append(math.log(achieved / store.read_bandwidth))
    return found
