"""Accelerators (GPUs, TPUs, Gaudi, Trainium and the like) and their number formats."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated, Final

from simulator.schema.fields import (
    DERIVED,
    ByteFigure,
    ByteRateFigure,
    Choice,
    CountFigure,
    FlopRateFigure,
    FractionFigure,
    NameFigure,
    PowerFigure,
    Profile,
    TextField,
)
from simulator.schema.provenance import Source


class Precision(StrEnum):
    """A number format for the bulk of the arithmetic; TF32 is NVIDIA's 19-bit tensor format."""

    FP64 = "fp64"
    FP32 = "fp32"
    TF32 = "tf32"
    FP16 = "fp16"
    BF16 = "bf16"
    FP8 = "fp8"
    FP4 = "fp4"
    INT8 = "int8"

    @property
    def bytes_per_element(self) -> float:
        """Bytes one stored element takes [B]."""
        return _ELEMENT_BYTES[self]


_ELEMENT_BYTES = {
    Precision.FP64: 8.0,
    Precision.FP32: 4.0,
    Precision.TF32: 4.0,
    Precision.FP16: 2.0,
    Precision.BF16: 2.0,
    Precision.FP8: 1.0,
    Precision.FP4: 0.5,
    Precision.INT8: 1.0,
}


_DTYPES: Final = (
    ("float32", "fp32"),
    ("single", "fp32"),
    ("float16", "fp16"),
    ("half", "fp16"),
    ("bfloat16", "bf16"),
    ("float64", "fp64"),
    ("double", "fp64"),
)
"""Names of torch.dtype."""
PrecisionField = Annotated[Precision, Choice(Precision, also=_DTYPES)]


class Stack(StrEnum):
    """The software an accelerator is programmed with; it limits what runs there."""

    CUDA = "cuda"
    ROCM = "rocm"
    METAL = "metal"
    NEURON = "neuron"
    GAUDI = "gaudi"
    TPU = "tpu"


@dataclass(frozen=True, slots=True, kw_only=True)
class Relative:
    """The nearest measured relative of a device whose architecture was not measured.

    `device` is its profile and `architecture` that whose kernels are used. `best` is the share of
    its peak that its best measured matrix product reached, `products` that of large ones in the
    median, `memory` the share of its memory's bandwidth that those reach that only read.
    """

    device: str
    architecture: str
    best: float
    products: float
    memory: float
    source: Source


@dataclass(frozen=True, slots=True, kw_only=True)
class Outdone:
    """An architecture whose kernels were measured to reach a larger share of their memory's rate.

    `ratio` is the share of the bandwidth that the device's kernels reach over that of those of
    `architecture`. A better data sheet may be slower by so much where memory limits.
    """

    architecture: str
    ratio: float
    source: Source


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu(Profile):
    """One accelerator as a program sees it (a K80 board holds two of them).

    `relative` lends its kernels and, where the profile states none, its multiprocessors; None where
    kernels of the device's own architecture were measured. `outdone` is None where no measured
    architecture reaches more of its memory's bandwidth. `emulated`: there is no device, a program
    waits as long as one would compute.
    """

    maker: TextField
    """Who makes it."""
    architecture: TextField
    """Its generation."""
    stack: Annotated[Stack, Choice(Stack)]
    """The software it is programmed with."""
    memory: ByteFigure
    """Device memory a program can have."""
    memory_bandwidth: ByteRateFigure
    """Datasheet bandwidth of that memory."""
    peak: Mapping[PrecisionField, FlopRateFigure]
    """Dense datasheet rate by number format."""
    achievable: Mapping[PrecisionField, FlopRateFigure] = field(default_factory=dict)
    """Best rate measured on a real matrix product."""
    product_share: Mapping[PrecisionField, FractionFigure] = field(default_factory=dict)
    """Share of the peak that large matrix products reach: the median over many shapes."""
    memory_share: FractionFigure | None = None
    """Share of the memory's bandwidth that products of few rows reach, which only read weights: the
    median over many shapes."""
    fallback: Mapping[PrecisionField, PrecisionField] = field(default_factory=dict)
    """Formats the device lacks, and the format at whose rate they run."""
    achievable_memory_bandwidth: ByteRateFigure | None = None
    """Best bandwidth measured."""
    host_link: NameFigure | None = None
    """Name of the link to the host."""
    peer_link: NameFigure | None = None
    """Name of the link to its peers, all lanes together."""
    power: PowerFigure | None = None
    """Power limit."""
    idle_power: PowerFigure | None = None
    """Power of one that nothing runs on, its driver loaded."""
    multiprocessors: CountFigure | None = None
    """Groups of its cores (streaming multiprocessors) that programs can use: tiles of a matrix
    product that run side by side."""
    relative: Relative | None = field(default=None, metadata=DERIVED)
    outdone: Outdone | None = field(default=None, metadata=DERIVED)
    unified_memory: bool = False
    """Whether it shares the host's RAM, so that nothing is copied to it."""
    inference_only: bool = False
    """Whether its vendor doesn't offer training on it."""
    desktop: bool = False
    """Whether it is made for machines under a desk: one that is owned pays for no data centre."""
    emulated: bool = field(default=False, metadata=DERIVED)

    @property
    def best(self) -> float:
        """Share of the peak that the best product measured on the device reached [1].

        Its clock was as low as matrix units bring it. 1 where none was measured.
        """
        shares = [rate / self.peak[name] for name, rate in self.achievable.items()]
        return max(shares, default=1.0)

    @property
    def streamed(self) -> float:
        """Share of the memory's bandwidth that was measured; 1 where it was not."""
        return (self.achievable_memory_bandwidth or self.memory_bandwidth) / self.memory_bandwidth

    @property
    def reach(self) -> float:
        """Efficiency of the relative's kernels on this device over that on the relative [1].

        Large matrix products that were measured on the device say so: their share of the peak over
        that on the relative. Else its best one does, 1 at most; 1 where none was measured, or the
        device has no relative.
        """
        large = self.product_share.get(Precision.BF16)
        if self.relative is not None and large is not None:
            return large / self.relative.products
        if self.relative is None or not self.achievable:
            return 1.0
        return min(1.0, self.best / self.relative.best)

    @property
    def streaming(self) -> float:
        """The same of kernels that memory limits, as a factor of their share of the bandwidth."""
        if self.relative is None or self.memory_share is None:
            return 1.0
        return self.memory_share / self.relative.memory


EMULATED = Gpu(
    name="emulated accelerator",
    maker="",
    architecture="",
    stack=Stack.CUDA,
    memory=0.0,
    memory_bandwidth=0.0,
    peak={},
    unified_memory=True,
    emulated=True,
    note="a program that waits for the time of a step; nothing is copied to it",
)
"""Used instead of an accelerator whose work is only waited for."""
