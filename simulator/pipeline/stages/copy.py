"""Copy a batch from host memory to the device."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from simulator.physics.footprint import batch_in_bytes
from simulator.pipeline.stages.base import Demand, Path, Phase, Resource, asking
from simulator.schema.scenario import Scenario


@dataclass(frozen=True, slots=True)
class Copy:
    """The device's copy engine moves the batch over PCIe."""

    name: str = "copy"

    def demands(self, scenario: Scenario, phase: Phase) -> tuple[Demand, ...]:  # noqa: ARG002 - the same cold or warm
        """Bytes over the way from host memory to the device; none where memory is unified."""
        host = scenario.cluster.trainers.host
        if host.gpu is None or host.gpu.unified_memory or host.host_link is None:
            return ()
        pinned = scenario.job.loader.pin_memory
        link, size = host.host_link, batch_in_bytes(scenario)
        # Nothing to copy is no copy: not even the link's latency passes.
        latency = np.where(np.asarray(size.value) > 0.0, link.latency, 0.0)[()]
        return (
            asking(
                size,
                Resource.PCIE,
                Path.HOST_TO_DEVICE,
                ceiling=None if pinned else link.pageable,
                latency=latency,
            ),
        )
