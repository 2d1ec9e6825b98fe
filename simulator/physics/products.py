"""Times of matrix products of any model family, all at once, as one array."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from simulator.equations.gemm import memory_time, product_time, product_traffic
from simulator.memo import Memo
from simulator.physics.description import Description, Device
from simulator.schema.workload.kernels import Kernels, ProductFigures
from simulator.schema.workload.models import Product
from simulator.units import Bytes, BytesPerSecond, FlopsPerSecond, Real

Array = NDArray[np.float64]


class Gemms(NamedTuple):
    """Matrix products as arrays: rows are products, columns candidates.

    `m` x `inner` times `inner` x `n`, `batch` side by side, `repeat` times one after another; all
    repeats together move `traffic`. Sides may stand in layers, one a pass.
    """

    m: Array
    n: Array
    inner: Array
    batch: Array
    repeat: Array | float
    traffic: Array


class Units(NamedTuple):
    """What matrix products run on, with the best tile on all units.

    `rate` is that of all units [FLOP/s], `bandwidth` the memory's [B/s]; `tiles` are computed
    at once, one a unit, as `figures` say.
    """

    rate: FlopsPerSecond | Real
    bandwidth: BytesPerSecond | Real
    tiles: Real
    figures: ProductFigures


def gemm_seconds(g: Gemms, units: Units) -> Array:
    """Seconds of products: by the best tile and cut, or the memory's time where that is longer."""
    f = units.figures
    shape = units.tiles, f.tile_half, f.wave, f.fill
    best = product_time(g.m, g.n, g.inner, g.batch, units.rate, units.bandwidth, *shape)
    longest: Array = np.maximum(g.repeat * best, memory_time(g.traffic, units.bandwidth))
    return longest


def three_passes(m: Array, n: Array, inner: Array) -> tuple[Array, Array, Array]:
    """Sides of products forward, of the gradient of their input, and of that of their weights."""
    return np.array((m, m, n)), np.array((n, inner, inner)), np.array((inner, n, m))


def forward_and_backward(g: Gemms, units: Units) -> tuple[Array, Array]:
    """Seconds of products forward, and of their gradients; sides stand as `three_passes` has them.

    Whatever differs between the passes, such as `traffic`, has three layers too.
    """
    forward, inputs, weights = gemm_seconds(g, units)
    return forward, inputs + weights


def stacked(rows: Sequence[Sequence[Real]]) -> Array:
    """Figures of rows as one array: figures, then rows, then candidates (one, if all are plain)."""
    if _are_plain(rows):
        return np.array(rows, dtype=float).T[:, :, None]
    alike = np.array(np.broadcast_arrays(*(value for row in rows for value in row)), dtype=float)
    return alike.reshape(len(rows), len(rows[0]), -1).transpose(1, 0, 2)


def _are_plain(rows: Sequence[Sequence[Real]]) -> bool:
    """Whether all figures are numbers, for one candidate."""
    return not any(isinstance(value, np.ndarray) for row in rows for value in row)


def product_times(products: Sequence[Product], d: Description, k: Kernels) -> tuple[Array, Array]:
    """Seconds of each product, forward and backward (gradients of what is not frozen).

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


def _worked_out(
    products: Sequence[Product],
    device: Device,
    widths: tuple[Bytes | Real, Bytes | Real],
    k: Kernels,
) -> tuple[Array, Array]:
    m, n, inner, batch, share, low, aligned, learned = stacked(products)
    m, n, inner = three_passes(m, n, inner)
    width, result = np.where(low > 0, *widths), widths[1]
    moved = share * batch * product_traffic(m, n, inner, width, result)
    peak = np.where(low > 0, device.peak, device.peak16)
    units = Units(
        rate=peak * (np.where(low > 0, k.product.share, k.product.share16) * aligned),
        bandwidth=np.asarray(device.bandwidth * k.kernel.memory, dtype=float),
        tiles=np.asarray(device.units, dtype=float),
        figures=k.product,
    )
    forward, inputs, weights = gemm_seconds(Gemms(m, n, inner, batch, share, moved), units)
    return forward, inputs + learned * weights
