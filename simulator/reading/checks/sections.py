"""Checks of keys and sections against each other; `CHECKS` is the list of all of them.

A check that reads what follows from a mistake finds nothing, so that one mistake is one message.
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
from simulator.reading.lines import KeyPath
from simulator.reading.long_run.bills import ENERGY_CHECKS
from simulator.reading.long_run.interruptions import INTERRUPTION_CHECKS
from simulator.reading.unresolved import Check, UnresolvedScenario
from simulator.schema.hardware.storage import LimitedBy, Scope
from simulator.schema.store_plan import Location
from simulator.schema.workload.dataset import CachePolicy, Layout, Placement
from simulator.schema.workload.distribution import Shape, Spread
from simulator.schema.workload.loader import LoaderKind
from simulator.schema.workload.train import Mode
from simulator.units import BYTE, show

_NEAR: Final = {
    Scope.LOCAL: "the machine's own drives are",
    Scope.VOLUME: "a block volume is",
}
"""Stores that are where their machines are."""


def _placed(file: UnresolvedScenario) -> Iterator[Problem]:
    """A volume or a machine's own drives that are said to be elsewhere."""
    given = file.store
    if given.location in {None, Location.SAME_REGION}:
        return
    scope = Scope.LOCAL if file.storage is None else file.storage.scope
    if scope in _NEAR:
        message = f"is {given.location}, but {_NEAR[scope]} in the region of its machine"
        yield file.problem(("store", "location"), message, hint="leave it out")


def _prefixes(file: UnresolvedScenario) -> Iterator[Problem]:
    """Prefixes of a store whose limit of requests they don't raise."""
    store = file.storage
    if file.hardware.storage_prefixes == 1:
        return
    limited = None if store is None else store.limited_by
    if limited is not LimitedBy.PREFIX:
        held = "states none" if limited is None else f"is that of {_CALLED[limited]}"
        name = "the machine's own drives" if store is None else store.name
        message = f"raises no limit: the limit of requests of {name} {held}"
        path = ("hardware", "storage_prefixes")
        yield file.problem(path, message, hint="leave it out")


_CALLED: Final = {LimitedBy.BUCKET: "a bucket", LimitedBy.ACCOUNT: "an account"}
STORE_CHECKS: Final[tuple[Check, ...]] = (
    _prefixes,
    _placed,
)


Problems: TypeAlias = Iterator[Problem]

_WIDEST_UNIFORM: Final = 1.0 / math.sqrt(3.0)


def _size_spread(file: UnresolvedScenario) -> Problems:
    if file.data.states("size_spread"):
        yield from _spread(file, file.data.size_spread, ("data", "size_spread"))


def _cost_spread(file: UnresolvedScenario) -> Problems:
    if file.input.states("cost_spread"):
        yield from _spread(file, file.input.cost_spread, ("input", "cost_spread"))


def _device_spread(file: UnresolvedScenario) -> Problems:
    if file.train.states("device_spread"):
        yield from _spread(file, file.train.device_spread, ("train", "device_spread"))


def _step_jitter(file: UnresolvedScenario) -> Problems:
    path = ("train", "step_jitter")
    if not file.train.states("step_jitter"):
        return
    yield from _spread(file, file.train.step_jitter, path)
    if file.train.straggling > 0.0:
        hint = "leave one of them out: both say how late a step is by chance"
        yield file.problem(path, "is given beside straggling", hint=hint)


def _spread(file: UnresolvedScenario, spread: Spread, path: KeyPath) -> Problems:
    deviation, path = spread.relative_deviation, (*path, "relative_deviation")
    fixed = {Shape.CONSTANT: 0.0, Shape.EXPONENTIAL: 1.0}.get(spread.shape)
    if deviation is None:
        if fixed is None:
            hint = "standard deviation over mean, such as 0.3"
            yield file.problem(path, "is missing", hint=hint)
    elif fixed is not None and deviation != fixed:
        hint = f"leave it out: it is always {fixed:g}"
        yield file.problem(path, f"doesn't fit the shape {spread.shape.value}", hint=hint)
    elif spread.shape is Shape.UNIFORM and deviation > _WIDEST_UNIFORM:
        message = "is wider than a uniform distribution of positive amounts can be"
        yield file.problem(path, message, hint=f"at most {_WIDEST_UNIFORM:.3f}")


