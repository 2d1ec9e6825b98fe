"""What is not known of a figure: how deviations grow with the distance from what was measured."""

from __future__ import annotations

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
    deviation `per_doubling` in powers of two, beside the doubt about the figure itself.

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
