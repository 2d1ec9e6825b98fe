"""Write the results of preparing a batch to the store."""

from __future__ import annotations

from dataclasses import dataclass

from simulator.footprint import batch_bytes
from simulator.scenario import Scenario
from simulator.stages.base import Demand, Path, Phase, Resource


@dataclass(frozen=True, slots=True)
class Write:
    """A worker writes what it has prepared, one result a sample."""

    name: str = "write"

    def demands(self, scenario: Scenario, phase: Phase) -> tuple[Demand, ...]:  # noqa: ARG002 - the same cold or warm
        """The batch's bytes to the store."""
        store = scenario.site.storage
        batch, size = scenario.job.train.batch_size, batch_bytes(scenario)
        return (
            Demand(
                resource=Resource.STORAGE,
                path=Path.HOST_TO_STORE,
                amount=size,
                operations=batch,
                latency=batch * store.write_latency,
                equation="batch_size x output_bytes",
                inputs={"batch [B]": size, "write latency [s]": store.write_latency},
            ),
        )
