"""What an answer hangs on: each figure uncertain, and how far the run's time goes with it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from simulator.engine.intervals import figures, uncertainty_components
from simulator.predict import simulation_input
from simulator.results.prediction import Prediction
from simulator.uncertainty.components import LARGEST, P90, Rate, UncertaintyComponent

METRIC: Final = "total_time_s"


@dataclass(frozen=True, slots=True, kw_only=True)
class Hanging:
    """Relative change of the run's time with one uncertain rate at its P90 and at its P10.

    `fast` is the change with the faster rate (at most 0, nearly always), `slow` with the slower.
    """

    component: UncertaintyComponent
    fast: float
    slow: float

    @property
    def width(self) -> float:
        """How far the two lie apart."""
        return abs(self.slow - self.fast)


def hanging(prediction: Prediction) -> tuple[Hanging, ...]:
    """What is uncertain, what moves the run's time most first.

    Parameters
    ----------
    prediction : Prediction
        Of any job; nothing is simulated again, the closed form of intervals says what rates do.
    """
    inputs = simulation_input(prediction.scenario)
    uncertainties = _by_rate(uncertainty_components(inputs, prediction))
    if not uncertainties:
        return ()
    ends = [end for component in uncertainties for end in _ends(component)]
    speeds = {
        rate: np.array(
            [
                end if uncertainties[place // 2].rate is rate else 1.0
                for place, end in enumerate(ends)
            ]
        )
        for rate in dict.fromkeys(component.rate for component in uncertainties)
    }
    times = figures(inputs, prediction, speeds).get(METRIC)
    if times is None:
        return ()
    changes = np.asarray(times) / prediction.timing.total_time - 1.0
    found = [
        Hanging(component=component, fast=float(changes[2 * n]), slow=float(changes[2 * n + 1]))
        for n, component in enumerate(uncertainties)
    ]
    return tuple(sorted(found, key=lambda one: -one.width))


def _ends(component: UncertaintyComponent) -> tuple[float, float]:
    """How many times as fast the rate is in one case of ten, and how slow in another."""
    far = math.exp(P90 * min(LARGEST, component.log_sd))
    return far, 1.0 / far


def _by_rate(uncertainties: Sequence[UncertaintyComponent]) -> tuple[UncertaintyComponent, ...]:
    """One uncertainty a rate: the widest one's name with the deviation of all of them."""
    found = []
    for rate in Rate:
        own = [
            component
            for component in uncertainties
            if component.rate is rate and component.log_sd > 0.0
        ]
        if own:
            whole = math.sqrt(sum(component.log_sd**2 for component in own))
            found.append(replace(max(own, key=lambda component: component.log_sd), log_sd=whole))
    return tuple(found)
