"""What sections must agree on: mistakes that no key has by itself.

Each check rests on a few keys and is left out where one of them has a mistake of its own, so that
one mistake is one message. `CHECKS` is the list of them all.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final, TypeAlias

from simulator.errors import Problem
from simulator.reading.checks.groups import GROUP_CHECKS
from simulator.reading.checks.model import KERNEL_CHECKS, MODEL_CHECKS
from simulator.reading.checks.price import PRICE_CHECKS
from simulator.reading.convert.parallelism import PARALLEL_CHECKS
from simulator.reading.document import Document
from simulator.reading.lines import KeyPath
from simulator.reading.long_run.electricity import ENERGY_CHECKS
from simulator.reading.long_run.interruptions import INTERRUPTION_CHECKS
from simulator.reading.resolved import Check, Draft, check_of
from simulator.reading.sections import SpreadTable
from simulator.schema.hardware.storage import LimitedBy, Scope
from simulator.schema.store_plan import Location
from simulator.schema.workload.dataset import CachePolicy, Layout, Placement
from simulator.schema.workload.distribution import Shape
from simulator.schema.workload.loader import LoaderKind
from simulator.schema.workload.train import Mode
from simulator.units import BYTE, show

_NEAR: Final = {
    Scope.LOCAL: "the machine's own drives are",
    Scope.VOLUME: "a block volume is",
}
"""Stores that are where their machines are."""


def _placed(draft: Draft) -> Iterator[Problem]:
    """A volume or a machine's own drives that are said to be elsewhere."""
    given = draft.store
    if given is None or given.location in {None, Location.SAME_REGION}:
        return
    scope = Scope.LOCAL if draft.storage is None else draft.storage.scope
    if scope in _NEAR:
        message = f"is {given.location}, but {_NEAR[scope]} in the region of its machine"
        yield draft.document.problem(("store", "location"), message, hint="leave it out")


def _prefixes(draft: Draft) -> Iterator[Problem]:
    """Prefixes of a store whose limit of requests they don't raise."""
    store = draft.storage
    if draft.hardware.storage_prefixes == 1:
        return
    limited = None if store is None else store.limited_by
    if limited is not LimitedBy.PREFIX:
        held = "states none" if limited is None else f"is that of {_CALLED[limited]}"
        name = "the machine's own drives" if store is None else store.name
        message = f"raises no limit: the limit of requests of {name} {held}"
        path = ("hardware", "storage_prefixes")
        yield draft.document.problem(path, message, hint="leave it out")


_CALLED: Final = {LimitedBy.BUCKET: "a bucket", LimitedBy.ACCOUNT: "an account"}
STORE_CHECKS: Final[tuple[Check, ...]] = (
    check_of(_prefixes, "hardware.storage_prefixes hardware.storage", reads="hardware storage"),
    check_of(_placed, "store.location hardware.storage", reads="store storage"),
)


Problems: TypeAlias = Iterator[Problem]

_WIDEST_UNIFORM: Final = 1.0 / math.sqrt(3.0)


def _size_spread(draft: Draft) -> Problems:
    yield from _spread(draft.document, draft.data.size_spread, ("data", "size_spread"))


def _cost_spread(draft: Draft) -> Problems:
    yield from _spread(draft.document, draft.input.cost_spread, ("input", "cost_spread"))


def _device_spread(draft: Draft) -> Problems:
    yield from _spread(draft.document, draft.train.device_spread, ("train", "device_spread"))


def _step_jitter(draft: Draft) -> Problems:
    path = ("train", "step_jitter")
    yield from _spread(draft.document, draft.train.step_jitter, path)
    if draft.train.step_jitter is not None and draft.train.straggling > 0.0:
        hint = "leave one of them out: both say how late a step is by chance"
        yield draft.document.problem(path, "is given beside straggling", hint=hint)


