"""Least squares between bounds that outliers cannot pull far."""

from __future__ import annotations

from typing import Final

import numpy as np
from scipy.optimize import least_squares

from simulator.calibration.fitting import Errors, Vector, box
from simulator.calibration.secant import prior_weights

ROBUST: Final = 0.1
"""Log error from which on an observation's pull hardly grows."""
MOST_STEPS: Final = 12
CLOSE: Final = 1e-4
"""Change of a log parameter that no longer counts."""
LITTLE: Final = 1e-4
"""Change of the cost, as a share of it, that no longer counts."""


def robust_fit(errors: Errors, begin: Vector) -> Vector:
    """The point between the bounds with the least robust cost, the prior's included.

    Parameters
    ----------
    errors : Errors
        Log errors of the observations.
    begin : numpy.ndarray
        Where to begin, near the solution, shape (n,).
    """
    start, low, high = box(errors.knobs)
    weights, m = prior_weights(low, high), len(errors.seen)

    def both(x: Vector) -> Vector:
        return np.concatenate([errors(x), weights * (x - start)])

    def slopes(x: Vector) -> Vector:
        return np.vstack([errors.jacobian(x), np.diag(weights)])

    solution = least_squares(
        both,
        np.clip(begin, low + CLOSE, high - CLOSE),
        jac=slopes,
        bounds=(low, high),
        loss=lambda squares: _loss(squares, m),
        f_scale=ROBUST,
        xtol=CLOSE,
        ftol=LITTLE,
        gtol=None,
        max_nfev=MOST_STEPS,
    )
    return np.asarray(solution.x)


def _loss(squares: Vector, m: int) -> Vector:
    """The soft l1 loss of the first `m` squares and its derivatives; the others stay squares."""
    root, rest = np.sqrt(1.0 + squares[:m]), squares[m:]
    robust = np.array([2.0 * (root - 1.0), 1.0 / root, -0.5 / root**3])
    plain = np.array([rest, np.ones_like(rest), np.zeros_like(rest)])
    return np.hstack([robust, plain])
