"""Compute on the host's cores: models without device work, and machines without a device."""

from __future__ import annotations

from dataclasses import dataclass

from simulator.compute.device_time import device_time
from simulator.scenario import Scenario
from simulator.stages.base import Demand, Path, Phase, Resource


@dataclass(frozen=True, slots=True)
class Fit:
    """The main process computes a batch, on as many threads as the machine has."""

    name: str = "fit"

    def demands(self, scenario: Scenario, phase: Phase) -> tuple[Demand, ...]:  # noqa: ARG002 - the same cold or warm
        """Core-seconds: as the model states them, or as measured with all threads at work."""
        job, host = scenario.job, scenario.cluster.trainers.host
        if host.gpu is not None:
            return ()
        if job.step_times is not None:
            return self._measured(scenario)
        if job.model is None or job.model.cpu_seconds == 0.0:
            return ()
        return (
            Demand(
                resource=Resource.CPU,
                path=Path.CORES,
                amount=job.train.batch_size * job.model.cpu_seconds,
                threads=host.cpu.threads,
                equation="batch_size x core-seconds per sample",
                inputs={
                    "batch_size": job.train.batch_size,
                    "core-seconds per sample [s]": job.model.cpu_seconds,
                },
            ),
        )

    def _measured(self, scenario: Scenario) -> tuple[Demand, ...]:
        time, pool = device_time(scenario), scenario.cluster.trainers.host.cpu
        if time is None:
            return ()
        return (
            Demand(
                resource=Resource.CPU,
                path=Path.CORES,
                amount=time.total * pool.capacity,
                threads=pool.threads,
                equation="measured step time x core-seconds per second of the full machine",
                inputs={"step time [s]": time.total, "capacity": pool.capacity},
            ),
        )
