"""Models by family; each lowers to operators with FLOPs and bytes.

`Model` is the protocol of all families, which stages and footprints use. A family is a frozen
dataclass: `convnets.ConvNet`, `transformers.Transformer`, `Dlrm` (deep-learning recommendation:
embedding tables, two MLPs and dot products between features [1]_), `CpuOnly` (support vector
machines, trees, clustering) and `CustomModel` (totals only: a user's own, or published parameters
and FLOPs). All but the last two are lists of `Layer`: FLOPs and tensor sizes counted from the
published shape, per sample. Layers of one shape are merged, so that a model is some tens of
operators and a sum of max(FLOPs / rate, bytes / bandwidth) over them means something.

What is counted: each tensor an eager framework reads or writes from device memory, every layer a
kernel of its own (no fusion but bias into the matrix product before it, and scale, mask and softmax
into one), at the compute precision. What is not: caches that outlive a kernel, workspaces, casts of
the weights, padding of odd sizes.

References
----------
.. [1] Naumov et al., "Deep Learning Recommendation Model for Personalization and Recommendation
       Systems", https://arxiv.org/abs/1906.00091
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field, replace
from enum import StrEnum
from functools import lru_cache
from itertools import pairwise
from typing import Final, NamedTuple, Protocol

import numpy as np

from simulator.errors import NotModelled
from simulator.records import dataclass
from simulator.schema.accelerators import Precision
from simulator.schema.provenance import Source
from simulator.schema.training import Recompute
from simulator.units import Bytes, Flops, Real, Seconds


class Product(NamedTuple):
    """A matrix product of a forward pass, `rows` x `inner` times `inner` x `columns`, of any model.

    A convolution is the product of its windows with its weights. `separate` products of this shape
    are computed together, such as those of heads. `share`: fraction of a model's layers that have
    it. `low`: 1 at the precision of linear layers, 0 in 16 bit. `aligned`: fraction of the rate
    that is left with the alignment of its sides. `learned`: 1 if its weights have a gradient, 0 if
    they are frozen.
    """

    rows: Real
    columns: Real
    inner: Real
    separate: Real = 1.0
    share: Real = 1.0
    low: Real = 1.0
    aligned: Real = 1.0
    learned: Real = 1.0


class Kind(StrEnum):
    """Kind of an operator that has its own fitted figures, besides products and memory traffic."""

    OTHER = "other"
    """An operator whose traffic is as counted."""
    PLAIN = "plain"
    """Norms, sums and activations of a transformer layer with a plain MLP."""
    GATED = "gated"
    """Norms, sums and activations of a transformer layer with a gated MLP."""
    ATTENTION = "attention"
    """Fused attention: one kernel that holds the attention scores on the chip."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Operator:
    """One operator of a forward pass over a batch, and its backward pass.

    `flops` and `traffic` (bytes to and from device memory) are those of the forward pass,
    `backward_flops` and `backward_traffic` of the backward pass. `training_traffic` is the part of
    `traffic` that occurs in training only, such as statistics of a batch. `matrix` work runs on the
    matrix units at the compute precision, other work at the device's memory speed. `kernels` and
    `backward_kernels` are numbers of launches: each costs the device some microseconds in addition
    to its work. `product` is the common shape of its matrix products; None if unknown. `blocks` is
    the number of thread blocks of its kernels, where it may be too small for the device's
    multiprocessors. `head`: it belongs to the output head. `kind` selects the fitted figures.
    """

    name: str
    flops: Real
    traffic: Real
    backward_flops: Real
    backward_traffic: Real
    training_traffic: Real = 0.0
    matrix: bool = True
    kernels: float = 1.0
    backward_kernels: float = 1.0
    product: Product | None = None
    blocks: float = np.inf
    head: bool = False
    kind: Kind = Kind.OTHER


