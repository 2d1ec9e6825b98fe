"""Write the results of preparing a batch to the store."""

from __future__ import annotations

from dataclasses import dataclass

from simulator.compute.footprint import batch_in_bytes
from simulator.pipeline.stages.base import Demand, Path, Phase, Resource, asking
from simulator.scenario.scenario import Scenario


@dataclass(frozen=True, slots=True)
class Write:
    """A worker writes what it has prepared, one result a sample."""

    name: str = "write"

    def demands(self, scenario: Scenario, phase: Phase) -> tuple[Demand, ...]:  # noqa: ARG002 - the same cold or warm
        """The batch's bytes to the store."""
        store = scenario.site.storage
        batch = scenario.job.train.batch_size
        return (
            asking(
                batch_in_bytes(scenario),
                Resource.STORAGE,
                Path.HOST_TO_STORE,
                operations=batch,
                latency=batch * store.write_latency,
            ),
        )
