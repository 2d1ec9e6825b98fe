"""Calibration of a service: factors on the speed of its parts, fitted to measured runs.

A few measured runs fit four factors together. The prior of each factor is 1 with the deviation in
`SPREADS`: factors that the runs do not determine stay near 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares

from simulator.calibration.fitting import Residual
from simulator.errors import InputError, Problem
from simulator.predict import pass_of, predict_service
from simulator.reading.merge_documents import chain_of
from simulator.reading.service.scenario import ServiceReader
from simulator.records import dataclass
from simulator.results.metrics import part_figures, service_figures
from simulator.results.serving import Saturation
from simulator.schema.measurement import Row
from simulator.schema.serving import Service
from simulator.schema.software import ServiceFactors
from simulator.serving.answers import lack
from simulator.serving.layout import layout_of
from simulator.serving.load import usual_count
from simulator.serving.run import ServiceRun

Vector = NDArray[np.float64]
Figures = Mapping[str, float]
Predictor = Callable[[Row, ServiceFactors, Sequence[str]], Figures]
"""Function that predicts named metrics of a row with these factors, as far as they apply."""

FACTORS: Final = tuple(one.name for one in fields(ServiceFactors))
SPREADS: Final = {"compute": 0.25, "device_memory": 0.12, "engine": 0.4, "request": 0.8}
"""Prior standard deviation of the logarithm of each factor.

Estimated by comparing kernel efficiencies of single models with those of all models
(``evidence/fitting/serving.toml``); not fitted to any service.
"""
REPEAT_SPREADS: Final = {"first_token_s": 0.15}
"""Log standard deviation of repeated runs by prefix of the metric; 3 to 26% for first tokens."""
REPEAT_SPREAD: Final = 0.05
"""Log standard deviation of repeated runs for all other metrics: up to 9% for times per token."""
_NONE: Final = Saturation(request_rate=math.inf, output_rate=math.inf, headroom=None, drift=None)
_STEP: Final = 0.2
"""Step of finite differences of a log factor, in units of its prior standard deviation."""
_MAX_DEVIATIONS: Final = 3.0
_MAX_EVALUATIONS: Final = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibratedService:
    """Factors fitted to measured runs of a service, with their uncertainty and residuals.

    `deviations` are standard deviations of the logarithms of the factors after the fit. `seen`
    compares each measured metric with its predictions before and after the fit.
    """

    factors: ServiceFactors
    deviations: Mapping[str, float]
    seen: tuple[Residual, ...]


def predicted(row: Row, factors: ServiceFactors, wanted: Sequence[str]) -> Figures:
    """Predict the metrics `wanted` of a measured run of a service.

    Raises
    ------
    InputError, NotModelled, PlanError
        As `ServiceReader.read` does.
    """
    reader = ServiceReader(chain_of(row.base), row.base)
    pairs = (override.partition("=") for override in row.overrides)
    settings = {key: value for key, _, value in pairs} | settings_of(factors)
    return figures_of(reader.read(settings), wanted)


def figures_of(service: Service, wanted: Sequence[str]) -> Figures:
    """Predict the metrics `wanted` of a service; those that do not apply are absent.

    For a load with a fixed number of requests the search for saturation, which takes longer, is
    skipped.
    """
    if usual_count(service.load) is None:
        known = service_figures(predict_service(service, intervals=False))
        return {name: value for name in wanted if (value := known.get(name)) is not None}
    layout = layout_of(service, lambda serving: pass_of(replace(service, serving=serving)))
    if lack(service, layout):
        return {}
    answered = ServiceRun(service, layout, 0).answered(_NONE)
    known = part_figures(answered=answered)
    return {name: value for name in wanted if (value := known.get(name)) is not None}


def settings_of(factors: ServiceFactors) -> dict[str, float]:
    """Return the factors as settings of a scenario, {``calibration.NAME``: value}."""
    return {f"calibration.{name}": getattr(factors, name) for name in FACTORS}


def calibrate_service(
    rows: Sequence[Row], wanted: Sequence[str], predictor: Predictor = predicted
) -> CalibratedService:
    """Fit the factors of a service to measured runs of it.

    Parameters
    ----------
    rows : sequence of Row
        Measured runs.
    wanted : sequence of str
        Names of the metrics to fit to.
    predictor : callable, optional
        Predicts a row; the model by default.

    Raises
    ------
    InputError
        If no row has a measured value above zero, or a run cannot be predicted.
    """
    every = [
        (row, name, value)
        for row in rows
        for name in wanted
        if (value := row.measured.get(name, 0.0)) > 0.0
    ]
    if not every:
        message = "hold no measured figure to fit to"
        raise InputError((Problem(origin="the rows", message=message),))
    measured = np.log([value for _, _, value in every])
    widths = np.array(
        [REPEAT_SPREADS.get(name.split(".")[0], REPEAT_SPREAD) for _, name, _ in every]
    )

    def logs(x: Vector) -> Vector:
        known = {row.id: predictor(row, _factors(x), wanted) for row in rows}
        return np.log([_figure(known[row.id], row, name) for row, name, _ in every])

    def errors(x: Vector) -> Vector:
        return np.asarray((logs(x) - measured) / widths)

    found, slopes = _most_likely(errors)
    before, after = np.exp(logs(np.zeros(len(FACTORS)))), np.exp(logs(found))
    spread = np.sqrt(np.diag(np.linalg.inv(slopes.T @ slopes)))
    return CalibratedService(
        factors=_factors(found),
        deviations={
            name: SPREADS[name] * float(one) for name, one in zip(FACTORS, spread, strict=True)
        },
        seen=tuple(
            Residual(row=row.id, metric=name, measured=value, before=float(old), fitted=float(new))
            for (row, name, value), old, new in zip(every, before, after, strict=True)
        ),
    )


def _most_likely(errors: Callable[[Vector], Vector]) -> tuple[Vector, Vector]:
    """Return the most likely log factors, in units of `SPREADS`, and the residuals' Jacobian there.

    The prior mean of each log factor is 0.
    """
    count = len(FACTORS)

    def residuals(x: Vector) -> Vector:
        z = errors(x)
        # half of the square near zero, the absolute value far away
        soft = np.sign(z) * np.sqrt(2.0 * (np.sqrt(1.0 + z**2) - 1.0))
        return np.concatenate([soft, x])

    def slopes(x: Vector) -> Vector:
        here = residuals(x)
        steps = _STEP * np.eye(count)
        return np.stack([(residuals(x + step) - here) / _STEP for step in steps], axis=1)

    best = least_squares(
        residuals,
        np.zeros(count),
        jac=slopes,
        bounds=(-_MAX_DEVIATIONS, _MAX_DEVIATIONS),
        max_nfev=_MAX_EVALUATIONS,
        xtol=1e-2,
        ftol=1e-3,
    )
    return np.asarray(best.x), np.asarray(best.jac)


def _factors(x: Vector) -> ServiceFactors:
    return ServiceFactors(
        **{name: float(np.exp(SPREADS[name] * one)) for name, one in zip(FACTORS, x, strict=True)}
    )


def _figure(figures: Figures, row: Row, name: str) -> float:
    """Return the predicted value of the metric `name`; raise InputError if there is none."""
    value = figures.get(name, 0.0)
    if value > 0.0:
        return value
    message, hint = "is not predicted", "its load is beyond saturation, or the service does not fit"
    problem = Problem(origin=f"row {row.id}", key=name, message=message, hint=hint)
    raise InputError((problem,))
