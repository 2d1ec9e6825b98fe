"""How much longer than the mean device the slowest of a job takes, by the spreads of their speeds.

A device has a factor of its time that stays as it is over a run, and one of each step; both are 1
in the mean. A step waits for the largest product of the two among all devices. Both are drawn for
each device, so in any one step the products are independent draws of one distribution, and the mean
over steps and runs is that of the largest of so many. Nothing is drawn, no device is gone through.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Final

import numpy as np

from simulator.equations.stragglers import harmonic
from simulator.pipeline.order_statistics import (
    Curve,
    Values,
    expected_largest,
    expected_largest_product,
)
from simulator.schema.workload.distribution import Shape, Spread

FAR: Final = 9.0
"""Normal score beyond which a factor is too rare to matter, among any number of devices."""
LEAST: Final = 1e-7
"""Factor, as a share of the largest, that is as good as none."""


@cache
def slowest_factor(device: Spread, step: Spread, devices: int) -> float:
    """Mean of the largest factor of time among devices.

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
    ends = np.array([-FAR, FAR])
    least, most = first(ends) * second(ends)
    within = float(max(least, most * LEAST)), float(most)
    return expected_largest_product(first, _share_below(more), devices, within)


def _largest(spread: Spread, devices: int) -> float:
    if spread.shape is Shape.EXPONENTIAL:
        return float(harmonic(devices))
    return expected_largest(_quantile(spread), devices)


def _together(one: Spread, other: Spread) -> Spread:
    """The product of two lognormal factors is one."""
    square = (1.0 + one.deviation**2) * (1.0 + other.deviation**2)
    return Spread(shape=Shape.LOGNORMAL, relative_deviation=float(np.sqrt(square - 1.0)))


def _quantile(spread: Spread) -> Curve:
    """Factors as far up in their distribution as normal scores are in theirs."""
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
    """Share of the factors that are below amounts."""
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
    """Deviation of the logarithm of lognormal factors."""
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
    """Share of a normal distribution above scores."""
    from scipy.special import ndtr  # noqa: PLC0415 - slow to load, and rarely needed

    share: Values = ndtr(-score)
    return share
