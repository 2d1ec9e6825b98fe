"""Time of a matrix product on a device that computes its output tile by tile."""

from __future__ import annotations

from typing import Final

import numpy as np

from simulator.units import Real

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
    """Rate of a tile as a share of that of the best tile.

    Parameters
    ----------
    height : float or array
        Rows of the output that a tile covers [1].
    width : float or array
        Columns of it [1].
    half : float or array
        Intensity at which half of the limit is reached [1].
    best : float or array
        Intensity of the best tile [1].

    Returns
    -------
    float or array
        Share [1].

    Notes
    -----
    A tile loads height + width values for each step along the inner dimension and multiplies each
    with many, so its rate grows with the intensity ``i = height width / (height + width)``, as
    ``i / (i + half)``, divided by the same of the best tile.

    References
    ----------
    .. [1] NVIDIA, "Matrix Multiplication Background User's Guide", tile and wave quantization,
       https://docs.nvidia.com/deeplearning/performance/dl-performance-matrix-multiplication/

    Examples
    --------
    Half the intensity of the best tile, with half the limit reached at that:

    >>> float(tile_rate(64.0, 64.0, 64.0, 64.0))
    0.6666666666666666
    """
    intensity = height * width / (height + width)
    return intensity / (intensity + half) * (best + half) / best


def effective_waves(tiles: Real, units: Real, cost: Real) -> Real:
    """Waves that tiles take on units that compute one each at a time.

    Parameters
    ----------
    tiles : float or array
        Tiles of the output [1].
    units : float or array
        Units side by side [1].
    cost : float or array
        What an unfilled last wave costs of the part that is missing, 0 to 1 [1].

    Returns
    -------
    float or array
        Waves, a fraction where the last one costs less [1].

    Notes
    -----
    ``max(w + cost (ceil(w) - w), 1)`` with ``w = tiles / units``: a single wave is never faster
    than one.

    References
    ----------
    .. [1] NVIDIA, "Matrix Multiplication Background User's Guide", tile and wave quantization,
       https://docs.nvidia.com/deeplearning/performance/dl-performance-matrix-multiplication/

    Examples
    --------
    109 tiles on 108 units are two waves, or as much as there is to do if nothing is lost:

    >>> float(effective_waves(109.0, 108.0, 1.0))
    2.0
    >>> round(float(effective_waves(109.0, 108.0, 0.0)), 3)
    1.009
    """
    waves = tiles / units
    counted: Real = np.maximum(waves + cost * (np.ceil(waves) - waves), 1.0)
    return counted


def tiled_time(waves: Real, tile: Real, steps: Real, rate: Real) -> Real:
    """Time of waves of tiles.

    Parameters
    ----------
    waves : float or array
        Waves [1].
    tile : float or array
        Operations of one step along the inner dimension on all units [FLOP].
    steps : float or array
        Steps along the inner dimension, with those that fill the pipeline [1].
    rate : float or array
        Rate of all units with this tile [FLOP/s].

    Returns
    -------
    float or array
        Time [s].

    Notes
    -----
    ``waves tile steps / rate``: all units work on a wave, whether it is full or not.

    References
    ----------
    .. [1] NVIDIA, "Matrix Multiplication Background User's Guide", tile and wave quantization,
       https://docs.nvidia.com/deeplearning/performance/dl-performance-matrix-multiplication/

    Examples
    --------
    >>> tiled_time(2.0, 1e6, 1000.0, 1e12)
    0.002
    """
    return waves * tile * steps / rate


