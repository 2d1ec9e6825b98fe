"""The most likely figures, given what is expected of them and measured runs, and how sure they are.

Each run counts with its log error over its `DEVIATIONS`, errors far beyond it less than squared. A
family of n runs counts as `EACH` times the square root of n, at most n: runs of one series are
wrong together. What is expected of a figure counts as one more observation of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares

Vector = NDArray[np.float64]
Errors = Callable[[Vector], Vector]
"""Log errors of all runs at deviations of the figures from what is expected, in spreads."""

DEVIATIONS: Final = {"step": 0.02, "memory": 0.06}
"""Log error of a step, and of memory, that is taken as none: repeats of a step differ as much; what
a process holds in addition to the model is known to about 6%."""
EACH: Final = 5.0
MOST: Final = 60
"""Steps after which a search ends."""
STEP: Final = 1e-4
"""Change of a deviation by which slopes are taken."""


@dataclass(frozen=True, kw_only=True)
class Posterior:
    """Deviations of the figures from what is expected, in spreads, and their covariance.

    `slopes` are those of the runs' residuals, rows by figures.
    """

    x: Vector
    covariance: Vector
    slopes: Vector
    cost: float
    evaluations: int

    @property
    def errors(self) -> Vector:
        """Standard error of each, in spreads: 1 where the runs say nothing."""
        return np.asarray(np.sqrt(np.diag(self.covariance)))

    @property
    def correlation(self) -> Vector:
        """Between figures."""
        sd = self.errors
        return np.asarray(self.covariance / np.outer(sd, sd))


def weights(families: Iterable[str]) -> Vector:
    """Weight of each run's residual: the root of what its family counts over its number of runs."""
    names = list(families)
    count = Counter(names)
    return np.array([min(1.0, EACH * count[name] ** -0.5) ** 0.5 for name in names])


def fit(  # noqa: PLR0913, PLR0917 - a search, and where it goes
    errors: Errors,
    weight: Vector,
    start: Vector,
    bounds: tuple[Vector, Vector],
    deviation: float,
    most: int = MOST,
) -> Posterior:
    """The most likely deviations within bounds.

    Parameters
    ----------
    errors : callable
        Log errors of the runs.
    weight : array
        Of each run's residual.
    start : array
        Deviations to begin at.
    bounds : tuple of array
        The least and greatest ones.
    deviation : float
        Log error that is taken as none.
    most : int
        Steps after which to stop.
    """

    def data(x: Vector) -> Vector:
        z = errors(x) / deviation
        # half of the square near zero, the absolute value far away
        soft = np.sign(z) * np.sqrt(2.0 * (np.sqrt(1.0 + z**2) - 1.0))
        return np.asarray(weight * soft)

    def residuals(x: Vector) -> Vector:
        return np.concatenate([data(x), x])

    def slopes(x: Vector) -> Vector:
        return np.concatenate([_slopes(data, x, bounds), np.eye(len(x))])

    low, high = bounds
    inside = np.clip(start, low + 1e-9, high - 1e-9)
    best = least_squares(
        residuals, inside, jac=slopes, bounds=bounds, max_nfev=most, xtol=1e-7, ftol=1e-7, gtol=1e-7
    )
    jacobian = slopes(best.x)
    return Posterior(
        x=best.x,
        covariance=np.asarray(np.linalg.inv(jacobian.T @ jacobian), dtype=np.float64),
        slopes=jacobian[: -len(best.x)],
        cost=float(best.cost),
        evaluations=int(best.nfev),
    )


def _slopes(data: Errors, x: Vector, bounds: tuple[Vector, Vector]) -> Vector:
    """Slopes of residuals by differences, within bounds."""
    low, high = bounds
    columns = []
    for i in range(len(x)):
        there, back = x.copy(), x.copy()
        there[i], back[i] = min(x[i] + STEP, high[i]), max(x[i] - STEP, low[i])
        columns.append((data(there) - data(back)) / (there[i] - back[i]))
    return np.stack(columns, axis=1)
