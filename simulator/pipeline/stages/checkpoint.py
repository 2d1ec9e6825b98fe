"""Write model and optimizer state while training waits."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from simulator.compute.device_memory import weight_width
from simulator.compute.footprint import checkpoint_bytes
from simulator.equations.memory import checkpoint_share, state_bytes, tensor_bytes
from simulator.pipeline.stages.base import Demand, Path, Phase, Resource, asking
from simulator.scenario.scenario import Scenario
from simulator.scenario.workload.parallelism import Sharding
from simulator.terms import Term, term
from simulator.units import Bytes, Real


@dataclass(frozen=True, slots=True, kw_only=True)
class Shares:
    """Bytes of a checkpoint: all jobs' together, and of the machine and device that write most."""

    whole: Bytes | Real
    machine: Term
    device: Term

    @property
    def writers(self) -> Real:
        """Machines it would take if all wrote as much as the one that writes most."""
        return self.whole / self.machine.value

    @property
    def processes(self) -> Real:
        """Processes of that machine, if all wrote as much as the one of them that writes most."""
        return self.machine.value / self.device.value


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """Devices copy their shares to the host, and machines write them to the store, all at once.

    Everything is written once: what several devices hold alike, one of them writes. The process of
    a device serialises its share while it writes, so that its own rate is a ceiling.
    """

    name: str = "checkpoint"

    def demands(self, scenario: Scenario, phase: Phase) -> tuple[Demand, ...]:  # noqa: ARG002 - the same cold or warm
        """Bytes over PCIe, then to the store."""
        train = scenario.job.train
        if train.checkpointing is None or scenario.job.model is None:
            return ()
        shares, group = checkpoint_shares(scenario), scenario.cluster.trainers
        write = asking(
            shares.machine,
            Resource.STORAGE,
            Path.HOST_TO_STORE,
            latency=group.storage.write_latency,
            ceiling=train.checkpoint_process_rate * shares.processes,
            sharers=shares.writers,
        )
        host = group.host
        if host.gpu is None or host.gpu.unified_memory or host.host_link is None:
            return (write,)
        latency = host.host_link.latency
        down = asking(shares.device, Resource.PCIE, Path.DEVICE_TO_HOST, latency=latency)
        return (down, write)


def checkpoint_shares(scenario: Scenario) -> Shares:
    """Who writes how much of a checkpoint.

    Devices of one replica hold different parts of the model, and devices that a state is sharded
    over different parts of the state; each part is written by one of those that hold it. A replica
    fills one machine before the next. Where weights are kept in fp32 beside the compute precision,
    those are part of the sharded state.
    """
    job, group = scenario.job, scenario.cluster.trainers
    whole = checkpoint_bytes(scenario)
    (weights, of_weights), (moments, of_moments) = _parts(scenario)

    def share(devices: float, copies: float) -> Term:
        return term(
            checkpoint_share,
            weights=weights,
            weight_holders=of_weights,
            moments=moments,
            moment_holders=of_moments,
            devices=devices,
            copies=copies,
        )

    machine = share(max(1, scenario.devices // group.count), job.copies)
    return Shares(whole=job.copies * whole, machine=machine, device=share(1.0, 1.0))


def _parts(scenario: Scenario) -> tuple[tuple[Bytes | Real, Real], ...]:
    """Sizes of weights and of optimizer state [B], each with the devices that hold parts of it."""
    job, degrees = scenario.job, scenario.job.parallelism
    parameters = 0.0 if job.model is None else job.model.parameters
    width = weight_width(job.train)
    weights = tensor_bytes(parameters, width)
    moments = tensor_bytes(parameters, state_bytes(job.train.optimizer, width))
    replica = np.minimum(scenario.devices, degrees.tensor * degrees.pipeline * degrees.expert)
    group = np.minimum(scenario.ranks, degrees.shard_group or scenario.ranks)
    sharded = np.minimum(scenario.devices, degrees.devices * group)
    if degrees.sharding is Sharding.NONE:
        return ((weights, replica), (moments, replica))
    of_state = job.train.mixed or degrees.sharding is Sharding.PARAMETERS
    return ((weights, sharded if of_state else replica), (moments, sharded))
