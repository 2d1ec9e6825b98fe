"""How well a fit knows its parameters: intervals from the Jacobian at the solution.

Figures of one configuration err alike (what the model lacks, it lacks for all of them), so those
of one configuration together count as one observation: the covariance of plain least squares is
widened by observations per configuration, and Student's t has as many degrees of freedom as there
are configurations beyond the parameters.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from scipy.special import stdtrit

from simulator.calibration.fitting import Knob, Vector, box
from simulator.calibration.secant import prior_weights
from simulator.uncertainty.measurement import Parameter

UPPER: Final = 0.9
"""Quantile at the upper end of the 80% interval."""
EDGE: Final = 1e-3
"""Distance from a bound, as a share of the range, within which a value stands at it."""
SEEN: Final = 1e-3
"""Mean change of the log errors per log parameter below which rows say nothing about it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """One fitted parameter; texts are written as its start is.

    `p10` and `p90` are None where the rows say too little: too few configurations, no effect, or
    a value at a bound (`at_bound` is ``low`` or ``high``). What is not `identified` has no effect
    on the rows and stays at its start.
    """

    parameter: Parameter
    value: str
    log_sd: float | None = None
    p10: str | None = None
    p90: str | None = None
    at_bound: str = ""
    identified: bool = True


def estimates(
    knobs: tuple[Knob, ...], x: Vector, errors: Vector, jacobian: Vector, configurations: int
) -> tuple[tuple[Estimate, ...], Vector]:
    """Values and intervals at a solution.

    Parameters
    ----------
    knobs : tuple of Knob
        The parameters, n of them.
    x : numpy.ndarray
        The solution, shape (n,).
    errors, jacobian : numpy.ndarray
        Log errors there, shape (m,), and their change per log parameter, shape (m, n).
    configurations : int
        Different ones among the rows.

    Returns
    -------
    tuple of Estimate
        One for each knob.
    numpy.ndarray
        Covariance of the logarithms, shape (n, n); zero for what has no interval.
    """
    edges = [_edge(knob, float(value)) for knob, value in zip(knobs, x, strict=True)]
    effects = np.sqrt(np.mean(jacobian**2, axis=0))
    free = [j for j in range(len(knobs)) if not edges[j] and effects[j] >= SEEN]
    covariance = _covariance(knobs, errors, jacobian, free, configurations)
    freedom = configurations - len(free)
    reach = float(stdtrit(freedom, UPPER)) if freedom > 0 else 0.0
    found = []
    for j, knob in enumerate(knobs):
        known = j in free and freedom > 0
        deviation = float(np.sqrt(covariance[j, j]))
        found.append(
            Estimate(
                parameter=knob.parameter,
                value=knob.text(float(x[j])),
                log_sd=deviation if known else None,
                p10=knob.text(float(x[j]) - reach * deviation) if known else None,
                p90=knob.text(float(x[j]) + reach * deviation) if known else None,
                at_bound=edges[j],
                identified=bool(effects[j] >= SEEN),
            )
        )
    return tuple(found), covariance


def _edge(knob: Knob, x: float) -> str:
    near = EDGE * (knob.high - knob.low)
    if x - knob.low < near:
        return "low"
    return "high" if knob.high - x < near else ""


def _covariance(
    knobs: tuple[Knob, ...], errors: Vector, jacobian: Vector, free: list[int], configurations: int
) -> Vector:
    """Of the logarithms; the prior's part keeps it finite."""
    size, freedom = len(knobs), configurations - len(free)
    whole = np.zeros((size, size))
    if not free or freedom <= 0:
        return whole
    _, low, high = box(knobs)
    # One observation a configuration: their mean square error, with its degrees of freedom.
    variance = float(np.mean(errors**2)) * configurations / freedom
    slopes, prior = jacobian[:, free], prior_weights(low, high)[free]
    per_observation = configurations / len(errors)
    information = per_observation * slopes.T @ slopes + np.diag(prior**2)
    whole[np.ix_(free, free)] = variance * np.linalg.inv(information)
    return whole
