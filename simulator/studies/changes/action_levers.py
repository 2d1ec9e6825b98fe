"""What a user can change about a job: each lever with its settings and what it is called.

Nothing is predicted here. Levers that make no sense for a job (workers of one without any, another
machine where no price is known) are not offered; those that the scenario refuses are left out by
whoever reads them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from simulator.pipeline.run_length import lengths
from simulator.schema.goal import Plain
from simulator.schema.hardware.gpu import Stack
from simulator.schema.hardware.naming import short_name
from simulator.schema.hardware.storage import Scope
from simulator.schema.precision import Precision
from simulator.schema.workload.dataset import Access, CachePolicy, Layout, Placement
from simulator.schema.workload.loader import LoaderKind, Preparation
from simulator.schema.workload.models.convnet import ConvNet
from simulator.schema.workload.models.transformer import Transformer
from simulator.schema.workload.parallelism import Sharding
from simulator.schema.workload.train import Mode, Recompute, Trained
from simulator.studies.baseline import MACHINE, STORE, WORKERS, Baseline, Machine
from simulator.studies.recommend.remedies import remedies
from simulator.studies.recommend.space import moved
from simulator.studies.recommend.spreading import Shape, ways
from simulator.units import SECOND, parse, show

FASTER_DECODER: Final = 0.77
"""Time of simplejpeg or imagecodecs over Pillow's for one JPEG: median of four processors, 0.76 to
0.83 (ternaus/imread_benchmark @f869db8, 2025; `data/measured/imread_benchmark.csv`)."""
DECODER_SPREAD: Final = 0.04
"""Standard deviation of the logarithm of that ratio over the four processors."""
SHARD: Final = "256 MB"
READERS: Final = 8
"""Requests that one worker keeps open at a time, where it reads file by file."""
MOST_WORKERS: Final = 128
MOST_OF_RAM: Final = 0.6
"""Share of a machine's RAM that data may take so that it is worth loading."""
DEEP: Final = 4
"""Batches of prefetch beyond which more are no lever."""
RARER: Final = (4, 16, 64)
"""How many times as far apart checkpoints may be."""


class Kind(StrEnum):
    """Levers of which one is enough: only the best of a kind is advised."""

    WORKERS = "workers"
    PREFETCH = "prefetch"
    LAYOUT = "access and shards"
    READERS = "readers"
    PLACEMENT = "where the data lies"
    DECODER = "decode library"
    BEFOREHAND = "preparing beforehand"
    HELPERS = "helpers"
    BATCH = "batch"
    PRECISION = "precision"
    SOFTWARE = "compile"
    MEMORY = "memory of the device"
    PARALLELISM = "parallelism"
    LEARNING = "what learns"
    CHECKPOINTS = "checkpoints"
    STORAGE = "storage"
    MACHINE = "another machine"
    ACCELERATORS = "accelerators of the machine"
    MACHINES = "more machines"


@dataclass(frozen=True, slots=True, kw_only=True)
class Lever:
    """One change: what it is, the `settings` that make it, and what else it asks for.

    `log_sd` is how well the change itself is known, beside the rates of the job: the standard
    deviation of the logarithm of what it does to the part that it changes. `kind` is a `Kind` of
    jobs, or one of services.
    """

    kind: StrEnum
    what: str
    settings: Mapping[str, Plain]
    note: str = ""
    log_sd: float = 0.0


def levers(baseline: Baseline, *, starved: bool, cramped: bool = False) -> Iterator[Lever]:
    """Everything that could be changed about a job.

    Parameters
    ----------
    ground : Ground
        The scenario as it stands; machines of its cloud and stores on offer.
    starved : bool
        Whether the job waits for its data; else its input pipeline is no lever.
    cramped : bool
        Whether the job likely does not fit, so that changes are offered that go together.
    """
    job = baseline.scenario.job
    if starved:
        yield from _loader(baseline)
        yield from _data(baseline)
        yield from _cpu(baseline)
    elif _pays_for_requests(baseline):
        yield from _layout(baseline)
    if job.mode is not Mode.PREPARE and baseline.scenario.cluster.trainers.gpus_per_host:
        yield from _precision(baseline)
        yield from _software(baseline)
        yield from _memory(baseline)
        yield from _parallelism(baseline)
        yield from _accelerators(baseline)
        if cramped and job.mode is Mode.TRAIN:
            yield from _smaller(baseline)
    yield from _other_helpers(baseline)
    yield from _checkpoints(baseline)
    yield from _machines(baseline)
    yield from _more_machines(baseline)


