"""Accelerators: GPUs, TPUs, Gaudi, Trainium and the like."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from simulator.confidence.provenance import Source
from simulator.scenario.precision import Precision
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
    its peak that its best measured matrix product reached.
    """

    device: str
    architecture: str
    best: float
    source: Source


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """One accelerator as a program sees it (a K80 board holds two of them).

    `peak` is the dense datasheet rate by precision, `achievable` the best rate measured on a
    real matrix product, `product_share` the share of the peak that large products reach in the
    median. A precision in `fallback` runs at the rate of the one it maps to.
    `power` is its limit, `idle_power` what it draws when nothing runs on it.
    `multiprocessors` is how many tiles of a matrix product run side by side. `relative` lends its
    kernels and, where the profile states none, its multiprocessors; None where kernels of the
    device's own architecture were measured.
    `unified_memory`: the device shares the host's RAM, so nothing is copied to it.
    `inference_only`: the maker doesn't offer training on it. `emulated`: there is none, a program
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
    fallback: Mapping[Precision, Precision] = field(default_factory=dict)
    achievable_memory_bandwidth: BytesPerSecond | None = None
    host_link: str | None = None
    peer_link: str | None = None
    power: Watts | None = None
    idle_power: Watts | None = None
    multiprocessors: int | None = None
    relative: Relative | None = None
    unified_memory: bool = False
    inference_only: bool = False
    emulated: bool = False
    note: str = ""
    sources: Mapping[str, Source] = field(default_factory=dict)

    @property
    def reach(self) -> float:
        """What kernels of the relative reach here of what they reach there, as a factor [1].

        The best matrix product that was measured on the device says so: its share of the peak over
        that on the relative, 1 at most. 1 where none was measured, or the device has no relative.
        """
        shares = [rate / self.peak[name] for name, rate in self.achievable.items()]
        if self.relative is None or not shares:
            return 1.0
        return min(1.0, max(shares) / self.relative.best)


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
