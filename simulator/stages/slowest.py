"""Waiting in each step for the rank that is latest by chance, and for the slowest device."""

from __future__ import annotations

from dataclasses import dataclass

from simulator.compute.device_time import DeviceTime, device_time
from simulator.equations.stragglers import left_to_wait, wait_for_slowest
from simulator.lateness import slowest_factor
from simulator.scenario import Scenario
from simulator.stages.base import Demand, Phase, Resource, passing
from simulator.units import Real
from simulator.workload.train import Mode


@dataclass(frozen=True, slots=True)
class Slowest:
    """All ranks of a job wait for the slowest, over all machines, once a step.

    Of each rank's own random delay only the mean of the maximum is counted, so a run without
    other randomness stays deterministic and its cost does not grow with the ranks.
    """

    name: str = "slowest rank"

    def demands(self, scenario: Scenario, phase: Phase) -> tuple[Demand, ...]:  # noqa: ARG002 - the same cold or warm
        """Time that passes and uses nothing."""
        time = device_time(scenario)
        if scenario.job.train.straggling == 0.0 or time is None or not _meets(scenario):
            return ()
        return (
            passing(
                _wait_for_rank(scenario, time),
                Resource.NETWORK,
                equation="stragglers.wait_for_slowest",
                inputs={
                    "straggling": _share(scenario),
                    "compute of a step [s]": time.total * scenario.job.train.accumulation,
                    "ranks": scenario.ranks,
                },
            ),
        )


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
        train, time = scenario.job.train, device_time(scenario)
        varies = train.device_spread.varies or train.step_jitter.varies
        if not varies or time is None or scenario.devices == 1 or not _meets(scenario):
            return ()
        factor = slowest_factor(train.device_spread, train.step_jitter, scenario.devices)
        compute = (time.forward + time.backward) * train.accumulation + time.optimizer
        longer = compute * (factor - 1.0) / scenario.calibration.value("straggling")
        late = _wait_for_rank(scenario, time) if train.straggling else 0.0
        return (
            passing(
                left_to_wait(longer, late),
                Resource.GPU,
                equation="lateness.slowest_factor, stragglers.left_to_wait",
                inputs={
                    "device_spread": train.device_spread.relative_deviation,
                    "step_jitter": train.step_jitter.relative_deviation,
                    "devices": scenario.devices,
                    "slowest over mean": factor,
                    "compute of a step [s]": compute,
                    "wait for late ranks [s]": late,
                },
            ),
        )


def _meets(scenario: Scenario) -> bool:
    """Whether steps end together."""
    return scenario.job.mode is Mode.TRAIN


def _share(scenario: Scenario) -> Real:
    """Mean delay of a rank's step over its compute [1]."""
    return scenario.job.train.straggling / scenario.calibration.value("straggling")


def _wait_for_rank(scenario: Scenario, time: DeviceTime) -> Real:
    """Wait for the rank that is latest by chance [s]."""
    delay = _share(scenario) * time.total * scenario.job.train.accumulation
    return wait_for_slowest(delay, scenario.ranks)
