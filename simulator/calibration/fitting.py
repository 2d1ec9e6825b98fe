"""Parameters of a fit: parsed from options, converted to log space, and the log errors of the rows.

Rates, times and factors are positive and known to a ratio, so parameters are fitted as logarithms.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from simulator.errors import InputError, PlanError, Problem
from simulator.predict import predict
from simulator.reading.keys import Key, numeric_key
from simulator.reading.merge_documents import gather
from simulator.reading.scenario import load_scenario
from simulator.reading.sections import ScenarioFile
from simulator.records import dataclass
from simulator.results.metrics import number_at
from simulator.schema.calibration import FACTORS
from simulator.schema.measurement import MeasurementSet, Parameter, Row

Vector: TypeAlias = NDArray[np.float64]
Figures: TypeAlias = Mapping[str, float | None]
Predictor: TypeAlias = Callable[[Row, tuple[str, ...], Sequence[str]], Figures]
"""Function that predicts named metrics of a row, with overrides appended to its own."""

LOG_STEP: Final = 0.1
"""Step of finite differences in a log parameter; large, as simulations are not smooth locally."""
ZERO_SHARE: Final = 1e-6
"""Share of the upper bound used for a lower bound (or a start) of zero, which has no
logarithm: a part this small of a step is invisible."""
MIN_SHARE: Final = 1e-4
"""Share of the measured value used for a prediction of zero."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Knob:
    """A fitted parameter: its key, and start and bounds as logarithms of SI values.

    `zero`: `low` represents zero.
    """

    parameter: Parameter
    key: Key
    start: float
    low: float
    high: float
    zero: bool = False

    def text(self, x: float) -> str:
        """Format exp(`x`), clipped to the bounds, in the unit in which the start value is given."""
        inside = math.exp(min(max(x, self.low), self.high))
        return self.key.text(0.0 if self.zero and x <= self.low else inside, self.parameter.start)

    def override(self, x: float) -> str:
        """Return ``key=value`` that sets the parameter to the value whose logarithm is `x`."""
        return f"{self.key.name}={self.text(x)}"


def knob(parameter: Parameter, origin: str = "--fit") -> Knob:
    """Parse the key, start value and bounds of a parameter.

    `origin`: option or file that error messages name.

    Raises
    ------
    InputError
        If the key cannot be fitted, a value cannot be parsed, or the start is outside the bounds.
    """
    key = numeric_key(parameter.key, origin)
    start, low, high = (key.value(t) for t in (parameter.start, parameter.low, parameter.high))
    if not low <= start <= high or high <= 0.0 or low >= high:
        message = "does not lie between its bounds"
        hint = f"low {parameter.low}, high {parameter.high}"
        found = parameter.start
        problem = Problem(origin=origin, key=key.name, message=message, found=found, hint=hint)
        raise InputError((problem,))
    floor = high * ZERO_SHARE
    return Knob(
        parameter=parameter,
        key=key,
        start=math.log(max(start, low, floor if low == 0.0 else low)),
        low=math.log(low if low > 0.0 else floor),
        high=math.log(high),
        zero=low == 0.0,
    )


def box(knobs: Sequence[Knob]) -> tuple[Vector, Vector, Vector]:
    """Return log start values, lower bounds and upper bounds of all parameters, shape (n,) each."""
    start, low, high = zip(*((k.start, k.low, k.high) for k in knobs), strict=True)
    return np.array(start), np.array(low), np.array(high)


@dataclass(frozen=True, slots=True, kw_only=True)
class Residual:
    """One metric of one row: measured value and its predictions before and after the fit.

    `before` is predicted with the start values, `fitted` with the fitted ones, and `held_out` by a
    fit without the rows of this configuration; None if there were too few configurations for that.
    """

    row: str
    configuration: str = ""
    metric: str
    measured: float
    before: float
    fitted: float
    held_out: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """One measured metric of one row; `row` is the index of the row in the fit."""

    row: int
    metric: str
    measured: float


def observations(rows: Sequence[Row], metrics: Sequence[str]) -> tuple[Observation, ...]:
    """Return the positive measured values of `metrics` on `rows`."""
    return tuple(
        Observation(row=i, metric=metric, measured=row.measured[metric])
        for i, row in enumerate(rows)
        for metric in metrics
        if row.measured.get(metric, 0.0) > 0.0
    )


