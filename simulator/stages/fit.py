"""Compute on the host's cores: models that have no device work."""

from __future__ import annotations

from dataclasses import dataclass

from simulator.scenario import Scenario
from simulator.stages.base import Actor, Demand, Path, Phase, Resource


@dataclass(frozen=True, slots=True)
class Fit:
    """The main process learns from a batch, on as many threads as the machine has."""

    name: str = "fit"
    actor: Actor = Actor.COMPUTE_STREAM

    def demands(self, scenario: Scenario, phase: Phase) -> tuple[Demand, ...]:  # noqa: ARG002 - the same cold or warm
        """Core-seconds of a model that learns on cores; none for any other."""
        job = scenario.job
        if job.step_times is not None or job.model is None or job.model.cpu_seconds == 0.0:
            return ()
        return (
            Demand(
                resource=Resource.CPU,
                path=Path.CORES,
                amount=job.train.batch_size * job.model.cpu_seconds,
                threads=scenario.cluster.trainers.host.cpu.threads,
                equation="batch_size x core-seconds per sample",
                inputs={
                    "batch_size": job.train.batch_size,
                    "core-seconds per sample [s]": job.model.cpu_seconds,
                },
            ),
        )
