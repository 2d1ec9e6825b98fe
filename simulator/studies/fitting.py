"""Parameters as points in log space, and how far predictions of measured rows are off there.

Rates, times and factors are positive and known to a ratio, so parameters are fitted as logarithms
and errors are log(predicted / measured): twice too slow is as wrong as twice too fast.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from simulator.errors import InputError, PlanError, Problem
from simulator.files.keys import Key, numeric_key
from simulator.files.scenario import load_scenario
from simulator.measurement import Parameter, Row
from simulator.metrics import select
from simulator.predict import predict

Vector: TypeAlias = NDArray[np.float64]
Predictor: TypeAlias = Callable[[Row, tuple[str, ...], Sequence[str]], Mapping[str, float | None]]
"""Predicts the named metrics of a row with further overrides put after its own."""

ZERO: Final = 1e-6
"""Share of the upper bound that stands in for a lower bound (or a start) of zero, which has no
logarithm: a part this small of a step is invisible."""
NOTHING: Final = 1e-4
"""Share of the measured value that stands in for a prediction of zero."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Knob:
    """A parameter that is fitted: its key, and start and bounds as logarithms of SI values."""

    parameter: Parameter
    key: Key
    start: float
    low: float
    high: float

    def text(self, x: float) -> str:
        """The value at `x`, written in the unit of the parameter's start."""
        return self.key.text(math.exp(min(max(x, self.low), self.high)), self.parameter.start)

    def override(self, x: float) -> str:
        """``key=value`` at `x`."""
        return f"{self.key.name}={self.text(x)}"


def knob(parameter: Parameter, origin: str = "--fit") -> Knob:
    """A parameter with its texts read.

    Raises
    ------
    InputError
        If the key cannot be fitted, a text is no value of it, or the start lies outside.
    """
    key = numeric_key(parameter.key, origin)
    start, low, high = (key.value(t) for t in (parameter.start, parameter.low, parameter.high))
    if not low <= start <= high or high <= 0.0 or low >= high:
        message = "does not lie between its bounds"
        hint = f"low {parameter.low}, high {parameter.high}"
        raise InputError(
            (
                Problem(
                    origin=origin, key=key.name, message=message, found=parameter.start, hint=hint
                ),
            )
        )
    floor = high * ZERO
    return Knob(
        parameter=parameter,
        key=key,
        start=math.log(max(start, low, floor if low == 0.0 else low)),
        low=math.log(low if low > 0.0 else floor),
        high=math.log(high),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """One measured figure of one row; `row` counts the rows of the fit."""

    row: int
    metric: str
    measured: float


def observations(rows: Sequence[Row], metrics: Sequence[str]) -> tuple[Observation, ...]:
    """The figures among `metrics` that were measured on `rows` and have a logarithm."""
    return tuple(
        Observation(row=i, metric=metric, measured=row.measured[metric])
        for i, row in enumerate(rows)
        for metric in metrics
        if row.measured.get(metric, 0.0) > 0.0
    )


def predicted(
    row: Row, overrides: tuple[str, ...], metrics: Sequence[str]
) -> Mapping[str, float | None]:
    """What the model says about `row` with more overrides; None where a metric doesn't apply."""
    prediction = predict(load_scenario(row.base, overrides=(*row.overrides, *overrides)))
    found: dict[str, float | None] = {}
    for name in metrics:
        value = next(m for m in select(name) if m.name == name).get(prediction)
        found[name] = float(value) if isinstance(value, int | float) else None
    return found


@dataclass(slots=True, kw_only=True)
class Errors:
    """Log errors of all observations as a function of the knobs; remembers what it computed."""

    rows: tuple[Row, ...]
    knobs: tuple[Knob, ...]
    seen: tuple[Observation, ...]
    predictor: Predictor = predicted
    known: dict[tuple[int, tuple[str, ...]], Mapping[str, float | None]] = field(
        default_factory=dict
    )

    def __call__(self, x: Vector) -> Vector:
        """log(predicted / measured) of every observation at the point `x`."""
        overrides = tuple(k.override(float(v)) for k, v in zip(self.knobs, x, strict=True))
        return np.array([self._error(one, overrides) for one in self.seen])

    @property
    def evaluations(self) -> int:
        """Predictions made so far."""
        return len(self.known)

    def _error(self, one: Observation, overrides: tuple[str, ...]) -> float:
        place = (one.row, overrides)
        row = self.rows[one.row]
        if place not in self.known:
            wanted = [o.metric for o in self.seen if o.row == one.row]
            self.known[place] = _named(self.predictor, row, overrides, wanted)
        value = self.known[place][one.metric]
        if value is None:
            message = f"measured.{one.metric} does not apply to the scenario of this row"
            raise InputError((Problem(origin=f"row {row.id}", message=message),))
        return math.log(max(value, NOTHING * one.measured) / one.measured)


def _named(
    predictor: Predictor, row: Row, overrides: tuple[str, ...], metrics: Sequence[str]
) -> Mapping[str, float | None]:
    """A prediction whose refusal names the row."""
    try:
        return predictor(row, overrides, metrics)
    except InputError:
        raise
    except PlanError as error:
        raise InputError((Problem(origin=f"row {row.id}", message=str(error)),)) from error
