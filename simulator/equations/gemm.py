"""Time of a matrix product on a device that computes its output tile by tile."""

from __future__ import annotations

from typing import Final

import numpy as np

from simulator.units import (
    Bytes,
    BytesPerSecond,
    Flops,
    FlopsPerSecond,
    Real,
    Seconds,
)

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
