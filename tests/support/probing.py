"""A device that takes as long as it says, and a probe of a machine made up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from simulator.probe.disk import MIN_FILE, Place
from simulator.probe.reading import Unmeasurable
from simulator.schema.accelerators import Precision

PEAK = 400e12
"""Rate of bf16 products of the made-up device [FLOP/s]."""
UP, DOWN, PAGEABLE, INSIDE = 20e9, 18e9, 8e9, 1.5e12
"""Its copies [B/s]."""
LAUNCH = 4e-6
PLACE = Place(folder=Path(), space=MIN_FILE)


@dataclass(slots=True)
class FakeDevice:
    """An accelerator without tf32, whose times follow from its rates."""

    product: str = "Made Up 9000"
    memory: float = 80e9
    count: int = 1
    software: str = "torch 2, CUDA 12"
    bus: float = 300e9
    calls: list[str] = field(default_factory=list)

    def multiply(self, precision: Precision, shape: tuple[int, int, int], repeats: int) -> float:
        """Half the rate on the smallest shape, and a rate for each format."""
        if precision is Precision.TF32:
            msg = "no such format"
            raise Unmeasurable(msg)
        self.calls.append(f"{precision} {repeats}")
        m, n, k = shape
        rate = PEAK * (2.0 / precision.bytes_per_element) * (0.5 if m * n * k < 2**34 else 1.0)
        return 2.0 * m * n * k / rate

    def copy(self, size: float, repeats: int, source: str = "cuda", target: str = "cuda") -> float:
        """Device memory is read and written; to and from the host at rates of their own."""
        if source == target:
            self.calls.append(f"copy {repeats}")
            return 2.0 * size / INSIDE
        up, pinned = target == "cuda", "pinned" in {source, target}
        self.calls.append(f"{'upload' if up else 'download'} {repeats}")
        return size / ((UP if up else DOWN) if pinned else PAGEABLE)

    def launch(self, repeats: int) -> float:
        """A small kernel."""
        self.calls.append(f"launch {repeats}")
        return LAUNCH

    def all_reduce(self, sizes: tuple[float, ...], repeats: int) -> Mapping[float, float]:
        """As a ring whose links carry `bus`."""
        self.calls.append(f"all-reduce {repeats}")
        share = 2.0 * (self.count - 1) / self.count
        return {size: 20e-6 + size * share / self.bus for size in sizes}
