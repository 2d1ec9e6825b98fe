"""Add up the gradients of all data-parallel ranks of a machine."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from simulator.equations.collectives import ring_wire_bytes
from simulator.physics.collectives import Team, pace_between, pace_inside
from simulator.physics.device_time import uses_fitted_kernels
from simulator.physics.parameters import learned_in_all
from simulator.pipeline.stages.base import Demand, Path, Phase, Resource, asking
from simulator.schema.hardware.host import Host
from simulator.schema.hardware.link import Collective, LinkKind
from simulator.schema.precision import Precision
from simulator.schema.scenario import Scenario
from simulator.schema.workload.train import Mode
from simulator.terms import product_of, quotient_of, term
from simulator.units import Real, anywhere


@dataclass(frozen=True, slots=True)
class AllReduce:
    """A ring over each machine's accelerators and, at once, one over the machines.

    Large messages are cut into chunks, so that some are between machines while others are inside.
    Both go at the pace `collectives` knows for a bucket: measured where somebody did.
    """

    name: str = "all-reduce"

    def demands(self, scenario: Scenario, phase: Phase) -> tuple[Demand, ...]:  # noqa: ARG002 - the same cold or warm
        """Bytes each rank sends to its neighbour in the ring, and its part of the machine's."""
        job = scenario.job
        if job.model is None or job.mode is not Mode.TRAIN or uses_fitted_kernels(scenario):
            return ()
        return (*self._within(scenario), *self._between(scenario))

    def _between(self, scenario: Scenario) -> tuple[Demand, ...]:
        members, host = team_of(scenario), scenario.cluster.trainers.host
        if not anywhere(members.machines > 1) or host.network is None:
            return ()
        gradients, ranks = gradient_bytes(scenario), scenario.ranks_per_job
        number, size = buckets(scenario)
        latency, rate = pace_between(Collective.ALL_REDUCE, size, members, host)
        sent = term(ring_wire_bytes, size=gradients, ranks=members.machines)
        return (
            asking(
                quotient_of(machine=sent, ranks=ranks),
                Resource.NETWORK,
                Path.MACHINE_TO_MACHINE,
                ceiling=rate / ranks,
                latency=product_of(bucket=latency, buckets=number),
            ),
        )

    def _within(self, scenario: Scenario) -> tuple[Demand, ...]:
        ranks, host = scenario.ranks_per_job, scenario.cluster.trainers.host
        link = host.peer_link or host.host_link
        if ranks == 1 or host.gpu is None or link is None:
            return ()
        gradients = gradient_bytes(scenario)
        number, size = buckets(scenario)
        latency, bandwidth = pace_inside(Collective.ALL_REDUCE, size, ranks, host)
        # Switches that add up save bytes on the links: bus bandwidth lies above their rate.
        on_links = np.minimum(1.0, link.rate / bandwidth)
        return (
            asking(
                product_of(
                    sent=term(ring_wire_bytes, size=gradients, ranks=ranks), on_links=on_links
                ),
                Resource.NVLINK if over_peer_link(host) else Resource.PCIE,
                Path.DEVICE_TO_DEVICE,
                ceiling=bandwidth * on_links,
                latency=product_of(bucket=latency, buckets=number),
            ),
        )


def team_of(scenario: Scenario) -> Team:
    """All data-parallel ranks of a job, over all its machines."""
    machines = scenario.cluster.trainers.count
    return Team(ranks=scenario.ranks_per_job * machines, machines=machines)


def buckets(scenario: Scenario) -> tuple[Real, Real]:
    """How many buckets gradients are exchanged in, and how large one is [B]."""
    gradients, train = gradient_bytes(scenario), scenario.job.train
    if not train.overlap_communication or train.bucket_bytes <= 0.0:
        return 1.0, gradients
    number: Real = np.maximum(1.0, np.ceil(gradients / train.bucket_bytes))
    return number, np.minimum(gradients, train.bucket_bytes)


def all_reduce_time(scenario: Scenario) -> Real:
    """Time of a step's all-reduce on idle links [s]; 0 where nothing is exchanged."""
    found: Real = 0.0
    for demand in AllReduce().demands(scenario, Phase.WARM):
        rate = np.inf if demand.ceiling is None else demand.ceiling
        found = np.maximum(found, demand.latency + demand.amount / rate)
    return found


def gradient_bytes(scenario: Scenario) -> Real:
    """Gradients one rank exchanges [B], sparse ones left out.

    As stated, else in fp32 where weights are kept in fp32, else as computed.
    """
    job = scenario.job
    if job.model is None:
        return 0.0
    wide = job.train.mixed or job.train.precision is Precision.TF32
    usual = Precision.FP32 if wide else job.train.precision
    width = job.train.gradient_precision or usual
    learned = learned_in_all(job) if job.train.freezes else job.model.dense_parameters
    return learned * width.bytes_per_element


def over_peer_link(host: Host) -> bool:
    """Whether the machine's accelerators talk over links of their own rather than PCIe."""
    return host.peer_link is not None and host.peer_link.kind is LinkKind.NVLINK


GROWTH = 1.25
"""How many more buckets are simulated as one with each step back from the last one."""


def bucket_shares(scenario: Scenario) -> tuple[float, ...]:
    """Gradients as shares of the whole, bucket by bucket in the order they become ready.

    The last one is a single bucket of the framework's size, since only it cannot overlap with the
    backward pass. Those before it are merged, `GROWTH` times as many with each step back from the
    end, so that a few events stand for many buckets. An all-reduce that takes less than
    1 / `GROWTH` of the backward pass still ends before the next merged bucket is ready, as
    single ones do.
    """
    train = scenario.job.train
    gradients = float(gradient_bytes(scenario))
    if not train.overlap_communication or train.bucket_bytes <= 0.0:
        return (1.0,)
    if gradients <= train.bucket_bytes:
        return (1.0,)
    shares, left, merged = [], 1.0, train.bucket_bytes / gradients
    while left > merged:
        shares.append(merged)
        left -= merged
        merged *= GROWTH
    return (left, *reversed(shares))
