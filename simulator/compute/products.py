"""Times of matrix products: all of a layer at once, as one array."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from simulator.compute.description import Description, Device
from simulator.compute.shapes import Product
from simulator.compute.tiles import product_time
from simulator.equations.gemm import memory_time, product_traffic
from simulator.memo import Memo
from simulator.scenario.workload.kernels import Kernels
from simulator.units import Bytes, Real

Array = NDArray[np.float64]


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
    if _are_plain(products):
        # Candidates that are tried one after the other mostly share the products of a layer.
        widths = float(d.work.width), float(d.work.element)
        return _known.of(
            (k,),
            lambda: _worked_out(products, d.device, widths, k),
            tuple(products),
            d.device,
            widths,
        )
    return _worked_out(products, d.device, (d.work.width, d.work.element), k)


_known: Final[Memo[tuple[Array, Array]]] = Memo(4096)


def _are_plain(products: Sequence[Product]) -> bool:
    """Whether all figures are numbers, for one candidate."""
    return not any(isinstance(value, np.ndarray) for product in products for value in product)


def _worked_out(
    products: Sequence[Product],
    device: Device,
    widths: tuple[Bytes | Real, Bytes | Real],
    k: Kernels,
) -> tuple[Array, Array]:
    m, n, inner, batch, share, low, aligned = _columns(products)
    sides = _Sides(
        m=np.array((m, m, n)),
        n=np.array((n, inner, inner)),
        inner=np.array((inner, n, m)),
        batch=batch,
        reached=np.where(low > 0, k.product.share, k.product.share16) * aligned,
        peak=np.where(low > 0, device.peak, device.peak16),
        width=np.where(low > 0, *widths),
    )
    forward, inputs, weights = _times(sides, device, widths[1], k)
    return share * forward, share * (inputs + weights)


def _columns(products: Sequence[Product]) -> Array:
    """Each figure of the products as an array of products and candidates."""
    if _are_plain(products):
        return np.array(products, dtype=float).T[:, :, None]
    alike = np.broadcast_arrays(*(value for product in products for value in product))
    count = len(Product._fields)
    return np.array(alike).reshape(len(products), count, -1).transpose(1, 0, 2)


def _times(sides: _Sides, device: Device, result: Bytes | Real, k: Kernels) -> Array:
    """The best tile and split, or the memory's time where that is longer; results are so wide."""
    m, n, inner, batch, reached, peak, width = sides
    bandwidth = np.asarray(device.bandwidth * k.kernel.memory, dtype=float)
    shape = k.product.tile_half, k.product.wave, k.product.fill
    units = np.asarray(device.units, dtype=float)
    best = product_time((m, n, inner, batch), peak * reached, bandwidth, units, shape)
    moved = batch * product_traffic(m, n, inner, width, result)
    longest: Array = np.maximum(best, memory_time(moved, bandwidth))
    return longest
