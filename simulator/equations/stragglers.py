"""Waiting for the slowest of many ranks at a barrier."""

from __future__ import annotations

import numpy as np

from simulator.units import (
    Real,
    Seconds,
    at_least,
    plain,
)

EULER = 0.5772156649015329
AHEAD = 8
"""Terms by which the series is shifted to where it converges fast."""


def harmonic(number: Real) -> Real:
    """Return the harmonic number, between whole numbers too.

    ``sum(1 / k for k in 1..number)``, from the asymptotic series of the digamma function eight
    terms on, right to 1e-11.

    Source: Abramowitz, Stegun, "Handbook of Mathematical Functions", 1964, 6.3.18.

    >>> round(float(harmonic(1)), 6), round(float(harmonic(4)), 6), round(float(harmonic(1000)), 4)
    (1.0, 2.083333, 7.4855)
    """
    on = number + AHEAD
    series = np.log(on) + EULER + 1.0 / (2.0 * on) - 1.0 / (12.0 * on**2) + 1.0 / (120.0 * on**4)
    series = series - 1.0 / (252.0 * on**6)
    total: Real = series - sum(1.0 / (number + term) for term in range(1, AHEAD + 1))
    return total


def wait_for_slowest(delay: Seconds | Real, ranks: Real) -> Seconds | Real:
    """Return the mean time that a rank waits at a barrier for randomly delayed ranks.

    ``delay * (harmonic(ranks) - 1)``: the largest of n exponential delays has the mean ``delay *
    harmonic(n)``. It grows with the logarithm of the ranks. `delay` is the mean of independent,
    exponential delays.

    Source: Renyi, "On the theory of order statistics", Acta Math. Hung. 4 (1953) 191-231,
    https://doi.org/10.1007/BF02127580

    >>> round(float(wait_for_slowest(0.24, 1)), 9), round(float(wait_for_slowest(0.24, 4)), 6)
    (0.0, 0.26)
    """
    wait: Real = np.maximum(0.0, delay * (harmonic(ranks) - 1.0))
    return wait


def left_to_wait(wait: Seconds | Real, lag: Seconds | Real) -> Seconds | Real:
    """Return the additional wait for slow devices after waiting for the latest rank.

    ``sqrt(wait ** 2 + lag ** 2) - lag``. The rank that is late is rarely the one whose device is
    slow: variances of independent causes add up, not their largest values. Exact where both are
    normal, and where one of them is zero. `wait` is how much longer than the mean the slowest
    device takes, `lag` how late the latest rank is for other reasons.

    Source: David, Nagaraja, "Order Statistics", 3rd ed., Wiley, 2003, 3.1: the largest of normal
    draws is a multiple of their deviation.

    >>> float(left_to_wait(3.0, 0.0)), float(left_to_wait(3.0, 4.0))
    (3.0, 1.0)
    """
    left: Real = np.hypot(wait, lag) - lag
    return left


def mean_delay(share: Real, batch: Seconds | Real, batches: Real) -> Seconds | Real:
    """Return the mean random delay of a rank in a step.

    ``share * batch * batches``. `share` is the delay over compute, `batch` the compute of one
    batch.

    Source: Renyi, "On the theory of order statistics", Acta Math. Hung. 4 (1953) 191-231,
    https://doi.org/10.1007/BF02127580

    >>> mean_delay(0.25, 0.5, 4.0)
    0.5
    """
    return share * batch * batches


def wait_for_slow_device(
    compute: Seconds | Real, slowest: Real, straggling: Real
) -> Seconds | Real:
    """Return the time that devices wait in a step for the slowest of them.

    ``compute * (slowest - 1) / straggling``. `slowest` is its time over the mean; `straggling` is
    the calibration, the predicted over the measured wait.

    Source: David, Nagaraja, "Order Statistics", 3rd ed., Wiley, 2003, 3.1

    >>> wait_for_slow_device(2.0, 1.25, 1.0)
    0.5
    """
    return compute * (slowest - 1.0) / straggling


def expected_slowest(ranks: Real) -> Real:
    """Return about how many standard deviations the slowest of `ranks` trails the mean.

    ``.7 sqrt(2 ln n)``: near the mean of the maximum of n normal draws up to some tens, to whose
    growth ``sqrt(2 ln n)`` belongs.

    Source: Cramer, "Mathematical Methods of Statistics", 1946, section 28.6, ISBN 0-691-00547-8

    >>> float(expected_slowest(1.0)), round(float(expected_slowest(8.0)), 2)
    (0.0, 1.43)
    """
    deviations: Real = 0.70 * plain(np.sqrt(at_least(0.0, 2.0 * np.log(ranks))))
    return deviations