@dataclass(frozen=True, slots=True, kw_only=True)
class StepTimes:
    """Measured device times of whole steps: `seconds` at `batch_sizes` (samples per device).

    `gpu` and `precision` are those of the measurement; None: the scenario's own. `channels_last`:
    the memory format of images.
    """

    batch_sizes: tuple[float, ...]
    seconds: tuple[Seconds, ...]
    source: Source
    gpu: str | None = None
    precision: Precision | None = None
    framework: str = ""
    channels_last: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Forward:
    """Memory of a forward pass for inference, without weights [B].

    `live` are the largest activations that exist at a time: input and output of a layer, and
    tensors that later layers need. `cache` is the KV cache.
    """

    live: Bytes | Real
    cache: Bytes | Real = 0.0


class Model(Protocol):
    """Interface of all model families."""

    @property
    def name(self) -> str:
        """Name in the library."""

    @property
    def parameters(self) -> float:
        """Number of trainable parameters."""

    @property
    def dense_parameters(self) -> float:
        """Number of parameters with a gradient in every step, without rows of embedding tables."""

    @property
    def step_times(self) -> tuple[StepTimes, ...]:
        """Step times measured elsewhere, best evidence first."""

    @property
    def sources(self) -> Mapping[str, Source]:
        """Sources of its figures."""

    @property
    def input_bytes(self) -> Bytes:
        """Size of one input sample as copied to the device [B]."""

    @property
    def output_bytes(self) -> Bytes:
        """Size of the results of one sample, which are copied back to the host [B]."""

    @property
    def cpu_seconds(self) -> Seconds:
        """CPU time of training on one sample, on one core [s]; 0 if a device does the work."""

    def operators(self, samples: Real, precision: Precision) -> tuple[Operator, ...]:
        """Return the forward pass over `samples` samples, operator by operator."""

    def activation_bytes(self, samples: Real, precision: Precision, recompute: Recompute) -> Real:
        """Return the bytes kept for the backward pass of `samples` samples [B]."""

    def forward_memory(self, samples: Real, precision: Precision) -> Forward:
        """Return the peak memory of an inference pass over `samples` samples, without weights."""


def forward_flops(model: Model, samples: Real, precision: Precision) -> Real | Flops:
    """Return the FLOPs of a forward pass over `samples` samples."""
    return sum((op.flops for op in model.operators(samples, precision)), 0.0)


_FLOPS_PER_MAC: Final = 2.0
_STORED_AS_16_BIT: Final = (Precision.FP8, Precision.FP4)
WIDE: Final = Precision.FP32.bytes_per_element
"""Size of an element that is fp32 at any compute precision, such as a loss [B]."""


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
    """One layer, counted per sample in elements; layers with the same name have the same shape.

    `macs` are multiply-adds of the forward pass, `backward` those of the backward pass over `macs`.
    `moved` and `moved_back` are activation elements read or written in the forward and backward
    pass, `wide` and `wide_back` those that are always fp32, `learning` the part of `moved` that
    occurs in training only. `weights` are read once per forward pass at any batch size, and twice
    in the backward pass (read, and written as their gradient). `parameters` counts all trained
    numbers of the layer. `kept` elements stay in memory until the backward pass, `kept_bytes`
    likewise if their size doesn't depend on the precision. `product` is the matrix product of one
    sample: more samples add rows or, if it has no weights, more products. `channels` is the number
    of channels with batch statistics. `live` elements exist while the layer is computed in a
    forward pass: its input, its output and tensors that later layers need. `head`: it belongs to
    the output head. `kind` selects the fitted figures.
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
        """Return this layer repeated `count` times, as one layer."""
        return replace(self, **{name: getattr(self, name) * count for name in _ADDED})

    def operator(self, samples: Real, precision: Precision) -> Operator:
        """Return the operator of this layer for `samples` samples at `precision`."""
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
    """Return the size of a stored activation element: 16 bit at lower precisions too [B]."""
    if precision in _STORED_AS_16_BIT:
        return Precision.BF16.bytes_per_element
    return precision.bytes_per_element


def merge(layers: Iterable[Layer]) -> tuple[Layer, ...]:
    """Merge layers with the same name by adding up their work, in order of first appearance.

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
"""Size of a dropout mask per value, as a fraction of an fp32 element."""


