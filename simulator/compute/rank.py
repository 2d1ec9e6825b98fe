"""What one rank of a scenario's job needs where its model or state is spread over devices."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from simulator.compute.describe import FULL, covers, describe, kernels_of
from simulator.compute.description import Description
from simulator.compute.memory import RankMemory, State, rank_memory
from simulator.equations.memory import state_bytes
from simulator.equations.spread_memory import offloaded_bytes
from simulator.scenario import Scenario
from simulator.units import Bytes, Real
from simulator.workload.parallelism import Sharding
from simulator.workload.train import Mode


def is_spread(scenario: Scenario) -> bool:
    """Whether a rank holds a part of the model or its state, and there are figures for it."""
    job = scenario.job
    return job.mode is Mode.TRAIN and job.parallelism.splits_model and covers(scenario)


def memory_of(scenario: Scenario, width: Bytes) -> RankMemory:
    """Device memory of a rank.

    Parameters
    ----------
    scenario : Scenario
        Its model `is_spread`; batch and accumulation may be arrays of candidates.
    width : float
        Bytes of a stored weight and of each optimizer state [B].

    Raises
    ------
    NotModelled
        If it is not.
    """
    train = scenario.job.train
    copied = train.mixed and train.precision not in FULL
    state = State(master=width if copied else 0.0, moments=state_bytes(train.optimizer, width))
    return rank_memory(_longest(describe(scenario)), kernels_of(scenario).memory, state)


def _longest(d: Description) -> Description:
    """The same with the longest samples alone, which memory has to hold."""
    filled = d.shape.filled
    if not isinstance(filled, np.ndarray) and filled == 1.0:
        return d
    return replace(d, shape=replace(d.shape, filled=1.0))


def offloaded(scenario: Scenario) -> dict[str, Real]:
    """RAM of one machine for an optimizer that runs there, as an item [B]; none without."""
    job = scenario.job
    if job.model is None or not job.parallelism.offload_optimizer:
        return {}
    degrees, machine = job.parallelism, scenario.cluster.trainers.gpus_per_host
    sharers = min(scenario.ranks, degrees.shard_group or scenario.ranks)
    devices = sharers * degrees.devices * job.copies
    partitioned = float(job.parallelism.sharding is Sharding.PARAMETERS)
    size = offloaded_bytes(job.model.parameters, float(machine), float(devices), partitioned)
    return {"optimizer": size}
