"""Host RAM and device memory of a scenario by item, verdicts, and the size of its checkpoints.

Every numeric default is a constant with its source; `assumptions` lists the defaults that a
scenario uses. For a batch of candidates the items, totals and verdicts are arrays.

Not counted: memory-mapped model files, swap, other programs on the machine, and device memory that
libraries allocate outside the framework.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import field
from enum import StrEnum
from typing import Final, cast

import numpy as np

from simulator.equations import memory
from simulator.equations.memory import checkpoint_share, state_bytes, tensor_bytes
from simulator.equations.uncertainty import probability, room
from simulator.memo import cached
from simulator.physics.device_memory import (
    batch_in_bytes,
    device_memory,
    memory_assumptions,
    offloaded,
    weight_width,
)
from simulator.physics.parameters import learned_in_all
from simulator.records import dataclass
from simulator.schema.data_loading import CachePolicy, LoaderKind, Placement
from simulator.schema.long_run import Target
from simulator.schema.models import CustomModel
from simulator.schema.provenance import Assumption, Part, Source, bearing
from simulator.schema.scenario import Job, Scenario
from simulator.schema.training import Sharding
from simulator.schema.uncertainty import P90
from simulator.terms import Term, product_of, stated, term
from simulator.units import BYTE, Bytes, Real, in_common, parse, show


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointShares:
    """Sizes of a checkpoint: in total, and of the machine and the device that write most."""

    whole: Bytes | Real
    machine: Term
    device: Term

    @property
    def writers(self) -> Real:
        """Effective number of writing machines: total size over that of the busiest one."""
        return self.whole / self.machine.value

    @property
    def processes(self) -> Real:
        """Effective number of writing processes on the machine that writes most."""
        return self.machine.value / self.device.value


def checkpoint_bytes(scenario: Scenario) -> Real:
    """Return the size of a checkpoint, weights and optimizer state [B]; 0 without a model."""
    job = scenario.job
    if job.model is None:
        return 0.0
    weights, moments = _saved_bytes(job)
    return weights + moments


def _saved_bytes(job: Job) -> tuple[Bytes | Real, Bytes | Real]:
    """Return the sizes of weights and of optimizer state in a checkpoint [B].

    With adapters these alone are saved.
    """
    if job.model is None:
        return 0.0, 0.0
    width, learned = weight_width(job.train), learned_in_all(job)
    written = job.model.parameters if job.train.head_only else learned
    state = state_bytes(job.train.optimizer, width)
    return tensor_bytes(written, width), tensor_bytes(learned, state)


def checkpoint_shares(scenario: Scenario) -> CheckpointShares:
    """Return the size of a checkpoint and the largest shares of a machine and a device.

    The devices of a replica hold different parts of the model, and devices over which state is
    sharded different parts of the state; one device with a copy writes each part. A replica fills
    one machine before the next. If weights are also kept in fp32, those are part of the sharded
    state.
    """
    job, group = scenario.job, scenario.cluster.trainers
    whole = checkpoint_bytes(scenario)
    (weights, of_weights), (moments, of_moments) = _saved_parts(scenario)

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
    return CheckpointShares(whole=job.copies * whole, machine=machine, device=share(1.0, 1.0))


def _saved_parts(scenario: Scenario) -> tuple[tuple[Bytes | Real, Real], ...]:
    """Return the sizes of weights and of optimizer state [B], each with its number of writers."""
    job, degrees = scenario.job, scenario.job.parallelism
    weights, moments = _saved_bytes(job)
    replica = np.minimum(scenario.devices, degrees.tensor * degrees.pipeline * degrees.expert)
    group = np.minimum(scenario.ranks, degrees.shard_group or scenario.ranks)
    sharded = np.minimum(scenario.devices, degrees.devices * group)
    if degrees.sharding is Sharding.NONE:
        return ((weights, replica), (moments, replica))
    of_state = job.train.mixed_precision or degrees.sharding is Sharding.PARAMETERS
    return ((weights, sharded if of_state else replica), (moments, sharded))


def snapshots(scenario: Scenario) -> Mapping[str, Term]:
    """Return the host RAM of checkpoint copies by item; empty if training waits for writes.

    An asynchronous checkpoint is in RAM until it is written. If a peer machine keeps a copy, each
    machine permanently holds its own share and that of another machine.
    """
    peer = scenario.checkpoints.to is Target.PEER
    if scenario.job.model is None or not (peer or scenario.checkpoints.asynchronous):
        return {}
    share = checkpoint_shares(scenario).machine.value
    return {"checkpoint_snapshots": product_of(machine=share, snapshots=2.0 if peer else 1.0)}


UNCERTAIN_SHARE: Final = 0.05
"""Part of the capacity, above and below it, within which a fit is not decided."""


class Verdict(StrEnum):
    """Answer to the question if something fits: ``yes``, ``uncertain`` or ``no``.

    ``uncertain`` is within 5% of the capacity, or, if the uncertainty of the memory needed is
    known, a probability between 10% and 90%.
    """

    YES = "yes"
    NO = "no"
    UNCERTAIN = "uncertain"


@dataclass(frozen=True, slots=True, kw_only=True)
class HostRam:
    """RAM needed on one machine, by item [B]; the page cache gets the rest.

    `terms` are the equations that gave the items.
    """

    items: Mapping[str, Bytes]
    capacity: Bytes
    rule_of_thumb: Bytes
    verdict: Verdict
    terms: Mapping[str, Term] = field(default_factory=dict)

    @property
    def known_verdict(self) -> Verdict:
        """Verdict on host RAM, for which every item is known."""
        return self.verdict

    @property
    def total(self) -> Bytes:
        """RAM needed, over all items [B]."""
        return sum(self.items.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryFit:
    """Memory needed on one device, by item [B].

    If pipeline stages differ, `items` are those of the fullest one, and `stages` has the totals of
    the first, a middle and the last stage [B]. `log_sd` is the uncertainty of the memory needed; 0
    if it is unknown. `least` is True if the model does not state its activations, so that the items
    are a lower bound.
    """

    items: Mapping[str, Bytes]
    capacity: Bytes
    verdict: Verdict
    terms: Mapping[str, Term] = field(default_factory=dict)
    stages: Mapping[str, Bytes] = field(default_factory=dict)
    log_sd: float = 0.0
    least: bool = False

    @property
    def known_verdict(self) -> Verdict | None:
        """Verdict on device memory; None if only a lower bound is known, and that fits."""
        return None if self.least and self.verdict is not Verdict.NO else self.verdict

    @property
    def total(self) -> Bytes:
        """Memory needed, over all items [B]."""
        return sum(self.items.values())

    @property
    def waste(self) -> Bytes:
        """Allocator fragmentation, which is released before an out-of-memory error [B]."""
        return self.items.get("fragmentation", 0.0)

    @property
    def band(self) -> tuple[Bytes, Bytes]:
        """10% and 90% quantiles of the memory needed [B]."""
        off = math.exp(P90 * self.log_sd)
        return self.total / off, self.total * off

    @property
    def probability(self) -> float | None:
        """Probability that the job fits; None if the uncertainty is unknown."""
        if self.log_sd <= 0.0 or self.known_verdict is None:
            return None
        return float(probability(room(self.total - self.waste, self.capacity, self.log_sd)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Default:
    """A default value for a key that the scenario does not set."""

    what: str
    amount: float
    source: Source

    @property
    def assumption(self) -> Assumption:
        """The default as an assumption of a prediction; sizes with unit, shares in percent."""
        value = f"{self.amount:.0%}" if self.amount < 1.0 else show(self.amount, BYTE)
        return Assumption(what=self.what, value=value, source=self.source)


_MEASURED_HERE: Final = "measured by this project, Linux, Python 3.11"
OPERATING_SYSTEM: Final = Default(
    what="RAM of the operating system and its services",
    amount=parse("2 GB", BYTE),
    source=Source(reference="a guess for a server without desktop", date="2026", verified=False),
)
CPU_PROCESS: Final = Default(
    what="RAM of the framework in a process without GPU",
    amount=parse("218 MB", BYTE),
    source=Source(reference=f"{_MEASURED_HERE}: RSS with torch 2.13 (CPU)", date="2026-11-21"),
)
GPU_PROCESS: Final = Default(
    what="RAM of the framework in a process with a GPU, per rank",
    amount=parse("526 MB", BYTE) + parse("1.2 GB", BYTE),
    source=Source(
        reference=f"{_MEASURED_HERE}: RSS with torch 2.15+cu132, 526 MB; first CUDA use adds "
        "1.2 GB: pytorch/pytorch issue 106511 (2023)",
        date="2026-11-21",
    ),
)


def verdict(total: Real, capacity: Real, waste: Real = 0.0, log_sd: float = 0.0) -> Verdict:
    """Return the verdict on `total` bytes in `capacity`; an array for a batch of candidates.

    With an uncertainty `log_sd` of the memory needed, it is ``yes`` from a probability of 90% on.

    `waste` is the part of `total` that is allocator fragmentation. It does not count for ``no``:
    before it runs out of memory, PyTorch's allocator frees unused blocks and retries
    (c10/cuda/CUDACachingAllocator.cpp).
    """
    ratio, least = np.asarray(total / capacity), np.asarray((total - waste) / capacity)
    if log_sd > 0.0:
        off = math.exp(P90 * log_sd)
        bands = [least < 1.0 / off, least <= off]
    else:
        bands = [ratio < 1.0 - UNCERTAIN_SHARE, least <= 1.0 + UNCERTAIN_SHARE]
    if ratio.ndim == 0:
        undecided = Verdict.UNCERTAIN if bands[1] else Verdict.NO
        return Verdict.YES if bands[0] else undecided
    words = np.select(bands, [Verdict.YES.value, Verdict.UNCERTAIN.value], Verdict.NO.value)
    return cast("Verdict", words)


@cached(most=16)
def host_ram(scenario: Scenario) -> HostRam:
    """Return the RAM that one training machine needs, by item.

    Returns
    -------
    HostRam
        Items in bytes. The rule of thumb counts the memory of the GPUs in use, except for GPUs
        that share the host's memory.
    """
    job, group, pipeline = scenario.job, scenario.cluster.trainers, scenario.job.input
    figures, processes = job.memory, scenario.processes_per_host
    system, application = (
        default.amount if override is None else override
        for default, override in (
            (OPERATING_SYSTEM, figures.operating_system),
            (_framework_memory(scenario), figures.application),
        )
    )
    forks = pipeline.loader is LoaderKind.PYTORCH
    sharers = pipeline.workers if forks else 1
    held: dict[str, Term | Real] = {
        "batches": term(
            memory.batches_in_flight,
            prefetch=pipeline.prefetch,
            workers=sharers,
        ),
        "ranks": scenario.ranks_per_host,
    }
    size = batch_in_bytes(scenario)
    terms = {
        "operating_system": stated(operating_system=system),
        "application": product_of(process=application, processes_per_host=processes),
        "workers": term(
            memory.workers_bytes,
            ranks=scenario.ranks_per_host,
            workers=pipeline.workers,
            worker_memory=pipeline.worker_memory,
        )
        if forks
        else stated(workers=0.0),
        "batches_in_flight": term(memory.in_flight_bytes, batch_bytes=size, **held),
    }
    if pipeline.pin_memory:
        block = term(memory.pinned_block_bytes, size=size)
        terms["pinned_batches"] = term(memory.in_flight_bytes, batch_bytes=block, **held)
    if _dataset_in_ram(job):
        terms["dataset"] = stated(dataset=job.stored_total)
    terms |= {**offloaded(scenario), **snapshots(scenario)}
    gpu = group.host.gpu
    of_gpus = 0.0
    if gpu is None or gpu.unified_memory:
        on_device = device_memory(scenario)
        of_one = 0.0 if on_device is None else sum(on_device.items.values(), 0.0)
        terms["model"] = product_of(device=of_one, processes_per_host=processes)
    else:
        of_gpus = group.gpus_per_host * gpu.memory
    items = {name: item.value for name, item in terms.items()}
    programs = items["operating_system"], items["application"]
    return HostRam(
        items=cast("Mapping[str, Bytes]", items),
        terms=terms,
        capacity=group.host.ram,
        rule_of_thumb=cast("Bytes", memory.rule_of_thumb(of_gpus, *programs)),
        verdict=verdict(sum(items.values(), 0.0), group.host.ram),
    )


def _dataset_in_ram(job: Job) -> bool:
    """Return whether the input pipeline keeps all samples in RAM.

    Loaders that run as actors never do: they hold one batch at a time.
    """
    preloaded = job.dataset.cache is CachePolicy.PRELOADED
    read = job.input.loader is not LoaderKind.ACTORS
    return read and (preloaded or job.dataset.placement is Placement.PRELOAD)


def page_cache_bytes(scenario: Scenario) -> Real:
    """Return the size of a machine's page cache [B]: the stated one, else the remaining RAM."""
    override = scenario.job.memory.page_cache
    if override is not None:
        return override
    ram = host_ram(scenario)
    return memory.memory_left(ram.capacity, ram.total)


