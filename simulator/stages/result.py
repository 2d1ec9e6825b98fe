"""Copy results of a batch (losses, predictions) back to host memory."""

from __future__ import annotations

from dataclasses import dataclass

from simulator.precision import Precision
from simulator.scenario import Scenario
from simulator.stages.base import Demand, Path, Phase, Resource
from simulator.workload.train import Mode

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
            amount, equation = 0.0 * batch + LOSS, "the loss, one fp32 number a batch"
        else:
            amount, equation = batch * model.output_bytes, "batch_size x output_bytes"
        return (
            Demand(
                resource=Resource.PCIE,
                path=Path.DEVICE_TO_HOST,
                amount=amount,
                latency=host.host_link.latency,
                equation=equation,
                inputs={"batch_size": batch, "output_bytes [B]": model.output_bytes},
            ),
        )
