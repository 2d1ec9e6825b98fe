"""Write model and optimizer state while training waits."""

from __future__ import annotations

from dataclasses import dataclass

from simulator.footprint import checkpoint_bytes
from simulator.scenario import Scenario
from simulator.stages.base import Actor, Demand, Path, Phase, Resource


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """Rank 0 copies its state to the host and writes it to the store."""

    name: str = "checkpoint"
    actor: Actor = Actor.WRITER
    once_a_step: bool = False

    def demands(self, scenario: Scenario, phase: Phase) -> tuple[Demand, ...]:  # noqa: ARG002 - the same cold or warm
        """Bytes over PCIe, then to the store."""
        if scenario.job.train.checkpointing is None or scenario.job.model is None:
            return ()
        state = checkpoint_bytes(scenario)
        write = Demand(
            resource=Resource.STORAGE,
            path=Path.HOST_TO_STORE,
            amount=state,
            latency=scenario.cluster.trainers.storage.write_latency,
            equation="parameters x (weight + optimizer state)",
            inputs={"state [B]": state},
        )
        host = scenario.cluster.trainers.host
        if host.gpu is None or host.gpu.unified_memory or host.host_link is None:
            return (write,)
        down = Demand(
            resource=Resource.PCIE,
            path=Path.DEVICE_TO_HOST,
            amount=state,
            latency=host.host_link.latency,
            equation="parameters x (weight + optimizer state)",
            inputs={"state [B]": state},
        )
        return (down, write)
