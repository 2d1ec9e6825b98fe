"""What is not known of a figure: how deviations grow with the distance from what was measured."""

from __future__ import annotations

import math

import numpy as np

from simulator.units import Real


def doublings_outside(value: Real, low: Real, high: Real) -> Real:
    """How many factors of two a value lies outside of a range.

    Parameters
    ----------
    value : float or array
        Where something is used, above 0 [1].
    low : float or array
        Least value it was measured at, above 0 [1].
    high : float or array
        Largest value it was measured at [1].

    Returns
    -------
    float or array
        Doublings above `high` or halvings below `low`; 0 between them [1].

    Notes
    -----
    ``max(0, log2(low / value), log2(value / high))``: a power law with a wrong exponent errs by
    the same factor at every doubling, so the distance is one of logarithms.

    References
    ----------
    .. [1] JCGM 100:2008, "Evaluation of measurement data - Guide to the expression of uncertainty
       in measurement", https://www.bipm.org/en/committees/jc/jcgm/publications
       (a known law used beyond where it was checked; doublings are our choice).

    Examples
    --------
    Measured on 1 to 8 devices, used on 32:

    >>> float(doublings_outside(32.0, 1.0, 8.0))
    2.0
    """
    below, above = np.log2(low / value), np.log2(value / high)
    outside: Real = np.maximum(0.0, np.maximum(below, above))
    return outside


def stretched_deviation(log_sd: Real, per_doubling: Real, doublings: Real) -> Real:
    """Deviation of a figure that is used outside of the range it was measured in.

    Parameters
    ----------
    log_sd : float or array
        Standard deviation of its logarithm inside the range [1].
    per_doubling : float or array
        What each doubling beyond the range adds, as a log deviation [1].
    doublings : float or array
        Distance from the range [1].

    Returns
    -------
    float or array
        Standard deviation of the logarithm there [1].

    Notes
    -----
    ``sqrt(log_sd**2 + (per_doubling * doublings)**2)``: an unknown exponent of a power law, with
    deviation `per_doubling` in powers of two, beside the uncertainty about the figure itself.

    References
    ----------
    .. [1] JCGM 100:2008, "Evaluation of measurement data - Guide to the expression of uncertainty
       in measurement", section 5.1, https://www.bipm.org/en/committees/jc/jcgm/publications

    Examples
    --------
    3% where it was measured and 2% more for each of two doublings beyond:

    >>> float(stretched_deviation(0.03, 0.02, 2.0))
    0.05
    """
    wider: Real = np.hypot(log_sd, per_doubling * doublings)
    return wider


def room(needed: Real, capacity: Real, log_sd: Real) -> Real:
    """How many deviations a capacity lies above what is needed.

    Parameters
    ----------
    needed : float or array
        What is needed, above 0 [B].
    capacity : float or array
        What is there [B].
    log_sd : float or array
        Standard deviation of the logarithm of what is needed, above 0 [1].

    Returns
    -------
    float or array
        Standard deviations, negative where it is short [1].

    Notes
    -----
    ``ln(capacity / needed) / log_sd``: what is needed is lognormal, with the figure as its median.

    References
    ----------
    .. [1] JCGM 100:2008, "Evaluation of measurement data - Guide to the expression of uncertainty
       in measurement", section 6.3, https://www.bipm.org/en/committees/jc/jcgm/publications

    Examples
    --------
    72 GB of 80 GB, known to about a tenth:

    >>> round(float(room(72e9, 80e9, 0.1)), 2)
    1.05
    """
    deviations: Real = np.log(capacity / needed) / log_sd
    return deviations


def probability(deviations: Real) -> Real:
    """The probability that a normal variable lies less than so many deviations above its mean.

    Parameters
    ----------
    deviations : float or array
        Standard deviations [1].

    Returns
    -------
    float or array
        Between 0 and 1 [1].

    Notes
    -----
    ``(1 + erf(deviations / sqrt(2))) / 2``.

    References
    ----------
    .. [1] NIST Digital Library of Mathematical Functions, 7.2.1, https://dlmf.nist.gov/7.2

    Examples
    --------
    >>> round(float(probability(1.05)), 3), float(probability(0.0))
    (0.853, 0.5)
    """
    error = np.vectorize(math.erf, otypes=[float])(np.asarray(deviations) / math.sqrt(2.0))
    share: Real = 0.5 * (1.0 + error[()])
    return share