def predicted(
    row: Row, overrides: tuple[str, ...], metrics: Sequence[str], profiles: tuple[Path, ...] = ()
) -> Figures:
    """Predict metrics of `row` with more overrides; a metric that does not apply is None."""
    scenario = load_scenario(row.base, overrides=(*row.overrides, *overrides), profiles=profiles)
    prediction = predict(scenario)
    return {name: number_at(prediction, name) for name in metrics}


Task: TypeAlias = tuple[Predictor, Row, tuple[str, ...], tuple[str, ...]]
"""Arguments of one prediction: predictor, row, further overrides, and names of metrics."""
Answer: TypeAlias = tuple[Figures, tuple[Problem, ...]]
"""Predicted metrics, and the problems of the row that prevented a prediction."""


def answer(task: Task) -> Answer:
    """Predict one row and return its metrics and problems.

    Errors in the row are returned, not raised, with the id of the row as their origin.
    """
    predictor, row, overrides, metrics = task
    origin = f"row {row.id}"
    try:
        figures = predictor(row, overrides, metrics)
    except InputError as error:
        return {}, tuple(replace(p, origin=f"{origin}, {p.origin}") for p in error.problems)
    except PlanError as error:
        return {}, (Problem(origin=origin, message=str(error)),)
    message = "does not apply to the scenario of this row"
    missing = [name for name, value in figures.items() if value is None]
    problems = (Problem(origin=origin, key=f"measured.{n}", message=message) for n in missing)
    return figures, tuple(problems)


def answers(tasks: Sequence[Task]) -> list[Answer]:
    """Predict the rows of `tasks` one after another in this process."""
    return list(map(answer, tasks))


@dataclass(slots=True, kw_only=True)
class Errors:
    """Log errors of all observations as a function of the log parameters; predictions are cached.

    `ask` predicts several tasks and returns the answers in the same order. `known` caches the
    metrics by index of the row and overrides.
    """

    rows: tuple[Row, ...]
    knobs: tuple[Knob, ...]
    seen: tuple[Observation, ...]
    predictor: Predictor = predicted
    ask: Callable[[Sequence[Task]], list[Answer]] = answers
    known: dict[tuple[int, tuple[str, ...]], Figures] = field(default_factory=dict)

    def __call__(self, x: Vector) -> Vector:
        """Return the log error of each observation, log(predicted / measured), shape (m,)."""
        overrides = tuple(k.override(float(v)) for k, v in zip(self.knobs, x, strict=True))
        self._look_up(overrides)
        return np.array([self._error(one, overrides) for one in self.seen])

    def jacobian(self, x: Vector, *, both_sides: bool = False) -> Vector:
        """Return the Jacobian of the log errors, shape (m, n), by differences within the bounds.

        With `both_sides`, use central differences: at a kink, where the bottleneck changes, a
        one-sided difference does not show how the errors change.
        """
        table = np.zeros((len(self.seen), len(x)))
        for j, one in enumerate(self.knobs):
            step = min(LOG_STEP, 0.5 * (one.high - one.low))
            up = step if x[j] + step <= one.high else 0.0
            down = step if (both_sides or not up) and x[j] - step >= one.low else 0.0
            above, below = x.copy(), x.copy()
            above[j], below[j] = x[j] + up, x[j] - down
            table[:, j] = (self(above) - self(below)) / (up + down)
        return table

    def subset(self, numbers: Sequence[int]) -> Errors:
        """Return the errors of the observations with these indices; the cache is shared."""
        return replace(self, seen=tuple(self.seen[i] for i in numbers))

    @property
    def evaluations(self) -> int:
        """Number of predictions made so far."""
        return len(self.known)

    def _look_up(self, overrides: tuple[str, ...]) -> None:
        """Predict, with these overrides, all rows that are not cached yet."""
        wanted: dict[int, list[str]] = {}
        for one in self.seen:
            if (one.row, overrides) not in self.known:
                wanted.setdefault(one.row, []).append(one.metric)
        tasks = [
            (self.predictor, self.rows[row], overrides, tuple(metrics))
            for row, metrics in wanted.items()
        ]
        made = self.ask(tasks) if tasks else []
        problems = tuple(problem for _, found in made for problem in found)
        if problems:
            raise InputError(tuple(dict.fromkeys(problems)))
        for row, (figures, _) in zip(wanted, made, strict=True):
            self.known[row, overrides] = figures

    def _error(self, one: Observation, overrides: tuple[str, ...]) -> float:
        value = self.known[one.row, overrides][one.metric] or 0.0
        return math.log(max(value, MIN_SHARE * one.measured) / one.measured)