def occupied_flops(  # noqa: PLR0913, PLR0917 - a product, and the units it runs on
    m: Real, n: Real, steps: Real, count: Real, units: Real, half: Real, cost: Real
) -> Real:
    """Operations that all units could do while products are computed, with the best tile.

    Parameters
    ----------
    m : float or array
        Rows of a result [1].
    n : float or array
        Columns of it [1].
    steps : float or array
        Steps along the inner dimension, with those that fill the pipeline [1].
    count : float or array
        Products of this shape side by side [1].
    units : float or array
        Units that compute a tile each at a time [1].
    half : float or array
        Intensity at which a tile reaches half of the limit [1].
    cost : float or array
        What an unfilled last wave costs of the part that is missing, 0 to 1 [1].

    Returns
    -------
    float or array
        Operations [FLOP].

    Notes
    -----
    The least over five tiles of ``waves 2 height width units steps / rate of the tile``: the
    products' own ``2 m n steps count`` where all units are busy with the best tile, more where
    some have nothing to do.

    References
    ----------
    .. [1] NVIDIA, "Matrix Multiplication Background User's Guide", tile and wave quantization,
       https://docs.nvidia.com/deeplearning/performance/dl-performance-matrix-multiplication/

    Examples
    --------
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
    rate: Real,
    bandwidth: Real,
    units: Real,
    half: Real,
    cost: Real,
    fill: Real,
) -> Real:
    """Time of products with the best tile and the best cut of their inner dimension.

    Parameters
    ----------
    m : float or array
        Rows of a result [1].
    n : float or array
        Columns of it [1].
    inner : float or array
        Inner dimension [1].
    count : float or array
        Products of this shape side by side [1].
    rate : float or array
        What all units together reach with the best tile [FLOP/s].
    bandwidth : float or array
        What partial sums are written and read at [B/s].
    units : float or array
        Units that compute a tile each at a time [1].
    half : float or array
        Intensity at which a tile reaches half of the limit [1].
    cost : float or array
        What an unfilled last wave costs of the part that is missing, 0 to 1 [1].
    fill : float or array
        Steps along the inner dimension that filling a tile's pipeline takes [1].

    Returns
    -------
    float or array
        Time [s].

    Notes
    -----
    The least over ``p`` parts of ``occupied / rate + 4 p m n count / bandwidth``, where
    ``occupied`` are `occupied_flops` of ``count p`` products of ``inner / p + fill`` steps; the
    second term, of partial sums in fp32, is left out where nothing is cut. Each part has at least
    1,024 steps.

    References
    ----------
    .. [1] NVIDIA, "CUTLASS: Efficient GEMM in CUDA", parallelized reductions (split K),
       https://docs.nvidia.com/cutlass/media/docs/cpp/efficient_gemm.html

    Examples
    --------
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


def product_traffic(m: Real, n: Real, k: Real, width: Real, result: Real) -> Real:
    """Bytes of a product of m x k and k x n values, each read or written once.

    Parameters
    ----------
    m : float or array
        Rows of the result [1].
    n : float or array
        Columns of the result [1].
    k : float or array
        Inner dimension [1].
    width : float or array
        Size of a factor's value [B].
    result : float or array
        Size of a value of the result [B].

    Returns
    -------
    float or array
        Bytes moved [B].

    Notes
    -----
    ``width (m k + n k) + result m n``.

    References
    ----------
    .. [1] Williams, Waterman, Patterson, "Roofline: An Insightful Visual Performance Model for
       Multicore Architectures", 2009, https://doi.org/10.1145/1498765.1498785

    Examples
    --------
    >>> product_traffic(2.0, 3.0, 4.0, 1.0, 2.0)
    32.0
    """
    return width * (m * k + n * k) + result * m * n


def memory_time(moved: Real, bandwidth: Real) -> Real:
    """Time to move bytes through memory.

    Parameters
    ----------
    moved : float or array
        Bytes read and written [B].
    bandwidth : float or array
        Rate of the memory [B/s].

    Returns
    -------
    float or array
        Time [s].

    Notes
    -----
    ``moved / bandwidth``.

    References
    ----------
    .. [1] Williams, Waterman, Patterson, "Roofline: An Insightful Visual Performance Model for
       Multicore Architectures", 2009, https://doi.org/10.1145/1498765.1498785

    Examples
    --------
    >>> memory_time(1e9, 1e12)
    0.001
    """
    return moved / bandwidth


def throttled(busy: Real, whole: Real, throttle: Real) -> Real:
    """How much longer matrix products take than at the whole clock.

    Parameters
    ----------
    busy : float or array
        Time that matrix units are busy at the whole clock [s].
    whole : float or array
        Time of everything together [s].
    throttle : float or array
        How far the clock sinks when only matrix units work, as a share of it [1].

    Returns
    -------
    float or array
        Factor of their time, 1 or more [1].

    Notes
    -----
    ``1 / (1 - throttle * busy / whole)``. A device at its power limit lowers its clock, and matrix
    units draw most. The sinking is taken as linear in the share of time that they are busy;
    `throttle` is fitted to steps of language models.

    References
    ----------
    .. [1] own form; fitted by ``evidence/fit.py kernels``

    Examples
    --------
    >>> throttled(busy=0.5, whole=1.0, throttle=0.2)
    1.1111111111111112
    """
    return 1.0 / (1.0 - throttle * busy / whole)
