"""Interruptions of jobs on many machines: their rate, lost time, checkpoints, spot outages."""

from __future__ import annotations

import numpy as np

from simulator.units import (
    PerSecond,
    Real,
    Seconds,
)


def interruption_rate(
    machines: Real, machine_rate: PerSecond | Real, job_rate: PerSecond | Real
) -> PerSecond | Real:
    """Return the rate at which a job that needs all its machines is interrupted.

    ``machines * machine_rate + job_rate``: the first of independent exponential times. `job_rate`
    counts failures of the job as a whole, such as software and network.

    Source: Kokolis et al., "Revisiting Reliability in Large-Scale Machine Learning Research
    Clusters", 2024, https://arxiv.org/abs/2410.21680 (6.5 failures per 1,000 node-days; 7.9 h
    between failures measured at 1,024 GPUs, which a rate per machine alone does not give).

    128 machines at 6.5 failures per 1,000 days of one, and one failure of the job in 10.9 h:

    >>> rate = interruption_rate(128, 6.5e-3 / 86400, 1 / 10.9 / 3600)
    >>> f"{1 / rate / 3600:.1f} h"
    '7.9 h'
    """
    return machines * machine_rate + job_rate


def short_branch(variation: Real) -> Real:
    """Return the probability of the short branch of a hyperexponential time with balanced means.

    ``p = (1 + sqrt((c^2 - 1) / (c^2 + 1))) / 2`` with ``c`` the variation; below 1 as at 1.
    `variation` is the standard deviation over the mean. The short branch has the mean ``mean / (2
    p)``, the long one ``mean / (2 (1 - p))``.

    Source: H. C. Tijms, "A First Course in Stochastic Models", Wiley 2003, appendix B, ISBN
    0-471-49880-7.

    Spot capacity that lasts for times with twice the variation of their mean:

    >>> round(float(short_branch(2.0)), 3)
    0.887
    """
    square = np.asarray(variation) ** 2
    share: Real = 0.5 * (1.0 + np.sqrt(np.maximum(0.0, square - 1.0) / (square + 1.0)))
    return share


def time_with_interruptions(
    work: Seconds | Real,
    rate: PerSecond | Real,
    interval: Seconds | Real,
    write: Seconds | Real,
    restart: Seconds | Real,
) -> Seconds | Real:
    """Return the expected time of a run with random interruptions and checkpoints.

    ``exp(restart * rate) * (exp((interval + write) * rate) - 1) / rate * work / interval``, for
    interruptions that come independently of one another, in restarts and checkpoints too. `work` is
    the time without either, `rate` (above 0) that of interruptions of the whole cluster, `interval`
    the work between two checkpoints, `write` the pause for one, `restart` the time from an
    interruption to the next step.

    Source: J. T. Daly, "A higher order estimate of the optimum checkpoint interval for restart
    dumps", Future Generation Computer Systems 22(3), 2006,
    https://doi.org/10.1016/j.future.2004.11.016

    100 h of work, one interruption in 20 h, a checkpoint of 36 s every hour, 6 min to restart:

    >>> hours = time_with_interruptions(100 * 3600, 1 / 72000, 3600.0, 36.0, 360.0) / 3600
    >>> f"{hours:.2f}"
    '104.11'
    """
    segments = work / interval
    return segments * np.exp(restart * rate) * np.expm1((interval + write) * rate) / rate


def best_checkpoint_interval(rate: PerSecond | Real, write: Seconds | Real) -> Seconds | Real:
    """Return the work between two checkpoints that makes an interrupted run shortest.

    ``sqrt(2 * write / rate) * (1 + sqrt(x) / 3 + x / 9) - write`` with ``x = write * rate / 2``,
    from Young's first-order ``sqrt(2 * write / rate)``; the mean time between interruptions where a
    checkpoint takes longer than twice that. `rate` is that of interruptions of the whole cluster,
    above 0.

    Source: J. W. Young, "A first order approximation to the optimum checkpoint interval",
    Communications of the ACM 17(9), 1974, https://doi.org/10.1145/361147.361115
    Source: J. T. Daly, "A higher order estimate of the optimum checkpoint interval for restart
    dumps", Future Generation Computer Systems 22(3), 2006,
    https://doi.org/10.1016/j.future.2004.11.016

    36 s a checkpoint, one interruption in 20 h:

    >>> f"{best_checkpoint_interval(1 / 72000, 36.0) / 60:.1f}"
    '37.5'
    """
    x = write * rate / 2.0
    young = np.sqrt(2.0 * write / rate)
    daly = young * (1.0 + np.sqrt(x) / 3.0 + x / 9.0) - write
    return np.where(x < 1.0, daly, 1.0 / rate)[()]
