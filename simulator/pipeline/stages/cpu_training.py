"""Compute on the host's cores: models without device work, and machines without a device."""

from __future__ import annotations

from dataclasses import dataclass

from simulator.equations import batch, cpu
from simulator.physics.device_time import cost_model
from simulator.pipeline.stages.base import Demand, Path, Phase, Resource, asking
from simulator.schema.scenario import Scenario
from simulator.terms import term


@dataclass(frozen=True, slots=True)
class Fit:
    """The main process computes a batch, on as many threads as the machine has."""

    name: str = "fit"

    def demands(self, scenario: Scenario, phase: Phase) -> tuple[Demand, ...]:  # noqa: ARG002 - the same cold or warm
        """Core-seconds: as the model states them, or of a step with all threads at work."""
        job, host = scenario.job, scenario.cluster.trainers.host
        if host.gpu is not None:
            return ()
        if job.step_times is not None or job.model is None or job.model.cpu_seconds == 0.0:
            return self._with_all_threads(scenario)
        return (
            asking(
                term(
                    batch.batch_work,
                    batch_size=job.train.batch_size,
                    per_sample=job.model.cpu_seconds,
                ),
                Resource.CPU,
                Path.CORES,
                threads=host.cpu.threads,
            ),
        )

    def _with_all_threads(self, scenario: Scenario) -> tuple[Demand, ...]:
        time, pool = cost_model(scenario).time, scenario.cluster.trainers.host.cpu
        if time is None:
            return ()
        work = term(cpu.cores_work, step_time=time.total, capacity=pool.capacity)
        return (asking(work, Resource.CPU, Path.CORES, threads=pool.threads),)