NORM: Final = (2.0, 5.0)
"""Moves of a value in a norm, forward and backward: the backward pass reads it twice, once for sums
over a row and once for the gradient, which is added up."""
SUM: Final = (3.0, 3.0)
"""Moves of a value in the sum of two branches, forward and backward."""
DROPOUT: Final = (0.0, 2.0)
"""Moves of a value in the dropout before that sum, which is one kernel with it in the forward
pass."""
GATE: Final = (3.0, 5.0)
"""Moves of a value in an activation function times the other half of a gated MLP."""
FUNCTION: Final = (2.0, 3.0)
"""Moves of a value in the activation of a plain MLP."""
TURN: Final = (2.0, 2.0)
"""Moves of a value in rotary position embedding or in a transpose of heads."""


def pass_over(  # noqa: PLR0913 - a layer of few words
    name: str,
    values: float,
    forward: float,
    backward: float,
    *,
    parameters: float = 0.0,
    kind: Kind = Kind.OTHER,
) -> Layer:
    """Return a kernel that moves `values` elements `forward` and `backward` times."""
    return Layer(
        name=name,
        moved=forward * values,
        moved_back=backward * values,
        parameters=parameters,
        matrix=False,
        kind=kind,
    )


def dropped(values: float) -> Layer:
    """Return the dropout of `values` attention probabilities, with a mask of one byte each."""
    return Layer(
        name="attention dropout",
        moved=2.0 * values,
        moved_back=2.0 * values,
        wide=MASK * values,
        wide_back=MASK * values,
        matrix=False,
    )


_BACKWARD: Final = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class CustomModel:
    """A model as one operator; all figures but `parameters` are per sample.

    `traffic` is the number of bytes that a forward pass moves to and from device memory,
    `activation` that stored for the backward pass, at the compute precision; None: unknown, and not
    counted. If `element_bytes` is given, both were counted with elements of that size and are
    scaled to the precision. Compute and traffic of the whole model overlap perfectly, so the time
    is a lower bound: which layers are limited by memory is unknown.
    """

    name: str
    parameters: float
    forward_flops: Flops
    traffic: Bytes = 0.0
    activation: Bytes | None = None
    input_bytes: Bytes = 0.0
    output_bytes: Bytes = 0.0
    kernels: float = 1.0
    element_bytes: Bytes | None = None
    step_times: tuple[StepTimes, ...] = ()
    sources: Mapping[str, Source] = field(default_factory=dict)

    @property
    def dense_parameters(self) -> float:
        """Number of parameters with a gradient in every step: all parameters of the model."""
        return self.parameters

    @property
    def cpu_seconds(self) -> Seconds:
        """CPU time of training per sample, 0: a device does the work [s]."""
        return 0.0

    def operators(self, samples: Real, precision: Precision) -> tuple[Operator, ...]:
        """Return one operator for the whole forward pass over `samples` samples."""
        flops = self.forward_flops * samples
        weights = self.parameters * precision.bytes_per_element
        traffic = self.traffic * self._scale(precision) * samples
        return (
            Operator(
                name=self.name,
                flops=flops,
                traffic=traffic + weights,
                backward_flops=_BACKWARD * flops,
                backward_traffic=_BACKWARD * (traffic + weights),
                kernels=self.kernels,
                backward_kernels=_BACKWARD * self.kernels,
            ),
        )

    def activation_bytes(self, samples: Real, precision: Precision, recompute: Recompute) -> Real:
        """Return the size of the activations stored for the backward pass of `samples` samples [B].

        Raises
        ------
        NotModelled
            For any recomputation: its saving is unknown for a model given by its totals.
        """
        if recompute is not Recompute.NONE:
            msg = f"recomputing activations of '{self.name}', which is known by its totals only"
            raise NotModelled(msg)
        return (self.activation or 0.0) * self._scale(precision) * samples

    def forward_memory(self, samples: Real, precision: Precision) -> Forward:
        """Return the memory of all activations, since the layers are unknown."""
        return Forward(live=(self.activation or 0.0) * self._scale(precision) * samples)

    def _scale(self, precision: Precision) -> float:
        if self.element_bytes is None:
            return 1.0
        return activation_element(precision) / self.element_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class CpuOnly:
    """A model without device work: `cpu_seconds` of one core for each sample of an epoch.

    `parameters` is the number of values in a trained model.
    """

    name: str
    parameters: float
    cpu_seconds: Seconds
    input_bytes: Bytes
    output_bytes: Bytes
    step_times: tuple[StepTimes, ...] = ()
    sources: Mapping[str, Source] = field(default_factory=dict)

    @property
    def dense_parameters(self) -> float:
        """Number of parameters with gradients on a device, 0."""
        return 0.0

    def operators(self, samples: Real, precision: Precision) -> tuple[Operator, ...]:
        """Return no operators."""
        del samples, precision
        return ()

    def activation_bytes(self, samples: Real, precision: Precision, recompute: Recompute) -> Real:
        """Return the activation memory on a device, 0 [B]."""
        del precision, recompute
        return 0.0 * samples

    def forward_memory(self, samples: Real, precision: Precision) -> Forward:
        """Return the memory of a forward pass on a device, 0."""
        del precision
        return Forward(live=0.0 * samples)


