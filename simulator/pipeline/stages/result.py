"""Copy results of a batch (losses, predictions) back to host memory."""

from __future__ import annotations

from dataclasses import dataclass

from simulator.equations.batch import batch_bytes
from simulator.equations.memory import tensor_bytes
from simulator.pipeline.stages.base import Demand, Path, Phase, Resource, asking
from simulator.schema.precision import Precision
from simulator.schema.scenario import Scenario
from simulator.schema.workload.train import Mode
from simulator.terms import term

LOSS = Precision.FP32.bytes_per_element


@dataclass(frozen=True, slots=True)
class Result:
    """The device's other copy engine moves results over PCIe."""

    name: str = "result"

    def demands(self, scenario: Scenario, phase: Phase) -> tuple[Demand, ...]:  # noqa: ARG002 - the same cold or warm
        """Bytes over the way from the device to host memory."""
        host = scenario.cluster.trainers.host
        model = scenario.job.model
        if host.gpu is None or host.gpu.unified_memory or host.host_link is None or model is None:
            return ()
        batch = scenario.job.train.batch_size
        if scenario.job.mode is Mode.TRAIN:
            # The loss is one number, however large the batch is.
            amount = term(tensor_bytes, elements=0.0 * batch + 1.0, element_bytes=LOSS)
        else:
            amount = term(batch_bytes, batch_size=batch, bytes_per_sample=model.output_bytes)
        latency = host.host_link.latency
        return (asking(amount, Resource.PCIE, Path.DEVICE_TO_HOST, latency=latency),)
