"""Length of a run: batches, steps and epochs, and the times outside of its epochs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from functools import reduce
from typing import Any, cast

import numpy as np

from simulator.equations.step import iterations_per_epoch
from simulator.physics.footprint import checkpoint_shares
from simulator.pipeline.checkpoints import (
    CheckpointTimes,
    blocking_time,
    checkpoint_stages,
    checkpoints_of,
    longest_pause,
)
from simulator.pipeline.loads import alone, limiting_time
from simulator.pipeline.program import PREPARATION
from simulator.pipeline.stages.base import OF_A_RANK, Phase, StageDemands, ask
from simulator.pipeline.stages.input import drives_of
from simulator.pipeline.topology import MEMORY, Location, Topology, at_rest, drives_used
from simulator.records import dataclass
from simulator.schema.data_loading import CachePolicy, Placement, Preparation
from simulator.schema.scenario import Scenario
from simulator.schema.storage import Scope
from simulator.schema.training import Mode
from simulator.units import Real, Seconds, at_least, at_most


@dataclass(frozen=True, slots=True, kw_only=True)
class Lengths:
    """Number of batches of an epoch for each rank, of its steps, and of epochs (may be a fraction).

    `last_share` is the size of the last batch as a share of a full one; a step takes `accumulation`
    batches.
    """

    batches: int
    steps: int
    epochs: float
    last_share: float = 1.0
    accumulation: int = 1

    @property
    def full_steps(self) -> float:
        """Number of steps of an epoch; an incomplete last step counts as a fraction."""
        return (self.batches - 1.0 + self.last_share) / self.accumulation

    @property
    def fullest(self) -> float:
        """Size of the largest batch relative to a full one; below 1 only if there is one batch."""
        only = np.asarray(self.batches) == 1
        return cast("float", np.where(only, self.last_share, 1.0)[()])

    @property
    def total_steps(self) -> int:
        """Number of steps of the whole run."""
        steps: int = at_least(1, _counted(np.rint(self.steps * self.epochs)))
        return steps


@dataclass(frozen=True, slots=True, kw_only=True)
class Extras:
    """Times outside of the epochs [s]: one-off times of a run by name, and time per step.

    `per_step` is the least time that training waits for checkpoints. `most_per_step` is an upper
    bound on it, which writes in the background can reach; `most_share` that bound as a share of
    training, if the interval of checkpoints is a time.
    """

    parts: Mapping[str, Seconds] = field(default_factory=dict)
    per_step: Seconds = 0.0
    most_per_step: Seconds = 0.0
    most_share: Real = 0.0

    @property
    def once(self) -> Seconds:
        """One-off time of the run [s]."""
        return sum(self.parts.values())


def lengths(scenario: Scenario) -> Lengths:
    """Return the number of batches, steps and epochs of the scenario's job.

    Every rank takes an equal share of the samples, padded to whole samples as
    torch.utils.data.DistributedSampler does.
    """
    job = scenario.job
    train, drop_last = job.train, job.input.drop_last
    own = -(-job.dataset.samples // scenario.ranks)
    whole = _counted(iterations_per_epoch(own, train.batch_size, drop_last=drop_last))
    batches = at_least(1, whole)
    left = own - (batches - 1) * train.batch_size
    return Lengths(
        batches=batches,
        steps=-(-batches // train.accumulation),
        epochs=train.epochs,
        last_share=at_most(1.0, left / train.batch_size),
        accumulation=train.accumulation,
    )


def samples_of_an_epoch(scenario: Scenario) -> Real:
    """Return the number of samples of an epoch over all ranks and jobs, padding included."""
    train = scenario.job.train
    a_step = train.batch_size * train.accumulation * scenario.ranks * scenario.job.copies
    return a_step * lengths(scenario).full_steps


def worker_start(scenario: Scenario) -> Seconds:
    """Return the time to start all workers of a rank, one after another [s]."""
    pipeline = scenario.job.input
    return pipeline.worker_start * pipeline.policy.producers


def extras(scenario: Scenario, topology: Topology, warm: Sequence[StageDemands]) -> Extras:
    """Return the times outside of the epochs: start-up, checkpoints and evaluation passes.

    The time of an evaluation pass is that of its slowest resource; the time of a checkpoint is that
    of the ranks with the largest shares to copy and write, while all ranks wait.
    """
    found = Extras(parts=_one_off(scenario, topology, warm))
    every, interval = scenario.job.train.checkpoint_every_steps, scenario.checkpoints.interval
    if every is None and interval is None:
        return found
    most = longest_pause(scenario, topology)
    if interval is not None:
        return replace(found, most_share=most / interval)
    share = checkpoints(scenario) / lengths(scenario).total_steps
    least = cast("Seconds", blocking_time(scenario, topology) * share)
    return replace(found, per_step=least, most_per_step=cast("Seconds", most * share))


def _one_off(
    scenario: Scenario, topology: Topology, warm: Sequence[StageDemands]
) -> dict[str, Seconds]:
    """Return the one-off times of a run by name [s]; times of 0 are left out."""
    train = scenario.job.train
    parts = {
        "start-up": train.start_up,
        "placing the data": placement_time(scenario, topology),
        "preparing the data": preparation_time(scenario, topology),
        "evaluation": _evaluations(scenario, topology, warm),
        "shut-down": train.shut_down,
    }
    return {name: time for name, time in parts.items() if np.any(time > 0.0)}


def _counted(number: Any) -> Any:  # noqa: ANN401 - a count, or an array of them
    """Return a scalar as int, an array unchanged."""
    return number if np.ndim(number) else int(number)


def placement_time(scenario: Scenario, topology: Topology) -> Seconds:
    """Return the time to stage the data to local drives, or to preload it into RAM [s].

    The slowest of the source store, the network and the target limits it.
    """
    job, group = scenario.job, scenario.cluster.trainers
    if job.dataset.placement is Placement.STREAM:
        return 0.0
    origin = group.origin or group.storage
    sharers = 1 if origin.scope is Scope.LOCAL else group.count
    rates: list[Real] = [origin.read_rate * drives_of(group, origin) / sharers]
    network = group.host.network
    if origin.scope is not Scope.LOCAL and network is not None:
        own = network.storage_cap if origin.scope is Scope.VOLUME else None
        rates.append(network.bandwidth if own is None else own)
    if job.dataset.placement is Placement.STAGE:
        written = group.storage.write_bandwidth or group.storage.read_rate
        rates.append(written * drives_used(group))
    elif MEMORY in topology.units:
        rates.append(topology.units[MEMORY].capacity)
    dataset = job.dataset
    carried = job.stored_total
    limits = [cap for cap in (origin.read_operations, origin.request_limit) if cap is not None]
    files = dataset.samples if dataset.shard_size is None else carried / dataset.shard_size
    asked = files / (min(limits) * drives_of(group, origin) / sharers) if limits else 0.0
    return cast("Seconds", at_least(asked, carried / reduce(at_most, rates)))


def preparation_time(scenario: Scenario, topology: Topology) -> Seconds:
    """Return the time to prepare all samples before the run, on the training machine [s].

    Reading, processing and writing overlap, so that the slowest of them counts.
    """
    job = scenario.job
    if job.input.where is not Preparation.BEFOREHAND or job.mode is Mode.PREPARE:
        return 0.0
    once = preparation(scenario)
    stages = ask(PREPARATION, once, Phase.COLD)
    slowest = limiting_time(once, at_rest(topology), stages) / job.train.accumulation
    batches = job.dataset.samples / (job.train.batch_size * topology.ranks)
    return cast("Seconds", batches * slowest)


def preparation(scenario: Scenario) -> Scenario:
    """Return the job that prepares a scenario's data before the run; it reads the raw samples."""
    job = scenario.job
    work = replace(
        job.input,
        where=Preparation.CPU,
        output_bytes_per_sample=job.input.prepared_bytes_per_sample,
    )
    raw = replace(
        job.dataset,
        placement=Placement.STREAM,
        cache=CachePolicy.NONE,
        window=None,
        chunk_size=None,
    )
    once = replace(job, mode=Mode.PREPARE, dataset=raw, input=work, remote=None)
    return replace(scenario, jobs=(once,))


