"""Compute on the device: forward pass, backward pass, optimizer."""

from __future__ import annotations

from dataclasses import dataclass

from simulator.compute.device_time import DeviceTime, device_time
from simulator.scenario import Scenario
from simulator.stages.base import Demand, Path, Phase, Resource
from simulator.units import Real


@dataclass(frozen=True, slots=True)
class Forward:
    """The forward pass of one batch."""

    name: str = "forward"

    def demands(self, scenario: Scenario, phase: Phase) -> tuple[Demand, ...]:  # noqa: ARG002 - the same cold or warm
        """Busy seconds of the compute stream."""
        time = _on_device(scenario)
        return () if time is None else (_busy(time, time.forward),)


@dataclass(frozen=True, slots=True)
class Backward:
    """The backward pass of one batch; its gradients appear bucket by bucket."""

    name: str = "backward"

    def demands(self, scenario: Scenario, phase: Phase) -> tuple[Demand, ...]:  # noqa: ARG002 - the same cold or warm
        """Busy seconds of the compute stream."""
        time = _on_device(scenario)
        return () if time is None else (_busy(time, time.backward),)


@dataclass(frozen=True, slots=True)
class Update:
    """The optimizer step, once for all accumulated batches of a step."""

    name: str = "optimizer"

    def demands(self, scenario: Scenario, phase: Phase) -> tuple[Demand, ...]:  # noqa: ARG002 - the same cold or warm
        """Busy seconds of the compute stream."""
        time = _on_device(scenario)
        return () if time is None else (_busy(time, time.optimizer),)


def _on_device(scenario: Scenario) -> DeviceTime | None:
    """Compute time of a batch; None where the host computes."""
    return None if scenario.cluster.trainers.host.gpu is None else device_time(scenario)


def _busy(time: DeviceTime, seconds: Real) -> Demand:
    return Demand(
        resource=Resource.GPU,
        path=Path.COMPUTE,
        amount=seconds,
        equation=time.equation,
        inputs=time.inputs,
    )
