"""Features of a scenario: numbers and words for naive baselines and for finding similar runs.

They are derived from the scenario alone, never from a measurement.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from simulator.physics.device_time import device_time
from simulator.pipeline.loads import pressures
from simulator.pipeline.topology import build
from simulator.records import dataclass
from simulator.results.prediction import Prediction
from simulator.schema.machines import Host
from simulator.schema.models import Model, forward_flops
from simulator.schema.scenario import Job, Scenario
from simulator.schema.training import Mode
from simulator.units import Flops, FlopsPerSecond, Seconds

FORWARD_AND_BACKWARD = 3.0
"""FLOPs of a training step over those of its forward pass; the backward pass is two thirds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Features:
    """Features of a scenario: `numbers` (compared by ratio) and `words` (compared for equality).

    `devices` is the number of accelerators (of machines, if there are none), `samples` the samples
    of a step over all ranks. `operations` are the model FLOPs of a step and `peak` is the peak
    FLOP/s of all devices by their data sheets; None if no model runs on a device. `slowest` is the
    step time that the bottleneck alone would allow [s]; None if no prediction was given.
    """

    devices: int
    samples: float
    operations: Flops | None
    peak: FlopsPerSecond | None
    numbers: Mapping[str, float]
    words: Mapping[str, str]
    slowest: Seconds | None = None


def features_of(scenario: Scenario, prediction: Prediction | None = None) -> Features:
    """Return the features of a scenario by which runs are compared.

    With `prediction`, they include the step time of its bottleneck alone [s].
    """
    group, job = scenario.cluster.trainers, scenario.job
    samples = job.train.batch_size * job.train.accumulation * scenario.ranks * job.copies
    gpu = group.host.gpu if group.gpus_per_host else None
    devices = group.count * max(1, group.gpus_per_host)
    peak = None
    if gpu is not None:
        precision = gpu.fallback.get(job.train.precision, job.train.precision)
        peak = gpu.peak.get(precision, math.nan) * devices
    return Features(
        devices=devices,
        samples=samples,
        operations=None if job.model is None else _operations(job, job.model) * samples,
        peak=peak,
        numbers={name: value for name, value in _numbers(scenario).items() if value > 0.0},
        words=_words(scenario),
        slowest=None if prediction is None else slowest_part(prediction),
    )


def slowest_part(prediction: Prediction) -> Seconds:
    """Return the largest of the step times that each resource alone would allow [s]."""
    scenario = prediction.scenario
    return max(pressures(scenario, build(scenario), prediction.demands).values())


def _operations(job: Job, model: Model) -> Flops:
    times = FORWARD_AND_BACKWARD if job.mode is Mode.TRAIN else 1.0
    return times * float(forward_flops(model, 1.0, job.train.precision))


def _numbers(scenario: Scenario) -> dict[str, float]:
    job, group = scenario.job, scenario.cluster.trainers
    gpu = group.host.gpu if group.gpus_per_host else None
    device = device_time(scenario)
    work = job.input
    beside = [one for one in scenario.cluster.groups if one is not group]
    return {
        "accelerators a machine": float(group.gpus_per_host),
        "machines": float(group.count),
        "batch size": float(job.train.batch_size),
        "accumulation": float(job.train.accumulation),
        "workers": 1.0 + job.input.workers,
        "cores": float(group.host.cpu.cores),
        "sample bytes": float(job.stored_bytes),
        "CPU time a sample": float(work.decode + work.augment + work.collate),
        "device time a batch": 0.0 if device is None else float(device.total),
        "store bandwidth": float(group.storage.read_rate),
        "data over RAM": float(job.stored_total / group.host.ram),
        "device memory bandwidth": 0.0 if gpu is None else float(gpu.memory_bandwidth),
        "helper machines": float(sum(one.count for one in beside)),
        "model parameters": 0.0 if job.model is None else float(job.model.parameters),
        **_links(group.host),
        **_layout(job),
    }


def _links(host: Host) -> dict[str, float]:
    """Return bandwidths from accelerators to host, to one another and to other machines [B/s]."""
    return {
        "RAM bandwidth": float(host.memory_bandwidth or 0.0),
        "PCIe bandwidth": float(host.device_rate or 0.0),
        "bandwidth between accelerators": 0.0 if host.peer_link is None else host.peer_link.rate,
        "network bandwidth": 0.0 if host.network is None else float(host.network.bandwidth),
    }


def _layout(job: Job) -> dict[str, float]:
    """Return the degrees of model parallelism and the steps between checkpoints."""
    spread, every = job.parallelism, job.train.checkpoint_every_steps
    return {
        "tensor ranks": float(spread.tensor),
        "pipeline stages": float(spread.pipeline),
        "context ranks": float(spread.context),
        "expert ranks": float(spread.expert),
        "steps between checkpoints": 0.0 if every is None else every,
    }


def _words(scenario: Scenario) -> dict[str, str]:
    job, group = scenario.job, scenario.cluster.trainers
    gpu = group.host.gpu if group.gpus_per_host else None
    return {
        "mode": str(job.mode),
        "accelerator": "none" if gpu is None else gpu.name,
        "precision": str(job.train.precision),
        "model": "none" if job.model is None else job.model.name,
        "framework": job.software.framework,
        "loader": str(job.input.loader),
        "store": str(group.storage.scope),
        "layout": str(job.dataset.layout),
        "sharding": str(job.parallelism.sharding),
        "recomputation": str(job.train.recompute),
        "compiled": str(job.software.compile),
    }
