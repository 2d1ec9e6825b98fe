"""The bottleneck of a step, and the vCPUs that keep accelerators busy.

A device's time passes in turn with waiting for data, computing, exchanging, waiting for the other
stages of a pipeline and for other ranks, and writing checkpoints. Where the devices wait for data
their suppliers bind; else the longest of these parts does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from typing import Final

from simulator.equations.cpu import speed_ratio, vcpus_short, vcpus_to_feed
from simulator.physics.device_time import device_time
from simulator.pipeline.program import makes_own_batches
from simulator.pipeline.stages.base import Path, Resource, StageDemands
from simulator.pipeline.topology import Site, Topology
from simulator.results.prediction import STARVED, CpuNeed, StepSplit, Usage
from simulator.schema.scenario import Scenario
from simulator.units import Seconds

FULL: Final = 0.85
"""Utilization from which on a resource is called full."""


class Part(StrEnum):
    """Parts of a step that can be its bottleneck although no resource is busy."""

    COMMUNICATION = "communication"
    BUBBLE = "bubble"
    CHECKPOINT = "checkpoint"
    WAITING = "waiting"


LIMITS: Final[tuple[str, ...]] = (*Resource, *Part)
"""Everything that can be called a bottleneck; a group's name and a dot may lead a resource."""
PARTS: Final[Mapping[str, Part]] = {
    "communication": Part.COMMUNICATION,
    "bubble": Part.BUBBLE,
    "checkpoint": Part.CHECKPOINT,
    "other": Part.WAITING,
}
"""By their names in `StepSplit`."""
_COPYING: Final = (Resource.PCIE, Resource.HOST_MEMORY)
"""What carries batches to the devices."""
_LINKS: Final = (Resource.NETWORK, Resource.NVLINK, Resource.PCIE)


def part_time(part: Part, split: StepSplit) -> Seconds:
    """Return the time of a part of the mean step [s]."""
    names = {kind: name for name, kind in PARTS.items()}
    return float(getattr(split, names[part]))


def binding(
    imposed: Mapping[str, Seconds], split: StepSplit, usage: Mapping[str, Usage]
) -> tuple[str, ...]:
    """Return the bottleneck of a step, followed by other candidates, longest time first.

    Parameters
    ----------
    imposed : mapping of str to float
        Step time that each resource imposes by itself [s], longest first, as from
        `loads.pressures`.
    split : StepSplit
        The mean step as a sum of its parts.
    usage : mapping of str to Usage
        Utilization of each resource. A full link represents the communication over it.
    """
    device = str(Resource.GPU if Resource.GPU in usage else Resource.CPU)
    times = dict(imposed)
    for part in Part:
        if (seconds := part_time(part, split)) > 0.0:
            times[_name(part, usage)] = seconds
    if str(Part.COMMUNICATION) in times:
        # nothing else uses links between accelerators: they bind by what is waited for
        times.pop(str(Resource.NVLINK), None)
    first = _supplier(imposed, split) or _longest_part(split, device, usage)
    others = sorted((name for name in times if name != first), key=lambda name: -times[name])
    return (first, *others)


def _supplier(imposed: Mapping[str, Seconds], split: StepSplit) -> str | None:
    """Return the resource that devices wait for; None if data is not the bottleneck."""
    line = _line(split)
    if split.checkpoint > line:
        return None
    ranked = [name for name in imposed if name != Resource.GPU]
    if starved(split):
        return ranked[0] if ranked else None
    # copies beside compute are what binds where they take longer than it
    longest = next(iter(imposed), None)
    copying = split.h2d >= STARVED * line and longest in _COPYING
    return longest if copying else None


def starved(split: StepSplit) -> bool:
    """Return whether data stalls take at least `STARVED` of the step, checkpoints excluded."""
    return 0.0 < split.data_stall >= STARVED * _line(split)


def _line(split: StepSplit) -> Seconds:
    """Return the time of the mean step without checkpoints [s]."""
    return (
        split.data_stall
        + split.h2d
        + split.compute
        + split.communication
        + split.bubble
        + split.other
    )


def _longest_part(split: StepSplit, device: str, usage: Mapping[str, Usage]) -> str:
    times = {device: split.compute, str(Resource.PCIE): split.h2d}
    times |= {_name(part, usage): part_time(part, split) for part in Part}
    return max(times, key=lambda name: times[name])


def _name(part: Part, usage: Mapping[str, Usage]) -> str:
    """Return the name of a part; for communication, the name of the link if it is full."""
    if part is not Part.COMMUNICATION:
        return str(part)
    busy = {str(link): usage[link].busiest for link in _LINKS if link in usage}
    fullest = max(busy, key=lambda link: busy[link], default=None)
    return str(part) if fullest is None or busy[fullest] < FULL else fullest


def cpu_need(
    scenario: Scenario, topology: Topology, stages: Sequence[StageDemands]
) -> CpuNeed | None:
    """Return the vCPUs that one accelerator needs to stay busy, and the shortage over all.

    A vCPU here is a hardware thread of a machine whose threads are all busy. None if the job has no
    accelerator or no device time.
    """
    compute = device_time(scenario)
    gpus = scenario.cluster.trainers.gpus_per_host
    if compute is None or gpus == 0 or float(compute.total) == 0.0:
        return None
    pool = replace(topology.host.cpu, taken=0.0)
    core_seconds = sum(
        float(demand.amount) * stage.times * speed
        for stage in stages
        for speed in (_speed_of(topology, stage, stages),)
        for demand in stage.demands
        if demand.path is Path.CORES
    )
    vcpu_seconds = core_seconds * pool.threads / pool.capacity
    making = float(vcpus_to_feed(vcpu_seconds, compute.total))
    per_gpu = making + scenario.job.train.host_threads * scenario.ranks_per_host / gpus
    machines = scenario.cluster.trainers.count
    own = machines * pool.threads if makes_own_batches(scenario) else 0.0
    there = own + sum(_own_vcpus(topology, site) for site in topology.sites[1:])
    return CpuNeed(
        per_gpu=per_gpu,
        short=float(vcpus_short(there, per_gpu, machines * gpus)),
        per_sample=float(vcpu_seconds) / scenario.job.train.batch_size,
    )


def _speed_of(topology: Topology, stage: StageDemands, stages: Sequence[StageDemands]) -> float:
    """Return the factor that converts core-seconds of a stage's machine to those of a trainer.

    It is 0 if the same stage also runs on the trainers: its work would be counted twice.
    """
    if not stage.group:
        return 1.0
    if any(other.stage == stage.stage and not other.group for other in stages):
        return 0.0
    site = topology.sites[topology.sites_of(stage.group)[0]]
    return _own_vcpus(topology, site) / site.host.cpu.threads


def _own_vcpus(topology: Topology, site: Site) -> float:
    """Convert the vCPUs of a site to vCPUs of the trainers' machine, by CoreMark if known."""
    own, pool = topology.host.cpu, site.host.cpu
    if own.coremark is None or pool.coremark is None:
        return pool.threads
    ratio = speed_ratio(pool.coremark / pool.threads, own.coremark / own.threads)
    return float(pool.threads * ratio)
