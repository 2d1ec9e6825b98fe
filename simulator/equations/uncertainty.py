"""Uncertainty of a figure outside its measured range, and of a fit into a capacity."""

from __future__ import annotations

import math

import numpy as np

from simulator.units import (
    Bytes,
    Real,
)


def doublings_outside(value: Real, low: Real, high: Real) -> Real:
    """Return the factors of two by which a value lies outside a measured range.

    ``max(0, log2(low / value), log2(value / high))``: a power law with a wrong exponent errs by the
    same factor at every doubling, so the distance is one of logarithms. All are above 0.

    Source: JCGM 100:2008, "Evaluation of measurement data - Guide to the expression of uncertainty
    in measurement", https://www.bipm.org/en/committees/jc/jcgm/publications (a known law used
    beyond where it was checked; doublings are our choice).

    Measured on 1 to 8 devices, used on 32:

    >>> float(doublings_outside(32.0, 1.0, 8.0))
    2.0
    """
    below, above = np.log2(low / value), np.log2(value / high)
    outside: Real = np.maximum(0.0, np.maximum(below, above))
    return outside


def stretched_deviation(log_sd: Real, per_doubling: Real, doublings: Real) -> Real:
    """Return the log deviation of a figure that is used outside its measured range.

    ``sqrt(log_sd**2 + (per_doubling * doublings)**2)``: an unknown exponent of a power law, with
    deviation `per_doubling` in powers of two, added to the uncertainty of the figure itself.
    `per_doubling` is the log deviation that each doubling adds.

    Source: JCGM 100:2008, "Evaluation of measurement data - Guide to the expression of uncertainty
    in measurement", section 5.1, https://www.bipm.org/en/committees/jc/jcgm/publications

    3% where it was measured and 2% more for each of two doublings beyond:

    >>> float(stretched_deviation(0.03, 0.02, 2.0))
    0.05
    """
    wider: Real = np.hypot(log_sd, per_doubling * doublings)
    return wider


def room(needed: Bytes | Real, capacity: Bytes | Real, log_sd: Real) -> Real:
    """Return the standard deviations by which a capacity exceeds what is needed.

    ``ln(capacity / needed) / log_sd``: what is needed is lognormal, with the figure as its median.
    `log_sd` is the standard deviation of the logarithm of what is needed, above 0.

    Source: JCGM 100:2008, "Evaluation of measurement data - Guide to the expression of uncertainty
    in measurement", section 6.3, https://www.bipm.org/en/committees/jc/jcgm/publications

    72 GB of 80 GB, known to about a tenth:

    >>> round(float(room(72e9, 80e9, 0.1)), 2)
    1.05
    """
    deviations: Real = np.log(capacity / needed) / log_sd
    return deviations


def probability(deviations: Real) -> Real:
    """Return the probability that a normal variable is below this many deviations above its mean.

    ``(1 + erf(deviations / sqrt(2))) / 2``.

    Source: NIST Digital Library of Mathematical Functions, 7.2.1, https://dlmf.nist.gov/7.2

    >>> round(float(probability(1.05)), 3), float(probability(0.0))
    (0.853, 0.5)
    """
    error = np.vectorize(math.erf, otypes=[float])(np.asarray(deviations) / math.sqrt(2.0))
    share: Real = 0.5 * (1.0 + error[()])
    return share
