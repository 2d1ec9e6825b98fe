"""Models known by their totals only: a user's own, or published parameters and FLOPs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from simulator.errors import NotModelled
from simulator.schema.precision import Precision
from simulator.schema.workload.models import Forward, Operator, StepTimes
from simulator.schema.workload.models.layer import activation_element
from simulator.schema.workload.train import Recompute
from simulator.uncertainty.provenance import Source
from simulator.units import Bytes, Flops, Real, Seconds

_BACKWARD: Final = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class CustomModel:
    """A model as one operator; all figures but `parameters` are per sample.

    `traffic` is what a forward pass moves to and from device memory and `activation` what it keeps
    for the backward pass, at the compute precision; None: not known, and counted nowhere. Where
    `element_bytes` is given, both were counted with elements of that size and follow the precision.
    Compute and traffic of the whole model overlap perfectly, so the time is a lower bound: layers
    would tell which of them wait for memory.
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
        """All of them."""
        return self.parameters

    @property
    def cpu_seconds(self) -> Seconds:
        """None: a device does the work [s]."""
        return 0.0

    def operators(self, samples: Real, precision: Precision) -> tuple[Operator, ...]:
        """One operator for the whole forward pass over `samples` samples."""
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
        """Bytes kept for the backward pass of `samples` samples [B].

        Raises
        ------
        NotModelled
            For any recomputation: totals don't say what it saves.
        """
        if recompute is not Recompute.NONE:
            msg = f"recomputing activations of '{self.name}', which is known by its totals only"
            raise NotModelled(msg)
        return (self.activation or 0.0) * self._scale(precision) * samples

    def forward_memory(self, samples: Real, precision: Precision) -> Forward:
        """All activations: totals don't say which of them exist at a time."""
        return Forward(live=(self.activation or 0.0) * self._scale(precision) * samples)

    def _scale(self, precision: Precision) -> float:
        if self.element_bytes is None:
            return 1.0
        return activation_element(precision) / self.element_bytes
