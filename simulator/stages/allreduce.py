"""Add up the gradients of all data-parallel ranks of a machine."""

from __future__ import annotations

import math
from dataclasses import dataclass

from simulator.equations.collectives import ring_wire_bytes
from simulator.hardware.host import Host
from simulator.hardware.link import LinkKind
from simulator.precision import Precision
from simulator.scenario import Scenario
from simulator.stages.base import Actor, Demand, Path, Phase, Resource
from simulator.units import Real
from simulator.workload.train import Mode


@dataclass(frozen=True, slots=True)
class AllReduce:
    """A ring over each machine's accelerators and one over the machines, beside compute."""

    name: str = "all-reduce"
    actor: Actor = Actor.COMMUNICATION_STREAM
    once_a_step: bool = True

    def demands(self, scenario: Scenario, phase: Phase) -> tuple[Demand, ...]:  # noqa: ARG002 - the same cold or warm
        """Bytes each rank sends to its neighbour in the ring, and its part of the machine's."""
        job = scenario.job
        if job.model is None or job.mode is not Mode.TRAIN:
            return ()
        return (*self._within(scenario), *self._between(scenario))

    def _between(self, scenario: Scenario) -> tuple[Demand, ...]:
        machines, ranks = scenario.cluster.trainers.count, scenario.ranks_per_job
        network = scenario.cluster.trainers.host.network
        if machines == 1 or network is None:
            return ()
        gradients = gradient_bytes(scenario)
        return (
            Demand(
                resource=Resource.NETWORK,
                path=Path.MACHINE_TO_MACHINE,
                amount=ring_wire_bytes(gradients, machines) / ranks,
                equation="collectives.ring_wire_bytes, shared by the machine's ranks",
                inputs={"gradients [B]": gradients, "machines": machines, "ranks": ranks},
            ),
        )

    def _within(self, scenario: Scenario) -> tuple[Demand, ...]:
        ranks, host = scenario.ranks_per_job, scenario.cluster.trainers.host
        if ranks == 1 or host.gpu is None:
            return ()
        gradients = gradient_bytes(scenario)
        resource = Resource.NVLINK if over_peer_link(host) else Resource.PCIE
        return (
            Demand(
                resource=resource,
                path=Path.DEVICE_TO_DEVICE,
                amount=ring_wire_bytes(gradients, ranks),
                latency=2.0 * (ranks - 1) * _latency(host),
                equation="collectives.ring_wire_bytes",
                inputs={"gradients [B]": gradients, "ranks": ranks},
            ),
        )


def gradient_bytes(scenario: Scenario) -> Real:
    """Gradients one rank exchanges [B], sparse ones left out.

    In fp32 where weights are kept in fp32, else as computed.
    """
    job = scenario.job
    if job.model is None:
        return 0.0
    wide = job.train.mixed or job.train.precision is Precision.TF32
    width = Precision.FP32 if wide else job.train.precision
    return job.model.dense_parameters * width.bytes_per_element


def over_peer_link(host: Host) -> bool:
    """Whether the machine's accelerators talk over links of their own rather than PCIe."""
    return host.peer_link is not None and host.peer_link.kind is LinkKind.NVLINK


def _latency(host: Host) -> float:
    link = host.peer_link or host.host_link
    return 0.0 if link is None else link.latency


MOST_BUCKETS = 4
"""Buckets simulated one by one; more real ones are merged, except the last, which is exposed."""


def bucket_shares(scenario: Scenario) -> tuple[float, ...]:
    """Gradients as shares of the whole, bucket by bucket in the order they become ready.

    The last one is a single bucket of the framework's size, since only it cannot overlap with
    the backward pass; those before it are merged into few.
    """
    train = scenario.job.train
    gradients = float(gradient_bytes(scenario))
    if not train.overlap_communication or train.bucket_bytes <= 0.0:
        return (1.0,)
    if gradients <= train.bucket_bytes:
        return (1.0,)
    last = train.bucket_bytes / gradients
    before = min(MOST_BUCKETS - 1, math.ceil((1.0 - last) / last))
    return (*((1.0 - last) / before for _ in range(before)), last)