def _spread(document: Document, spread: SpreadTable | None, path: KeyPath) -> Problems:
    if spread is None:
        return
    deviation, path = spread.relative_deviation, (*path, "relative_deviation")
    fixed = {Shape.CONSTANT: 0.0, Shape.EXPONENTIAL: 1.0}.get(spread.shape)
    if deviation is None:
        if fixed is None:
            hint = "standard deviation over mean, such as 0.3"
            yield document.problem(path, "is missing", hint=hint)
    elif fixed is not None and deviation != fixed:
        hint = f"leave it out: it is always {fixed:g}"
        yield document.problem(path, f"doesn't fit the shape {spread.shape.value}", hint=hint)
    elif spread.shape is Shape.UNIFORM and deviation > _WIDEST_UNIFORM:
        message = "is wider than a uniform distribution of positive amounts can be"
        yield document.problem(path, message, hint=f"at most {_WIDEST_UNIFORM:.3f}")


SPREAD_CHECKS: Final[tuple[Check, ...]] = (
    check_of(_size_spread, "data.size_spread", reads="data"),
    check_of(_cost_spread, "input.cost_spread", reads="input"),
    check_of(_device_spread, "train.device_spread", reads="train"),
    check_of(_step_jitter, "train.step_jitter train.straggling", reads="train"),
)


def find_problems(draft: Draft) -> tuple[Problem, ...]:
    """All contradictions between the keys and sections of a draft."""
    return tuple(
        problem
        for check in CHECKS
        if not draft.broken or all(draft.is_sound(key) for key in check.rests_on)
        for problem in check.problems(draft)
    )


def _gpus(draft: Draft) -> Problems:
    wanted, host = draft.hardware.gpus, draft.host
    emulated = draft.hardware.emulated is not None
    if host is not None and wanted is not None and wanted > host.gpu_count and not emulated:
        larger = "hardware.gpu puts another card into a machine with more: plan hardware list"
        has = f"{host.name} has {host.gpu_count}" + (f"; {larger}" if host.gpu_count else "")
        path = ("hardware", "gpus")
        yield draft.document.problem(path, "is more than the machine has", hint=has)


def _emulated(draft: Draft) -> Problems:
    if draft.hardware.emulated is None:
        return
    if draft.hardware.gpus is not None:
        message = "is given beside hardware.emulated, which stands in place of accelerators"
        yield draft.document.problem(("hardware", "gpus"), message, hint="leave one of them out")
    if draft.model is None or not draft.model.step_times:
        message = "needs to know how long a step takes"
        yield draft.document.problem(
            ("hardware", "emulated"), message, hint="give model.step_times"
        )


def _network(draft: Draft) -> Problems:
    host = draft.host
    if host is None or draft.hardware.network_bandwidth is None or host.network is not None:
        return
    message = "changes an attachment that the machine doesn't have"
    path = ("hardware", "network_bandwidth")
    yield draft.document.problem(path, message, hint="leave it out")


def _store(draft: Draft) -> Problems:
    host = draft.host
    if host is None or draft.hardware.storage is not None or host.local_storage is not None:
        return
    if not _uses_store(draft):
        return
    message = f"is missing, and {host.name} has no drives of its own"
    hint = (
        'name a store, such as storage/ebs-gp3; or set data.cache = "preloaded" where nothing is '
        "read, such as for synthetic data"
    )
    yield draft.document.problem(("hardware", "storage"), message, hint=hint)


def _uses_store(draft: Draft) -> bool:
    """Whether anything is read or written: not where samples are in memory, or made there."""
    data, train = draft.data, draft.train
    in_memory = data.cache is CachePolicy.PRELOADED or draft.loader is LoaderKind.ACTORS
    writes = train.mode is Mode.PREPARE or train.checkpoint_every_steps is not None
    return writes or not in_memory or data.placement is not Placement.STREAM


def _link(draft: Draft) -> Problems:
    host = draft.host
    if host is not None and draft.hardware.pcie_bandwidth is not None and host.host_link is None:
        message = "changes a link that the machine doesn't have"
        yield draft.document.problem(("hardware", "pcie_bandwidth"), message, hint="leave it out")


