"""Write model and optimizer state while training waits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from simulator.equations.cost import upload_requests
from simulator.physics.footprint import CheckpointShares, checkpoint_shares
from simulator.pipeline.stages.base import Demand, Path, Phase, Resource, asking
from simulator.schema.hardware.storage import Scope, Storage
from simulator.schema.scenario import Scenario
from simulator.units import Real, Seconds

AGREEING: Final[Seconds] = 0.45
"""Time in which processes agree on what each of them writes [s].

The geometric mean of 0.59 and 0.34 s that ByteCheckpoint blocks on 8,960 and 1,488 GPUs, where the
copies alone take 10 ms (arXiv 2407.20143 table 8, 2024-07). Not used for it: 20 GB written by 1, 2
and 4 machines of eight processes take 0.59 s and what falls as one over their number
(pytorch/torchsnapshot@df45917d12b1, benchmarks/ddp, local NVMe). Other software blocks for seconds:
`checkpoint.blocking` states that.
"""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """Devices copy their shares to the host, and machines write them to the store, all at once.

    Everything is written once: what several devices hold alike, one of them writes. The process of
    a device serialises its share while it writes, so that its own rate is a ceiling. Where several
    processes write, they agree first on who writes what.
    """

    name: str = "checkpoint"

    def demands(self, scenario: Scenario, phase: Phase) -> tuple[Demand, ...]:  # noqa: ARG002 - the same cold or warm
        """Bytes over PCIe, then to the store."""
        train = scenario.job.train
        if train.checkpointing is None or scenario.job.model is None:
            return ()
        shares, group = checkpoint_shares(scenario), scenario.cluster.trainers
        write = asking(
            shares.machine,
            Resource.STORAGE,
            Path.HOST_TO_STORE,
            operations=_uploads(group.storage, shares),
            latency=group.storage.write_latency + _agreeing(shares),
            ceiling=train.checkpoint_process_rate * shares.processes,
            sharers=shares.writers,
        )
        host = group.host
        if host.gpu is None or host.gpu.unified_memory or host.host_link is None:
            return (write,)
        latency = host.host_link.latency
        down = asking(shares.device, Resource.PCIE, Path.DEVICE_TO_HOST, latency=latency)
        return (down, write)


def _agreeing(shares: CheckpointShares) -> Real:
    """Time before several processes begin to write; one alone asks nobody [s]."""
    several: Real = np.where(shares.writers * shares.processes > 1.0, AGREEING, 0.0)
    return several


def _uploads(store: Storage, shares: CheckpointShares) -> Real:
    """Requests of a machine that writes its shares to an object store; other stores count none."""
    if store.scope is not Scope.OBJECT:
        return 0.0
    part = store.operation_size or float("inf")
    return upload_requests(shares.device.value, part) * shares.processes
