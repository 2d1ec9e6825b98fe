"""Decode and augment one batch on the device, on the time it would train."""

from __future__ import annotations

from dataclasses import dataclass

from simulator.equations.batch import batch_work
from simulator.pipeline.stages.base import Demand, Path, Phase, Resource, asking
from simulator.schema.scenario import Scenario
from simulator.schema.workload.loader import Preparation
from simulator.terms import term


@dataclass(frozen=True, slots=True)
class DecodeOnDevice:
    """The device prepares the batch before its forward pass."""

    name: str = "decode on device"

    def demands(self, scenario: Scenario, phase: Phase) -> tuple[Demand, ...]:  # noqa: ARG002 - the same cold or warm
        """Busy seconds of the compute stream; none where the CPU prepares."""
        work = scenario.job.preprocessing
        if work.where is not Preparation.DEVICE:
            return ()
        batch = scenario.job.train.batch_size
        busy = term(batch_work, batch_size=batch, per_sample=work.device_time)
        return (asking(busy, Resource.GPU, Path.COMPUTE),)