def checkpoints(scenario: Scenario, training: Seconds | None = None) -> Real:
    """Return the number of checkpoints of a run that trains for `training` [s]."""
    return checkpoints_of(scenario, lengths(scenario).total_steps, training)


def checkpoint_loads(
    scenario: Scenario, topology: Topology, number: float, saving: CheckpointTimes | None
) -> Mapping[str, Seconds]:
    """Return the busy time of each unit of a writing machine for checkpoints, per step [s].

    The run writes `number` checkpoints that take the times `saving`. The devices of a machine copy
    their shares over their links at once; then the machine writes them together. Stated times may
    be shorter than rates allow: no unit is busy for longer than a checkpoint takes.
    """
    share = number / lengths(scenario).total_steps
    stages = checkpoint_stages(scenario) if saving is not None else ()
    if saving is None or not any(stage.demands for stage in stages):
        return {}
    written = checkpoint_shares(scenario)
    copying = round(float(written.machine.value / written.device.value))
    loads: dict[str, Seconds] = {}
    for demand in (demand for stage in stages for demand in stage.demands):
        longest = min(saving.durable, float(alone(topology, demand, Location(rank=0))))
        once: dict[str, Seconds] = {}
        for device in range(copying if demand.path in OF_A_RANK else 1):
            for unit, use in topology.way(demand, Location(rank=device)):
                busy = float(demand.amount * use / topology.units[unit].capacity)
                once[unit] = min(longest, once.get(unit, 0.0) + busy)
        for unit, busy in once.items():
            loads[unit] = loads.get(unit, 0.0) + busy * float(share)
    return loads


def _evaluations(scenario: Scenario, topology: Topology, stages: Sequence[StageDemands]) -> Seconds:
    evaluation = scenario.job.train.evaluation
    if evaluation is None:
        return 0.0
    forward = [stage for stage in stages if stage.slot.forward_only]
    slowest = limiting_time(scenario, topology, forward)
    own = evaluation.samples / scenario.ranks / scenario.job.train.batch_size
    per_batch = slowest / scenario.job.train.accumulation
    passes = scenario.job.train.epochs // evaluation.every_epochs
    return cast("Seconds", own * per_batch * passes)