def _cores(draft: Draft) -> Problems:
    hardware, host = draft.hardware, draft.host
    if host is None or hardware.cores is None:
        return
    threads = hardware.vcpus or host.cpu.threads
    if hardware.cores > threads:
        hint = f"at most as many as vcpus, {threads:g}"
        path = ("hardware", "cores")
        yield draft.document.problem(path, "is more than the hardware threads", hint=hint)


def _contention(draft: Draft) -> Problems:
    """Busy cores may slow one another down, but not below what one of them does alone."""
    hardware, remote, host = draft.hardware, draft.remote, draft.host
    cores: dict[str, float] = {}
    if host is not None:
        threads = hardware.vcpus or host.cpu.threads
        cores["hardware"] = hardware.cores or host.cpu.cores * threads / host.cpu.threads
    if remote is not None and draft.helper is not None:
        cores["remote"] = draft.helper.cpu.cores
    given = {"hardware": hardware.contention, "remote": remote and remote.contention}
    for section, number in cores.items():
        most = max(1.0, number)
        if (given[section] or 0.0) > most:
            message = "says that all cores together do less than one of them alone"
            hint = f"at most the number of cores, {most:g}"
            yield draft.document.problem((section, "contention"), message, hint=hint)


def _shards(draft: Draft) -> Problems:
    data, document, path = draft.data, draft.document, ("data", "shard_size")
    sharded = data.layout is Layout.SHARDS
    if sharded and data.shard_size is None:
        hint = "such as '150 MB', or layout = \"files\""
        yield document.problem(path, "is missing, and shards have one", hint=hint)
    if not sharded and data.shard_size is not None:
        hint = f'leave it out, or layout = "shards" in place of "{data.layout.value}"'
        yield document.problem(path, "is given, but the data doesn't lie in shards", hint=hint)


def _shard_size(draft: Draft) -> Problems:
    data = draft.data
    if data.shard_size is not None and data.shard_size < data.bytes_per_sample:
        hint = f"at least one sample, {show(data.bytes_per_sample, BYTE)}"
        path = ("data", "shard_size")
        yield draft.document.problem(path, "is smaller than a sample", hint=hint)


def _last_batch(draft: Draft) -> Problems:
    if not draft.input.drop_last:
        return
    share = math.ceil(draft.data.samples / draft.ranks)
    if draft.train.batch_size > share:
        message = "is larger than the dataset, and drop_last drops incomplete batches"
        hint = f"at most {share}, the samples of one of {draft.ranks} ranks"
        yield draft.document.problem(("train", "batch_size"), message, hint=hint)


def _prefetch(draft: Draft) -> Problems:
    pipeline = draft.input
    pytorch = pipeline.loader is LoaderKind.PYTORCH
    if pytorch and pipeline.workers == 0 and pipeline.prefetch is not None:
        message = "is given, but without workers nothing is prefetched"
        hint = "leave it out, or give input.workers"
        yield draft.document.problem(("input", "prefetch"), message, hint=hint)


def _persistence(draft: Draft) -> Problems:
    pipeline = draft.input
    pytorch = pipeline.loader is LoaderKind.PYTORCH
    if pytorch and pipeline.workers == 0 and pipeline.persistent_workers:
        path = ("input", "persistent_workers")
        hint = "leave it out, or give input.workers"
        yield draft.document.problem(path, "is given, but there are no workers", hint=hint)


def _pytorch_only(draft: Draft) -> Problems:
    pipeline = draft.input
    if pipeline.loader is LoaderKind.PYTORCH:
        return
    for key in ("in_order", "persistent_workers"):
        if pipeline.states(key):
            message = f"is a setting of pytorch, not of {pipeline.loader.value}"
            yield draft.document.problem(("input", key), message, hint="leave it out")


