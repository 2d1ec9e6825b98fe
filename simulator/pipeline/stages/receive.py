"""Take a finished batch over in the main process: the one serial stage of a loader."""

from __future__ import annotations

from dataclasses import dataclass

from simulator.equations.batch import batch_work, copied_bytes
from simulator.physics.footprint import batch_in_bytes
from simulator.pipeline.stages.base import Demand, Path, Phase, Resource, asking
from simulator.schema.scenario import Scenario
from simulator.terms import term


@dataclass(frozen=True, slots=True)
class PinMemory:
    """The pin thread (else the main thread) unpacks, and pins where asked."""

    name: str = "receive"

    def demands(self, scenario: Scenario, phase: Phase) -> tuple[Demand, ...]:  # noqa: ARG002 - the same cold or warm
        """Core-seconds of one thread; a pinned copy also moves the batch through host memory."""
        job = scenario.job
        loader, batch = job.loader, job.train.batch_size
        work = term(
            batch_work,
            batch_size=batch,
            per_sample=loader.receive_per_sample,
            per_batch=loader.receive_per_batch,
        )
        cpu = asking(work, Resource.CPU, Path.CORES)
        if not loader.pin_memory:
            return (cpu,)
        copied = term(copied_bytes, size=batch_in_bytes(scenario))
        return (cpu, asking(copied, Resource.HOST_MEMORY, Path.MEMORY))