def paging_warning(ram: HostRam) -> str | None:
    """Return a warning if host RAM is short; None if it is not."""
    if ram.total > ram.capacity:
        needed, there = show(ram.total, BYTE), show(ram.capacity, BYTE)
        return f"host RAM is short: {needed} needed, {there} there; expect paging or failure"
    if ram.capacity < ram.rule_of_thumb:
        asked, there = show(ram.rule_of_thumb, BYTE), show(ram.capacity, BYTE)
        return (
            f"host RAM ({there}) is below the rule of thumb ({asked}: GPU memory + operating "
            "system + application); paging is a risk"
        )
    return None


def memory_fit(scenario: Scenario) -> MemoryFit | None:
    """Return the memory of the job on one device; None without a device or a model on it.

    It is also None for an emulated device, which holds nothing.
    """
    gpu = scenario.cluster.trainers.host.gpu
    held = None if gpu is None or gpu.emulated else device_memory(scenario)
    if gpu is None or held is None:
        return None
    waste, off = held.items.get("fragmentation", 0.0), scenario.memory_log_sd
    model = scenario.job.model
    return MemoryFit(
        items=cast("Mapping[str, Bytes]", held.items),
        terms=held.terms,
        capacity=gpu.memory,
        verdict=verdict(sum(held.items.values(), 0.0), gpu.memory, waste, off),
        stages=cast("Mapping[str, Bytes]", held.stages),
        log_sd=off,
        least=isinstance(model, CustomModel) and model.activation is None,
    )


def assumptions(scenario: Scenario) -> tuple[Assumption, ...]:
    """Return the default values that the memory footprint of the scenario uses."""
    figures = scenario.job.memory
    defaults = (
        default.assumption
        for default, stated_figure in (
            (OPERATING_SYSTEM, figures.operating_system),
            (_framework_memory(scenario), figures.application),
        )
        if stated_figure is None
    )
    gpu = scenario.cluster.trainers.host.gpu
    memory = None if gpu is None else device_memory(scenario)
    on_device = memory_assumptions(scenario, memory)
    return (*bearing(defaults, Part.HOST_RAM), *bearing(on_device, Part.GPU_MEMORY))


def _framework_memory(scenario: Scenario) -> Default:
    gpu = scenario.cluster.trainers.host.gpu
    return CPU_PROCESS if gpu is None or gpu.emulated else GPU_PROCESS