def _accelerators(baseline: Baseline) -> Iterator[Lever]:
    """All accelerators of a machine that is paid for as a whole, with its threads shared out."""
    scenario, trainers = baseline.scenario, baseline.scenario.cluster.trainers
    there, loader = trainers.host.gpu_count, scenario.job.loader
    own = any(baseline.reader.given(f"hardware.{key}") is not None for key in _OWN_FIGURES)
    if own or not baseline.own.cloud or trainers.gpus_per_host >= there or scenario.job.copies > 1:
        return
    settings: dict[str, Plain] = {"hardware.gpus": there}
    share = max(1, int(trainers.host.cpu.threads) // there)
    if loader.workers > share:
        settings[WORKERS] = share
    fixed = baseline.reader.given("train.global_batch_size") is not None
    more = there / trainers.gpus_per_host
    yield Lever(
        kind=Kind.ACCELERATORS,
        what=f"use all {there} accelerators of the machine in place of {trainers.gpus_per_host}",
        settings=settings,
        note="" if fixed else f"a step then takes {more:g} times as many samples",
    )


def _other_helpers(baseline: Baseline) -> Iterator[Lever]:
    """Fewer machines that make batches beside, or more of them, by powers of two."""
    remote = baseline.scenario.job.remote
    if remote is None:
        return
    own = next(one.count for one in baseline.scenario.cluster.groups if one.name == remote.group)
    fewer = (own >> k for k in range(1, own.bit_length()))
    for number in (*fewer, own + 1, 2 * own, 4 * own):
        yield Lever(
            kind=Kind.HELPERS,
            what=f"{number:,} machine{'' if number == 1 else 's'} beside in place of {own:,}",
            settings={"remote.count": number},
        )


def _workers(number: int) -> str:
    return f"{number} worker{'' if number == 1 else 's'}"


def _loader(baseline: Baseline) -> Iterator[Lever]:
    """Workers and prefetch."""
    scenario = baseline.scenario
    loader, work = scenario.job.loader, scenario.job.preprocessing
    threads = scenario.cluster.trainers.host.cpu.threads / scenario.ranks_per_host
    own, each = loader.workers, max(1, int(threads))
    each_process = " a process" if scenario.ranks_per_host > 1 else ""
    if scenario.job.remote is None or own:
        for number in sorted({2 * own, 4 * own, each, 2 * each, 4, 16}):
            if own < number <= min(MOST_WORKERS, max(4, 4 * each)):
                yield Lever(
                    kind=Kind.WORKERS,
                    what=f"{_workers(number)}{each_process} in place of {own or 'none'}",
                    settings={WORKERS: number},
                )
    threaded = loader.kind is not LoaderKind.PYTORCH
    if (own > 0 or threaded) and work.per_sample > 0.0 and loader.prefetch < DEEP:
        yield Lever(
            kind=Kind.PREFETCH,
            what=f"prefetch {DEEP} in place of {loader.prefetch}",
            settings={"input.prefetch": DEEP},
        )


def _data(baseline: Baseline) -> Iterator[Lever]:
    """How the data lies on its store, and on which."""
    scenario = baseline.scenario
    data = scenario.job.dataset
    if data.cache is CachePolicy.PRELOADED or data.placement is not Placement.STREAM:
        return
    yield from _layout(baseline)
    if data.readers < READERS:
        yield Lever(
            kind=Kind.READERS,
            what=f"{READERS} requests at a time in each worker",
            settings={"data.readers": READERS},
        )
    yield from _placements(baseline)
    yield from _stores(baseline)


def _pays_for_requests(baseline: Baseline) -> bool:
    """Whether the store of the data charges for each request, so that fewer of them save money."""
    charges = baseline.scenario.cluster.trainers.storage.charges
    streams = baseline.scenario.job.dataset.placement is Placement.STREAM
    return streams and charges is not None and bool(charges.reads)


def _layout(baseline: Baseline) -> Iterator[Lever]:
    """Shards read front to back, in place of shards read at random or of files."""
    job = baseline.scenario.job
    data = job.dataset
    if data.layout is Layout.SHARDS and data.access is Access.RANDOM:
        yield Lever(
            kind=Kind.LAYOUT,
            what="read shards front to back, as WebDataset and MDS do",
            settings={"data.access": Access.SEQUENTIAL.value},
        )
    if data.layout is Layout.FILES and job.mode is Mode.TRAIN and data.window is None:
        yield Lever(
            kind=Kind.LAYOUT,
            what=f"pack the files into shards of {SHARD} and read them front to back",
            settings={
                "data.layout": Layout.SHARDS.value,
                "data.shard_size": SHARD,
                "data.access": Access.SEQUENTIAL.value,
            },
            note="the data is written anew once",
        )


def _placements(baseline: Baseline) -> Iterator[Lever]:
    """Data in RAM, or on the machine's own drives."""
    trainers = baseline.scenario.cluster.trainers
    if baseline.scenario.job.stored_total < MOST_OF_RAM * trainers.host.ram:
        yield Lever(
            kind=Kind.PLACEMENT,
            what="load the data into RAM first",
            settings={"data.placement": Placement.PRELOAD.value},
        )
    if trainers.host.local_storage is not None and trainers.storage.scope is not Scope.LOCAL:
        yield Lever(
            kind=Kind.PLACEMENT,
            what="copy the data to the machine's own drives first",
            settings={"data.placement": Placement.STAGE.value},
        )


def _stores(baseline: Baseline) -> Iterator[Lever]:
    if not baseline.store or baseline.reader.given("hardware.storage_bandwidth") is not None:
        return
    size = baseline.scenario.job.stored_total
    for store in baseline.nearby(baseline.own):
        if store.name != baseline.store and store.standing(size) is not None:
            yield Lever(
                kind=Kind.STORAGE,
                what=f"keep the data on {store.name.rpartition('/')[2]}",
                settings={STORE: store.name},
            )


def _cpu(baseline: Baseline) -> Iterator[Lever]:
    """Less work for the processors, or more of them beside."""
    scenario = baseline.scenario
    job, work = scenario.job, scenario.job.preprocessing
    model = job.model
    images = isinstance(model, ConvNet) or (isinstance(model, Transformer) and not model.tokens)
    stated = baseline.reader.given("input.decode")
    if images and work.decode > 0.0 and work.where is Preparation.CPU and stated is not None:
        faster = FASTER_DECODER * parse(str(stated), SECOND)
        yield Lever(
            kind=Kind.DECODER,
            what="decode JPEGs with simplejpeg or imagecodecs, if Pillow does it now",
            settings={"input.decode": show(faster, SECOND, 3)},
            log_sd=DECODER_SPREAD,
        )
    if job.mode is not Mode.TRAIN:
        return
    names = {"preparing once, before the run": Kind.BEFOREHAND}
    for name, settings in remedies(baseline, (), _helpers(baseline), {}):
        kind = names.get(name, Kind.HELPERS)
        own = {key: value for key, value in settings.items() if not key.startswith("hardware.")}
        note = _BEFOREHAND if kind is Kind.BEFOREHAND else ""
        yield Lever(kind=kind, what=_remedy(kind, own), settings=own, note=note)


_COMPILED: Final = frozenset({Stack.TPU, Stack.NEURON})
"""Software whose compiler lays data out and fuses kernels by itself."""
_BEFOREHAND: Final = "random augmentation must then be done elsewhere or be left out"


def _helpers(baseline: Baseline) -> tuple[Machine, ...]:
    """Priced machines of the cloud without accelerators, the largest of each family."""
    largest: dict[str, Machine] = {}
    for machine in baseline.machines:
        if machine.cloud == baseline.own.cloud and not machine.gpus and machine.networked:
            known = largest.get(machine.family)
            if known is None or machine.threads > known.threads:
                largest[machine.family] = machine
    return tuple(largest.values())


def _remedy(kind: Kind, settings: Mapping[str, Plain]) -> str:
    if kind is Kind.BEFOREHAND:
        return "decode once, before the run, and store what the model takes"
    name = short_name(settings["remote.machine"])
    return f"let {settings['remote.count']} x {name} make batches beside"


def _precision(baseline: Baseline) -> Iterator[Lever]:
    gpu, train = baseline.scenario.cluster.trainers.host.gpu, baseline.scenario.job.train
    if gpu is None or baseline.scenario.job.step_times is not None:
        return
    if train.precision in {Precision.FP32, Precision.TF32}:
        half = next((p for p in (Precision.BF16, Precision.FP16) if p in gpu.peak), None)
        if half is not None and half not in gpu.fallback:
            settings: dict[str, Plain] = {"train.precision": half.value}
            if baseline.scenario.job.mode is Mode.TRAIN:
                settings["train.mixed_precision"] = True
            yield Lever(
                kind=Kind.PRECISION,
                what=f"compute in {half} in place of {train.precision}",
                settings=settings,
                note="check that the model still learns",
            )
    if train.precision in {Precision.BF16, Precision.FP16} and isinstance(
        baseline.scenario.job.model, Transformer
    ):
        eight = Precision.FP8 in gpu.peak and Precision.FP8 not in gpu.fallback
        if eight and baseline.scenario.job.mode is Mode.TRAIN:
            yield Lever(
                kind=Kind.PRECISION,
                what=f"compute in fp8 in place of {train.precision}",
                settings={"train.precision": "fp8"},
                note="check that the model still learns",
            )


def _software(baseline: Baseline) -> Iterator[Lever]:
    job = baseline.scenario.job
    gpu = baseline.scenario.cluster.trainers.host.gpu
    if job.step_times is not None or job.model is None:
        return
    if gpu is not None and gpu.stack in _COMPILED:
        return
    if not baseline.reader.given("software.compile"):
        yield Lever(kind=Kind.SOFTWARE, what="torch.compile", settings={"software.compile": True})
    if isinstance(job.model, Transformer) and not job.model.fused_attention:
        yield Lever(
            kind=Kind.SOFTWARE,
            what="fused attention (FlashAttention)",
            settings={"software.fused_attention": True},
        )
    if isinstance(job.model, ConvNet) and not job.model.channels_last:
        yield Lever(
            kind=Kind.SOFTWARE,
            what="images in memory as channels-last",
            settings={"software.memory_format": "channels-last"},
        )


def _memory(baseline: Baseline) -> Iterator[Lever]:
    """Batch, recomputation and sharding, which trade memory for time."""
    scenario = baseline.scenario
    job, train = scenario.job, scenario.job.train
    if job.mode is not Mode.TRAIN:
        return
    batch, parts = round(train.batch_size), train.accumulation
    fixed = baseline.reader.given("train.global_batch_size") is not None
    for name, times in (
        ("an eighth of", 0.125),
        ("a quarter of", 0.25),
        ("half", 0.5),
        ("twice", 2.0),
    ):
        own = int(batch * times)
        accumulated = parts / times
        if own < 1 or own / times != batch or accumulated != round(accumulated):
            continue
        settings: dict[str, Plain] = {"train.batch_size": own}
        if not fixed:
            settings["train.accumulation"] = round(accumulated)
        yield Lever(
            kind=Kind.BATCH,
            what=f"{name} the micro-batch ({own}), the step's samples as now",
            settings=settings,
        )
    yield from _recomputation(baseline)


def _recomputation(baseline: Baseline) -> Iterator[Lever]:
    """Other recomputation, and state sharded over replicas."""
    scenario = baseline.scenario
    job, train = scenario.job, scenario.job.train
    for recompute in (Recompute.NONE, Recompute.SELECTIVE, Recompute.FULL):
        if recompute is not train.recompute and isinstance(job.model, Transformer):
            yield Lever(
                kind=Kind.MEMORY,
                what=_RECOMPUTES[recompute],
                settings={"train.recompute": recompute.value},
            )
    alone = job.parallelism.sharding is Sharding.NONE and job.parallelism.devices == 1
    if alone and scenario.ranks > 1 and isinstance(job.model, Transformer):
        yield Lever(
            kind=Kind.PARALLELISM,
            what="shard parameters, gradients and optimizer (FSDP)",
            settings={"parallelism.sharding": Sharding.PARAMETERS.value},
        )


def _smaller(baseline: Baseline) -> Iterator[Lever]:
    """What together makes a language model small enough; adapters only where all else fails."""
    scenario = baseline.scenario
    job, spread = scenario.job, scenario.job.parallelism
    if not isinstance(job.model, Transformer) or job.train.freezes:
        return
    full: dict[str, Plain] = {"train.recompute": Recompute.FULL.value}
    sharded: dict[str, Plain] = {"parallelism.sharding": Sharding.PARAMETERS.value}
    host: dict[str, Plain] = {"parallelism.offload_optimizer": True}
    if spread.devices == 1 and spread.sharding is Sharding.NONE and scenario.ranks > 1:
        what = (
            f"shard parameters, gradients and optimizer (FSDP), and {_RECOMPUTES[Recompute.FULL]}"
        )
        yield Lever(kind=Kind.PARALLELISM, what=what, settings={**sharded, **full})
        what = f"{what}; update on the host (offload)"
        yield Lever(kind=Kind.PARALLELISM, what=what, settings={**sharded, **full, **host})
    what = f"{_RECOMPUTES[Recompute.FULL]}; update on the host (offload)"
    yield Lever(kind=Kind.MEMORY, what=what, settings={**full, **host})
    if job.model.causal:
        yield from _adapters(full)


def _adapters(full: Mapping[str, Plain]) -> Iterator[Lever]:
    """Low-rank adapters, with frozen weights as they are or in 4 bit, recomputing all or not."""
    few: dict[str, Plain] = {"train.trained": Trained.LORA.value}
    narrow: dict[str, Plain] = {"train.frozen_precision": Precision.FP4.value}
    for what, settings in (
        ("train low-rank adapters (LoRA)", few),
        ("train low-rank adapters over weights in 4 bit (QLoRA)", {**few, **narrow}),
    ):
        for more, extra in (("", {}), (f", and {_RECOMPUTES[Recompute.FULL]}", full)):
            yield Lever(
                kind=Kind.LEARNING,
                what=f"{what}{more}",
                settings={**settings, **extra},
                note="for fine-tuning only: all else of the model stays as it is",
            )


_RECOMPUTES: Final = {
    Recompute.NONE: "recompute nothing",
    Recompute.SELECTIVE: "recompute attention only",
    Recompute.FULL: "recompute all activations",
}


def _parallelism(baseline: Baseline) -> Iterator[Lever]:
    """Other ways to spread the same step over the same devices."""
    scenario = baseline.scenario
    job, trainers = scenario.job, scenario.cluster.trainers
    model, own = job.model, job.parallelism
    if not isinstance(model, Transformer) or not model.causal or not own.splits_model:
        return
    if job.mode is not Mode.TRAIN or own.expert > 1 or own.context > 1:
        return
    whole = round(job.train.batch_size) * job.train.accumulation * scenario.ranks
    shape = Shape(depth=int(model.depth))
    for way in ways(trainers.gpus_per_host, trainers.count, shape, whole):
        tensor, pipeline = int(way["parallelism.tensor"]), int(way["parallelism.pipeline"])
        replicas = max(1, scenario.devices // (tensor * pipeline))
        share = whole // replicas
        batch = round(job.train.batch_size)
        if share * replicas != whole or share % batch:
            continue
        settings = {**_off(baseline, tensor, pipeline), **way, "train.batch_size": batch}
        if baseline.reader.given("train.global_batch_size") is None:
            settings["train.accumulation"] = share // batch
        sharding = str(way["parallelism.sharding"])
        sharded = "" if sharding == Sharding.NONE.value else f", {sharding} sharded"
        yield Lever(
            kind=Kind.PARALLELISM,
            what=f"tensor {tensor} x pipeline {pipeline}{sharded}",
            settings=settings,
        )


def _off(baseline: Baseline, tensor: int, pipeline: int) -> dict[str, Plain]:
    """What belongs to a kind of parallelism that other degrees do without."""
    own, model = baseline.scenario.job.parallelism, baseline.scenario.job.model
    depth = int(getattr(model, "depth", 0))
    settings: dict[str, Plain] = {}
    if own.interleave > 1 and (pipeline == 1 or depth % (pipeline * own.interleave)):
        settings["parallelism.interleave"] = 1
    with_tensor = {"sequence": own.sequence, "async_tensor": own.async_tensor}
    settings |= {
        f"parallelism.{key}": False for key, on in with_tensor.items() if on and tensor == 1
    }
    if own.scattered_sends and (tensor == 1 or pipeline == 1):
        settings["parallelism.scattered_sends"] = False
    return settings


def _checkpoints(baseline: Baseline) -> Iterator[Lever]:
    stated = baseline.scenario.job.train.checkpoint_every_steps
    if stated is None:
        return
    last = int(lengths(baseline.scenario).total_steps)
    for times in RARER:
        every = round(times * stated)
        # A run without any would lose its result.
        if every <= last:
            yield Lever(
                kind=Kind.CHECKPOINTS,
                what=f"write a checkpoint every {every:,} steps",
                settings={"train.checkpoint_every_steps": every},
                note=f"up to {times} times as much work is lost at a failure",
            )


_OWN_FIGURES: Final = ("gpu", "vcpus", "cores", "ram", "memory_bandwidth", "network_bandwidth")


def _machines(baseline: Baseline) -> Iterator[Lever]:
    """Other machines of the cloud that run the same software, as many accelerators in each."""
    scenario, own, job = baseline.scenario, baseline.own, baseline.scenario.job
    stated = any(baseline.reader.given(f"hardware.{key}") is not None for key in _OWN_FIGURES)
    if stated or job.remote is not None or scenario.cost.price is not None or not own.priced:
        return
    measured = job.step_times is not None or job.preprocessing.where is Preparation.DEVICE
    for machine in baseline.machines:
        alike = bool(machine.gpu) and machine.gpu == own.gpu
        same_kind = machine.stack == own.stack and machine.gpus == own.gpus
        if machine.name == own.name or not same_kind or (measured and not alike):
            continue
        yield Lever(
            kind=Kind.MACHINE,
            what=f"rent {scenario.cluster.trainers.count} x {short_name(machine.name)}",
            settings={
                MACHINE: machine.name,
                **moved(baseline, machine),
                **_workers_there(baseline, machine),
            },
        )


def _more_machines(baseline: Baseline) -> Iterator[Lever]:
    """Twice the machines for work that no machine shares with another: each takes a part of it."""
    scenario = baseline.scenario
    host, count = scenario.cluster.trainers.host, scenario.cluster.trainers.count
    if scenario.job.mode is Mode.PREPARE and host.cloud and scenario.job.remote is None:
        yield Lever(
            kind=Kind.MACHINES,
            what=f"share the work among {2 * count:,} machines in place of {count:,}",
            settings={"hardware.count": 2 * count},
        )


def _workers_there(baseline: Baseline, machine: Machine) -> dict[str, Plain]:
    """As many workers for each vCPU as now, where they use all of those; else as many as now."""
    scenario = baseline.scenario
    own = scenario.job.loader.workers
    if own == 0 or scenario.job.preprocessing.per_sample == 0.0:
        return {}
    if own * max(1, scenario.ranks_per_host) < baseline.own.threads:
        return {}
    more = round(own * machine.threads / baseline.own.threads)
    return {WORKERS: max(1, min(MOST_WORKERS, more))}
