"""Slowest of many devices: expected factor of its time over that of the mean device.

A device has a factor of its time that is constant over a run, and one of each step; both are 1 in
the mean. A step waits for the largest product of the two among all devices. In any one step the
products are independent draws of one distribution, so the mean over steps and runs is that of the
largest of them: it is computed from order statistics, at a cost that does not grow with the number
of devices.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from simulator.equations.stragglers import harmonic
from simulator.schema.fields import Shape, Spread

MAX_SCORE: Final = 9.0
"""Normal score beyond which a factor is too rare to matter, among any number of devices."""
MIN_FACTOR: Final = 1e-7
"""Factor, as a share of the largest, that is as good as none."""


@cache
def slowest_factor(device: Spread, step: Spread, devices: int) -> float:
    """Return the mean of the largest factor of time among devices.

    Parameters
    ----------
    device, step : Spread
        How a device's factor differs from device to device, and from step to step.
    devices : int
        How many wait for each other, at least 1.

    Returns
    -------
    float
        Time of the slowest over that of the mean device [1], at least 1.

    Examples
    --------
    >>> two = Spread(shape=Shape.UNIFORM, relative_deviation=3**-0.5)
    >>> round(slowest_factor(two, Spread(), 2), 6)
    1.333333
    """
    varying = [spread for spread in (device, step) if spread.varies]
    if devices == 1 or not varying:
        return 1.0
    if len(varying) == 1:
        return _largest(varying[0], devices)
    if device.shape is step.shape is Shape.LOGNORMAL:
        return _largest(_together(device, step), devices)
    less, more = sorted(varying, key=lambda spread: spread.deviation)
    first, second = _quantile(less), _quantile(more)
    ends = np.array([-MAX_SCORE, MAX_SCORE])
    least, most = first(ends) * second(ends)
    within = float(max(least, most * MIN_FACTOR)), float(most)
    return expected_largest_product(first, _share_below(more), devices, within)


def _largest(spread: Spread, devices: int) -> float:
    if spread.shape is Shape.EXPONENTIAL:
        return float(harmonic(devices))
    return expected_largest(_quantile(spread), devices)


def _together(one: Spread, other: Spread) -> Spread:
    """Return the distribution of the product of two lognormal factors."""
    square = (1.0 + one.deviation**2) * (1.0 + other.deviation**2)
    return Spread(shape=Shape.LOGNORMAL, relative_deviation=float(np.sqrt(square - 1.0)))


def _quantile(spread: Spread) -> Curve:
    """Return the quantile function of factors, at normal scores."""
    deviation = spread.deviation
    curves: dict[Shape, Callable[[Values], Values]] = {
        Shape.LOGNORMAL: lambda score: _lognormal(score, deviation),
        Shape.UNIFORM: lambda score: 1.0 + deviation * np.sqrt(3.0) * (1.0 - 2.0 * _above(score)),
        Shape.EXPONENTIAL: lambda score: -np.log(_above(score)),
        Shape.GAMMA: lambda score: _gamma(score, deviation),
        Shape.CONSTANT: np.ones_like,
    }
    return curves[spread.shape]


def _share_below(spread: Spread) -> Curve:
    """Return the distribution function of factors."""
    from scipy.special import gammainc, ndtr  # noqa: PLC0415 - slow to load, and rarely needed

    deviation = spread.deviation
    sigma, half = _sigma(deviation), deviation * np.sqrt(3.0)
    curves: dict[Shape, Callable[[Values], Values]] = {
        Shape.LOGNORMAL: lambda amount: ndtr(np.log(amount) / sigma + sigma / 2.0),
        Shape.UNIFORM: lambda amount: np.clip((amount - 1.0 + half) / (2.0 * half), 0.0, 1.0),
        Shape.EXPONENTIAL: lambda amount: -np.expm1(-amount),
        Shape.GAMMA: lambda amount: gammainc(deviation**-2.0, amount / deviation**2.0),
    }
    return curves[spread.shape]


def _sigma(deviation: float) -> float:
    """Return the deviation of the logarithm of lognormal factors."""
    return float(np.sqrt(np.log1p(deviation**2)))


def _lognormal(score: Values, deviation: float) -> Values:
    sigma = _sigma(deviation)
    factor: Values = np.exp(sigma * score - sigma**2 / 2.0)
    return factor


def _gamma(score: Values, deviation: float) -> Values:
    from scipy.special import gammainccinv, gammaincinv  # noqa: PLC0415 - slow to load, and rarely needed

    shape, above = deviation**-2.0, _above(score)
    # Each from the side where the share is small, as 1 less a small number is 1.
    low, high = gammaincinv(shape, _above(-score)), gammainccinv(shape, above)
    factor: Values = np.where(above > 1.0 / 2.0, low, high) * deviation**2.0
    return factor


def _above(score: Values) -> Values:
    """Return the share of a normal distribution above scores."""
    from scipy.special import ndtr  # noqa: PLC0415 - slow to load, and rarely needed

    share: Values = ndtr(-score)
    return share


Values: TypeAlias = NDArray[np.float64]
Curve: TypeAlias = Callable[[Values], Values]

MAX_SCORE_OF_DRAWS: Final = 16.0
"""Normal score that nothing exceeds in any number of draws."""
SCORE_STEP: Final = 0.02
"""Distance of normal scores at which quantiles are added up: less than the largest varies."""
COARSE_SCORE_STEP: Final = 0.1
"""Distance of normal scores of the first of two factors; sums over a bell converge fast."""
POINTS: Final = 1600
"""Points at which the largest of many products is looked at."""


def expected_largest(quantile: Curve, draws: float) -> float:
    """Return the mean of the largest of independent draws of one distribution.

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
    scores, chances = _scores(SCORE_STEP, draws)
    return float(np.sum(quantile(scores) * chances))


def expected_largest_product(
    first: Curve, share_below: Curve, draws: float, within: tuple[float, float]
) -> float:
    """Return the mean of the largest product of two positive factors.

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
    amounts = np.geomspace(*within, POINTS)
    below = np.zeros(POINTS)
    for score, chance in zip(*_scores(COARSE_SCORE_STEP, 1.0), strict=True):
        factor = first(score)
        below = below + chance * (share_below(amounts / factor) if factor > 0.0 else 1.0)
    above = 1.0 - np.minimum(1.0, below) ** draws
    return float(amounts[0] + np.sum((above[1:] + above[:-1]) / 2.0 * np.diff(amounts)))


@cache
def _scores(apart: float, draws: float) -> tuple[Values, Values]:
    """Return normal scores, and the chance that the highest of several is each of them."""
    scores = np.arange(-MAX_SCORE_OF_DRAWS, MAX_SCORE_OF_DRAWS, apart)
    less = [math.log(math.erfc(-score / math.sqrt(2.0)) / 2.0) for score in scores]
    density = -(scores**2) / 2.0 - math.log(2.0 * math.pi) / 2.0
    chances = draws * np.exp(density + (draws - 1.0) * np.array(less))
    return scores, chances * apart
