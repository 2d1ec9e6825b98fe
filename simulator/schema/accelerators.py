"""Accelerators (GPUs, TPUs, Gaudi, Trainium and the like) and their number formats."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from enum import StrEnum
from typing import Annotated, Final

from simulator.records import dataclass
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
    """A number format of most of the arithmetic; TF32 is NVIDIA's 19-bit tensor format."""

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
        """Size of one stored element [B]."""
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
"""Names of the number formats in ``torch.dtype``."""
PrecisionField = Annotated[Precision, Choice(Precision, also=_DTYPES)]


class Stack(StrEnum):
    """The software stack an accelerator is programmed with; it limits which programs run there."""

    CUDA = "cuda"
    ROCM = "rocm"
    METAL = "metal"
    NEURON = "neuron"
    GAUDI = "gaudi"
    TPU = "tpu"


@dataclass(frozen=True, slots=True, kw_only=True)
class Relative:
    """The most similar measured device of a device whose architecture was not measured.

    `device` is its profile; `architecture` is the architecture whose fitted kernels are used.
    `best` is the fraction of its peak FLOP/s that its fastest measured matrix product reached,
    `products` the median fraction over large matrix products, and `memory` the fraction of its
    memory bandwidth reached by products with few rows, which only read weights.
    """

    device: str
    architecture: str
    best: float
    products: float
    memory: float
    source: Source


@dataclass(frozen=True, slots=True, kw_only=True)
class Outdone:
    """Another architecture whose kernels reach a larger fraction of peak memory bandwidth.

    `ratio` is the bandwidth efficiency of this device over that of `architecture`. Where memory is
    the limit, a device with better datasheet values may be slower by this factor.
    """

    architecture: str
    ratio: float
    source: Source


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu(Profile):
    """One accelerator as a program sees it (a K80 board holds two of them).

    `relative` is the device whose fitted kernels and, where the profile states none, number of
    multiprocessors are used; None where kernels of the device's own architecture were measured.
    `outdone` is None where no measured architecture reaches a larger fraction of its memory
    bandwidth. `emulated`: there is no device, a program waits for the time that one would compute.
    """

    maker: TextField
    """Manufacturer."""
    architecture: TextField
    """Architecture, the generation of the device."""
    stack: Annotated[Stack, Choice(Stack)]
    """Software stack it is programmed with."""
    memory: ByteFigure
    """Device memory available to programs."""
    memory_bandwidth: ByteRateFigure
    """Datasheet bandwidth of the device memory."""
    peak: Mapping[PrecisionField, FlopRateFigure]
    """Dense datasheet rate by number format."""
    achievable: Mapping[PrecisionField, FlopRateFigure] = field(default_factory=dict)
    """Best rate measured on a real matrix product."""
    product_share: Mapping[PrecisionField, FractionFigure] = field(default_factory=dict)
    """Share of the peak that large matrix products reach: the median over many shapes."""
    memory_share: FractionFigure | None = None
    """Share of the memory bandwidth that products of few rows reach, which only read weights: the
    median over many shapes."""
    fallback: Mapping[PrecisionField, PrecisionField] = field(default_factory=dict)
    """Formats the device lacks, and the format at whose rate they run."""
    achievable_memory_bandwidth: ByteRateFigure | None = None
    """Best memory bandwidth measured."""
    host_link: NameFigure | None = None
    """Name of the link to the host."""
    peer_link: NameFigure | None = None
    """Name of the link to other accelerators, all lanes together."""
    bridge: NameFigure | None = None
    """Name of the link of a bridge that can join two such cards, all bridges together."""
    peer_access: bool = True
    """Whether such cards read each other's memory over PCIe; GeForce cards do not."""
    power: PowerFigure | None = None
    """Power limit."""
    idle_power: PowerFigure | None = None
    """Power of an idle device with its driver loaded."""
    multiprocessors: CountFigure | None = None
    """Number of streaming multiprocessors that programs can use: tiles of a matrix product that are
    computed at the same time."""
    relative: Relative | None = field(default=None, metadata=DERIVED)
    outdone: Outdone | None = field(default=None, metadata=DERIVED)
    unified_memory: bool = False
    """Whether it shares the host's RAM, so that nothing is copied to it."""
    inference_only: bool = False
    """Whether its vendor offers it for inference only."""
    desktop: bool = False
    """Whether it is made for machines under a desk: an owned one has no data-centre costs."""
    emulated: bool = field(default=False, metadata=DERIVED)

    @property
    def best(self) -> float:
        """Fraction of the peak that the fastest measured product on the device reached [1].

        It was measured at the clock to which matrix work throttles the device; 1 if none was
        measured.
        """
        shares = [rate / self.peak[name] for name, rate in self.achievable.items()]
        return max(shares, default=1.0)

    @property
    def streamed(self) -> float:
        """Measured fraction of the datasheet memory bandwidth; 1 if it was not measured."""
        return (self.achievable_memory_bandwidth or self.memory_bandwidth) / self.memory_bandwidth

    @property
    def reach(self) -> float:
        """Ratio of the efficiency of matrix products on this device to that on its relative [1].

        Computed from the median fraction of the peak of large products where both were measured,
        else from the fastest product, with a maximum of 1. 1 if none was measured or the device has
        no relative.
        """
        large = self.product_share.get(Precision.BF16)
        if self.relative is not None and large is not None:
            return large / self.relative.products
        if self.relative is None or not self.achievable:
            return 1.0
        return min(1.0, self.best / self.relative.best)

    @property
    def streaming(self) -> float:
        """Ratio of the memory-bandwidth efficiency on this device to that on its relative [1].

        1 if it was not measured or the device has no relative.
        """
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
"""Placeholder for an accelerator whose compute time is only waited for."""