def _stragglers(draft: Draft) -> Problems:
    for index, straggler in enumerate(draft.input.straggler):
        rules = (straggler.worker, straggler.every, straggler.rank)
        given = sum(rule is not None for rule in rules)
        if given != 1:
            number = {0: "none", len(rules): "all"}.get(given, "two")
            message = f"needs exactly one of worker, every and rank, and has {number}"
            path = ("input", "straggler", index)
            yield draft.document.problem(path, message, show=False)


def _slow_worker(draft: Draft) -> Problems:
    workers = draft.input.workers
    for index, straggler in enumerate(draft.input.straggler):
        if straggler.worker is not None and straggler.worker >= workers:
            path = ("input", "straggler", index, "worker")
            hint = f"workers count from 0, and there are {workers}"
            yield draft.document.problem(path, "is no worker", hint=hint)


def _copies(draft: Draft) -> Problems:
    pipeline, host = draft.input, draft.host
    asked = [key for key in ("pin_memory", "overlap_copies") if getattr(pipeline, key) is True]
    if host is None or not asked:
        return
    if draft.gpu is None:
        message = "is about copies to an accelerator, and none is used"
    elif draft.gpu.unified_memory:
        message = "is about copies to a device, and this one shares the host's memory"
    else:
        return
    for key in asked:
        yield draft.document.problem(("input", key), message, hint="leave it out")


def _overlap(draft: Draft) -> Problems:
    pipeline = draft.input
    if draft.gpu is None or draft.gpu.unified_memory or not pipeline.overlap_copies:
        return
    if not (
        pipeline.loader is LoaderKind.DALI if pipeline.pin_memory is None else pipeline.pin_memory
    ):
        hint = "set input.pin_memory = true"
        path = ("input", "overlap_copies")
        yield draft.document.problem(path, "needs page-locked memory", hint=hint)


def _yardstick(draft: Draft) -> Problems:
    elsewhere, host = draft.measured_on, draft.host
    stated = draft.remote is not None and draft.remote.speed is not None
    helper = None if stated else draft.helper
    if elsewhere is None or host is None or (elsewhere is host and helper is None):
        return
    for machine in {m.name: m for m in (elsewhere, host, helper) if m}.values():
        if machine.cpu.coremark is None:
            message = f"needs a CoreMark to compare processors, and {machine.name} has none"
            hint = "measure on this machine, and leave it out"
            yield draft.document.problem(("input", "measured_on"), message, hint=hint)


def _global_batch(draft: Draft) -> Problems:
    train, ranks = draft.train, draft.ranks
    if train.global_batch_size is None:
        return
    product = train.batch_size * draft.accumulation * ranks
    if train.global_batch_size != product:
        message = "contradicts batch_size x accumulation x ranks"
        hint = f"{train.batch_size} x {draft.accumulation} x {ranks} = {product}"
        if train.accumulation is None:
            message = "is no multiple of batch_size x ranks"
            hint = f"{train.batch_size} x {ranks} = {train.batch_size * ranks}"
        yield draft.document.problem(("train", "global_batch_size"), message, hint=hint)


def _precision(draft: Draft) -> Problems:
    precision, gpu, path = draft.train.precision, draft.gpu, ("train", "precision")
    if gpu is not None and gpu.emulated:
        return
    if precision is None:
        if gpu is not None or (draft.model is not None and not draft.learns_on_host):
            hint = "such as fp32, tf32, fp16 or bf16"
            yield draft.document.problem(path, "is missing", hint=hint)
        return
    if gpu is None or precision in gpu.peak or precision in gpu.fallback:
        return
    has = ", ".join(dict.fromkeys(form.value for form in (*gpu.peak, *gpu.fallback)))
    message = f"is no format of {gpu.name}, and nothing stands in for it"
    yield draft.document.problem(path, message, hint=f"it takes {has}")


def _purpose(draft: Draft) -> Problems:
    gpu = draft.gpu
    if gpu is not None and gpu.inference_only and draft.mode is Mode.TRAIN:
        hint = 'choose another machine, or set train.mode = "infer"'
        path = ("hardware", "machine")
        yield draft.document.problem(path, f"has {gpu.name}, which doesn't train", hint=hint)


