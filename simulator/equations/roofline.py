"""Device time and FLOPs: the roofline, measured step times, model FLOPs and utilization."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, TypeAlias

import numpy as np
from numpy.typing import NDArray

from simulator.units import (
    SECOND,
    Bytes,
    BytesPerSecond,
    Flops,
    FlopsPerSecond,
    PerSecond,
    Real,
    Seconds,
)

Points: TypeAlias = Sequence[float] | NDArray[np.float64]
"""Coordinates of measured points, one after another."""


def roofline_time(
    flops: Flops | Real,
    traffic: Bytes | Real,
    rate: FlopsPerSecond | Real,
    bandwidth: BytesPerSecond | Real,
) -> Seconds | Real:
    """Return the time of work on a device that computes and moves data at once.

    ``max(flops / rate, traffic / bandwidth)``. `rate` and `bandwidth` are what the device achieves.

    Source: Williams, Waterman, Patterson, "Roofline: An Insightful Visual Performance Model for
    Multicore Architectures", 2009, https://doi.org/10.1145/1498765.1498785

    1 TFLOP at 100 TFLOP/s takes 10 ms, 40 GB at 2 TB/s take 20 ms:

    >>> float(roofline_time(1e12, 40e9, 100e12, 2e12))
    0.02
    """
    time: Real = np.maximum(flops / rate, traffic / bandwidth)
    return time


def interpolated_step_time(
    batch: Real,
    batch_sizes: Points,
    seconds: Annotated[Points, SECOND],
    fixed: Seconds | Real = 0.0,
) -> Seconds | Real:
    """Return the step time at any batch size from measured ones.

    Straight lines between the points. Outside them the nearest segment goes on, kept between two
    physical limits: a step never gets shorter as the batch grows, and a sample never gets cheaper
    as the batch shrinks. With (b, t) the nearest point the time at B therefore lies between t and t
    B / b on either side. One point alone gives ``fixed + (t - fixed) * B / b``, that is
    proportional where nothing is known of the fixed part. `batch_sizes` rise; `fixed` is the time
    of a step with an empty batch, used with a single measured size.

    Source: Qi, Sparks, Talwalkar, "Paleo: A Performance Model for Deep Neural Networks", 2017,
    https://openreview.net/forum?id=SyVVJ85lg (time as a fixed part and one that grows with the
    work); the limits are our own.

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


def carried_over_time(
    seconds: Seconds | Real, reference: Seconds | Real, own: Seconds | Real
) -> Seconds | Real:
    """Return the step time on one device from a measurement on another.

    ``seconds * own / reference``: the share of the roofline that was reached carries over.
    `seconds` was measured on the other device; `reference` and `own` are roofline times of the step
    there and here.

    Source: Yu et al., "Habitat: A Runtime-Based Computational Performance Predictor for Deep Neural
    Network Training", 2021, https://arxiv.org/abs/2102.00527 (scaling measured kernel times by rate
    and bandwidth ratios).

    >>> carried_over_time(0.25, 0.2, 0.1)
    0.125
    """
    return seconds * own / reference


def trained_flops(
    products: Flops | Real, attention: Flops | Real, passes: Real = 3.0, frozen: Real = 0.0
) -> Flops | Real:
    """Return the model FLOPs of one sample, independent of how they are computed.

    ``passes * (products + attention) - frozen * products``: for N weights, L layers, H heads of
    width Q and T tokens that is (6 N + 12 L H Q T) T where all weights learn. Embedding lookup
    is not a product, so such tables don't count; a head that shares their weights does. Recomputed
    activations don't count either. `products` (with weights) and `attention` (every pair of
    positions, also where a causal kernel skips half) are of the forward pass; `passes` is 3 for
    training and 1 for inference, `frozen` is 1 where weights are frozen, whose gradients are not
    computed.

    Source: Chowdhery et al., "PaLM: Scaling Language Modeling with Pathways", 2022, appendix B,
    https://arxiv.org/abs/2204.02311
    Source: Narayanan et al., "Efficient Large-Scale Language Model Training on GPU Clusters Using
    Megatron-LM", 2021, section 5.1, https://arxiv.org/abs/2104.04473 (counts a forward pass that is
    done twice, and the same attention)

    A token of MPT-70b, 64.86e9 weights, 80 layers 8192 wide, 2048 positions:

    >>> f"{trained_flops(2 * 64.8624e9, 4 * 80 * 8192 * 2048):.4g}"
    '4.053e+11'
    """
    return passes * (products + attention) - frozen * products


def computed_flops(model_flops: Flops | Real, again: Flops | Real) -> Flops | Real:
    """Return the FLOPs of one sample in hardware, recomputed activations included.

    ``model_flops + again``: with full recomputation 4/3 of the model FLOPs.

    Source: Chowdhery et al., "PaLM: Scaling Language Modeling with Pathways", 2022, appendix B,
    https://arxiv.org/abs/2204.02311 (hardware FLOPs utilization counts rematerialization)

    >>> computed_flops(6.0, 2.0)
    8.0
    """
    return model_flops + again


def flops_rate(
    flops: Flops | Real, throughput: PerSecond | Real, devices: Real
) -> FlopsPerSecond | Real:
    """Return the arithmetic rate of one device.

    ``flops * throughput / devices``. `throughput` is that of all devices.

    Source: Narayanan et al., "Efficient Large-Scale Language Model Training on GPU Clusters Using
    Megatron-LM", 2021, table 1, https://arxiv.org/abs/2104.04473

    MPT-70b on H100, 1,007.1 tokens a second each:

    >>> f"{flops_rate(4.0528e11, 1007.1, 1):.3g}"
    '4.08e+14'
    """
    return flops * throughput / devices


def flops_utilization(rate: FlopsPerSecond | Real, peak: FlopsPerSecond | Real) -> Real:
    """Return the share of a device's peak that is used: MFU of model FLOPs, HFU of hardware FLOPs.

    ``rate / peak``. `peak` is the dense datasheet rate at the precision of training.

    Source: Chowdhery et al., "PaLM: Scaling Language Modeling with Pathways", 2022, appendix B,
    https://arxiv.org/abs/2204.02311

    mosaicml/llm-foundry publishes 41.25% for MPT-70b on 512 H100:

    >>> round(flops_utilization(4.0816e14, 989.4e12), 4)
    0.4125
    """
    return rate / peak
