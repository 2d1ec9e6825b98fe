"""Waiting in each step for the rank that is latest by chance, and for the slowest device."""

from __future__ import annotations

from dataclasses import dataclass

from simulator.equations.stragglers import (
    left_to_wait,
    mean_delay,
    wait_for_slow_device,
    wait_for_slowest,
)
from simulator.physics.device_time import DeviceTime, cost_model
from simulator.pipeline.stages.base import Demand, Phase, Resource, passing
from simulator.pipeline.stragglers import slowest_factor
from simulator.schema.scenario import Scenario
from simulator.schema.workload.train import Mode
from simulator.terms import Term, term
from simulator.units import Real


@dataclass(frozen=True, slots=True)
class Slowest:
    """All ranks of a job wait for the slowest, over all machines, once a step.

    Of each rank's own random delay only the mean of the maximum is counted, so a run without
    other randomness stays deterministic and its cost does not grow with the ranks.
    """

    name: str = "slowest rank"

    def demands(self, scenario: Scenario, phase: Phase) -> tuple[Demand, ...]:  # noqa: ARG002 - the same cold or warm
        """Time that passes and uses nothing."""
        time = cost_model(scenario).time
        if scenario.job.train.straggling == 0.0 or time is None or not _meets(scenario):
            return ()
        return (passing(_wait_for_rank(scenario, time), Resource.NETWORK),)


@dataclass(frozen=True, slots=True)
class SlowestDevice:
    """All devices of a job wait for the slowest of them, once a step.

    Their speeds differ as `train.device_spread` and `train.step_jitter` say. Devices that split a
    replica wait for each other as replicas do: within a layer, or, as stages of a pipeline, since
    the slowest sets the pace of all micro-batches. So all count alike, at the compute of the stage
    that has most to do; what a pipeline's fill and drain take is not made longer. Waiting for late
    ranks (`Slowest`) has other causes, so only what this one adds to it is counted.
    """

    name: str = "slowest device"

    def demands(self, scenario: Scenario, phase: Phase) -> tuple[Demand, ...]:  # noqa: ARG002 - the same cold or warm
        """Time that passes and uses nothing."""
        train, time = scenario.job.train, cost_model(scenario).time
        varies = train.device_spread.varies or train.step_jitter.varies
        if not varies or time is None or scenario.devices == 1 or not _meets(scenario):
            return ()
        longer = term(
            wait_for_slow_device,
            compute=(time.forward + time.backward) * train.accumulation + time.optimizer,
            slowest=slowest_factor(train.device_spread, train.step_jitter, scenario.devices),
            straggling=scenario.calibration.value("straggling"),
        )
        late = _wait_for_rank(scenario, time) if train.straggling else 0.0
        return (passing(term(left_to_wait, wait=longer, lag=late), Resource.GPU),)


def _meets(scenario: Scenario) -> bool:
    """Whether steps end together."""
    return scenario.job.mode is Mode.TRAIN


def _share(scenario: Scenario) -> Real:
    """Mean delay of a rank's step over its compute [1]."""
    return scenario.job.train.straggling / scenario.calibration.value("straggling")


def _wait_for_rank(scenario: Scenario, time: DeviceTime) -> Term:
    """Wait for the rank that is latest by chance [s]."""
    delay = term(
        mean_delay,
        share=_share(scenario),
        batch=time.total,
        batches=scenario.job.train.accumulation,
    )
    return term(wait_for_slowest, delay=delay, ranks=scenario.ranks)
