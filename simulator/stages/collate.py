"""Put the samples of a batch together and hand them over."""

from __future__ import annotations

from dataclasses import dataclass

from simulator.footprint import batch_bytes, sample_bytes
from simulator.scenario import Scenario
from simulator.stages.base import Demand, Path, Phase, Resource
from simulator.stages.decode import core_scale


@dataclass(frozen=True, slots=True)
class Collate:
    """A worker stacks the samples into one batch and serialises it for the transport."""

    name: str = "collate"

    def demands(self, scenario: Scenario, phase: Phase) -> tuple[Demand, ...]:  # noqa: ARG002 - the same cold or warm
        """Core-seconds of this machine, and the batch written to host memory."""
        work = scenario.job.preprocessing
        batch = scenario.job.train.batch_size
        scale = core_scale(scenario)
        return (
            Demand(
                resource=Resource.CPU,
                path=Path.CORES,
                amount=(batch * work.collate + work.per_batch) * scale,
                threads=scenario.maker_threads,
                equation="(batch_size x collate + per_batch) x core-seconds per stated second",
                inputs={
                    "batch_size": batch,
                    "collate [s]": work.collate,
                    "per_batch [s]": work.per_batch,
                    "core-seconds per stated second": scale,
                },
            ),
            Demand(
                resource=Resource.HOST_MEMORY,
                path=Path.MEMORY,
                amount=batch_bytes(scenario),
                equation="batch_size x output_bytes",
                inputs={"batch_size": batch, "output_bytes [B]": sample_bytes(scenario)},
            ),
        )
