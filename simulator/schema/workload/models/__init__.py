"""Models by family; each lowers to operators with FLOPs and bytes.

`Model` is what stages and footprints ask of any family. A family is a frozen dataclass: `convnet`
(built layer by layer by `resnet`, `efficientnet` and `unet`), `transformer`, `recommender`,
`cpu_only`, and `custom` for models known by their totals only. All but the last two are lists of
`layer.Layer`: FLOPs and tensor sizes counted from the published shape, per sample. Layers of one
shape are merged, so that a model is some tens of operators and a sum of
max(FLOPs / rate, bytes / bandwidth) over them means something.

What is counted: each tensor an eager framework reads or writes from device memory, every layer a
kernel of its own (no fusion but bias into the matrix product before it, and scale, mask and softmax
into one), at the compute precision. What is not: caches that outlive a kernel, workspaces, casts of
the weights, padding of odd sizes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple, Protocol

import numpy as np

from simulator.schema.precision import Precision
from simulator.schema.workload.train import Recompute
from simulator.uncertainty.provenance import Source
from simulator.units import Bytes, Flops, Real, Seconds


class Product(NamedTuple):
    """A matrix product of a forward pass: `rows` x `inner` times `inner` x `columns`, of any model.

    A convolution is the product of its windows with its weights. `separate` products of this
    shape are computed side by side, such as those of heads. `share`: of a model's layers, how many
    have it. `low`: 1 at the precision of linear layers, 0 in 16 bit. `aligned`: share of the rate
    that the alignment of its sides leaves. `learned`: 1 where its weights have a gradient, 0 where
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
    """Which figures hold for an operator beside those of all products and of memory."""

    OTHER = "other"
    """What it moves is as counted."""
    PLAIN = "plain"
    """Norms, sums, activations of a transformer's layer with a plain MLP."""
    GATED = "gated"
    """The same with a gated one."""
    ATTENTION = "attention"
    """One kernel that keeps scores on the chip."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Operator:
    """One piece of a forward pass over a batch.

    `flops` and `traffic` (bytes to and from device memory) are those of the forward pass,
    `backward_flops` and `backward_traffic` of the backward pass. `training_traffic` is what of the
    forward pass's `traffic` only training moves, such as statistics of a batch. `matrix` work runs
    on the matrix units at the compute precision, other work at the device's memory speed. `kernels`
    and `backward_kernels` count the launches it stands for: each costs the device some microseconds
    however little work is in it. `product` is the shape of its matrix products, all alike; None
    where it is not known. `blocks` are those of threads that its kernels consist of, where they may
    be too few for the device's units. `head`: it is of the part that gives scores. `kind` says
    which figures hold for it.
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

    `gpu` and `precision` name what they were measured on; None: the scenario's own device.
    `channels_last`: images lay so in memory.
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
    """Memory of a forward pass that nothing is learned from [B].

    `live` are the largest activations that exist at a time: what a layer reads and writes, and what
    later layers wait for. `cache` are keys and values, which the next tokens are computed from.
    """

    live: Bytes | Real
    cache: Bytes | Real = 0.0


class Model(Protocol):
    """What any model family answers."""

    @property
    def name(self) -> str:
        """Its name in the library."""

    @property
    def parameters(self) -> float:
        """Trainable parameters."""

    @property
    def dense_parameters(self) -> float:
        """Those that every step has a gradient for; rows of a table are only if looked up."""

    @property
    def step_times(self) -> tuple[StepTimes, ...]:
        """Step times measured elsewhere, best evidence first."""

    @property
    def sources(self) -> Mapping[str, Source]:
        """Where its figures came from."""

    @property
    def input_bytes(self) -> Bytes:
        """Bytes of one sample as the device takes it [B]."""

    @property
    def output_bytes(self) -> Bytes:
        """Bytes of the results of one sample copied back to the host [B]."""

    @property
    def cpu_seconds(self) -> Seconds:
        """Time of one host core that one sample takes to learn from [s]; 0 on a device."""

    def operators(self, samples: Real, precision: Precision) -> tuple[Operator, ...]:
        """The forward pass over `samples` samples, operator by operator."""

    def activation_bytes(self, samples: Real, precision: Precision, recompute: Recompute) -> Real:
        """Bytes kept for the backward pass of `samples` samples [B]."""

    def forward_memory(self, samples: Real, precision: Precision) -> Forward:
        """What a forward pass alone over `samples` samples holds beside weights."""


def forward_flops(model: Model, samples: Real, precision: Precision) -> Real | Flops:
    """FLOPs of a forward pass over `samples` samples [FLOP]."""
    return sum((op.flops for op in model.operators(samples, precision)), 0.0)
