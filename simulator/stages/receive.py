"""Take a finished batch over in the main process: the one serial stage of a loader."""

from __future__ import annotations

from dataclasses import dataclass

from simulator.footprint import batch_bytes
from simulator.scenario import Scenario
from simulator.stages.base import Demand, Path, Phase, Resource


@dataclass(frozen=True, slots=True)
class Receive:
    """The pin thread (else the main thread) unpacks, and pins where asked."""

    name: str = "receive"

    def demands(self, scenario: Scenario, phase: Phase) -> tuple[Demand, ...]:  # noqa: ARG002 - the same cold or warm
        """Core-seconds of one thread; a pinned copy also moves the batch through host memory."""
        job = scenario.job
        loader, batch = job.loader, job.train.batch_size
        cpu = Demand(
            resource=Resource.CPU,
            path=Path.CORES,
            amount=loader.receive_per_batch + batch * loader.receive_per_sample,
            equation="receive_per_batch + batch_size x receive_per_sample",
            inputs={
                "receive_per_batch [s]": loader.receive_per_batch,
                "receive_per_sample [s]": loader.receive_per_sample,
                "batch_size": batch,
            },
        )
        if not loader.pin_memory:
            return (cpu,)
        copied = batch_bytes(scenario)
        pinned = Demand(
            resource=Resource.HOST_MEMORY,
            path=Path.MEMORY,
            amount=2.0 * copied,
            equation="read and write of batch_size x output_bytes",
            inputs={"batch [B]": copied},
        )
        return (cpu, pinned)