SPREAD_CHECKS: Final[tuple[Check, ...]] = (
    _size_spread,
    _cost_spread,
    _device_spread,
    _step_jitter,
)


def _gpus(file: UnresolvedScenario) -> Problems:
    wanted, host = file.hardware.gpus, file.host
    emulated = file.hardware.emulated is not None
    if wanted is not None and wanted > host.gpu_count and not emulated:
        larger = "hardware.gpu puts another card into a machine with more: plan hardware list"
        has = f"{host.name} has {host.gpu_count}" + (f"; {larger}" if host.gpu_count else "")
        path = ("hardware", "gpus")
        yield file.problem(path, "is more than the machine has", hint=has)


def _emulated(file: UnresolvedScenario) -> Problems:
    if file.hardware.emulated is None:
        return
    if file.hardware.gpus is not None:
        message = "is given beside hardware.emulated, which stands in place of accelerators"
        yield file.problem(("hardware", "gpus"), message, hint="leave one of them out")
    if not file.step_times:
        message = "needs to know how long a step takes"
        yield file.problem(("hardware", "emulated"), message, hint="give model.step_times")


def _network(file: UnresolvedScenario) -> Problems:
    host = file.host
    if file.hardware.network_bandwidth is None or host.network is not None:
        return
    message = "changes an attachment that the machine doesn't have"
    path = ("hardware", "network_bandwidth")
    yield file.problem(path, message, hint="leave it out")


def _store(file: UnresolvedScenario) -> Problems:
    host = file.host
    if file.hardware.storage is not None or host.local_storage is not None:
        return
    if not _uses_store(file):
        return
    message = f"is missing, and {host.name} has no drives of its own"
    hint = (
        'name a store, such as storage/ebs-gp3; or set data.cache = "preloaded" where nothing is '
        "read, such as for synthetic data"
    )
    yield file.problem(("hardware", "storage"), message, hint=hint)


def _uses_store(file: UnresolvedScenario) -> bool:
    """Whether anything is read or written: not where samples are in memory, or made there."""
    data, train = file.data, file.train
    in_memory = data.cache is CachePolicy.PRELOADED or file.loader is LoaderKind.ACTORS
    writes = train.mode is Mode.PREPARE or train.checkpoint_every_steps is not None
    return writes or not in_memory or data.placement is not Placement.STREAM


def _link(file: UnresolvedScenario) -> Problems:
    host = file.host
    if file.hardware.pcie_bandwidth is not None and host.host_link is None:
        message = "changes a link that the machine doesn't have"
        yield file.problem(("hardware", "pcie_bandwidth"), message, hint="leave it out")


def _cores(file: UnresolvedScenario) -> Problems:
    hardware, host = file.hardware, file.host
    if hardware.cores is None:
        return
    threads = hardware.vcpus or host.cpu.threads
    if hardware.cores > threads:
        hint = f"at most as many as vcpus, {threads:g}"
        path = ("hardware", "cores")
        yield file.problem(path, "is more than the hardware threads", hint=hint)


def _contention(file: UnresolvedScenario) -> Problems:
    """Busy cores may slow one another down, but not below what one of them does alone."""
    hardware, remote, host = file.hardware, file.remote, file.host
    threads = hardware.vcpus or host.cpu.threads
    cores = {"hardware": hardware.cores or host.cpu.cores * threads / host.cpu.threads}
    if remote is not None and file.helper is not None:
        cores["remote"] = file.helper.cpu.cores
    given = {"hardware": hardware.contention, "remote": remote and remote.contention}
    for section, number in cores.items():
        most = max(1.0, number)
        if (given[section] or 0.0) > most:
            message = "says that all cores together do less than one of them alone"
            hint = f"at most the number of cores, {most:g}"
            yield file.problem((section, "contention"), message, hint=hint)


