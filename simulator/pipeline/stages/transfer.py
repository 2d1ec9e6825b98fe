"""Stages that move a batch: to the training process, to the device, and results back."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from simulator.equations.batch import batch_bytes, batch_work, copied_bytes
from simulator.equations.memory import tensor_bytes
from simulator.physics.footprint import batch_in_bytes
from simulator.pipeline.stages.base import Demand, Path, Phase, Resource, asking
from simulator.schema.accelerators import Precision
from simulator.schema.scenario import Scenario
from simulator.schema.training import Mode
from simulator.terms import term


@dataclass(frozen=True, slots=True)
class PinMemory:
    """The pin-memory thread (else the main thread) unpacks a batch, and pins it where asked."""

    name: str = "receive"

    def demands(self, scenario: Scenario, phase: Phase) -> tuple[Demand, ...]:
        """Return core-seconds of one thread, and bytes through host memory where it pins."""
        job = scenario.job
        pipeline, batch = job.input, job.train.batch_size
        work = term(
            batch_work,
            batch_size=batch,
            per_sample=pipeline.receive_per_sample,
            per_batch=pipeline.receive_per_batch,
        )
        cpu = asking(work, Resource.CPU, Path.CORES)
        if not pipeline.pin_memory:
            return (cpu,)
        copied = term(copied_bytes, size=batch_in_bytes(scenario))
        return (cpu, asking(copied, Resource.HOST_MEMORY, Path.MEMORY))


@dataclass(frozen=True, slots=True)
class Copy:
    """The device's copy engine moves the batch from host memory over PCIe."""

    name: str = "copy"

    def demands(self, scenario: Scenario, phase: Phase) -> tuple[Demand, ...]:
        """Return bytes from host memory to the device; none where memory is unified."""
        host = scenario.cluster.trainers.host
        if host.gpu is None or host.gpu.unified_memory or host.host_link is None:
            return ()
        pinned = scenario.job.input.pin_memory
        link, size = host.host_link, batch_in_bytes(scenario)
        # Without bytes there is no copy, and no latency of the link.
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


LOSS = Precision.FP32.bytes_per_element


@dataclass(frozen=True, slots=True)
class Result:
    """The device's second copy engine moves results (losses, predictions) over PCIe."""

    name: str = "result"

    def demands(self, scenario: Scenario, phase: Phase) -> tuple[Demand, ...]:
        """Return bytes from the device to host memory."""
        host = scenario.cluster.trainers.host
        model = scenario.job.model
        if host.gpu is None or host.gpu.unified_memory or host.host_link is None or model is None:
            return ()
        batch = scenario.job.train.batch_size
        if scenario.job.mode is Mode.TRAIN:
            # The loss is one number at any batch size.
            amount = term(tensor_bytes, elements=0.0 * batch + 1.0, element_bytes=LOSS)
        else:
            amount = term(batch_bytes, batch_size=batch, bytes_per_sample=model.output_bytes)
        latency = host.host_link.latency
        return (asking(amount, Resource.PCIE, Path.DEVICE_TO_HOST, latency=latency),)
