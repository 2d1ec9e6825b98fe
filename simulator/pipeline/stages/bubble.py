"""Waiting for the other stages of a pipeline."""

from __future__ import annotations

from dataclasses import dataclass

from simulator.pipeline.stages.base import Demand, Phase, Resource, passing
from simulator.pipeline.stages.exchange import step_of
from simulator.schema.scenario import Scenario
from simulator.units import in_common


@dataclass(frozen=True, slots=True)
class Bubble:
    """A step's first micro-batch on its way there, and its last on its way back."""

    name: str = "pipeline bubble"

    def demands(self, scenario: Scenario, phase: Phase) -> tuple[Demand, ...]:  # noqa: ARG002 - the same cold or warm
        """Time of a step that passes without compute."""
        step, degrees = step_of(scenario), scenario.job.parallelism
        if step is None or in_common(degrees.pipeline) == 1:
            return ()
        return (passing(step.terms["bubble"], Resource.GPU),)
