"""Device time: the roofline, measured step times over batch size, and how good a run was."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from simulator.units import Real

Points: TypeAlias = Sequence[float] | NDArray[np.float64]
"""Coordinates of measured points, one after another."""


def roofline_time(flops: Real, traffic: Real, rate: Real, bandwidth: Real) -> Real:
    """Time of a piece of work on a device that computes and moves data at once.

    Parameters
    ----------
    flops : float or array
        Arithmetic [FLOP].
    traffic : float or array
        Bytes to and from device memory [B].
    rate : float or array
        Arithmetic rate the device reaches [FLOP/s].
    bandwidth : float or array
        Memory rate the device reaches [B/s].

    Returns
    -------
    float or array
        Time [s].

    Notes
    -----
    ``max(flops / rate, traffic / bandwidth)``.

    References
    ----------
    .. [1] Williams, Waterman, Patterson, "Roofline: An Insightful Visual Performance Model for
       Multicore Architectures", 2009, https://doi.org/10.1145/1498765.1498785

    Examples
    --------
    1 TFLOP at 100 TFLOP/s takes 10 ms, 40 GB at 2 TB/s take 20 ms:

    >>> float(roofline_time(1e12, 40e9, 100e12, 2e12))
    0.02
    """
    time: Real = np.maximum(flops / rate, traffic / bandwidth)
    return time


def interpolated_step_time(
    batch: Real, batch_sizes: Points, seconds: Points, fixed: Real = 0.0
) -> Real:
    """Step time at any batch size, from measured ones.

    Parameters
    ----------
    batch : float or array
        Batch size asked for [1].
    batch_sizes : sequence or array of float
        Batch sizes measured, rising [1].
    seconds : sequence or array of float
        Step time at each of them [s].
    fixed : float or array
        Time of a step with an empty batch, used where only one size was measured [s].

    Returns
    -------
    float or array
        Step time [s].

    Notes
    -----
    Straight lines between the points. Outside them the nearest segment goes on, kept between two
    physical limits: a step never gets shorter as the batch grows, and a sample never gets cheaper
    as the batch shrinks. With (b, t) the nearest point the time at B therefore lies between t and
    t B / b on either side. One point alone gives ``fixed + (t - fixed) * B / b``, that is
    proportional where nothing is known of the fixed part.

    References
    ----------
    .. [1] Qi, Sparks, Talwalkar, "Paleo: A Performance Model for Deep Neural Networks", 2017,
       https://openreview.net/forum?id=SyVVJ85lg (time as a fixed part and one that grows with
       the work); the limits are our own.

    Examples
    --------
    Measured 10 ms at 32 and 18 ms at 64 samples, that is 2 ms + 0.25 ms a sample:

    >>> times = [float(interpolated_step_time(b, (32, 64), (0.010, 0.018))) for b in (16, 48, 128)]
    >>> [round(t, 6) for t in times]
    [0.006, 0.014, 0.034]
    """
    sizes = (0.0, *batch_sizes) if len(batch_sizes) == 1 else tuple(batch_sizes)
    times = (fixed, *seconds) if len(batch_sizes) == 1 else tuple(seconds)
    first, last = batch_sizes[0], batch_sizes[-1]
    first_slope = (times[1] - times[0]) / (sizes[1] - sizes[0])
    last_slope = (times[-1] - times[-2]) / (sizes[-1] - sizes[-2])
    below = seconds[0] + first_slope * (batch - first)
    above = seconds[-1] + last_slope * (batch - last)
    below = np.clip(below, seconds[0] * np.minimum(1.0, batch / first), seconds[0])
    above = np.clip(above, seconds[-1], seconds[-1] * np.maximum(1.0, batch / last))
    inside = np.interp(batch, batch_sizes, seconds)
    time: Real = np.where(batch < first, below, np.where(batch > last, above, inside))[()]
    return time


def carried_over_time(seconds: Real, reference: Real, own: Real) -> Real:
    """Step time on one device from a measurement on another.

    Parameters
    ----------
    seconds : float or array
        Step time measured on the other device [s].
    reference : float or array
        Roofline time of the same step on the other device [s].
    own : float or array
        Roofline time of the step on this device [s].

    Returns
    -------
    float or array
        Step time on this device [s].

    Notes
    -----
    ``seconds * own / reference``: the share of the roofline that was reached carries over.

    References
    ----------
    .. [1] Yu et al., "Habitat: A Runtime-Based Computational Performance Predictor for Deep Neural
       Network Training", 2021, https://arxiv.org/abs/2102.00527 (scaling measured kernel times by
       rate and bandwidth ratios).

    Examples
    --------
    >>> carried_over_time(0.25, 0.2, 0.1)
    0.125
    """
    return seconds * own / reference
