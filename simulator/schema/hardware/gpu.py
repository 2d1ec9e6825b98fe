"""Accelerators: GPUs, TPUs, Gaudi, Trainium and the like."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from simulator.schema.precision import Precision
from simulator.uncertainty.provenance import Source
from simulator.units import Bytes, BytesPerSecond, FlopsPerSecond, Watts


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
    """The nearest measured relative of a device whose architecture nobody measured.

    `device` is its profile and `architecture` that whose kernels stand in. `best` is the share of
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
class Gpu:
    """One accelerator as a program sees it (a K80 board holds two of them).

    `peak` is the dense datasheet rate by precision, `achievable` the best rate measured on a
    real matrix product, `product_share` the share of the peak that large products reach in the
    median, `memory_share` that of the memory's bandwidth that products of few rows reach, which
    only read weights. A precision in `fallback` runs at the rate of the one it maps to.
    `power` is its limit, `idle_power` what it draws when nothing runs on it.
    `multiprocessors` is how many tiles of a matrix product run side by side. `relative` lends its
    kernels and, where the profile states none, its multiprocessors; None where kernels of the
    device's own architecture were measured. `outdone` is None where no measured architecture
    reaches more of its memory's bandwidth.
    `unified_memory`: the device shares the host's RAM, so nothing is copied to it.
    `inference_only`: the maker doesn't offer training on it. `desktop`: it is made for machines
    under a desk. `emulated`: there is none, a program
    waits as long as one would compute.
    """

    name: str
    maker: str
    architecture: str
    stack: Stack
    memory: Bytes
    memory_bandwidth: BytesPerSecond
    peak: Mapping[Precision, FlopsPerSecond]
    achievable: Mapping[Precision, FlopsPerSecond] = field(default_factory=dict)
    product_share: Mapping[Precision, float] = field(default_factory=dict)
    memory_share: float | None = None
    fallback: Mapping[Precision, Precision] = field(default_factory=dict)
    achievable_memory_bandwidth: BytesPerSecond | None = None
    host_link: str | None = None
    peer_link: str | None = None
    power: Watts | None = None
    idle_power: Watts | None = None
    multiprocessors: int | None = None
    relative: Relative | None = None
    outdone: Outdone | None = None
    unified_memory: bool = False
    inference_only: bool = False
    desktop: bool = False
    emulated: bool = False
    note: str = ""
    sources: Mapping[str, Source] = field(default_factory=dict)

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
        """What kernels of the relative reach here of what they reach there, as a factor [1].

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
"""What stands in an accelerator's place where its work is only waited for."""
