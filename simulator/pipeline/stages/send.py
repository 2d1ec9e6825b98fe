"""Hand a batch made on another machine over to the one that trains."""

from __future__ import annotations

from dataclasses import dataclass

from simulator.equations.batch import batch_work
from simulator.physics.footprint import batch_in_bytes
from simulator.pipeline.stages.base import Demand, Path, Phase, Resource, asking
from simulator.schema.scenario import Scenario
from simulator.terms import term


@dataclass(frozen=True, slots=True)
class Send:
    """A sender beside the workers serialises a finished batch and sends it over the network."""

    name: str = "send"

    def demands(self, scenario: Scenario, phase: Phase) -> tuple[Demand, ...]:  # noqa: ARG002 - the same cold or warm
        """Core-seconds of serialising, and the batch's bytes from machine to machine."""
        remote = scenario.job.remote
        if remote is None:
            return ()
        network = scenario.site.host.network
        work = term(
            batch_work,
            batch_size=scenario.job.train.batch_size,
            per_sample=remote.send_per_sample,
            per_batch=remote.send_per_batch,
        )
        return (
            asking(work, Resource.CPU, Path.CORES),
            asking(
                batch_in_bytes(scenario),
                Resource.NETWORK,
                Path.HOST_TO_TRAINER,
                ceiling=None if network is None else network.per_flow,
            ),
        )
