"""Waiting for an optimizer that runs on the host."""

from __future__ import annotations

from dataclasses import dataclass

from simulator.scenario import Scenario
from simulator.stages.base import Demand, Path, Phase, Resource, passing
from simulator.stages.exchange import step_of


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
        host, inputs = step.host, {"bytes of a machine's update": step.host.moved}
        return (
            passing(host.sent, Resource.PCIE, equation="offload.late_copies", inputs=inputs),
            Demand(
                resource=Resource.HOST_MEMORY,
                path=Path.MEMORY,
                amount=host.moved / scenario.ranks_per_host,
                ceiling=host.rate / scenario.ranks_per_host,
                equation="offload.host_update_bytes, shared by the machine's ranks",
                inputs={**inputs, "ranks of a machine": scenario.ranks_per_host},
            ),
            passing(host.fetched, Resource.PCIE, equation="offload.late_copies", inputs=inputs),
        )
