"""Waiting for the slowest: what a barrier over many ranks costs when each is a little late."""

from __future__ import annotations

import numpy as np

from simulator.units import Real

EULER = 0.5772156649015329
AHEAD = 8
"""Terms by which the series is shifted to where it converges fast."""


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


def mean_delay(share: Real, batch: Real, batches: Real) -> Real:
    """Mean of a rank's random delay in a step.

    Parameters
    ----------
    share : float or array
        Mean delay over compute [1].
    batch : float or array
        Compute of a batch [s].
    batches : float or array
        Batches of a step [1].

    Returns
    -------
    float or array
        Delay [s].

    Notes
    -----
    ``share * batch * batches``.

    References
    ----------
    .. [1] Abramowitz, Stegun, "Handbook of Mathematical Functions", 1964, 6.3.18.

    Examples
    --------
    >>> mean_delay(0.25, 0.5, 4.0)
    0.5
    """
    return share * batch * batches


def wait_for_slow_device(compute: Real, slowest: Real, straggling: Real) -> Real:
    """How long devices wait in a step for the slowest of them.

    Parameters
    ----------
    compute : float or array
        Compute of a step on the mean device [s].
    slowest : float or array
        Time of the slowest device over that of the mean one [1].
    straggling : float or array
        How many times as little as figured was measured [1].

    Returns
    -------
    float or array
        Waiting [s].

    Notes
    -----
    ``compute * (slowest - 1) / straggling``.

    References
    ----------
    .. [1] Abramowitz, Stegun, "Handbook of Mathematical Functions", 1964, 6.3.18.

    Examples
    --------
    >>> wait_for_slow_device(2.0, 1.25, 1.0)
    0.5
    """
    return compute * (slowest - 1.0) / straggling
