"""Models by family; each lowers to operators with FLOPs and bytes.

`Model` is what stages and footprints ask of any family.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from simulator.precision import Precision
from simulator.provenance import Source
from simulator.units import Bytes, Flops, Real, Seconds
from simulator.workload.train import Recompute


@dataclass(frozen=True, slots=True, kw_only=True)
class Operator:
    """One piece of a forward pass over a batch.

    `flops` and `traffic` (bytes to and from device memory) are those of the forward pass,
    `backward_flops` and `backward_traffic` of the backward pass. `matrix` work runs on the
    matrix units at the compute precision, other work at the device's memory speed.
    """

    name: str
    flops: Real
    traffic: Real
    backward_flops: Real
    backward_traffic: Real
    matrix: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class StepTimes:
    """Measured device times of whole steps: `seconds` at `batch_sizes` (samples per device).

    `gpu` and `precision` name what they were measured on; None: the scenario's own device.
    """

    batch_sizes: tuple[float, ...]
    seconds: tuple[Seconds, ...]
    source: Source
    gpu: str | None = None
    precision: Precision | None = None
    framework: str = ""


class Model(Protocol):
    """What any model family answers."""

    @property
    def name(self) -> str:
        """Its name in the library."""

    @property
    def parameters(self) -> float:
        """Trainable parameters."""

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

    def operators(self, samples: Real, precision: Precision) -> tuple[Operator, ...]:
        """The forward pass over `samples` samples, operator by operator."""

    def activation_bytes(self, samples: Real, precision: Precision, recompute: Recompute) -> Real:
        """Bytes kept for the backward pass of `samples` samples [B]."""


def forward_flops(model: Model, samples: Real, precision: Precision) -> Real | Flops:
    """FLOPs of a forward pass over `samples` samples [FLOP]."""
    return sum((op.flops for op in model.operators(samples, precision)), 0.0)
