"""Waiting for the slowest: what a barrier over many ranks costs when each is a little late."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from simulator.units import Real

Values: TypeAlias = NDArray[np.float64]
Curve: TypeAlias = Callable[[Values], Values]

EULER = 0.5772156649015329
AHEAD = 8
"""Terms by which the series is shifted to where it converges fast."""
HIGHEST: Final = 16.0
"""Normal score that nothing exceeds in any number of draws."""
FINE: Final = 0.02
"""Distance of normal scores at which quantiles are added up: less than the largest varies."""
COARSE: Final = 0.1
"""Distance of normal scores of the first of two factors; sums over a bell converge fast."""
AMOUNTS: Final = 1600
"""Points at which the largest of many products is looked at."""


def harmonic(number: Real) -> Real:
    """Harmonic number, between whole numbers too.

    Parameters
    ----------
    number : float or array
        How many terms [1], at least 1.

    Returns
    -------
    float or array
        The sum of the terms [1].

    Notes
    -----
    ``sum(1 / k for k in 1..number)``, from the asymptotic series of the digamma function eight
    terms on, right to 1e-11.

    References
    ----------
    .. [1] Abramowitz, Stegun, "Handbook of Mathematical Functions", 1964, 6.3.18.

    Examples
    --------
    >>> round(float(harmonic(1)), 6), round(float(harmonic(4)), 6), round(float(harmonic(1000)), 4)
    (1.0, 2.083333, 7.4855)
    """
    on = number + AHEAD
    series = np.log(on) + EULER + 1.0 / (2.0 * on) - 1.0 / (12.0 * on**2) + 1.0 / (120.0 * on**4)
    series = series - 1.0 / (252.0 * on**6)
    total: Real = series - sum(1.0 / (number + term) for term in range(1, AHEAD + 1))
    return total


def wait_for_slowest(delay: Real, ranks: Real) -> Real:
    """Mean time the average rank waits at a barrier when delays are random.

    Parameters
    ----------
    delay : float or array
        Mean of each rank's own delay, exponential and independent [s].
    ranks : float or array
        Ranks that meet [1].

    Returns
    -------
    float or array
        How much later the latest of them comes than the average one [s].

    Notes
    -----
    ``delay * (harmonic(ranks) - 1)``: the largest of n exponential delays has the mean
    ``delay * harmonic(n)``. It grows with the logarithm of the ranks.

    References
    ----------
    .. [1] Renyi, "On the theory of order statistics", Acta Math. Hung. 4 (1953) 191-231,
       https://doi.org/10.1007/BF02127580

    Examples
    --------
    >>> round(float(wait_for_slowest(0.24, 1)), 9), round(float(wait_for_slowest(0.24, 4)), 6)
    (0.0, 0.26)
    """
    wait: Real = np.maximum(0.0, delay * (harmonic(ranks) - 1.0))
    return wait


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


def left_to_wait(wait: Real, lag: Real) -> Real:
    """How much longer ranks wait for slow devices after waiting for the latest rank.

    Parameters
    ----------
    wait : float or array
        How much longer than the mean the slowest device takes [s].
    lag : float or array
        How much later than on average the latest rank came for other reasons [s].

    Returns
    -------
    float or array
        What waiting for slow devices adds [s].

    Notes
    -----
    ``sqrt(wait ** 2 + lag ** 2) - lag``. The rank that is late is rarely the one whose device is
    slow: variances of independent causes add up, not their largest values. Exact where both are
    normal, and where one of them is zero.

    References
    ----------
    .. [1] David, Nagaraja, "Order Statistics", 3rd ed., Wiley, 2003, 3.1: the largest of normal
       draws is a multiple of their deviation.

    Examples
    --------
    >>> float(left_to_wait(3.0, 0.0)), float(left_to_wait(3.0, 4.0))
    (3.0, 1.0)
    """
    left: Real = np.hypot(wait, lag) - lag
    return left
