"""Waiting for an optimizer that runs on the host."""

from __future__ import annotations

from dataclasses import dataclass

from simulator.pipeline.stages.base import Demand, Path, Phase, Resource, asking, passing
from simulator.pipeline.stages.exchange import step_of
from simulator.schema.scenario import Scenario
from simulator.terms import quotient_of


@dataclass(frozen=True, slots=True)
class HostOptimizer:
    """Gradients to the host as far as seen, its update, and parameters back as far as seen.

    The update shares host memory with whatever else uses it.
    """

    name: str = "optimizer on the host"

    def demands(self, scenario: Scenario, phase: Phase) -> tuple[Demand, ...]:  # noqa: ARG002 - the same cold or warm
        """Time that passes, bytes through host memory, and time again."""
        step = step_of(scenario)
        if step is None or not scenario.job.parallelism.offload_optimizer:
            return ()
        host, ranks = step.host, scenario.ranks_per_host
        return (
            passing(host.sending, Resource.PCIE),
            asking(
                quotient_of(machine=host.moving, ranks=ranks),
                Resource.HOST_MEMORY,
                Path.MEMORY,
                ceiling=host.rate / ranks,
            ),
            passing(host.fetching, Resource.PCIE),
        )
