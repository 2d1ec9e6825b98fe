"""Device time and FLOPs: roofline, tiles of a product, measured steps, model FLOPs, utilization."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Final, TypeAlias

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


SPLIT_FROM: Final = 8.0 * 128.0
"""Steps along the inner dimension that each part of it has at least, if it is cut."""
PARTIAL_BYTES: Final = 4.0
"""Size of a partial sum of such parts [B]."""
HEIGHTS: Final = np.array([256.0, 128.0, 128.0, 128.0, 64.0])
"""Rows of the output that a tile covers, of the tiles that libraries choose from."""
WIDTHS: Final = np.array([128.0, 256.0, 128.0, 64.0, 64.0])
"""Columns of it, of the same tiles."""
CUTS: Final = (4.0, 16.0, 64.0, 256.0)
"""Into how many parts, computed side by side, the inner dimension may be cut.

Gradients of weights sum over all positions of a batch, so libraries cut them finely.
"""
_BEST: Final = 256.0 * 128.0 / (256.0 + 128.0)
_MACS: Final = 2.0


def tile_rate(height: Real, width: Real, half: Real, best: Real) -> Real:
    """Return the rate of a tile as a share of that of the best tile.

    A tile loads height + width values for each step along the inner dimension and multiplies each
    with many, so its rate grows with the intensity ``i = height width / (height + width)``, as ``i
    / (i + half)``, divided by the same of the best tile. `half` is the intensity at which half of
    the limit is reached, `best` that of the best tile.

    Source: NVIDIA, "Matrix Multiplication Background User's Guide", tile and wave quantization,
    https://docs.nvidia.com/deeplearning/performance/dl-performance-matrix-multiplication/

    Half the intensity of the best tile, with half the limit reached at that:

    >>> float(tile_rate(64.0, 64.0, 64.0, 64.0))
    0.6666666666666666
    """
    intensity = height * width / (height + width)
    return intensity / (intensity + half) * (best + half) / best


def effective_waves(tiles: Real, units: Real, cost: Real) -> Real:
    """Return the waves that tiles take on units that compute one tile at a time.

    ``max(w + cost (ceil(w) - w), 1)`` with ``w = tiles / units``: a single wave is never faster
    than one. `cost` is the part of the missing tiles that an unfilled last wave costs, 0 to 1.

    Source: NVIDIA, "Matrix Multiplication Background User's Guide", tile and wave quantization,
    https://docs.nvidia.com/deeplearning/performance/dl-performance-matrix-multiplication/

    109 tiles on 108 units are two waves, or as much as there is to do if nothing is lost:

    >>> float(effective_waves(109.0, 108.0, 1.0))
    2.0
    >>> round(float(effective_waves(109.0, 108.0, 0.0)), 3)
    1.009
    """
    waves = tiles / units
    counted: Real = np.maximum(waves + cost * (np.ceil(waves) - waves), 1.0)
    return counted


def tiled_time(
    waves: Real, tile: Flops | Real, steps: Real, rate: FlopsPerSecond | Real
) -> Seconds | Real:
    """Return the time of waves of tiles.

    ``waves tile steps / rate``: all units work on a wave, whether it is full or not. `tile` is the
    work of one step along the inner dimension on all units, `rate` that of all units with this
    tile.

    Source: NVIDIA, "Matrix Multiplication Background User's Guide", tile and wave quantization,
    https://docs.nvidia.com/deeplearning/performance/dl-performance-matrix-multiplication/

    >>> tiled_time(2.0, 1e6, 1000.0, 1e12)
    0.002
    """
    return waves * tile * steps / rate


def occupied_flops(  # noqa: PLR0913, PLR0917 - a product, and the units it runs on
    m: Real, n: Real, steps: Real, count: Real, units: Real, half: Real, cost: Real
) -> Flops | Real:
    """Return the FLOPs that all units could do while products are computed with the best tile.

    The least over five tiles of ``waves 2 height width units steps / rate of the tile``: the
    products' own ``2 m n steps count`` where all units are busy with the best tile, more where some
    have nothing to do. `count` products of `m` x `n` results are side by side; `steps` run along
    the inner dimension, those that fill the pipeline included; `half` and `cost` are as in
    `tile_rate` and `effective_waves`.

    Source: NVIDIA, "Matrix Multiplication Background User's Guide", tile and wave quantization,
    https://docs.nvidia.com/deeplearning/performance/dl-performance-matrix-multiplication/

    A result of 256 x 128 is eight tiles of 64 x 64, which keep eight of 100 units busy:

    >>> float(occupied_flops(256.0, 128.0, 64.0, 1.0, 100.0, 0.0, 1.0) / (2 * 256 * 128 * 64))
    12.5
    """
    axes = (slice(None), *(None,) * np.broadcast(m, n, steps, count).ndim)
    high, wide = HEIGHTS[axes], WIDTHS[axes]
    tiles = np.ceil(m / high) * np.ceil(n / wide) * count
    step = _MACS * high * wide * units / tile_rate(high, wide, half, _BEST)
    by_tile = tiled_time(effective_waves(tiles, units, cost), step, steps, 1.0)
    least: Real = np.min(by_tile, axis=0)
    return least


def product_time(  # noqa: PLR0913, PLR0917 - a product, and the units and memory it runs on
    m: Real,
    n: Real,
    inner: Real,
    count: Real,
    rate: FlopsPerSecond | Real,
    bandwidth: BytesPerSecond | Real,
    units: Real,
    half: Real,
    cost: Real,
    fill: Real,
) -> Seconds | Real:
    """Return the time of products with the best tile and the best split of their inner dimension.

    The least over ``p`` parts of ``occupied / rate + 4 p m n count / bandwidth``, where
    ``occupied`` are `occupied_flops` of ``count p`` products of ``inner / p + fill`` steps; the
    second term, of partial sums in fp32, is left out where nothing is cut. Each part has at least
    1,024 steps. `rate` is that of all units with the best tile, `bandwidth` that of partial sums,
    `fill` the steps that fill a tile's pipeline; the rest is as in `occupied_flops`.

    Source: NVIDIA, "CUTLASS: Efficient GEMM in CUDA", parallelized reductions (split K),
    https://docs.nvidia.com/cutlass/media/docs/cpp/efficient_gemm.html

    One tile on 100 units of 1 TFLOP/s in all, cut into 64 parts, is 64 times as fast:

    >>> shape = (64.0, 64.0, 65536.0, 1.0)
    >>> cut, uncut = (product_time(*shape, 1e12, b, 100.0, 0.0, 1.0, 0.0) for b in (1e30, 1.0))
    >>> round(float(uncut / cut), 6)
    64.0
    """
    best: Real = occupied_flops(m, n, inner + fill, count, units, half, cost) / rate
    for parts in CUTS:
        enough = inner >= SPLIT_FROM * parts
        if not np.any(enough):
            break
        steps = inner / parts + fill
        time = occupied_flops(m, n, steps, count * parts, units, half, cost) / rate
        extra = memory_time(PARTIAL_BYTES * parts * m * n * count, bandwidth)
        best = np.where(enough, np.minimum(best, time + extra), best)[()]
    return best


def product_traffic(
    m: Real, n: Real, k: Real, width: Bytes | Real, result: Bytes | Real
) -> Bytes | Real:
    """Return the memory traffic of a product that reads and writes each value once.

    ``width (m k + n k) + result m n``. `width` is the size of a factor's value, `result` that of
    the result's.

    Source: Williams, Waterman, Patterson, "Roofline: An Insightful Visual Performance Model for
    Multicore Architectures", 2009, https://doi.org/10.1145/1498765.1498785

    >>> product_traffic(2.0, 3.0, 4.0, 1.0, 2.0)
    32.0
    """
    return width * (m * k + n * k) + result * m * n


def memory_time(moved: Bytes | Real, bandwidth: BytesPerSecond | Real) -> Seconds | Real:
    """Return the time to move bytes through memory.

    ``moved / bandwidth``.

    Source: Williams, Waterman, Patterson, "Roofline: An Insightful Visual Performance Model for
    Multicore Architectures", 2009, https://doi.org/10.1145/1498765.1498785

    >>> memory_time(1e9, 1e12)
    0.001
    """
    return moved / bandwidth


def throttled(busy: Seconds | Real, whole: Seconds | Real, throttle: Real) -> Real:
    """Return the slowdown of matrix products by the clock that the power limit leaves.

    ``1 / (1 - throttle * busy / whole)``. A device at its power limit lowers its clock, and matrix
    units draw most. The sinking is taken as linear in the share of time that they are busy;
    `throttle` is fitted to steps of language models. `busy` is the time of matrix units at the full
    clock, `throttle` how far the clock drops when only they work.

    Source: own form; fitted by ``evidence/fit.py kernels``

    >>> throttled(busy=0.5, whole=1.0, throttle=0.2)
    1.1111111111111112
    """
    return 1.0 / (1.0 - throttle * busy / whole)
