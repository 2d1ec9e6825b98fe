"""Models that learn on the host's cores: support vector machines, trees, clustering."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from simulator.schema.precision import Precision
from simulator.schema.workload.models import Forward, Operator, StepTimes
from simulator.schema.workload.train import Recompute
from simulator.uncertainty.provenance import Source
from simulator.units import Bytes, Real, Seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class CpuOnly:
    """A model without device work: `cpu_seconds` of one core for each sample of an epoch.

    `parameters` are the numbers a trained model holds.
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
        """None: nothing is learned by gradients on a device."""
        return 0.0

    def operators(self, samples: Real, precision: Precision) -> tuple[Operator, ...]:
        """Nothing, for any `samples` and `precision`."""
        del samples, precision
        return ()

    def activation_bytes(self, samples: Real, precision: Precision, recompute: Recompute) -> Real:
        """Nothing is kept on a device [B]."""
        del precision, recompute
        return 0.0 * samples

    def forward_memory(self, samples: Real, precision: Precision) -> Forward:
        """Nothing lies on a device."""
        del precision
        return Forward(live=0.0 * samples)