def _shards(file: UnresolvedScenario) -> Problems:
    data, path = file.data, ("data", "shard_size")
    sharded = data.layout is Layout.SHARDS
    if sharded and data.shard_size is None:
        hint = "such as '150 MB', or layout = \"files\""
        yield file.problem(path, "is missing, and shards have one", hint=hint)
    if not sharded and data.shard_size is not None:
        hint = f'leave it out, or layout = "shards" in place of "{data.layout.value}"'
        yield file.problem(path, "is given, but the data doesn't lie in shards", hint=hint)


def _shard_size(file: UnresolvedScenario) -> Problems:
    data = file.data
    if data.shard_size is not None and data.shard_size < data.bytes_per_sample:
        hint = f"at least one sample, {show(data.bytes_per_sample, BYTE)}"
        path = ("data", "shard_size")
        yield file.problem(path, "is smaller than a sample", hint=hint)


def _last_batch(file: UnresolvedScenario) -> Problems:
    if not file.input.drop_last:
        return
    share = math.ceil(file.data.samples / file.ranks)
    if file.train.batch_size > share:
        message = "is larger than the dataset, and drop_last drops incomplete batches"
        hint = f"at most {share}, the samples of one of {file.ranks} ranks"
        yield file.problem(("train", "batch_size"), message, hint=hint)


def _prefetch(file: UnresolvedScenario) -> Problems:
    pipeline = file.input
    pytorch = pipeline.loader is LoaderKind.PYTORCH
    if pytorch and pipeline.workers == 0 and pipeline.prefetch is not None:
        message = "is given, but without workers nothing is prefetched"
        hint = "leave it out, or give input.workers"
        yield file.problem(("input", "prefetch"), message, hint=hint)


def _persistence(file: UnresolvedScenario) -> Problems:
    pipeline = file.input
    pytorch = pipeline.loader is LoaderKind.PYTORCH
    if pytorch and pipeline.workers == 0 and pipeline.persistent_workers:
        path = ("input", "persistent_workers")
        hint = "leave it out, or give input.workers"
        yield file.problem(path, "is given, but there are no workers", hint=hint)


def _pytorch_only(file: UnresolvedScenario) -> Problems:
    pipeline = file.input
    if pipeline.loader is LoaderKind.PYTORCH:
        return
    for key in ("in_order", "persistent_workers"):
        if pipeline.states(key):
            message = f"is a setting of pytorch, not of {pipeline.loader.value}"
            yield file.problem(("input", key), message, hint="leave it out")


def _stragglers(file: UnresolvedScenario) -> Problems:
    for index, straggler in enumerate(file.input.straggler):
        rules = (straggler.worker, straggler.every, straggler.rank)
        given = sum(rule is not None for rule in rules)
        if given != 1:
            number = {0: "none", len(rules): "all"}.get(given, "two")
            message = f"needs exactly one of worker, every and rank, and has {number}"
            path = ("input", "straggler", index)
            yield file.problem(path, message, show=False)


def _slow_worker(file: UnresolvedScenario) -> Problems:
    workers = file.input.workers
    for index, straggler in enumerate(file.input.straggler):
        if straggler.worker is not None and straggler.worker >= workers:
            path = ("input", "straggler", index, "worker")
            hint = f"workers count from 0, and there are {workers}"
            yield file.problem(path, "is no worker", hint=hint)


def _copies(file: UnresolvedScenario) -> Problems:
    pipeline = file.input
    asked = [key for key in ("pin_memory", "overlap_copies") if getattr(pipeline, key) is True]
    if not asked:
        return
    if file.gpu is None:
        message = "is about copies to an accelerator, and none is used"
    elif file.gpu.unified_memory:
        message = "is about copies to a device, and this one shares the host's memory"
    else:
        return
    for key in asked:
        yield file.problem(("input", key), message, hint="leave it out")


def _overlap(file: UnresolvedScenario) -> Problems:
    pipeline = file.input
    if file.gpu is None or file.gpu.unified_memory or not pipeline.overlap_copies:
        return
    if not (
        pipeline.loader is LoaderKind.DALI if pipeline.pin_memory is None else pipeline.pin_memory
    ):
        hint = "set input.pin_memory = true"
        path = ("input", "overlap_copies")
        yield file.problem(path, "needs page-locked memory", hint=hint)


