"""Write the results of preparing a batch to the store."""

from __future__ import annotations

from dataclasses import dataclass

from simulator.equations.storage import operations_per_sample
from simulator.physics.footprint import batch_in_bytes, sample_bytes
from simulator.pipeline.stages.base import Demand, Path, Phase, Resource, asking
from simulator.pipeline.stages.read import UNLIMITED, bytes_per_file
from simulator.schema.hardware.storage import Storage
from simulator.schema.scenario import Scenario
from simulator.schema.workload.dataset import Dataset, Layout
from simulator.units import Real, where


@dataclass(frozen=True, slots=True)
class Write:
    """A worker writes what it has prepared, laid out as what it reads."""

    name: str = "write"

    def demands(self, scenario: Scenario, phase: Phase) -> tuple[Demand, ...]:  # noqa: ARG002 - the same cold or warm
        """The batch's bytes to the store, with as many waits for it as there are operations."""
        store, batch = scenario.site.storage, scenario.job.train.batch_size
        size = sample_bytes(scenario)
        operations = batch * write_operations(scenario.job.dataset, size, store)
        return (
            asking(
                batch_in_bytes(scenario),
                Resource.STORAGE,
                Path.HOST_TO_STORE,
                operations=operations,
                latency=operations * store.write_latency,
            ),
        )


def write_operations(dataset: Dataset, size: Real, store: Storage) -> Real:
    """Operations, or requests, that write one prepared sample [1]; none where it holds nothing.

    A sample of its own is one; in shards, many samples share an operation.
    """
    if dataset.layout is not Layout.SHARDS:
        return where(size > 0.0, 1.0, 0.0)
    largest, file = store.operation_size or UNLIMITED, bytes_per_file(dataset, size)
    return operations_per_sample(size, file, largest, sequential=True)
