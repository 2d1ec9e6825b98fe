"""What the model covers; a scenario beyond it is refused with a reason, never answered wrongly."""

from __future__ import annotations

from simulator.errors import NotModelled
from simulator.scenario import Scenario
from simulator.workload.train import Mode


def check_modelled(scenario: Scenario) -> None:
    """Refuse what the model doesn't cover.

    Raises
    ------
    NotModelled
        For several machines or groups, several jobs, or a mode without its own pipeline.
    """
    name = scenario.name
    if len(scenario.cluster.groups) > 1 or scenario.cluster.trainers.count > 1:
        msg = f"{name}: several machines together are not modelled yet; set hardware.count = 1"
        raise NotModelled(msg)
    if len(scenario.jobs) > 1:
        msg = f"{name}: several jobs on one machine are not modelled yet"
        raise NotModelled(msg)
    if scenario.job.mode is Mode.ROLLOUT:
        msg = f"{name}: train.mode = 'rollout' is not modelled yet; use train, infer or prepare"
        raise NotModelled(msg)
