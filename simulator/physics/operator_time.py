"""How long a device works on operators, of any model family, and how many kernels they are.

A matrix product takes what its tiles take, or the longer time to move what it reads and writes.
Other operators take the longer of their arithmetic and their traffic, and each kernel a while to
start.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from simulator.equations.roofline import roofline_time
from simulator.physics import launch
from simulator.physics.description import NOT_REDONE, Redone
from simulator.physics.kernels import NOTHING, Both, Parts, Terms, device_terms, launched
from simulator.physics.products import Gemms, Units, forward_and_backward, stacked, three_passes
from simulator.schema.workload.kernels import Kernels
from simulator.schema.workload.models import Kind, Operator
from simulator.units import BytesPerSecond, FlopsPerSecond, Real, Seconds

_Array: TypeAlias = NDArray[np.float64]
_MACS: Final = 2.0

BLOCK_RATE: Final = 10e9
"""What one block of threads streams, alone on its unit [B/s]: fitted to one row, ResNet-50 in fp16
channels-first on an A100 SXM (lambdal/deeplearning-benchmark@aa5addb6 pytorch-train-throughput-v2,
2025). Rows of the same table on H100, GH200, H200 and B200 check it
(docs/internals/evidence-scaling.md)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """What a device reaches: matrix and other arithmetic [FLOP/s], memory [B/s].

    `attention` in one kernel, forward and backward [FLOP/s]. `units` compute a tile of a product
    each; None where their number is not known. `throttle` is how far the clock sinks when only
    matrix units work, as a share of it.
    """

    matrix: FlopsPerSecond
    vector: FlopsPerSecond
    memory: BytesPerSecond
    attention: tuple[FlopsPerSecond, FlopsPerSecond]
    units: float | None = None
    throttle: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """A forward and a backward pass: on the device and on the host that launches its kernels.

    `kernels` is their number, with those launched again, `host` the time to launch them.
    """

    terms: Terms
    kernels: Both
    host: Both

    @property
    def forward(self) -> Seconds | Real:
        """The forward pass [s]."""
        return self.terms.forward.value

    @property
    def backward(self) -> Seconds | Real:
        """The backward pass [s]."""
        return self.terms.backward.value


def work_of(
    operators: Sequence[Operator], rates: Rates, k: Kernels | None, redone: Redone = NOT_REDONE
) -> Work:
    """Time of all operators.

    Parameters
    ----------
    operators : sequence of Operator
        Of one batch.
    rates : Rates
        What the device reaches where all of its units are busy.
    k : Kernels or None
        What kernels reach and cost beside their work; None: cores, which nobody launches kernels
        on.
    redone : Redone
        What the backward pass does again.
    """
    number = Both(sum(op.kernels for op in operators), sum(op.backward_kernels for op in operators))
    attention = [op for op in operators if op.kind is Kind.ATTENTION]
    products = [op for op in operators if op.matrix and op.kind is not Kind.ATTENTION]
    tiled = [op for op in products if _is_tiled(op, rates, k)]
    whole = [op for op in products if not _is_tiled(op, rates, k)]
    parts = Parts(
        products=_tiled(tiled, rates, k) + _rooflines(whole, rates, rates.matrix),
        attention=Both(
            _rooflines(attention, rates, rates.attention[0]).forward,
            _rooflines(attention, rates, rates.attention[1]).backward,
        ),
        passes=_passes([op for op in operators if not op.matrix], rates, k),
        starts=number.times(0.0 if k is None else k.kernel.start),
        host=NOTHING if k is None else launch.of_kernels(number, k).times(k.launch.factor),
    )
    terms, host = device_terms(parts, rates.throttle, redone), launched(parts.host, redone)
    if k is not None:
        terms = Terms(
            launch.beside(k, terms.forward, host.forward),
            launch.beside(k, terms.backward, host.backward),
        )
    return Work(terms=terms, kernels=launched(number, redone), host=host)


def _is_tiled(op: Operator, rates: Rates, k: Kernels | None) -> bool:
    """Whether the shape of an operator's products and the device's units are known."""
    return k is not None and rates.units is not None and op.product is not None


def _rooflines(operators: Sequence[Operator], rates: Rates, rate: FlopsPerSecond) -> Both:
    """Operators one after another."""
    time = NOTHING
    for op in operators:
        memory = _memory(op, rates)
        time += Both(
            roofline_time(op.flops, op.traffic, rate, memory),
            roofline_time(op.backward_flops, op.backward_traffic, rate, memory),
        )
    return time


def _passes(operators: Sequence[Operator], rates: Rates, k: Kernels | None) -> Both:
    """Operators without products; those without arithmetic move more or less than is counted."""
    moved = [op if np.any(op.flops) else _as_moved(op, k) for op in operators]
    return _rooflines(moved, rates, rates.vector)


def _as_moved(op: Operator, k: Kernels | None) -> Operator:
    """An operator with the traffic that kernels of the framework have over what is counted."""
    if k is None:
        return op
    fitted = {Kind.PLAIN: k.kernel.plain, Kind.GATED: k.kernel.gated}
    factor = fitted.get(op.kind, k.kernel.others)
    if factor == 1.0:
        return op
    return replace(op, traffic=factor * op.traffic, backward_traffic=factor * op.backward_traffic)


def _memory(op: Operator, rates: Rates) -> BytesPerSecond:
    """The memory's rate, or that of the units that an operator's few blocks keep busy."""
    if rates.units is None or np.isinf(op.blocks):
        return rates.memory
    return min(rates.memory, min(op.blocks, rates.units) * BLOCK_RATE)


def _tiled(operators: Sequence[Operator], rates: Rates, k: Kernels | None) -> Both:
    """Products forward, and the gradients of their inputs and weights, as far as each is counted.

    Where a backward pass has less arithmetic than two gradients, that of the input is left out.
    """
    if not operators or k is None or rates.units is None:
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
    units = Units(rates.matrix, rates.memory, rates.units, k.product)
    gemms = Gemms(*three_passes(m, n, inner), count, all_flops / one, moved)
    candidates = np.broadcast_shapes(*(np.shape(value) for row in rows for value in row))
    forward, backward = forward_and_backward(gemms, units)
    return Both(_sum(forward, candidates), _sum(backward, candidates))


def _sum(times: _Array, candidates: tuple[int, ...]) -> Real:
    """Sum over products: a number, or an array as the candidates stand."""
    total: Real = times.sum(axis=0).reshape(candidates)[()]
    return total
