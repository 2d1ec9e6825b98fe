"""Stages that wait: pipeline bubble, stragglers, slow devices, checkpoints."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from simulator.equations.cost import upload_requests
from simulator.equations.stragglers import (
    left_to_wait,
    mean_delay,
    wait_for_slow_device,
    wait_for_slowest,
)
from simulator.physics.device_time import DeviceTime, device_time
from simulator.physics.footprint import CheckpointShares, checkpoint_shares
from simulator.pipeline.stages.base import Demand, Path, Phase, Resource, asking, passing
from simulator.pipeline.stages.communication import step_of
from simulator.pipeline.stragglers import slowest_factor
from simulator.schema.scenario import Scenario
from simulator.schema.storage import Scope, Storage
from simulator.schema.training import Mode
from simulator.terms import Term, term
from simulator.units import Real, Seconds, in_common


@dataclass(frozen=True, slots=True)
class Bubble:
    """Fill and drain of a pipeline of devices, once a step."""

    name: str = "pipeline bubble"

    def demands(self, scenario: Scenario, phase: Phase) -> tuple[Demand, ...]:
        """Return an idle wait."""
        step, degrees = step_of(scenario), scenario.job.parallelism
        if step is None or in_common(degrees.pipeline) == 1:
            return ()
        return (passing(step.terms["bubble"], Resource.GPU),)


@dataclass(frozen=True, slots=True)
class StragglerWait:
    """All ranks of a job wait for the slowest rank, once a step.

    Only the mean of the maximum of their random delays is counted, so a run without other
    randomness stays deterministic and its cost does not grow with the ranks.
    """

    name: str = "slowest rank"

    def demands(self, scenario: Scenario, phase: Phase) -> tuple[Demand, ...]:
        """Return an idle wait."""
        time = device_time(scenario)
        if scenario.job.train.straggling == 0.0 or time is None or not _meets(scenario):
            return ()
        return (passing(_wait_for_rank(scenario, time), Resource.NETWORK),)


@dataclass(frozen=True, slots=True)
class SlowDeviceWait:
    """All devices of a job wait for the slowest device, once a step.

    Their speeds differ by `train.device_spread` and `train.step_jitter`. Devices that split a
    replica wait for each other as replicas do: within a layer, or as stages of a pipeline, where
    the slowest sets the pace of all micro-batches. All of them count equally, with the compute of
    the slowest stage; fill and drain of a pipeline are not extended. Waiting for late ranks
    (`StragglerWait`) has other causes, so only the excess over it is counted.
    """

    name: str = "slowest device"

    def demands(self, scenario: Scenario, phase: Phase) -> tuple[Demand, ...]:
        """Return an idle wait."""
        train, time = scenario.job.train, device_time(scenario)
        varies = train.device_spread.varies or train.step_jitter.varies
        if not varies or time is None or scenario.devices == 1 or not _meets(scenario):
            return ()
        longer = term(
            wait_for_slow_device,
            compute=(time.forward + time.backward) * train.accumulation + time.optimizer,
            slowest=slowest_factor(train.device_spread, train.step_jitter, scenario.devices),
            straggling=scenario.calibration.value("straggling"),
        )
        late = _wait_for_rank(scenario, time) if train.straggling else 0.0
        return (passing(term(left_to_wait, wait=longer, lag=late), Resource.GPU),)


def _meets(scenario: Scenario) -> bool:
    """Return True if steps end together."""
    return scenario.job.mode is Mode.TRAIN


def _share(scenario: Scenario) -> Real:
    """Return the mean delay of a rank's step over its compute [1]."""
    return scenario.job.train.straggling / scenario.calibration.value("straggling")


def _wait_for_rank(scenario: Scenario, time: DeviceTime) -> Term:
    """Return the wait for the rank that is latest by chance [s]."""
    delay = term(
        mean_delay,
        share=_share(scenario),
        batch=time.total,
        batches=scenario.job.train.accumulation,
    )
    return term(wait_for_slowest, delay=delay, ranks=scenario.ranks)


AGREEING: Final[Seconds] = 0.45
"""Time in which processes negotiate which of them writes what [s].

The geometric mean of 0.59 and 0.34 s that ByteCheckpoint blocks on 8,960 and 1,488 GPUs, where the
copies alone take 10 ms (arXiv 2407.20143 table 8, 2024-07). Not used for it: 20 GB written by 1, 2
and 4 machines of eight processes take 0.59 s and what falls as one over their number
(pytorch/torchsnapshot@df45917d12b1, benchmarks/ddp, local NVMe). Other software blocks for seconds:
`checkpoint.blocking` states that.
"""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """Devices copy their shares to the host, and all machines write them to the store.

    Replicated state is written once. The process of a device serialises its share while it writes,
    so its own rate is a ceiling. Several writing processes first negotiate which writes what.
    """

    name: str = "checkpoint"

    def demands(self, scenario: Scenario, phase: Phase) -> tuple[Demand, ...]:
        """Return bytes over PCIe, then to the store."""
        train = scenario.job.train
        if train.checkpoint_every_steps is None or scenario.job.model is None:
            return ()
        shares, group = checkpoint_shares(scenario), scenario.cluster.trainers
        write = asking(
            shares.machine,
            Resource.STORAGE,
            Path.HOST_TO_STORE,
            operations=_uploads(group.storage, shares),
            latency=group.storage.write_latency + _agreeing(shares),
            ceiling=train.checkpoint_process_rate * shares.processes,
            sharers=shares.writers,
        )
        host = group.host
        if host.gpu is None or host.gpu.unified_memory or host.host_link is None:
            return (write,)
        latency = host.host_link.latency
        down = asking(shares.device, Resource.PCIE, Path.DEVICE_TO_HOST, latency=latency)
        return (down, write)


def _agreeing(shares: CheckpointShares) -> Real:
    """Return the time before several processes begin to write; 0 of a single one [s]."""
    several: Real = np.where(shares.writers * shares.processes > 1.0, AGREEING, 0.0)
    return several


def _uploads(store: Storage, shares: CheckpointShares) -> Real:
    """Return the upload requests of a machine to an object store; 0 of other stores."""
    if store.scope is not Scope.OBJECT:
        return 0.0
    part = store.operation_size or float("inf")
    return upload_requests(shares.device.value, part) * shares.processes
