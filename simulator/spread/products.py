"""Times of matrix products: all of a layer at once, as one array."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from simulator.equations.gemm import memory_time, occupied_flops, product_traffic
from simulator.spread.description import Description
from simulator.spread.shapes import Product
from simulator.workload.kernels import Kernels

Array = NDArray[np.float64]

_SPLITS: Final = (1.0, 4.0)
"""Into how many parts, computed side by side, the inner dimension is cut."""
_SPLIT_FROM: Final = 8.0 * 128.0
"""Steps along the inner dimension that a part has at least."""
_PARTIAL: Final = 4.0
"""Bytes of a partial sum [B]."""
_RESULT: Final = 2.0


class _Sides(NamedTuple):
    """Products as arrays: rows are products, columns candidates.

    Sides stand in three layers: forward, gradient of the input, gradient of the weights.
    """

    m: Array
    n: Array
    inner: Array
    batch: Array
    reached: Array
    peak: Array
    width: Array


def product_times(products: Sequence[Product], d: Description, k: Kernels) -> tuple[Array, Array]:
    """Seconds of each product, forward and backward (both factors' gradients).

    Parameters
    ----------
    products : sequence of Product
        Of the forward pass.
    d, k : Description, Kernels
        The device, and what its matrix units reach.

    Returns
    -------
    tuple of array
        Two arrays of as many rows as products; columns are candidates.
    """
    m, n, inner, batch, share, low, aligned = _columns(products, d)
    sides = _Sides(
        m=np.array((m, m, n)),
        n=np.array((n, inner, inner)),
        inner=np.array((inner, n, m)),
        batch=batch,
        reached=np.where(low > 0, k.product.share, k.product.share16) * aligned,
        peak=np.where(low > 0, d.device.peak, d.device.peak16),
        width=np.where(low > 0, d.work.width, _RESULT),
    )
    forward, inputs, weights = _times(sides, d, k)
    return share * forward, share * (inputs + weights)


def _columns(products: Sequence[Product], d: Description) -> Array:
    """Each figure of the products as an array of products and candidates."""
    size = d.layout.micro_batch * d.shape.hidden * d.layout.tensor
    if not isinstance(size, np.ndarray):
        return np.array(products, dtype=float).T[:, :, None]
    ones = np.ones_like(size)
    rows = [[value * ones for value in product] for product in products]
    return np.array(rows).transpose(1, 0, 2)


def _times(sides: _Sides, d: Description, k: Kernels) -> Array:
    """The best tile and split, or the memory's time where that is longer."""
    m, n, inner, batch, reached, peak, width = sides
    units = np.asarray(d.device.units, dtype=float)
    shape = k.product.tile_half, k.product.wave
    bandwidth = np.asarray(d.device.bandwidth * k.kernel.memory, dtype=float)
    best = np.full(m.shape, np.inf)
    for parts in _SPLITS:
        steps = inner / parts + k.product.fill
        time = occupied_flops(m, n, steps, batch * parts, units, *shape) / peak
        if parts > 1.0:
            extra = memory_time(_PARTIAL * parts * m * n * batch, bandwidth)
            time = np.where(inner >= _SPLIT_FROM * parts, time + extra, np.inf)
        best = np.minimum(best, time)
    moved = batch * product_traffic(m, n, inner, width, _RESULT)
    longest: Array = np.maximum(best / reached, memory_time(moved, bandwidth))
    return longest
