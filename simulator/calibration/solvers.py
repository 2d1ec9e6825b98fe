"""Least squares within bounds: Broyden's method for few evaluations, robust least squares for fits.

Every evaluation is a simulation. Near the solution log errors are almost linear in the log
parameters (a step limited by a store takes half as long at twice the rate), so secants converge in
three or four steps. Far from it a parameter may have no effect (the store is fast enough); then it
is fitted only to errors that the other parameters leave: the errors at its bounds show whether it
can reduce them, and if not it keeps its start value.

A weak prior holds every parameter at its start: an error of `NOISE` counts as much as a deviation
of a quarter of the range between its bounds. Parameters that the observations determine are free
(the prior shifts them by less than the last digit of an error), others stay.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

import numpy as np
from scipy.optimize import least_squares

from simulator.calibration.fitting import LOG_STEP, Errors, Vector, box
from simulator.records import dataclass

Function: TypeAlias = Callable[[Vector], Vector]

MET_ERROR: Final = 0.002
"""Absolute log error at or below which an observation counts as met."""
NOISE: Final = 0.01
"""Log error of an observation that no parameter explains; scales the prior."""
MIN_SLOPE: Final = 0.01
"""Change of log error per log parameter below which a parameter does nothing here."""
MAX_UNEXPLAINED: Final = 0.03
"""Absolute log error above which parameters that had no effect at the start are tried too."""
MAX_STRIDE: Final = 3.0
"""Longest step in log parameter: a factor of 20."""
MIN_GAIN: Final = 0.005
"""Relative decrease of the cost below which no further step is taken with the same slopes."""
MAX_SECANT_STEPS: Final = 8
HALVINGS: Final = 2
SINGLE_PAIR: Final = 2
"""One parameter and one observation: the secant is all there is to know of the slope."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """Parameters in log space, the log errors there, and a mask of the parameters with an effect.

    `x`: logarithms of the parameters, shape (n,). `errors`: log errors, shape (m,). `moved`: for
    each parameter, true if it changes any error at the points where its slope was computed.
    """

    x: Vector
    errors: Vector
    moved: tuple[bool, ...]

    @property
    def worst(self) -> float:
        """Largest absolute log error."""
        return float(np.max(np.abs(self.errors), initial=0.0))


def solve(errors: Function, start: Vector, low: Vector, high: Vector) -> Point:
    """Minimize log errors between bounds with few evaluations (Broyden's method).

    Parameters
    ----------
    errors : callable
        Maps log parameters, shape (n,), to log errors, shape (m,).
    start, low, high : numpy.ndarray
        Initial log parameters and their lower and upper bounds, each of shape (n,).

    Returns
    -------
    Point
        The evaluated point with the least cost; parameters without effect keep their start value.
    """
    search = _Search(errors, start, low, high)
    at_start = errors(start)
    stay = Point(x=start.copy(), errors=at_start, moved=tuple(False for _ in start))
    if stay.worst <= MET_ERROR:
        return stay
    x, found, slopes = search.slopes(start.copy(), at_start, reach=False)
    moved = np.any(slopes, axis=0)
    if np.any(moved):
        x, found = search.descend(x, found, slopes)
    if not np.all(moved) and np.max(np.abs(found)) > MAX_UNEXPLAINED:
        kept = x, found, moved
        x, found, slopes = search.slopes(x, found, reach=True)
        moved = moved | np.any(slopes, axis=0)
        x, found = search.descend(x, found, slopes)
        if search.cost(x, found) >= search.cost(kept[0], kept[1]):
            x, found, moved = kept
    better = search.cost(x, found) < search.cost(start, at_start)
    return Point(x=x, errors=found, moved=tuple(map(bool, moved))) if better else stay


def within_reach(errors: Function, start: Vector, low: Vector, high: Vector) -> Vector:
    """Return an initial point at which every parameter that can reduce an error has an effect.

    It equals `start`, except for parameters that have no effect at `start` but have one nearer to a
    bound.
    """
    x, _, _ = _Search(errors, start, low, high).slopes(start.copy(), errors(start), reach=True)
    return x


def prior_weights(low: Vector, high: Vector) -> Vector:
    """Return for each parameter the weight of a log deviation from its start value, shape (n,).

    Weights are relative to log errors; `low` and `high` are the logs of the bounds.
    """
    weights: Vector = NOISE / np.maximum(0.25 * (high - low), LOG_STEP)
    return weights


class _Search:
    def __init__(self, errors: Function, start: Vector, low: Vector, high: Vector) -> None:
        self.errors, self.start, self.low, self.high = errors, start, low, high
        self.prior = prior_weights(low, high)

    def cost(self, x: Vector, found: Vector) -> float:
        """Return the sum of squared log errors and of squared deviations weighted by the prior."""
        return float(np.sum(found**2) + np.sum((self.prior * (x - self.start)) ** 2))

    def slopes(self, x: Vector, found: Vector, *, reach: bool) -> tuple[Vector, Vector, Vector]:
        """Return a point, the log errors there, and their slopes by parameter, shape (m, n).

        The point is `x`. With `reach`, a parameter that has no effect at `x` is first moved to
        where it has one, if there is such a value.
        """
        table = np.zeros((len(found), len(x)))
        for j in range(len(x)):
            column = self._slope(x, found, j)
            if np.max(np.abs(column)) < MIN_SLOPE:
                nothing = (float(x[j]), np.zeros(len(found)))
                place, column = self._reach(x, found, j) if reach else nothing
                if place != x[j]:
                    x = _with(x, j, place)
                    found = self.errors(x)
            table[:, j] = column
        return x, found, table

    def _slope(self, x: Vector, found: Vector, j: int) -> Vector:
        step = LOG_STEP if x[j] + LOG_STEP <= self.high[j] else -LOG_STEP
        return (self.errors(_with(x, j, x[j] + step)) - found) / step

    def _reach(self, x: Vector, found: Vector, j: int) -> tuple[float, Vector]:
        """Return the value of parameter `j` at which an error of `x` vanishes, and its slopes.

        An error qualifies if it changes sign between `x` and a bound of the parameter. Without such
        an error, return the current value and zero slopes: the parameter does not cause the errors.
        """
        for edge in (self.low[j], self.high[j]):
            there = _with(x, j, edge)
            errors = self.errors(there)
            crossed = (errors * found < 0.0) & (np.abs(found) > MET_ERROR)
            if not np.any(crossed):
                continue
            slope = self._slope(there, errors, j)
            i = int(np.argmax(np.where(crossed, np.abs(errors), 0.0)))
            if abs(slope[i]) >= MIN_SLOPE:
                place = float(np.clip(edge - errors[i] / slope[i], self.low[j], self.high[j]))
                return place, slope
        return float(x[j]), np.zeros(len(found))

    def descend(self, x: Vector, found: Vector, slopes: Vector) -> tuple[Vector, Vector]:
        """Take Broyden steps until the errors are met or stop falling; return point and errors.

        Slopes are recomputed by finite differences when a step gains too little.
        """
        is_fresh = True
        for _ in range(MAX_SECANT_STEPS):
            before = self.cost(x, found)
            there, errors, slopes = self._downhill(x, found, slopes)
            gained = before - self.cost(there, errors)
            x, found = there, errors
            if np.max(np.abs(found)) <= MET_ERROR:
                break
            if gained > MIN_GAIN * before:
                is_fresh = False
                continue
            if is_fresh or found.size + x.size <= SINGLE_PAIR:
                break
            slopes = np.column_stack([self._slope(x, found, j) for j in range(len(x))])
            is_fresh = True
        return x, found

    def _downhill(self, x: Vector, found: Vector, slopes: Vector) -> tuple[Vector, Vector, Vector]:
        """Take one step, halved until it lowers the cost; return point, errors and updated slopes.

        If no step lowers the cost, the point stays where it was.
        """
        step, before = self._step(x, found, slopes), self.cost(x, found)
        for _ in range(HALVINGS + 1):
            if np.max(np.abs(step)) < MET_ERROR:
                break
            errors = self.errors(x + step)
            miss = errors - found - slopes @ step
            slopes = slopes + np.outer(miss, step) / (step @ step)
            if self.cost(x + step, errors) < before:
                return x + step, errors, slopes
            step = step / 2.0
        return x, found, slopes

    def _step(self, x: Vector, found: Vector, slopes: Vector) -> Vector:
        """Return the least-squares step of the linear model, within `MAX_STRIDE` and the bounds."""
        table = np.vstack([slopes, np.diag(self.prior)])
        target = np.concatenate([-found, self.prior * (self.start - x)])
        step = np.linalg.lstsq(table, target, rcond=None)[0]
        step = step * min(1.0, MAX_STRIDE / max(float(np.max(np.abs(step))), MAX_STRIDE))
        inside: Vector = np.clip(x + step, self.low, self.high) - x
        return inside


def _with(x: Vector, j: int, value: float) -> Vector:
    there = x.copy()
    there[j] = value
    return there


SOFT_FROM: Final = 0.1
"""Log error beyond which the loss of an observation grows linearly."""
MAX_EVALUATIONS: Final = 12
PARAMETER_TOLERANCE: Final = 1e-4
"""Relative change of the log parameters below which the fit stops."""
COST_TOLERANCE: Final = 1e-4
"""Relative change of the cost below which the fit stops."""


def robust_fit(errors: Errors, begin: Vector) -> Vector:
    """Return the log parameters within their bounds that minimize the soft-L1 cost with the prior.

    Parameters
    ----------
    errors : Errors
        Log errors of the observations as a function of the log parameters.
    begin : numpy.ndarray
        Initial log parameters, near the solution, shape (n,).
    """
    start, low, high = box(errors.knobs)
    weights, m = prior_weights(low, high), len(errors.seen)

    def both(x: Vector) -> Vector:
        return np.concatenate([errors(x), weights * (x - start)])

    def slopes(x: Vector) -> Vector:
        return np.vstack([errors.jacobian(x), np.diag(weights)])

    solution = least_squares(
        both,
        np.clip(begin, low + PARAMETER_TOLERANCE, high - PARAMETER_TOLERANCE),
        jac=slopes,
        bounds=(low, high),
        loss=lambda squares: _loss(squares, m),
        f_scale=SOFT_FROM,
        xtol=PARAMETER_TOLERANCE,
        ftol=COST_TOLERANCE,
        gtol=None,
        max_nfev=MAX_EVALUATIONS,
    )
    return np.asarray(solution.x)


def _loss(squares: Vector, m: int) -> Vector:
    """Return the soft-L1 loss and its two derivatives, shape (3, m + n), for `scipy` least squares.

    Only the first `m` squared residuals (observations) are softened; those of the prior stay
    quadratic.
    """
    root, rest = np.sqrt(1.0 + squares[:m]), squares[m:]
    robust = np.array([2.0 * (root - 1.0), 1.0 / root, -0.5 / root**3])
    plain = np.array([rest, np.ones_like(rest), np.zeros_like(rest)])
    return np.hstack([robust, plain])
