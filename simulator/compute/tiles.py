"""Time of matrix products on units that compute a tile of the result each, for any model family."""

from __future__ import annotations

from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from simulator.equations.gemm import PARTIAL_BYTES, SPLIT_FROM, memory_time, occupied_flops
from simulator.units import BytesPerSecond, FlopsPerSecond, Real

Array: TypeAlias = NDArray[np.float64]
Sides: TypeAlias = tuple[Array, Array, Array, Array]
"""Rows and columns of results, inner dimensions, and counts of products side by side."""

_SPLITS: Final = (1.0, 4.0, 16.0, 64.0, 256.0)
"""Into how many parts, computed side by side, the inner dimension is cut.

Gradients of weights sum over all positions of a batch, so libraries cut them finely.
"""


def product_time(
    sides: Sides,
    rate: FlopsPerSecond | Real,
    bandwidth: BytesPerSecond | Real,
    units: Real,
    shape: tuple[float, float, float],
) -> Array:
    """Seconds of products by the best tile and the best cut of their inner dimension.

    Parameters
    ----------
    sides : tuple of array
        Of each product.
    rate : float or array
        What all units together reach with the best tile [FLOP/s].
    bandwidth : float or array
        What partial sums are written and read at [B/s].
    units : float or array
        Units that compute a tile each.
    shape : tuple of float
        Intensity at which a tile reaches half its rate, what an unfilled last wave costs, and steps
        along the inner dimension that filling a tile's pipeline takes.
    """
    m, n, inner, count = sides
    half, wave, fill = shape
    uncut = occupied_flops(m, n, inner + fill, count, units, half, wave) / rate
    best: Array = np.asarray(uncut, dtype=float)
    for parts in _SPLITS[1:]:
        enough = inner >= SPLIT_FROM * parts
        if not enough.any():
            break
        steps = inner / parts + fill
        time = occupied_flops(m, n, steps, count * parts, units, half, wave) / rate
        extra = memory_time(PARTIAL_BYTES * parts * m * n * count, bandwidth)
        best = np.where(enough, np.minimum(best, time + extra), best)
    return best
