"""Time of a matrix product on a device that computes its output tile by tile.

References
----------
.. [1] NVIDIA, "Matrix Multiplication Background User's Guide", sections on tile and wave
       quantization, https://docs.nvidia.com/deeplearning/performance/
"""

from __future__ import annotations

import numpy as np

from simulator.units import Bytes, BytesPerSecond, Flops, FlopsPerSecond, Real, Seconds


def tile_rate(height: Real, width: Real, half: Real, best: Real) -> Real:
    """Rate of a tile as a share of that of the best tile.

    A tile of `height` x `width` loads `height` + `width` values for each step along the inner
    dimension, so its rate grows with its intensity i = h w / (h + w) as i / (i + half).

    Parameters
    ----------
    height, width : float or array
        Size of the tile [values].
    half : float
        Intensity at which half of the limit is reached.
    best : float
        Intensity of the best tile.

    Examples
    --------
    >>> float(tile_rate(128.0, 128.0, 64.0, 64.0))
    1.0
    >>> float(tile_rate(64.0, 64.0, 64.0, 64.0))
    0.6666666666666666
    """
    intensity = height * width / (height + width)
    return intensity / (intensity + half) * (best + half) / best


def effective_waves(tiles: Real, units: Real, cost: Real) -> Real:
    """Waves that `tiles` take on `units` that each compute one at a time [1]_.

    An unfilled last wave takes `cost` of the time of the part that is missing; a single wave is
    never faster than one.

    Examples
    --------
    109 tiles on 108 units take two waves; with cost 0 only as much as there is work.

    >>> float(effective_waves(109.0, 108.0, 1.0))
    2.0
    >>> round(float(effective_waves(109.0, 108.0, 0.0)), 3)
    1.009
    """
    waves = tiles / units
    counted: Real = np.maximum(waves + cost * (np.ceil(waves) - waves), 1.0)
    return counted


def tiled_time(waves: Real, tile: Flops | Real, steps: Real, rate: FlopsPerSecond | Real) -> Real:
    """Seconds of `waves` waves of tiles.

    Parameters
    ----------
    waves : float or array
        Waves, a fraction where the last one costs less.
    tile : float or array
        Operations of one step along the inner dimension on all units [FLOP].
    steps : float or array
        Steps along the inner dimension, with those that fill the pipeline.
    rate : float or array
        Rate of all units with this tile [FLOP/s].

    Examples
    --------
    >>> tiled_time(2.0, 1e6, 1000.0, 1e12)
    0.002
    """
    return waves * tile * steps / rate


def product_traffic(m: Real, n: Real, k: Real, width: Bytes | Real, result: Bytes) -> Real:
    """Bytes of a product of m x k and k x n values, each read or written once [B].

    Examples
    --------
    >>> product_traffic(2.0, 3.0, 4.0, 1.0, 2.0)
    32.0
    """
    return width * (m * k + n * k) + result * m * n


def memory_time(moved: Bytes | Real, bandwidth: BytesPerSecond | Real) -> Seconds | Real:
    """Seconds to move so many bytes.

    Examples
    --------
    >>> memory_time(1e9, 1e12)
    0.001
    """
    return moved / bandwidth
