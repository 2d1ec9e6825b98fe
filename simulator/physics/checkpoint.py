"""Checkpoints: how many bytes, who writes how many of them, and what host RAM holds meanwhile."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from simulator.equations.memory import checkpoint_share, state_bytes, tensor_bytes
from simulator.physics.describe import learned_in_all
from simulator.physics.device_memory import weight_width
from simulator.schema.long_run import Target
from simulator.schema.scenario import Job, Scenario
from simulator.schema.workload.parallelism import Sharding
from simulator.terms import Term, product_of, term
from simulator.units import Bytes, Real, in_common


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


def checkpoint_bytes(scenario: Scenario) -> Real:
    """Bytes of a checkpoint: weights and optimizer state as stored [B]; 0 without a model."""
    job = scenario.job
    if job.model is None:
        return 0.0
    weights, moments = _saved(job)
    return weights + moments


def _saved(job: Job) -> tuple[Bytes | Real, Bytes | Real]:
    """Weights and optimizer state of a checkpoint [B]; of adapters alone where those learn."""
    if job.model is None:
        return 0.0, 0.0
    width, learned = weight_width(job.train), learned_in_all(job)
    written = job.model.parameters if job.train.head_only else learned
    state = state_bytes(job.train.optimizer, width)
    return tensor_bytes(written, width), tensor_bytes(learned, state)


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

    machine = share(max(1, in_common(scenario.devices // group.count)), job.copies)
    return Shares(whole=job.copies * whole, machine=machine, device=share(1.0, 1.0))


def _parts(scenario: Scenario) -> tuple[tuple[Bytes | Real, Real], ...]:
    """Sizes of weights and of optimizer state [B], each with the devices that hold parts of it."""
    job, degrees = scenario.job, scenario.job.parallelism
    weights, moments = _saved(job)
    replica = np.minimum(scenario.devices, degrees.tensor * degrees.pipeline * degrees.expert)
    group = np.minimum(scenario.ranks, degrees.shard_group or scenario.ranks)
    sharded = np.minimum(scenario.devices, degrees.devices * group)
    if degrees.sharding is Sharding.NONE:
        return ((weights, replica), (moments, replica))
    of_state = job.train.mixed or degrees.sharding is Sharding.PARAMETERS
    return ((weights, sharded if of_state else replica), (moments, sharded))


def snapshots(scenario: Scenario) -> Mapping[str, Term]:
    """RAM of a machine for copies of a checkpoint on its way, by item; none where training waits.

    One that is written in the background lies in RAM until it is written. Where a neighbour keeps
    a copy, each machine holds its own share and another machine's for good.
    """
    told = scenario.interruptions
    if told is None or scenario.job.model is None:
        return {}
    peer = told.checkpoints.to is Target.PEER
    if not (peer or told.checkpoints.asynchronous):
        return {}
    own = checkpoint_shares(scenario).machine.value
    return {"checkpoint_snapshots": product_of(share=own, copies=2.0 if peer else 1.0)}
