"""One layer of a model, counted per sample, kernels that only move memory, and operators."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final

import numpy as np

from simulator.schema.precision import Precision
from simulator.schema.workload.models import Kind, Operator, Product
from simulator.units import Bytes, Real

_FLOPS_PER_MAC: Final = 2.0
_STORED_AS_16_BIT: Final = (Precision.FP8, Precision.FP4)
WIDE: Final = Precision.FP32.bytes_per_element
"""Bytes of an element that is fp32 whatever the compute precision, such as a loss."""


_ADDED: Final = (
    "macs",
    "moved",
    "moved_back",
    "learning",
    "wide",
    "wide_back",
    "weights",
    "parameters",
    "kept",
    "kept_bytes",
    "kernels",
    "backward_kernels",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """One layer, counted per sample in elements; layers of one name have one shape.

    `macs` are multiply-adds of the forward pass, `backward` how many times as many the backward
    pass takes. `moved` and `moved_back` are activation elements read or written in the forward and
    backward pass, `wide` and `wide_back` those that are always fp32, `learning` how many
    of `moved` are for training alone. `weights` are read once
    a forward pass whatever the batch, and twice in the backward pass (read, and written as their
    gradient). `parameters` are all learned numbers of the layer. `kept` elements stay in memory
    until the backward pass, `kept_bytes` likewise where their size doesn't follow the precision.
    `product` is the matrix product of one sample: samples add rows to it or, where it has no
    weights, more products beside it. `channels` are those that a layer has
    statistics of. `live` elements exist while it is computed in a forward pass: its input, its
    output and what later layers wait for. `head`: it is of the part that gives scores. `kind` says
    which figures hold for it.
    """

    name: str
    macs: float = 0.0
    backward: float = 2.0
    moved: float = 0.0
    moved_back: float = 0.0
    learning: float = 0.0
    wide: float = 0.0
    wide_back: float = 0.0
    weights: float = 0.0
    parameters: float = 0.0
    kept: float = 0.0
    kept_bytes: Bytes = 0.0
    live: float = 0.0
    matrix: bool = True
    kernels: float = 1.0
    backward_kernels: float = 1.0
    product: Product | None = None
    channels: float = np.inf
    head: bool = False
    kind: Kind = Kind.OTHER

    def times(self, count: float) -> Layer:
        """The same layer `count` times over, under one name."""
        return replace(self, **{name: getattr(self, name) * count for name in _ADDED})

    def operator(self, samples: Real, precision: Precision) -> Operator:
        """The operator that this layer is for `samples` samples at `precision`."""
        element = activation_element(precision)
        weights = self.weights * precision.bytes_per_element
        flops = _FLOPS_PER_MAC * self.macs * samples
        return Operator(
            name=self.name,
            flops=flops,
            traffic=(self.moved * element + self.wide * WIDE) * samples + weights,
            backward_flops=self.backward * flops,
            backward_traffic=(self.moved_back * element + self.wide_back * WIDE) * samples
            + 2.0 * weights,
            training_traffic=self.learning * element * samples,
            matrix=self.matrix,
            kernels=self.kernels,
            backward_kernels=self.backward_kernels,
            product=self._product(samples),
            blocks=self.channels,
            head=self.head,
            kind=self.kind,
        )

    def _product(self, samples: Real) -> Product | None:
        one = self.product
        if one is None:
            return None
        if self.weights:
            return one._replace(rows=one.rows * samples)
        return one._replace(separate=one.separate * samples)


def activation_element(precision: Precision) -> Bytes:
    """Bytes of one stored activation [B]; below 16 bit only the factors of a product shrink."""
    if precision in _STORED_AS_16_BIT:
        return Precision.BF16.bytes_per_element
    return precision.bytes_per_element


def merge(layers: Iterable[Layer]) -> tuple[Layer, ...]:
    """Layers with those of one name added up, in order of first appearance.

    The layers of one name must have one shape (or move memory only), so that the larger of compute
    and memory time of the sum is the sum of the larger ones.
    """
    return _merged(tuple(layers))


@lru_cache(maxsize=64)
def _merged(layers: tuple[Layer, ...]) -> tuple[Layer, ...]:
    groups: dict[str, list[Layer]] = {}
    for layer in layers:
        groups.setdefault(layer.name, []).append(layer)
    return tuple(_sum(group) for group in groups.values())


def _sum(group: list[Layer]) -> Layer:
    return replace(group[0], **{n: sum(getattr(layer, n) for layer in group) for n in _ADDED})


MASK: Final = 1.0 / WIDE
"""A dropout mask's byte, counted in elements of fp32."""


NORM: Final = (2.0, 5.0)
"""How often a value moves in a norm, forward and backward: twice read in the backward pass, once
for sums over a row, once for the gradient, which is added up."""
SUM: Final = (3.0, 3.0)
"""Likewise where a branch is added to the other one."""
DROPOUT: Final = (0.0, 2.0)
"""Likewise in the dropout before that, one kernel with it forward."""
GATE: Final = (3.0, 5.0)
"""Likewise in a function times the other half of a gated MLP."""
FUNCTION: Final = (2.0, 3.0)
"""Likewise in the activation of a plain MLP."""
TURN: Final = (2.0, 2.0)
"""Likewise where positions turn it, or where it is laid out anew for heads."""


def pass_over(  # noqa: PLR0913 - a layer of few words
    name: str,
    values: float,
    forward: float,
    backward: float,
    *,
    parameters: float = 0.0,
    kind: Kind = Kind.OTHER,
) -> Layer:
    """A kernel that moves `values` elements `forward` and `backward` times."""
    return Layer(
        name=name,
        moved=forward * values,
        moved_back=backward * values,
        parameters=parameters,
        matrix=False,
        kind=kind,
    )


def dropped(values: float) -> Layer:
    """Dropout of `values` probabilities, with a mask of a byte each."""
    return Layer(
        name="attention dropout",
        moved=2.0 * values,
        moved_back=2.0 * values,
        wide=MASK * values,
        wide_back=MASK * values,
        matrix=False,
    )
