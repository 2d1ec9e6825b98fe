"""How long a device works on a model's operators, one after another, and how many it is given.

An operator takes the longer of its arithmetic and its traffic. Matrix products lose where their
results are too few tiles for all units; each kernel takes a while to start.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from simulator.compute.tiles import product_time
from simulator.equations.roofline import roofline_time
from simulator.scenario.workload.kernels import Launching
from simulator.scenario.workload.models import Operator, Product
from simulator.units import BytesPerSecond, FlopsPerSecond, Real, Seconds

_Array: TypeAlias = NDArray[np.float64]
_Sides: TypeAlias = tuple[_Array, _Array, _Array, _Array]
"""Rows, columns, inner dimensions and counts of products, one product a row."""
_MACS: Final = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """What a device reaches: matrix and other arithmetic [FLOP/s], memory [B/s].

    `units` compute a tile of a product each; None where their number is not known.
    """

    matrix: FlopsPerSecond
    vector: FlopsPerSecond
    memory: BytesPerSecond
    units: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """Seconds that a device is busy with a forward and a backward pass, and kernels of each."""

    forward: Seconds | Real
    backward: Seconds | Real
    kernels: float
    backward_kernels: float


def work_of(operators: Sequence[Operator], rates: Rates, launching: Launching | None) -> Work:
    """Time of all operators on the device.

    Parameters
    ----------
    operators : sequence of Operator
        Of one batch.
    rates : Rates
        What the device reaches where all of its units are busy.
    launching : Launching or None
        What kernels cost beside their work; None: nothing.
    """
    kernels = sum(op.kernels for op in operators)
    back_kernels = sum(op.backward_kernels for op in operators)
    start = 0.0 if launching is None else launching.start
    passes = 1.0 if launching is None else launching.passes
    slower = _slower(operators, rates, launching)
    forward: Real = kernels * start
    backward: Real = back_kernels * start
    for index, op in enumerate(operators):
        there, back = slower.get(index, (1.0, 1.0))
        rate = rates.matrix if op.matrix else rates.vector
        moved = 1.0 if op.matrix or np.any(op.flops) else passes
        forward = forward + roofline_time(op.flops * there, moved * op.traffic, rate, rates.memory)
        backward = backward + roofline_time(
            op.backward_flops * back, moved * op.backward_traffic, rate, rates.memory
        )
    return Work(forward=forward, backward=backward, kernels=kernels, backward_kernels=back_kernels)


def _slower(
    operators: Sequence[Operator], rates: Rates, launching: Launching | None
) -> dict[int, tuple[Real, Real]]:
    """How many times longer products take than on units that are all busy, forward and backward."""
    known = {i: op.product for i, op in enumerate(operators) if op.matrix and op.product}
    if launching is None or rates.units is None or not known:
        return {}
    m, n, inner, count = _sides(list(known.values()))
    # forward, gradient of the input, gradient of the weights
    there, to_input, to_weights = (
        _factor((*sides, count), rates, launching)
        for sides in ((m, n, inner), (m, inner, n), (n, inner, m))
    )
    found = {}
    for row, index in enumerate(known):
        op = operators[index]
        own = np.minimum(1.0, op.flops / np.maximum(op.backward_flops, 1.0))
        found[index] = (there[row], own * to_weights[row] + (1.0 - own) * to_input[row])
    return found


def _sides(products: Sequence[Product]) -> _Sides:
    """Rows, columns, inner dimensions and counts of products, one product a row."""
    sides = [(p.rows, p.columns, p.inner, p.separate) for p in products]
    ones = np.ones_like(sum(np.asarray(side, dtype=float) for one in sides for side in one))
    m, n, inner, count = np.array([[side * ones for side in one] for one in sides]).swapaxes(0, 1)
    return m, n, inner, count


def _factor(sides: _Sides, rates: Rates, launching: Launching) -> _Array:
    """Time over that on units that are all busy, with the best tile and number of parts."""
    m, n, inner, count = sides
    units, shape = float(rates.units or 1.0), (launching.tile_half, launching.wave, 0.0)
    best = rates.matrix * product_time(sides, rates.matrix, rates.memory, units, shape)
    factor: _Array = best / (_MACS * m * n * inner * count)
    return factor
