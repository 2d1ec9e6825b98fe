"""What the training program does in each step while the device waits."""

from __future__ import annotations

from dataclasses import dataclass

from simulator.pipeline.stages.base import Demand, Phase, Resource, passing
from simulator.schema.scenario import Scenario
from simulator.terms import stated


@dataclass(frozen=True, slots=True)
class Program:
    """Bookkeeping of the training loop: logging, statistics, callbacks.

    It is stated as a time, of one thread that always finds a core.
    """

    name: str = "program"

    def demands(self, scenario: Scenario, phase: Phase) -> tuple[Demand, ...]:  # noqa: ARG002 - the same cold or warm
        """Time that passes and uses nothing."""
        overhead = scenario.job.train.step_overhead
        if overhead == 0.0:
            return ()
        return (passing(stated(step_overhead=overhead), Resource.CPU),)
