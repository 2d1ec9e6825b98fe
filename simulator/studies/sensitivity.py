"""Sensitivity of a metric to uncertain rates: a tornado."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np

from simulator.engine.intervals import figures, uncertainty_components
from simulator.predict import predict, simulation_input
from simulator.records import dataclass
from simulator.results.metrics import number_at
from simulator.results.prediction import Prediction
from simulator.schema.scenario import Scenario
from simulator.schema.uncertainty import (
    P90,
    Rate,
    UncertaintyComponent,
    covariance,
    within_reason,
)
from simulator.studies.search.outcome import Progress, tracked

_STRETCHING: Final = frozenset({Rate.STEP, Rate.START})
"""Rates of no resource: they stretch the result, so that nothing need be simulated again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """One rate of a tornado chart: the metric with the rate slow (P10) and fast (P90).

    `log_sd` is the standard deviation of the logarithm of the rate.
    """

    rate: Rate
    log_sd: float
    slow: float
    fast: float

    @property
    def width(self) -> float:
        """Absolute difference between the two values, in the unit of the metric."""
        return abs(self.fast - self.slow)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sensitivity:
    """Sensitivity of a metric to each uncertain rate, largest first.

    `correlated`: some uncertainties are correlated, which varying one rate at a time ignores.
    """

    metric: str
    base: float
    prediction: Prediction
    bars: tuple[Bar, ...] = ()
    correlated: bool = False


def deviations(uncertainties: Sequence[UncertaintyComponent]) -> dict[Rate, float]:
    """Return the standard deviation of the logarithm of each uncertain rate."""
    rates = [rate for rate in Rate if any(d.rate is rate and d.log_sd > 0.0 for d in uncertainties)]
    if not rates:
        return {}
    known = [component for component in uncertainties if component.log_sd > 0.0]
    spread = np.sqrt(np.diag(within_reason(covariance(known, rates))))
    return {rate: float(sd) for rate, sd in zip(rates, spread, strict=True)}


def tornado(
    scenario: Scenario, metric: str, *, seed: int = 0, progress: Progress | None = None
) -> Sensitivity | None:
    """Return the metric with each rate at its P10 and its P90, all others unchanged.

    Parameters
    ----------
    scenario : Scenario
        Scenario with its uncertainties.
    metric : str
        Dotted name of a number.
    seed : int
        Seed of all random draws, the same for every rate.
    progress : callable, optional
        Called with the finished share.

    Returns
    -------
    Sensitivity or None
        None if the metric has no value.
    """
    prediction = predict(scenario, seed=seed, intervals=False)
    base = number_at(prediction, metric)
    if base is None:
        return None
    inputs = simulation_input(prediction.scenario)
    uncertainties = uncertainty_components(inputs, prediction)

    def at(rate: Rate, speed: float) -> float:
        """Return the metric with a rate multiplied by `speed`, in closed form if possible."""
        if rate in _STRETCHING:
            known = figures(inputs, prediction, {rate: np.array([speed])}).get(metric)
            end = None if known is None else float(known[0])
        else:
            other = predict(inputs.scenario, seed=seed, intervals=False, speeds={rate: speed})
            end = number_at(other, metric)
        return base if end is None else end

    bars = [
        Bar(
            rate=rate,
            log_sd=log_sd,
            slow=at(rate, math.exp(-P90 * log_sd)),
            fast=at(rate, math.exp(P90 * log_sd)),
        )
        for rate, log_sd in tracked(list(deviations(uncertainties).items()), progress)
    ]
    return Sensitivity(
        metric=metric,
        base=base,
        prediction=prediction,
        bars=tuple(sorted(bars, key=lambda bar: -bar.width)),
        correlated=any(component.shared for component in uncertainties),
    )
