"""Stages that exchange data between devices: all-reduce, sharding and parallelism, contention."""

from __future__ import annotations

from typing import Final

import numpy as np

from simulator.equations import step
from simulator.equations.collectives import exchanged_bytes, part_meanwhile, ring_wire_bytes
from simulator.physics.collectives import Team, pace_between, pace_inside
from simulator.physics.device_time import device_time, device_traffic, uses_fitted_kernels
from simulator.physics.parameters import learned_in_all
from simulator.physics.training_step import TrainingStep
from simulator.pipeline.stages.base import Demand, Path, Phase, Resource, asking, passing
from simulator.records import dataclass
from simulator.schema.accelerators import Precision
from simulator.schema.machines import Collective, Host, LinkKind
from simulator.schema.scenario import Scenario
from simulator.schema.training import Mode
from simulator.schema.transformers import Transformer
from simulator.terms import product_of, quotient_of, stated, term
from simulator.units import Real, Seconds, anywhere, in_common, where


@dataclass(frozen=True, slots=True)
class AllReduce:
    """All-reduce of gradients: a ring inside each machine, concurrently one between machines.

    Large messages are sent in chunks, inside and between machines at the same time. Rates are those
    of `collectives` for a bucket, measured if available.
    """

    name: str = "all-reduce"

    def demands(self, scenario: Scenario, phase: Phase) -> tuple[Demand, ...]:
        """Return the bytes that a rank sends inside the machine, and its part of those between."""
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
        # In-network reduction saves bytes on the links: bus bandwidth lies above their rate.
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
    """Return the data-parallel ranks of a job over all its machines."""
    machines = scenario.cluster.trainers.count
    return Team(ranks=scenario.ranks_per_job * machines, machines=machines)


def buckets(scenario: Scenario) -> tuple[Real, Real]:
    """Return the number of gradient buckets, and the size of one [B]."""
    gradients, train = gradient_bytes(scenario), scenario.job.train
    if not train.overlap_communication or train.bucket_size <= 0.0:
        return 1.0, gradients
    number: Real = np.maximum(1.0, np.ceil(gradients / train.bucket_size))
    return number, np.minimum(gradients, train.bucket_size)


def all_reduce_time(scenario: Scenario) -> Real:
    """Return the time of a step's all-reduce without contention [s]; 0 if there is none."""
    found: Real = 0.0
    for demand in AllReduce().demands(scenario, Phase.WARM):
        rate = np.inf if demand.ceiling is None else demand.ceiling
        found = np.maximum(found, demand.latency + demand.amount / rate)
    return found


def gradient_bytes(scenario: Scenario) -> Real:
    """Return the size of the dense gradients that one rank exchanges [B].

    Their precision is the stated one, else fp32 if weights are in fp32, else that of compute.
    """
    job = scenario.job
    if job.model is None:
        return 0.0
    wide = job.train.mixed_precision or job.train.precision is Precision.TF32
    usual = Precision.FP32 if wide else job.train.precision
    width = job.train.gradient_precision or usual
    learned = learned_in_all(job) if job.train.freezes else job.model.dense_parameters
    return learned * width.bytes_per_element


def over_peer_link(host: Host) -> bool:
    """Return True if the accelerators of the machine are connected by NVLink."""
    return host.peer_link is not None and host.peer_link.kind is LinkKind.NVLINK


GROWTH = 1.25
"""Growth of merged buckets with each step back from the last one."""


def bucket_shares(scenario: Scenario) -> tuple[float, ...]:
    """Return the share of the gradients in each bucket, in the order in which they are ready.

    The last one is a single bucket, since only it cannot overlap with the backward pass: of the
    framework's size, or of the input embedding's if that is larger, since a parameter is not split.
    Earlier ones are merged, `GROWTH` times as many with each step back from the end,
    so that a few events represent many buckets. An all-reduce that takes less than 1 / `GROWTH` of
    the backward pass still ends before the next merged bucket is ready, as without merging.
    """
    train = scenario.job.train
    gradients = float(gradient_bytes(scenario))
    if not train.overlap_communication or train.bucket_size <= 0.0:
        return (1.0,)
    last = max(train.bucket_size, _embedding_gradients(scenario))
    if gradients <= last:
        return (1.0,)
    shares, left, merged = [last / gradients], 1.0 - last / gradients, train.bucket_size / gradients
    while left > merged:
        shares.append(merged)
        left -= merged
        merged *= GROWTH
    return (left, *reversed(shares))


def _embedding_gradients(scenario: Scenario) -> float:
    """Return the bytes of the gradients of a language model's input embedding; 0 if none."""
    job = scenario.job
    if not isinstance(job.model, Transformer) or job.train.freezes:
        return 0.0
    width = float(gradient_bytes(scenario)) / float(job.model.dense_parameters)
    return float(job.model.embedding.tokens * job.model.hidden) * width


