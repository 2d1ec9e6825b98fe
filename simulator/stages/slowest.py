"""Wait at the barrier of a step for the rank that is latest by chance."""

from __future__ import annotations

from dataclasses import dataclass

from simulator.device_time import device_time
from simulator.equations.stragglers import wait_for_slowest
from simulator.scenario import Scenario
from simulator.stages.base import Actor, Demand, Phase, Resource, passing
from simulator.workload.train import Mode

WAITING = "slowest rank"
"""What the stage is called; ranks do it together, after the step's all-reduce."""


@dataclass(frozen=True, slots=True)
class Slowest:
    """All ranks of a job wait for the slowest, over all machines, once a step.

    Of each rank's own random delay only the mean of the maximum is counted, so a run without
    other randomness stays deterministic and its cost does not grow with the ranks.
    """

    name: str = WAITING
    actor: Actor = Actor.COMPUTE_STREAM
    once_a_step: bool = True

    def demands(self, scenario: Scenario, phase: Phase) -> tuple[Demand, ...]:  # noqa: ARG002 - the same cold or warm
        """Time that passes and uses nothing."""
        train, time = scenario.job.train, device_time(scenario)
        if train.straggling == 0.0 or time is None or scenario.job.mode is not Mode.TRAIN:
            return ()
        share = train.straggling / scenario.calibration.value("straggling")
        delay = share * time.total * train.accumulation
        return (
            passing(
                wait_for_slowest(delay, scenario.ranks),
                Resource.NETWORK,
                equation="stragglers.wait_for_slowest",
                inputs={
                    "straggling": share,
                    "compute of a step [s]": time.total * train.accumulation,
                    "ranks": scenario.ranks,
                },
            ),
        )