DEFAULT_RANGE: Final = 10.0
"""Default bounds of a key without stated bounds: its start divided and multiplied by this."""
_FACTORS: Final = {kind.name: kind for kind in FACTORS}


def parameters_of(
    names: Sequence[str],
    sets: Sequence[MeasurementSet],
    given: Mapping[str, Sequence[str]],
) -> tuple[Parameter, ...]:
    """Return the parameters to fit, with start values and bounds.

    Parameters
    ----------
    names : sequence of str
        Dotted keys of a scenario; a factor of [calibration] also by its bare name.
    sets : sequence of MeasurementSet
        Start values come from their [[fit]] tables or else from the scenario of their first row.
    given : mapping
        ``NAME=VALUE`` texts for ``start``, ``low`` and ``high``; they override those of `sets`.

    Raises
    ------
    InputError
        With all unknown names and invalid values at once.
    """
    problems: list[Problem] = []
    keys: list[Key] = []
    for name in dict.fromkeys(_full_name(name) for name in names):
        try:
            keys.append(numeric_key(name))
        except InputError as error:
            problems += error.problems
    texts = {option: _texts(option, pairs, problems) for option, pairs in given.items()}
    for option, values in texts.items():
        for name in values.keys() - {key.name for key in keys}:
            hint, origin = f"add --fit {name}", f"--{option}"
            problem = Problem(origin=origin, message="is not fitted", found=repr(name), hint=hint)
            problems.append(problem)
    found = []
    for key in keys:
        stated = {option: texts[option][key.name] for option in texts if key.name in texts[option]}
        try:
            found.append(_parameter(key, sets, stated))
        except InputError as error:
            problems += error.problems
    if problems:
        raise InputError(tuple(problems))
    return tuple(found)


def _full_name(name: str) -> str:
    return f"calibration.{name}" if name in _FACTORS else name


def _texts(option: str, pairs: Iterable[str], problems: list[Problem]) -> dict[str, str]:
    values = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals or not text.strip():
            message, hint = "has no value", "write NAME=VALUE, such as input.decode='5 ms'"
            problems.append(
                Problem(origin=f"--{option}", message=message, found=repr(pair), hint=hint)
            )
        values[_full_name(name.strip())] = text.strip()
    return values


def _parameter(key: Key, sets: Sequence[MeasurementSet], own: Mapping[str, str]) -> Parameter:
    known = next((p for s in sets for p in s.fit if p.key == key.name), None)
    kind = _FACTORS.get(key.name.removeprefix("calibration."))
    if known is None and kind is not None:
        low, high = f"{kind.low:g}", f"{kind.high:g}"
        known = Parameter(key=key.name, start="1", low=low, high=high, why=kind.why)
    if known is None:
        known = _default_bounds(key, own.get("start") or _stated_start(key, sets))
    return Parameter(
        key=key.name,
        start=own.get("start", known.start),
        low=own.get("low", known.low),
        high=own.get("high", known.high),
        why="as given" if {"low", "high"} <= own.keys() else known.why,
    )


def _default_bounds(key: Key, start: str) -> Parameter:
    value = key.value(start)
    if value == 0.0:
        message, hint = "starts at zero", f"say between what: --low and --high {key.name}=VALUE"
        raise InputError((Problem(origin="--fit", key=key.name, message=message, hint=hint),))
    low, high = key.text(value / DEFAULT_RANGE, start), key.text(value * DEFAULT_RANGE, start)
    why = "no bounds were given: a tenth to ten times the start"
    return Parameter(key=key.name, start=start, low=low, high=high, why=why)


def _stated_start(key: Key, sets: Sequence[MeasurementSet]) -> str:
    """Return the value of the key in the first row's scenario."""
    for row in (row for s in sets for row in s.rows):
        document, _ = gather(row.base, overrides=row.overrides, model=ScenarioFile)
        value = document.value(tuple(key.name.split(".")))
        if isinstance(value, str | int | float) and not isinstance(value, bool):
            return str(value)
        break
    message, hint = "has no start", f"the rows' scenario does not give it: --start {key.name}=VALUE"
    raise InputError((Problem(origin="--fit", key=key.name, message=message, hint=hint),))
