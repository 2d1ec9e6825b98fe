"""Waiting for the slowest: what a barrier over many ranks costs when each is a little late."""

from __future__ import annotations

import numpy as np

from simulator.units import Real

EULER = 0.5772156649015329


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
    ``sum(1 / k for k in 1..number)``, from the asymptotic series of the digamma function three
    terms on, right to 1e-6.

    References
    ----------
    .. [1] Abramowitz, Stegun, "Handbook of Mathematical Functions", 1964, 6.3.18.

    Examples
    --------
    >>> round(float(harmonic(1)), 6), round(float(harmonic(4)), 6), round(float(harmonic(1000)), 4)
    (1.0, 2.083333, 7.4855)
    """
    on = number + 3.0
    series = np.log(on) + EULER + 1.0 / (2.0 * on) - 1.0 / (12.0 * on**2) + 1.0 / (120.0 * on**4)
    total: Real = series - 1.0 / on - 1.0 / (on - 1.0) - 1.0 / (on - 2.0)
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
    >>> float(wait_for_slowest(0.24, 1)), round(float(wait_for_slowest(0.24, 4)), 6)
    (0.0, 0.26)
    """
    wait: Real = np.maximum(0.0, delay * (harmonic(ranks) - 1.0))
    return wait
