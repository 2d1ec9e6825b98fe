"""Hand a batch made on another machine over to the one that trains."""

from __future__ import annotations

from dataclasses import dataclass

from simulator.footprint import batch_bytes
from simulator.scenario import Scenario
from simulator.stages.base import Demand, Path, Phase, Resource


@dataclass(frozen=True, slots=True)
class Send:
    """A sender beside the workers serialises a finished batch and sends it over the network."""

    name: str = "send"

    def demands(self, scenario: Scenario, phase: Phase) -> tuple[Demand, ...]:  # noqa: ARG002 - the same cold or warm
        """Core-seconds of serialising, and the batch's bytes from machine to machine."""
        remote = scenario.job.remote
        if remote is None:
            return ()
        batch, size = scenario.job.train.batch_size, batch_bytes(scenario)
        network = scenario.site.host.network
        return (
            Demand(
                resource=Resource.CPU,
                path=Path.CORES,
                amount=remote.send_per_batch + batch * remote.send_per_sample,
                equation="send_per_batch + batch_size x send_per_sample",
                inputs={
                    "send_per_batch [s]": remote.send_per_batch,
                    "send_per_sample [s]": remote.send_per_sample,
                    "batch_size": batch,
                },
            ),
            Demand(
                resource=Resource.NETWORK,
                path=Path.HOST_TO_TRAINER,
                amount=size,
                ceiling=None if network is None else network.per_flow,
                equation="batch_size x bytes per sample handed over",
                inputs={"batch [B]": size},
            ),
        )
