"""Means of the largest of many independent draws, at a cost that does not grow with how many."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

Values: TypeAlias = NDArray[np.float64]
Curve: TypeAlias = Callable[[Values], Values]

HIGHEST: Final = 16.0
"""Normal score that nothing exceeds in any number of draws."""
FINE: Final = 0.02
"""Distance of normal scores at which quantiles are added up: less than the largest varies."""
COARSE: Final = 0.1
"""Distance of normal scores of the first of two factors; sums over a bell converge fast."""
AMOUNTS: Final = 1600
"""Points at which the largest of many products is looked at."""


def expected_largest(quantile: Curve, draws: float) -> float:
    """Mean of the largest of several independent draws of one distribution.

    Parameters
    ----------
    quantile : callable
        What lies as far up in the distribution as these normal scores in the normal one.
    draws : float
        How many are drawn [1], at least 1.

    Returns
    -------
    float
        The mean of the largest of them, in the unit of the quantiles.

    Notes
    -----
    ``integral of quantile(z) * d(Phi(z) ** draws)``, by the trapezoidal rule: for integrands that
    vanish smoothly at both ends it is right to many digits. It costs the same for any number.

    References
    ----------
    .. [1] David, Nagaraja, "Order Statistics", 3rd ed., Wiley, 2003, 3.1.

    Examples
    --------
    Standard normal draws, 1.5388 and 2.5076 in tables:

    >>> [round(expected_largest(lambda score: score, n), 4) for n in (1, 10, 100)]
    [0.0, 1.5388, 2.5076]
    """
    scores, chances = _scores(FINE, draws)
    return float(np.sum(quantile(scores) * chances))


def expected_largest_product(
    first: Curve, share_below: Curve, draws: float, within: tuple[float, float]
) -> float:
    """Mean of the largest of several products of two positive factors.

    Parameters
    ----------
    first : callable
        Quantiles of the first factor, at normal scores.
    share_below : callable
        Share of the second factor's distribution that lies below amounts [1].
    draws : float
        How many pairs are drawn, all independent [1].
    within : pair of float
        Amounts that products lie between but for a chance too small to matter, above 0.

    Returns
    -------
    float
        The mean of the largest product.

    Notes
    -----
    ``integral of 1 - P(x) ** draws`` over amounts x, where ``P(x)`` is the mean of
    ``share_below(x / first)``. Both sums are trapezoidal; the first factor ought to vary less
    than the second, so that the mean is over a smooth curve.

    References
    ----------
    .. [1] David, Nagaraja, "Order Statistics", 3rd ed., Wiley, 2003, 3.1.

    Examples
    --------
    Where the first factor is 1, what is left is the largest of the second, exponential ones:

    >>> def below(amount):
    ...     return -np.expm1(-amount)
    >>> round(expected_largest_product(np.ones_like, below, 4, (1e-6, 60.0)), 3)
    2.083
    """
    amounts = np.geomspace(*within, AMOUNTS)
    below = np.zeros(AMOUNTS)
    for score, chance in zip(*_scores(COARSE, 1.0), strict=True):
        factor = first(score)
        below = below + chance * (share_below(amounts / factor) if factor > 0.0 else 1.0)
    above = 1.0 - np.minimum(1.0, below) ** draws
    return float(amounts[0] + np.sum((above[1:] + above[:-1]) / 2.0 * np.diff(amounts)))


@cache
def _scores(apart: float, draws: float) -> tuple[Values, Values]:
    """Normal scores, and the chance that the highest of several is each of them."""
    scores = np.arange(-HIGHEST, HIGHEST, apart)
    less = [math.log(math.erfc(-score / math.sqrt(2.0)) / 2.0) for score in scores]
    density = -(scores**2) / 2.0 - math.log(2.0 * math.pi) / 2.0
    chances = draws * np.exp(density + (draws - 1.0) * np.array(less))
    return scores, chances * apart
