"""Deep-learning recommendation: embedding tables, two MLPs and dot products between features.

References
----------
.. [1] Naumov et al., "Deep Learning Recommendation Model for Personalization and Recommendation
       Systems", https://arxiv.org/abs/1906.00091
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

from simulator.schema.precision import Precision
from simulator.schema.workload.models import Forward, Operator, Product, StepTimes
from simulator.schema.workload.models.layer import WIDE, Layer, activation_element
from simulator.schema.workload.train import Recompute
from simulator.uncertainty.provenance import Source
from simulator.units import Bytes, Real, Seconds

_INDEX_BYTES: Final = 8.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Dlrm:
    """A recommendation model: one row of each table is looked up for a sample.

    `rows` is the number of rows of all `tables` together, each of `width` values. `bottom` and
    `top` are the layer widths of the MLP over the `dense_features` and of the MLP over all dot
    products; the last of `bottom` equals `width`.
    """

    name: str
    tables: int
    rows: float
    width: int
    dense_features: int
    bottom: tuple[int, ...]
    top: tuple[int, ...]
    step_times: tuple[StepTimes, ...] = ()
    sources: Mapping[str, Source] = field(default_factory=dict)

    @property
    def parameters(self) -> float:
        """Trainable parameters, mostly rows of the tables."""
        return self.rows * self.width + self.dense_parameters

    @property
    def dense_parameters(self) -> float:
        """Weights and biases of the two MLPs."""
        return sum(layer.parameters for layer in self._layers())

    @property
    def cpu_seconds(self) -> Seconds:
        """None: a device does the work [s]."""
        return 0.0

    @property
    def input_bytes(self) -> Bytes:
        """The dense features in fp32 and one 64-bit index a table [B]."""
        return WIDE * self.dense_features + _INDEX_BYTES * self.tables

    @property
    def output_bytes(self) -> Bytes:
        """One probability in fp32 [B]."""
        return WIDE

    def looked_up_bytes(self, samples: Real, precision: Precision) -> Real:
        """Rows that are looked up for so many samples, as they are handed on [B]."""
        return samples * self.tables * self.width * precision.bytes_per_element

    @property
    def interactions(self) -> float:
        """Dot products between the tables' vectors and the bottom MLP's."""
        return (self.tables + 1) * self.tables / 2.0

    def operators(self, samples: Real, precision: Precision) -> tuple[Operator, ...]:
        """The forward pass over `samples` samples."""
        return tuple(layer.operator(samples, precision) for layer in self._layers())

    def activation_bytes(self, samples: Real, precision: Precision, recompute: Recompute) -> Real:
        """Bytes kept for the backward pass of `samples` samples [B].

        Full recomputation keeps the looked-up rows only.
        """
        element = activation_element(precision)
        vectors = (self.tables + 1.0) * self.width
        if recompute is Recompute.FULL:
            return vectors * element * samples
        kept = sum(layer.kept for layer in self._layers())
        return (vectors + kept) * element * samples

    def forward_memory(self, samples: Real, precision: Precision) -> Forward:
        """The interaction: vectors, their copy side by side, all products, those picked."""
        vectors = (self.tables + 1.0) * self.width
        joined = self.interactions + self.width
        live = max(2.0 * vectors + (self.tables + 1.0) ** 2 + joined, joined + self.top[0])
        return Forward(live=live * activation_element(precision) * samples)

    def _layers(self) -> Iterator[Layer]:
        looked_up = float(self.tables * self.width)
        # backward: the gradient is read and each row is read and written
        yield Layer(
            name="embedding",
            moved=2.0 * looked_up,
            moved_back=3.0 * looked_up,
            wide=_INDEX_BYTES / WIDE * self.tables,
            wide_back=_INDEX_BYTES / WIDE * self.tables,
            matrix=False,
        )
        yield from _mlp("bottom MLP", (self.dense_features, *self.bottom))
        joined = self.interactions + self.width
        vectors = (self.tables + 1.0) * self.width
        yield Layer(
            name="interaction",
            macs=(self.tables + 1.0) ** 2 * self.width,
            # vectors are copied side by side, multiplied, and the products picked and joined
            moved=3.0 * vectors + 3.0 * joined,
            moved_back=5.0 * vectors + 3.0 * joined,
            kept=joined,
            kernels=4.0,
            backward_kernels=4.0,
            product=Product(rows=self.tables + 1.0, columns=self.tables + 1.0, inner=self.width),
        )
        yield from _mlp("top MLP", (joined, *self.top))


def _mlp(name: str, widths: tuple[float, ...]) -> Iterator[Layer]:
    """Matrix products with bias, a ReLU in place after each."""
    for index, (inputs, outputs) in enumerate(pairwise(widths), start=1):
        yield Layer(
            name=f"{name} {index}",
            macs=inputs * outputs,
            moved=inputs + 3.0 * outputs,
            moved_back=2.0 * (inputs + outputs) + 3.0 * outputs,
            weights=inputs * outputs,
            parameters=inputs * outputs + outputs,
            kept=outputs,
            kernels=2.0,
            backward_kernels=3.0,
            product=Product(rows=1.0, columns=outputs, inner=inputs),
        )