_INDEX_BYTES: Final = 8.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Dlrm:
    """A recommendation model that looks up one row of each embedding table for a sample.

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
        """Number of trainable parameters, mostly in embedding tables."""
        return self.rows * self.width + self.dense_parameters

    @property
    def dense_parameters(self) -> float:
        """Number of weights and biases of the two MLPs."""
        return sum(layer.parameters for layer in self._layers())

    @property
    def cpu_seconds(self) -> Seconds:
        """CPU time of training per sample, 0: a device does the work [s]."""
        return 0.0

    @property
    def input_bytes(self) -> Bytes:
        """Size of the dense features in fp32 and one 64-bit index per table [B]."""
        return WIDE * self.dense_features + _INDEX_BYTES * self.tables

    @property
    def output_bytes(self) -> Bytes:
        """Size of one probability in fp32 [B]."""
        return WIDE

    def looked_up_bytes(self, samples: Real, precision: Precision) -> Real:
        """Return the size of the table rows looked up for `samples` samples [B]."""
        return samples * self.tables * self.width * precision.bytes_per_element

    @property
    def interactions(self) -> float:
        """Number of dot products between the vectors of the tables and of the bottom MLP."""
        return (self.tables + 1) * self.tables / 2.0

    def operators(self, samples: Real, precision: Precision) -> tuple[Operator, ...]:
        """Return the operators of a forward pass over `samples` samples."""
        return tuple(layer.operator(samples, precision) for layer in self._layers())

    def activation_bytes(self, samples: Real, precision: Precision, recompute: Recompute) -> Real:
        """Return the size of the activations stored for the backward pass of `samples` samples [B].

        With full recomputation only the looked-up rows are stored.
        """
        element = activation_element(precision)
        vectors = (self.tables + 1.0) * self.width
        if recompute is Recompute.FULL:
            return vectors * element * samples
        kept = sum(layer.kept for layer in self._layers())
        return (vectors + kept) * element * samples

    def forward_memory(self, samples: Real, precision: Precision) -> Forward:
        """Return the memory of the interaction or the top MLP, the larger of the two.

        The interaction holds the vectors, their concatenation, all products and the selected ones.
        """
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
    """Yield the layers of an MLP: matrix products with bias, each with an in-place ReLU."""
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
