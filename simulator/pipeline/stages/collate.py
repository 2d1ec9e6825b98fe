"""Put the samples of a batch together and hand them over."""

from __future__ import annotations

from dataclasses import dataclass

from simulator.equations.batch import batch_work
from simulator.physics.footprint import batch_in_bytes
from simulator.pipeline.stages.base import Demand, Path, Phase, Resource, asking
from simulator.pipeline.stages.decode import core_scale
from simulator.schema.scenario import Scenario
from simulator.terms import term


@dataclass(frozen=True, slots=True)
class Collate:
    """A worker stacks the samples into one batch and serialises it for the transport."""

    name: str = "collate"

    def demands(self, scenario: Scenario, phase: Phase) -> tuple[Demand, ...]:  # noqa: ARG002 - the same cold or warm
        """Core-seconds of this machine, and the batch written to host memory."""
        work = scenario.job.preprocessing
        asked = term(
            batch_work,
            batch_size=scenario.job.train.batch_size,
            per_sample=work.collate,
            per_batch=work.per_batch,
            scale=core_scale(scenario),
        )
        return (
            asking(asked, Resource.CPU, Path.CORES, threads=scenario.producer_threads),
            asking(batch_in_bytes(scenario), Resource.HOST_MEMORY, Path.MEMORY),
        )
