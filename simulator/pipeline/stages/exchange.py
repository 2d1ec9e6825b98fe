"""Waiting for the exchange of a model that is spread over devices."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from simulator.compute.cost_model import cost_model
from simulator.compute.step import TrainingStep
from simulator.pipeline.stages.base import Demand, Phase, Resource, passing
from simulator.scenario.scenario import Scenario
from simulator.terms import Term
from simulator.units import Seconds


@dataclass(frozen=True, slots=True)
class Exchange:
    """Tensor, pipeline, context and expert parallelism, and gathering of sharded parameters.

    What compute hides is left out; so are the links, which no other stage uses meanwhile.
    """

    name: str = "exchange"

    def demands(self, scenario: Scenario, phase: Phase) -> tuple[Demand, ...]:  # noqa: ARG002 - the same cold or warm
        """Time of a micro-batch that passes without compute."""
        step = step_of(scenario)
        return () if step is None else (_waiting(step.terms["exchange"], scenario),)


@dataclass(frozen=True, slots=True)
class GradientExchange:
    """Gradients there and parameters back, once a step, as far as they are waited for."""

    name: str = "gradient exchange"

    def demands(self, scenario: Scenario, phase: Phase) -> tuple[Demand, ...]:  # noqa: ARG002 - the same cold or warm
        """Time of a step that passes without compute."""
        step = step_of(scenario)
        return () if step is None else (_waiting(step.terms["gradients"], scenario),)


def step_of(scenario: Scenario) -> TrainingStep | None:
    """The step of a spread model; None where the model isn't, or its steps were measured."""
    time = None if scenario.cluster.trainers.host.gpu is None else cost_model(scenario).time
    return None if time is None else time.step


def hidden_exchange(scenario: Scenario) -> Seconds:
    """Exchange that compute hides, in one step [s]; only what `Exchange` stands for."""
    step = step_of(scenario)
    return 0.0 if step is None else float(step.hidden)


def uncounted_links(scenario: Scenario) -> frozenset[Resource]:
    """Links whose load is not known, since an exchange on them is only known as time."""
    step, group = step_of(scenario), scenario.cluster.trainers
    if step is None or not np.any(step.exposed + step.hidden):
        return frozenset()
    between = {Resource.NETWORK} if group.count > 1 else set()
    return frozenset({Resource.NVLINK, *between})


def _waiting(seconds: Term, scenario: Scenario) -> Demand:
    several = scenario.cluster.trainers.count > 1
    return passing(seconds, Resource.NETWORK if several else Resource.NVLINK)