def _model_or_none(draft: Draft) -> Problems:
    is_preparation = draft.mode is Mode.PREPARE
    if is_preparation and draft.model is not None:
        message = 'is given, but a job of mode "prepare" runs no model'
        yield draft.document.problem(("model",), message, hint="leave it out", show=False)
    elif not is_preparation and draft.model is None:
        hint = 'give a name, figures or step_times, or set train.mode = "prepare"'
        yield draft.document.problem(("model",), "is missing", hint=hint)


def _checkpoint(draft: Draft) -> Problems:
    model = draft.model
    has_parameters = model is not None and (model.name or model.family or model.parameters)
    if draft.train.checkpoint_every_steps is not None and not has_parameters:
        message = "is given, but no model says how much there is to write"
        hint = "give model.name or model.parameters"
        path = ("train", "checkpoint_every_steps")
        yield draft.document.problem(path, message, hint=hint)


_CORES: Final = "hardware.machine hardware.vcpus hardware.cores"
_WRITES: Final = "train.mode train.checkpoint_every_steps"
_GPUS: Final = "hardware.machine hardware.gpu hardware.gpus train.mode model.name"
_RANKS: Final = f"{_GPUS} hardware.count train.copies"
CHECKS: Final[tuple[Check, ...]] = (
    check_of(_gpus, "hardware.gpus", reads="hardware host"),
    check_of(_emulated, "hardware.emulated hardware.gpus model.step_times", reads="hardware model"),
    check_of(_network, "hardware.network_bandwidth", reads="hardware host"),
    check_of(
        _store,
        f"hardware.storage data.cache data.placement input.loader {_WRITES}",
        reads="hardware data train host loader",
    ),
    check_of(_link, "hardware.pcie_bandwidth", reads="hardware host"),
    check_of(_cores, "hardware.cores hardware.vcpus", reads="hardware host"),
    check_of(
        _contention,
        f"{_CORES} hardware.contention remote.machine remote.contention",
        reads="hardware remote host helper",
    ),
    check_of(_shards, "data.layout data.shard_size", reads="data"),
    check_of(_shard_size, "data.shard_size data.bytes_per_sample", reads="data"),
    *SPREAD_CHECKS,
    check_of(
        _last_batch,
        f"{_RANKS} input.drop_last data.samples train.batch_size",
        reads="data train input ranks",
    ),
    check_of(_prefetch, "input.loader input.workers input.prefetch", reads="input"),
    check_of(_persistence, "input.loader input.workers input.persistent_workers", reads="input"),
    check_of(_pytorch_only, "input.loader", reads="input"),
    check_of(_stragglers, "input.straggler", reads="input"),
    check_of(_slow_worker, "input.straggler input.workers", reads="input"),
    check_of(_copies, f"{_GPUS} input.pin_memory input.overlap_copies", reads="input host gpu"),
    check_of(
        _overlap, f"{_GPUS} input.loader input.pin_memory input.overlap_copies", reads="input gpu"
    ),
    check_of(
        _yardstick, "input.measured_on remote.machine", reads="input remote host helper measured_on"
    ),
    check_of(
        _global_batch,
        f"{_RANKS} train.global_batch_size train.batch_size train.accumulation",
        reads="train ranks accumulation",
    ),
    check_of(_precision, f"{_GPUS} train.precision", reads="train model library_model gpu"),
    check_of(_purpose, _GPUS, reads="hardware mode gpu"),
    check_of(_model_or_none, "train.mode", reads="model mode"),
    check_of(
        _checkpoint, "train.checkpoint_every_steps model.name model.parameters", reads="train model"
    ),
    *MODEL_CHECKS,
    *GROUP_CHECKS,
    *PARALLEL_CHECKS,
    *KERNEL_CHECKS,
    *INTERRUPTION_CHECKS,
    *ENERGY_CHECKS,
    *PRICE_CHECKS,
    *STORE_CHECKS,
)
"""Each check with the keys it rests on: where one of them has a mistake it is left out."""
