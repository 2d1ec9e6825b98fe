"""Exchange of a model that is spread over devices: what is waited for, and what compute hides.

How long it takes is fitted to whole steps. Its bytes pass the links of the machine at such a rate
that it takes as long by itself; where something else needs the links meanwhile, they share them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from simulator.equations.collectives import exchanged_bytes, part_meanwhile
from simulator.physics.communication import Moved, Traffic
from simulator.physics.device_time import cost_model
from simulator.physics.training_step import TrainingStep
from simulator.pipeline.stages.allreduce import over_peer_link
from simulator.pipeline.stages.base import Demand, Path, Phase, Resource, asking
from simulator.schema.scenario import Scenario
from simulator.terms import Term, stated, term
from simulator.units import Real, Seconds, in_common, where

_DONE: Final = 1.0 - 2.0**-10
"""Part of the passes of a micro-batch in which hidden exchange is through, so that rounding does
not decide which of both ends last."""


@dataclass(frozen=True, slots=True)
class Exchange:
    """Tensor, pipeline, context and expert parallelism, and gathering of sharded parameters.

    What compute hides is left out.
    """

    name: str = "exchange"

    def demands(self, scenario: Scenario, phase: Phase) -> tuple[Demand, ...]:  # noqa: ARG002 - the same cold or warm
        """Bytes that pass in the time that a micro-batch waits without compute."""
        step = step_of(scenario)
        if step is None:
            return ()
        return _on_links(scenario, _of_micro_batch(scenario), step.exchange, step.hidden_exchange)


@dataclass(frozen=True, slots=True)
class HiddenExchange:
    """The same as far as compute hides it, spread over the passes of a micro-batch."""

    name: str = "hidden exchange"

    def demands(self, scenario: Scenario, phase: Phase) -> tuple[Demand, ...]:  # noqa: ARG002 - the same cold or warm
        """Bytes that pass beside compute."""
        step = step_of(scenario)
        if step is None:
            return ()
        sent = _of_micro_batch(scenario)
        return _on_links(scenario, sent, step.hidden_exchange, step.exchange, _passes(step))


@dataclass(frozen=True, slots=True)
class GradientExchange:
    """Gradients there and parameters back, once a step, as far as they are waited for."""

    name: str = "gradient exchange"

    def demands(self, scenario: Scenario, phase: Phase) -> tuple[Demand, ...]:  # noqa: ARG002 - the same cold or warm
        """Bytes that pass in the time of a step that is waited for them."""
        step = step_of(scenario)
        if step is None:
            return ()
        return _on_links(scenario, _of_gradients(scenario), step.gradients, step.hidden_gradients)


@dataclass(frozen=True, slots=True)
class HiddenGradients:
    """The same as far as compute hides it, spread over the passes of the last micro-batch."""

    name: str = "hidden gradients"

    def demands(self, scenario: Scenario, phase: Phase) -> tuple[Demand, ...]:  # noqa: ARG002 - the same cold or warm
        """Bytes that pass beside compute."""
        step = step_of(scenario)
        if step is None:
            return ()
        sent = _of_gradients(scenario)
        return _on_links(scenario, sent, step.hidden_gradients, step.gradients, _passes(step))


def step_of(scenario: Scenario) -> TrainingStep | None:
    """The step of a spread model; None where the model isn't, or its steps were measured."""
    time = None if scenario.cluster.trainers.host.gpu is None else cost_model(scenario).time
    return None if time is None else time.step


def hidden_exchange(scenario: Scenario) -> Seconds:
    """Exchange that compute hides, in one step [s]; only what `Exchange` stands for."""
    step = step_of(scenario)
    return 0.0 if step is None else float(step.hidden)


_Sent = tuple[Term, Real]
"""Bytes that a device sends, and the share of them that leaves its machine."""


def _of_micro_batch(scenario: Scenario) -> _Sent:
    found = _traffic(scenario)
    bytes_sent = term(
        exchanged_bytes,
        layers=found.layers,
        tensor=found.tensor.whole,
        experts=found.experts.whole,
        parameters=found.parameters.whole,
        sends=found.sends.whole,
    )
    return bytes_sent, found.micro_batch.outward


def _of_gradients(scenario: Scenario) -> _Sent:
    moved = _traffic(scenario).gradients
    return stated(gradients=moved.whole), moved.outward


def _traffic(scenario: Scenario) -> Traffic:
    found, none = cost_model(scenario).traffic, Moved()
    if found is not None:
        return found
    return Traffic(
        layers=0.0, tensor=none, experts=none, parameters=none, sends=none, gradients=none
    )


def _passes(step: TrainingStep) -> Seconds | Real:
    return _DONE * (step.forward + step.backward)


def _on_links(
    scenario: Scenario,
    sent: _Sent,
    meanwhile: Seconds | Real,
    otherwise: Seconds | Real,
    takes: Seconds | Real | None = None,
) -> tuple[Demand, ...]:
    """The part of what is sent that passes `meanwhile`, in this time or in that which it `takes`.

    Time in which no byte passes is a latency.
    """
    whole, outward = sent
    amount = term(part_meanwhile, whole=whole, meanwhile=meanwhile, otherwise=otherwise)
    moves, time = amount.value > 0.0, meanwhile if takes is None else takes
    if not np.any(moves) and not np.any(meanwhile):
        return ()
    rate = where(moves, amount.value / where(moves, time, 1.0), np.inf)
    idle = 0.0 if takes is not None else where(moves, 0.0, meanwhile)
    return (
        asking(
            amount,
            _resource(scenario),
            Path.EXCHANGE,
            ceiling=rate,
            latency=stated(idle=idle),
            outward=outward,
        ),
    )


def _resource(scenario: Scenario) -> Resource:
    group = scenario.cluster.trainers
    if in_common(group.count) > 1:
        return Resource.NETWORK
    return Resource.NVLINK if over_peer_link(group.host) else Resource.PCIE
