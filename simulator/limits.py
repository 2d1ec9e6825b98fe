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
        For combinations of machines and jobs that no solver covers, and for a neural network on
        cores without a measured step time.
    """
    name = scenario.name
    job, trainers = scenario.job, scenario.cluster.trainers
    if trainers.count > 1 and (job.remote is not None or job.copies > 1):
        msg = (
            f"{name}: several machines that train, together with remote workers or with several "
            "jobs, are not modelled; set hardware.count = 1"
        )
        raise NotModelled(msg)
    if trainers.gpus_per_host and trainers.gpus_per_host % job.copies:
        msg = (
            f"{name}: {trainers.gpus_per_host} accelerators cannot be shared equally by "
            f"{job.copies} jobs"
        )
        raise NotModelled(msg)
    if job.parallelism.splits_model:
        msg = f"{name}: a model spread over several accelerators is not modelled yet"
        raise NotModelled(msg)
    if trainers.host.gpu is None and _needs_device(scenario):
        model = "" if job.model is None else job.model.name
        msg = (
            f"{name}: no rate is known at which cores compute '{model}'; give model.step_times "
            "measured there"
        )
        raise NotModelled(msg)


def _needs_device(scenario: Scenario) -> bool:
    """Whether the model's time can only come from a device."""
    job = scenario.job
    if job.model is None or job.step_times is not None or job.mode is Mode.PREPARE:
        return False
    return job.model.cpu_seconds == 0.0
