"""How often a job on many machines is interrupted, and how long spells of capacity last."""

from __future__ import annotations

import numpy as np

from simulator.units import Real


def interruption_rate(machines: Real, machine_rate: Real, job_rate: Real) -> Real:
    """Rate at which a job that needs all its machines is interrupted.

    Parameters
    ----------
    machines : float or array
        Machines the job runs on [1].
    machine_rate : float or array
        Failures of one machine [/s].
    job_rate : float or array
        Failures that belong to the job as a whole, such as software and network [/s].

    Returns
    -------
    float or array
        Interruptions of the job [/s].

    Notes
    -----
    ``machines * machine_rate + job_rate``: the first of independent exponential times.

    References
    ----------
    .. [1] Kokolis et al., "Revisiting Reliability in Large-Scale Machine Learning Research
       Clusters", 2024, https://arxiv.org/abs/2410.21680 (6.5 failures per 1,000 node-days; 7.9 h
       between failures measured at 1,024 GPUs, which a rate per machine alone does not give).

    Examples
    --------
    128 machines at 6.5 failures per 1,000 days of one, and one failure of the job in 10.9 h:

    >>> rate = interruption_rate(128, 6.5e-3 / 86400, 1 / 10.9 / 3600)
    >>> f"{1 / rate / 3600:.1f} h"
    '7.9 h'
    """
    return machines * machine_rate + job_rate


def short_branch(variation: Real) -> Real:
    """Probability of the short branch of a hyperexponential time with balanced means.

    Parameters
    ----------
    variation : float or array
        Standard deviation of the times over their mean, at least 1 [1].

    Returns
    -------
    float or array
        Probability that a time is of the short branch, whose mean is ``mean / (2 p)``; the long
        one's is ``mean / (2 (1 - p))`` [1].

    Notes
    -----
    ``p = (1 + sqrt((c^2 - 1) / (c^2 + 1))) / 2`` with ``c`` the variation; below 1 as at 1.

    References
    ----------
    .. [1] H. C. Tijms, "A First Course in Stochastic Models", Wiley 2003, appendix B,
       ISBN 0-471-49880-7.

    Examples
    --------
    Spells of spot capacity with twice the variation of their mean:

    >>> round(float(short_branch(2.0)), 3)
    0.887
    """
    square = np.asarray(variation) ** 2
    share: Real = 0.5 * (1.0 + np.sqrt(np.maximum(0.0, square - 1.0) / (square + 1.0)))
    return share