def _yardstick(file: UnresolvedScenario) -> Problems:
    elsewhere, host = file.measured_on, file.host
    stated = file.remote is not None and file.remote.speed is not None
    helper = None if stated else file.helper
    if elsewhere is None or (elsewhere is host and helper is None):
        return
    for machine in {m.name: m for m in (elsewhere, host, helper) if m}.values():
        if machine.cpu.coremark is None:
            message = f"needs a CoreMark to compare processors, and {machine.name} has none"
            hint = "measure on this machine, and leave it out"
            yield file.problem(("input", "measured_on"), message, hint=hint)


def _global_batch(file: UnresolvedScenario) -> Problems:
    train, ranks = file.train, file.ranks
    if train.global_batch_size is None:
        return
    product = train.batch_size * file.accumulation * ranks
    if train.global_batch_size != product:
        message = "contradicts batch_size x accumulation x ranks"
        hint = f"{train.batch_size:.0f} x {file.accumulation} x {ranks} = {product:.0f}"
        if not train.states("accumulation"):
            message = "is no multiple of batch_size x ranks"
            hint = f"{train.batch_size:.0f} x {ranks} = {train.batch_size * ranks:.0f}"
        yield file.problem(("train", "global_batch_size"), message, hint=hint)


def _precision(file: UnresolvedScenario) -> Problems:
    precision, gpu, path = file.train.precision, file.gpu, ("train", "precision")
    if gpu is not None and gpu.emulated:
        return
    if not file.train.states("precision"):
        if gpu is not None or (file.model is not None and not file.learns_on_host):
            hint = "such as fp32, tf32, fp16 or bf16"
            yield file.problem(path, "is missing", hint=hint)
        return
    if gpu is None or precision in gpu.peak or precision in gpu.fallback:
        return
    has = ", ".join(dict.fromkeys(form.value for form in (*gpu.peak, *gpu.fallback)))
    message = f"is no format of {gpu.name}, and nothing stands in for it"
    yield file.problem(path, message, hint=f"it takes {has}")


def _purpose(file: UnresolvedScenario) -> Problems:
    gpu = file.gpu
    if gpu is not None and gpu.inference_only and file.mode is Mode.TRAIN:
        hint = 'choose another machine, or set train.mode = "infer"'
        path = ("hardware", "machine")
        yield file.problem(path, f"has {gpu.name}, which doesn't train", hint=hint)


def _model_or_none(file: UnresolvedScenario) -> Problems:
    is_preparation = file.mode is Mode.PREPARE
    if is_preparation and file.model is not None:
        message = 'is given, but a job of mode "prepare" runs no model'
        yield file.problem(("model",), message, hint="leave it out", show=False)
    elif not is_preparation and file.model is None:
        hint = 'give a name, figures or step_times, or set train.mode = "prepare"'
        yield file.problem(("model",), "is missing", hint=hint)


def _checkpoint(file: UnresolvedScenario) -> Problems:
    model = file.model
    has_parameters = model is not None and (model.name or model.family or model.parameters)
    if file.train.checkpoint_every_steps is not None and not has_parameters:
        message = "is given, but no model says how much there is to write"
        hint = "give model.name or model.parameters"
        path = ("train", "checkpoint_every_steps")
        yield file.problem(path, message, hint=hint)


CHECKS: Final[tuple[Check, ...]] = (
    _gpus,
    _emulated,
    _network,
    _store,
    _link,
    _cores,
    _contention,
    _shards,
    _shard_size,
    *SPREAD_CHECKS,
    _last_batch,
    _prefetch,
    _persistence,
    _pytorch_only,
    _stragglers,
    _slow_worker,
    _copies,
    _overlap,
    _yardstick,
    _global_batch,
    _precision,
    _purpose,
    _model_or_none,
    _checkpoint,
    *MODEL_CHECKS,
    *GROUP_CHECKS,
    *PARALLEL_CHECKS,
    *KERNEL_CHECKS,
    *INTERRUPTION_CHECKS,
    *ENERGY_CHECKS,
    *PRICE_CHECKS,
    *STORE_CHECKS,
)
"""All checks, in the order in which mistakes of one line are reported."""
