"""How long a device works on operators, of any model family, and how many kernels they are.

A matrix product takes what its tiles take, or the longer time to move what it reads and writes.
Other operators take the longer of their arithmetic and their traffic, and each kernel a while to
start.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from simulator.compute.kernels import NOTHING, Both, Terms, clock, device_terms
from simulator.compute.products import Gemms, Units, forward_and_backward, stacked, three_passes
from simulator.equations.pipeline import device_work
from simulator.equations.roofline import roofline_time
from simulator.scenario.workload.kernels import Launching
from simulator.scenario.workload.models import Operator
from simulator.terms import term
from simulator.units import BytesPerSecond, FlopsPerSecond, Real, Seconds

_Array: TypeAlias = NDArray[np.float64]
_MACS: Final = 2.0

BLOCK_RATE: Final = 10e9
"""What one block of threads streams, alone on its unit [B/s]: fitted to one row, ResNet-50 in fp16
channels-first on an A100 SXM (lambdal/deeplearning-benchmark@aa5addb6 pytorch-train-throughput-v2,
2025). Rows of the same table on H100, GH200, H200 and B200 check it (docs/evidence-scaling.md)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """What a device reaches: matrix and other arithmetic [FLOP/s], memory [B/s].

    `units` compute a tile of a product each; None where their number is not known. `throttle` is
    how far the clock sinks when only matrix units work, as a share of it.
    """

    matrix: FlopsPerSecond
    vector: FlopsPerSecond
    memory: BytesPerSecond
    units: float | None = None
    throttle: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What a device is busy with in a forward and a backward pass, and kernels of each."""

    terms: Terms
    kernels: float
    backward_kernels: float

    @property
    def forward(self) -> Seconds | Real:
        """The forward pass [s]."""
        return self.terms.forward.value

    @property
    def backward(self) -> Seconds | Real:
        """The backward pass [s]."""
        return self.terms.backward.value

    def redone(self, share: float) -> Work:
        """The same with a share of the forward pass once more in the backward one."""
        forward, backward = self.terms
        again = {**backward.inputs, "again": share * self.forward}
        return Work(
            terms=Terms(forward, term(device_work, **again)),
            kernels=self.kernels,
            backward_kernels=self.backward_kernels + share * self.kernels,
        )


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
    kernels = Both(
        sum(op.kernels for op in operators), sum(op.backward_kernels for op in operators)
    )
    starts = kernels.times(0.0 if launching is None else launching.start)
    passes = 1.0 if launching is None else launching.passes
    tiled = [op for op in operators if _is_tiled(op, rates, launching)]
    whole = [op for op in operators if op.matrix and not _is_tiled(op, rates, launching)]
    products = _tiled(tiled, rates, launching) + _rooflines(whole, rates, rates.matrix, 1.0)
    others = [op for op in operators if not op.matrix]
    moved = _rooflines(others, rates, rates.vector, passes)
    if any(op.matrix for op in operators):
        host = kernels.times(0.0 if launching is None else launching.kernel)
        products = products.times(clock(products, moved + starts, host, rates.throttle))
    return Work(
        terms=device_terms(products, passes=moved, starts=starts),
        kernels=float(kernels.forward),
        backward_kernels=float(kernels.backward),
    )


def _is_tiled(op: Operator, rates: Rates, launching: Launching | None) -> bool:
    """Whether the shape of an operator's products and the device's units are known."""
    known = launching is not None and rates.units is not None
    return known and op.matrix and op.product is not None


def _rooflines(
    operators: Sequence[Operator], rates: Rates, rate: FlopsPerSecond, passes: float
) -> Both:
    """Operators one after another; those without arithmetic move `passes` of their traffic."""
    time = NOTHING
    for op in operators:
        moved = 1.0 if np.any(op.flops) else passes
        memory = _memory(op, rates)
        time += Both(
            roofline_time(op.flops, moved * op.traffic, rate, memory),
            roofline_time(op.backward_flops, moved * op.backward_traffic, rate, memory),
        )
    return time


def _memory(op: Operator, rates: Rates) -> BytesPerSecond:
    """The memory's rate, or that of the units that an operator's few blocks keep busy."""
    if rates.units is None or np.isinf(op.blocks):
        return rates.memory
    return min(rates.memory, min(op.blocks, rates.units) * BLOCK_RATE)


def _tiled(operators: Sequence[Operator], rates: Rates, launching: Launching | None) -> Both:
    """Products forward, and the gradients of their inputs and weights, as far as each is counted.

    Where a backward pass has less arithmetic than two gradients, that of the input is left out.
    """
    if not operators or launching is None or rates.units is None:
        return NOTHING
    rows = [
        (*op.product[:4], op.flops, op.backward_flops, op.traffic, op.backward_traffic)
        for op in operators
        if op.product is not None
    ]
    m, n, inner, count, flops, back, traffic, back_traffic = stacked(rows)
    one = _MACS * m * n * inner * count
    of_weights = np.minimum(1.0, flops / np.maximum(back, 1.0))
    shares = np.array((np.ones_like(of_weights), 1.0 - of_weights, of_weights))
    all_flops = shares * np.array((flops, back, back))
    moved = shares * np.array((traffic, back_traffic, back_traffic))
    units = Units(
        rate=rates.matrix,
        bandwidth=rates.memory,
        tiles=rates.units,
        half=launching.tile_half,
        wave=launching.wave,
        fill=launching.fill,
    )
    gemms = Gemms(*three_passes(m, n, inner), count, all_flops / one, moved)
    candidates = np.broadcast_shapes(*(np.shape(value) for row in rows for value in row))
    forward, backward = forward_and_backward(gemms, units)
    return Both(_sum(forward, candidates), _sum(backward, candidates))


def _sum(times: _Array, candidates: tuple[int, ...]) -> Real:
    """Sum over products: a number, or an array as the candidates stand."""
    total: Real = times.sum(axis=0).reshape(candidates)[()]
    return total