_DONE: Final = 1.0 - 2.0**-10
"""Part of the passes of a micro-batch after which hidden exchange ends, so that rounding does not
decide which of the two ends last."""


@dataclass(frozen=True, slots=True)
class Exchange:
    """Communication between devices of a model-parallel job, exposed or `hidden` by compute.

    It is that of a micro-batch (tensor, pipeline, context and expert parallelism, gathers of
    sharded parameters), or with `once` that of a step (gradients and updated parameters), which
    overlaps with the passes of the last micro-batch.
    """

    name: str
    once: bool = False
    hidden: bool = False

    def demands(self, scenario: Scenario, phase: Phase) -> tuple[Demand, ...]:
        """Return the bytes that are sent while the device waits, or during compute.

        Their transfer takes the exposed time, or that of the passes; time without bytes is a
        latency.
        """
        step, traffic = step_of(scenario), device_traffic(scenario)
        if step is None or traffic is None:
            return ()
        if self.once:
            exposed, hidden = step.gradients, step.hidden_gradients
            sent, outward = stated(gradients=traffic.gradients.whole), traffic.gradients.outward
        else:
            exposed, hidden = step.exchange, step.hidden_exchange
            sent = term(
                exchanged_bytes,
                layers=traffic.layers,
                tensor=traffic.tensor.whole,
                context=traffic.context.whole,
                experts=traffic.experts.whole,
                parameters=traffic.parameters.whole,
                tables=traffic.tables.whole,
                sends=traffic.sends.whole,
            )
            outward = traffic.micro_batch.outward
        meanwhile, otherwise = (hidden, exposed) if self.hidden else (exposed, hidden)
        amount = term(part_meanwhile, whole=sent, meanwhile=meanwhile, otherwise=otherwise)
        moves = amount.value > 0.0
        if not np.any(moves) and not np.any(meanwhile):
            return ()
        time = _DONE * (step.forward + step.backward) if self.hidden else meanwhile
        idle = 0.0 if self.hidden else where(moves, 0.0, meanwhile)
        group = scenario.cluster.trainers
        inside = Resource.NVLINK if over_peer_link(group.host) else Resource.PCIE
        return (
            asking(
                amount,
                Resource.NETWORK if in_common(group.count) > 1 else inside,
                Path.EXCHANGE,
                ceiling=where(moves, amount.value / where(moves, time, 1.0), np.inf),
                latency=stated(idle=idle),
                outward=outward,
            ),
        )


def step_of(scenario: Scenario) -> TrainingStep | None:
    """Return the training step of a model-parallel job.

    None for other jobs, and if step times were measured.
    """
    time = None if scenario.cluster.trainers.host.gpu is None else device_time(scenario)
    return None if time is None else time.step


def hidden_exchange(scenario: Scenario) -> Seconds:
    """Return the time of communication that overlaps with compute in a step [s].

    The all-reduce of data parallelism is excluded.
    """
    step = step_of(scenario)
    return 0.0 if step is None else float(step.hidden)


@dataclass(frozen=True, slots=True)
class GradientNegotiation:
    """Negotiation of ranks about ready gradients, with packing and unpacking, once a step."""

    name: str = "agreement"

    def demands(self, scenario: Scenario, phase: Phase) -> tuple[Demand, ...]:
        """Return the idle wait of the negotiation."""
        delay = scenario.job.train.exchange_delay
        if delay == 0.0 or not _exchanges(scenario):
            return ()
        return (passing(stated(exchange_delay=delay), Resource.CPU),)


@dataclass(frozen=True, slots=True)
class SmContention:
    """Contention of all-reduce kernels with compute for multiprocessors (SMs) and bandwidth.

    The backward pass takes longer by a share of the communication that it hides.
    """

    name: str = "shared device"

    def demands(self, scenario: Scenario, phase: Phase) -> tuple[Demand, ...]:
        """Return the additional busy seconds of the compute stream."""
        share = scenario.job.train.exchange_contention
        time = device_time(scenario)
        if share == 0.0 or time is None or not _exchanges(scenario):
            return ()
        lost = term(
            step.contended,
            share=share,
            communication=all_reduce_time(scenario),
            before_last=1.0 - bucket_shares(scenario)[-1],
            backward=time.backward,
        )
        return (asking(lost, Resource.GPU, Path.COMPUTE),)


def _exchanges(scenario: Scenario) -> bool:
    """Return True if the job trains on several ranks with accelerators that exchange gradients."""
    job = scenario.job
    known = job.model is not None and bool(np.any(np.asarray(gradient_bytes(scenario)) > 0.0))
    device = scenario.cluster.trainers.host.gpu is not None
    counted = uses_fitted_kernels(scenario)
    several = bool(in_common(scenario.ranks > 1))
    return job.mode is Mode.TRAIN and several and known and device and not counted
