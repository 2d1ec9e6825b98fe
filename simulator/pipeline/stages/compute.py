"""Compute on the device: forward pass, backward pass, optimizer."""

from __future__ import annotations

from dataclasses import dataclass

from simulator.physics.device_time import DeviceTime, cost_model
from simulator.pipeline.stages.base import Demand, Path, Phase, Resource, asking
from simulator.schema.scenario import Scenario
from simulator.terms import Term


@dataclass(frozen=True, slots=True)
class Forward:
    """The forward pass of one batch."""

    name: str = "forward"

    def demands(self, scenario: Scenario, phase: Phase) -> tuple[Demand, ...]:  # noqa: ARG002 - the same cold or warm
        """Busy seconds of the compute stream."""
        time = _on_device(scenario)
        return () if time is None else (_busy(time.terms["forward"]),)


@dataclass(frozen=True, slots=True)
class Backward:
    """The backward pass of one batch; its gradients appear bucket by bucket."""

    name: str = "backward"

    def demands(self, scenario: Scenario, phase: Phase) -> tuple[Demand, ...]:  # noqa: ARG002 - the same cold or warm
        """Busy seconds of the compute stream."""
        time = _on_device(scenario)
        return () if time is None else (_busy(time.terms["backward"]),)


@dataclass(frozen=True, slots=True)
class Update:
    """The optimizer step, once for all accumulated batches of a step."""

    name: str = "optimizer"

    def demands(self, scenario: Scenario, phase: Phase) -> tuple[Demand, ...]:  # noqa: ARG002 - the same cold or warm
        """Busy seconds of the compute stream."""
        time = _on_device(scenario)
        return () if time is None else (_busy(time.terms["optimizer"]),)


def _on_device(scenario: Scenario) -> DeviceTime | None:
    """Compute time of a batch; None where the host computes."""
    return None if scenario.cluster.trainers.host.gpu is None else cost_model(scenario).time


def _busy(seconds: Term) -> Demand:
    return asking(seconds, Resource.GPU, Path.COMPUTE)
