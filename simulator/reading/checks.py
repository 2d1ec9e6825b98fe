"""Checks of keys and sections against each other, listed in `CHECKS`.

The parameters of a check name the sections and profiles that it reads, so that it runs again only
if one of them changes. A check that reads a value derived from another mistake reports nothing, so
that each mistake gives one message.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Final

from simulator.physics.transformer import is_classifier, of_tokens
from simulator.reading.fitted.kernels import ANY, attentions, frameworks
from simulator.reading.hardware.catalogue import nearest_names
from simulator.reading.lines import KeyPath
from simulator.reading.sections import ModelSection, StepTimeTable
from simulator.reading.tables import Mistake
from simulator.reading.training import named_frameworks
from simulator.reading.unresolved import LIBRARY_CHANGES, LOCAL, Check
from simulator.schema.accelerators import Gpu
from simulator.schema.cost import Location, Ownership, Purchase, StorePlan, price_of
from simulator.schema.data_loading import (
    CachePolicy,
    Dataset,
    InputPipeline,
    Layout,
    LoaderKind,
    Placement,
    Preparation,
    Remote,
)
from simulator.schema.fields import Section, Shape, Spread
from simulator.schema.machines import PAIR, Hardware, Host, PeerPath
from simulator.schema.models import Model
from simulator.schema.scenario import CostPlan
from simulator.schema.software import Software
from simulator.schema.storage import LimitedBy, Scope, Storage
from simulator.schema.training import Mode, Parallelism, Recompute, Sharding, Train, Trained
from simulator.units import BYTE, show


def price_problems(cost: CostPlan, host: Host | None) -> Iterator[Mistake]:
    """Yield a purchase type or region for which the machine's profile has no price.

    A machine without any price is accepted: its bill is unknown. An owned machine has no rent.
    """
    if cost.purchase is Purchase.OWNED:
        return
    asked = [key for key in ("region", "purchase") if cost.states(key)]
    if host is None or not host.prices or cost.price is not None or not asked:
        return
    if price_of(host.prices, cost.purchase, cost.region) is not None:
        return
    there = dict.fromkeys(f"{price.purchase} in {price.region}" for price in host.prices)
    wanted = f"{cost.purchase}" if cost.region is None else f"{cost.purchase} in {cost.region}"
    known = f"it has {', '.join(there)}; or state cost.price"
    message = f"finds no price of {host.name} for {wanted}"
    key = "purchase" if "purchase" in asked else "region"
    yield Mistake(("cost", key), message, hint=known)


def owned_price_problems(
    cost: CostPlan, owned: Ownership | None, host: Host | None
) -> Iterator[Mistake]:
    """Yield a mistake if the machines of a service are owned and their price is unknown."""
    if cost.purchase is not Purchase.OWNED or cost.price is not None or host is None:
        return
    path = ("cost", "purchase")
    if host.capex is None and (owned is None or owned.capex is None):
        hint = "state owned.capex, or what one costs by the hour as cost.price"
        yield Mistake(path, f"finds no price to buy {host.name}", hint=hint)
    elif host.gpu is not None and host.gpu.power is None:
        message = f"needs the power of {host.gpu.name}, and its profile states none"
        yield Mistake(path, message, hint="state what a machine costs by the hour as cost.price")


_FIGURES: Final = (
    "parameters",
    "forward_flops_per_sample",
    "memory_traffic_per_sample",
    "activation_bytes_per_sample",
    "input_bytes_per_sample",
    "output_bytes_per_sample",
)


def _figures(
    model: ModelSection | None, step_times: tuple[StepTimeTable, ...]
) -> Iterator[Mistake]:
    if model is None:
        return
    given = [key for key in _FIGURES if getattr(model, key) is not None]
    if model.name is not None or model.family is not None:
        stated = "name" if model.name is not None else "family"
        for key in (*given, *_beside(model)):
            message = f"is given, but model.{stated} says it already"
            yield Mistake(("model", key), message, hint="leave one of them out")
        return
    yield from _shapes(model)
    if not given:
        if not step_times:
            hint = "give a name, figures or step_times"
            yield Mistake(("model",), "says nothing", hint=hint, show=False)
        return
    needed = ["parameters"] if step_times else ["parameters", "forward_flops_per_sample"]
    for key in needed:
        if key not in given:
            hint = "a model without a name needs it"
            yield Mistake(("model", key), "is missing", hint=hint)


def _shapes(model: ModelSection) -> Iterator[Mistake]:
    """Yield keys that change the shape of a library model when no model is named."""
    for key in LIBRARY_CHANGES:
        if getattr(model, key) is not None:
            message = "changes a model of the library, and none is named"
            yield Mistake(("model", key), message, hint="give model.name")
    if model.shape is not None:
        hint = "give model.family, such as gpt"
        yield Mistake(("model", "shape"), "is given without a family", hint=hint)


def _beside(model: ModelSection) -> list[str]:
    """Return keys that contradict the name, or the shape, of the model."""
    rivals = ("family", "shape") if model.name is not None else LIBRARY_CHANGES
    return [key for key in rivals if getattr(model, key) is not None]


def _recompute(model: ModelSection | None, train: Train) -> Iterator[Mistake]:
    unknown = model is not None and model.name is None and model.family is None
    if unknown and train.recompute is not Recompute.NONE:
        message = "needs to know the layers of the model, and figures don't tell"
        hint = "name a model of the library"
        yield Mistake(("train", "recompute"), message, hint=hint)


def _adapters(train: Train) -> Iterator[Mistake]:
    if train.trained is Trained.LORA:
        return
    keys = ["lora_rank", "lora_targets"]
    keys += ["frozen_precision"] if train.trained is Trained.ALL else []
    for key in keys:
        if getattr(train, key) is not None:
            message = "is about adapters of frozen weights, and there are none"
            yield Mistake(("train", key), message, hint='set train.trained = "lora"')


def _frozen(library_model: Model | None, train: Train) -> Iterator[Mistake]:
    """Yield a mistake if the model has no layers for adapters, or no head to train alone."""
    path, model, mode = ("train", "trained"), library_model, train.mode
    if train.trained is Trained.ALL:
        return
    if mode is not Mode.TRAIN:
        message = f"is about training, and the mode is {mode.value}"
        yield Mistake(path, message, hint="leave it out")
    elif train.trained is Trained.LORA and not of_tokens(model):
        hint = "name a language model, such as llama-3.1-8b, or leave it out"
        yield Mistake(path, "needs a transformer over tokens", hint=hint)
    elif train.trained is Trained.HEAD and not is_classifier(model):
        hint = 'name one, such as resnet50 or vit-b16; language models have "lora"'
        yield Mistake(path, "needs a classifier of images", hint=hint)


def _measured_steps(
    model: ModelSection | None, step_times: tuple[StepTimeTable, ...]
) -> Iterator[Mistake]:
    if model is not None and model.step_time is not None and model.step_times:
        message = "is given, and so is model.step_times"
        yield Mistake(("model", "step_time"), message, hint="leave one of them out")
    seen: dict[int, int] = {}
    for index, step in enumerate(step_times):
        if step.batch_size in seen:
            path = ("model", "step_times", index, "batch_size")
            hint = f"step_times[{seen[step.batch_size]}] has it too"
            yield Mistake(path, "is given twice", hint=hint)
        seen.setdefault(step.batch_size, index)


def _framework(
    software: Software,
    parallelism: Parallelism,
    gpu: Gpu | None,
    step_times: tuple[StepTimeTable, ...],
) -> Iterator[Mistake]:
    """Yield frameworks and attention kernels without the fitted figures that the model needs."""
    device = gpu is not None and not gpu.emulated
    timed = device and not step_times and parallelism.splits_model
    named, fitted = software.framework.lower(), frameworks(compiled=software.compile)
    every = named_frameworks().union(*(frameworks(compiled=one) for one in (True, False)))
    path = ("software", "framework")
    if timed and named not in {*fitted, ANY}:
        message = "has no figures of kernels, which a model spread over devices is timed by"
        more = f"or '{ANY}', which takes those of PyTorch and widens the interval"
        yield Mistake(path, message, hint=f"{_allowed(named, fitted)}; {more}")
    elif not timed and named not in every:
        more = f"or '{ANY}', whose figures are those of all frameworks together"
        known = tuple(sorted(every - {ANY}))
        yield Mistake(path, "unknown framework", hint=f"{_allowed(named, known)}; {more}")
    attention = software.attention_kernel
    if timed and attention and attention.lower() not in attentions():
        hint = f"allowed: {', '.join(attentions())}"
        yield Mistake(("software", "attention_kernel"), "unknown attention kernel", hint=hint)


def _allowed(name: str, known: Sequence[str]) -> str:
    close = nearest_names(name, known, most=1)
    meant = f"did you mean '{close[0]}'? " if close else ""
    return f"{meant}allowed: {', '.join(known)}"


def _whole_replicas(gpus: int, hardware: Hardware, parallelism: Parallelism) -> Iterator[Mistake]:
    there = gpus * hardware.count
    if parallelism.devices == 1 or there % parallelism.devices == 0:
        return
    message = (
        f"a replica of {parallelism.devices} devices (tensor x pipeline x context) doesn't divide"
    )
    hint = f"the job has {there} accelerators"
    yield Mistake(("parallelism",), message, hint=hint, show=False)


def _divided_experts(gpus: int, hardware: Hardware, parallelism: Parallelism) -> Iterator[Mistake]:
    stage = gpus * hardware.count // parallelism.pipeline
    holders = parallelism.expert * parallelism.expert_tensor
    if parallelism.expert_tensor == 1 or stage % holders == 0:
        return
    message = "times parallelism.expert doesn't divide the accelerators of a stage"
    yield Mistake(("parallelism", "expert_tensor"), message, hint=f"a stage has {stage}")


def _degrees(parallelism: Parallelism) -> Iterator[Mistake]:
    if parallelism.interleave > 1 and parallelism.pipeline == 1:
        hint = "leave it out, or give parallelism.pipeline"
        yield Mistake(("parallelism", "interleave"), "is given, but there is one stage", hint=hint)
    if parallelism.states("context_exchange") and parallelism.context == 1:
        hint = "leave it out, or give parallelism.context"
        message = "is given without context parallelism"
        yield Mistake(("parallelism", "context_exchange"), message, hint=hint)
    for key in ("sequence", "async_tensor"):
        if getattr(parallelism, key) and parallelism.tensor == 1:
            hint = "leave it out, or give parallelism.tensor"
            message = "is given without tensor parallelism"
            yield Mistake(("parallelism", key), message, hint=hint)


def _shard_group(parallelism: Parallelism, ranks: int) -> Iterator[Mistake]:
    path = ("parallelism", "shard_group")
    group = parallelism.shard_group
    if group is None:
        return
    if parallelism.sharding is Sharding.NONE:
        hint = "leave it out, or give parallelism.sharding"
        yield Mistake(path, "is given, but nothing is sharded", hint=hint)
    elif ranks % group:
        hint = f"a divisor of {ranks}, the replicas"
        yield Mistake(path, "doesn't divide the replicas", hint=hint)


def _swap(hardware: Hardware, host: Host) -> Iterator[Mistake]:
    """Yield reasons why the machine cannot have another accelerator."""
    wanted = hardware.gpu
    if wanted is None:
        return
    path = ("hardware", "gpu")
    if hardware.emulated is not None:
        message = "is given together with hardware.emulated, which replaces accelerators"
        yield Mistake(path, message, hint="leave one of them out")
    elif host.gpu_count == 0:
        message = f"replaces accelerators, and {host.name} has none"
        yield Mistake(path, message, hint="name a machine that has some")


def _staging(host: Host, data: Dataset, hardware: Hardware) -> Iterator[Mistake]:
    path = ("data", "placement")
    if data.placement is not Placement.STAGE:
        return
    if host.local_storage is None:
        message = f"copies to the machine's own drives, and {host.name} has none"
        yield Mistake(path, message, hint="stream, preload, or another machine")
    elif hardware.storage is None:
        message = "copies to the machine's own drives, where the data lies already"
        hint = "name the store it comes from in hardware.storage"
        yield Mistake(path, message, hint=hint)


def _stored_size(
    data: Dataset, pipeline: InputPipeline, hardware: Hardware, host: Host
) -> Iterator[Mistake]:
    """Yield a mistake if the machine's own drives are too small for the data."""
    if host.local_storage is None or host.local_storage.capacity is None:
        return
    staged = data.placement is Placement.STAGE
    read = pipeline.loader is not LoaderKind.ACTORS and data.cache is not CachePolicy.PRELOADED
    if not staged and not (hardware.storage is None and read):
        return
    beforehand = pipeline.where is Preparation.BEFOREHAND
    prepared = pipeline.prepared_bytes_per_sample if beforehand else 0.0
    size = data.samples * (prepared or data.bytes_per_sample)
    room = host.local_storage.capacity * max(1, host.drive_count)
    if size > room:
        message = f"doesn't fit the drives of {host.name}: {show(size, BYTE)} of data"
        hint = f"{show(size - room, BYTE)} more than the {show(room, BYTE)} there"
        if staged:
            yield Mistake(("data", "placement"), message, hint=hint)
        if hardware.storage is None and read:
            yield Mistake(("data", "samples"), message, hint=hint)


def _placement(data: Dataset) -> Iterator[Mistake]:
    path = ("data", "cache")
    if data.placement is Placement.PRELOAD and data.states("cache"):
        message = "says what stays in memory, and preloading keeps everything there"
        yield Mistake(path, message, hint="leave it out")
    if data.placement is Placement.STAGE and data.cache is CachePolicy.PRELOADED:
        message = "has the data in memory, and data.placement copies it to drives"
        yield Mistake(path, message, hint="leave one of them out")


def _window(data: Dataset) -> Iterator[Mistake]:
    if data.chunk_size is not None and data.window is None:
        message = "is given, but samples are read whole"
        yield Mistake(("data", "chunk_size"), message, hint="give data.window")
    if data.window is not None and data.window > data.bytes_per_sample:
        hint = f"at most {show(data.bytes_per_sample, BYTE)}"
        yield Mistake(("data", "window"), "is larger than a sample", hint=hint)
    if data.window is not None and data.read_time is not None:
        message = "changes what is read, and data.read_time says how long that takes"
        hint = "leave one of them out"
        yield Mistake(("data", "window"), message, hint=hint)


def _cache(
    hardware: Hardware, host: Host, storage: Storage | None, cache: Storage | None, data: Dataset
) -> Iterator[Mistake]:
    named, path = hardware.cache, ("hardware", "cache")
    if named is None:
        return
    if named == LOCAL and host.local_storage is None:
        message = f"means the machine's own drives, and {host.name} has none"
        yield Mistake(path, message, hint="name a store, such as storage/nvme-gen4")
    if storage is None or storage.scope is Scope.LOCAL:
        message = "caches a store reached over the network, and the data lies on drives"
        hint = "name a store in hardware.storage, such as storage/s3"
        yield Mistake(path, message, hint=hint)
    elif data.placement is not Placement.STREAM:
        message = f"keeps what is streamed, and data.placement is {data.placement.value}"
        yield Mistake(path, message, hint="leave one of them out")
    drives = cache_drives(hardware, host, cache)
    if drives is not None and drives.capacity is None:
        message = f"keeps what fits, and {drives.name} states no capacity"
        yield Mistake(path, message, hint='name a store that does, or "local"')


def cache_drives(hardware: Hardware, host: Host, cache: Storage | None) -> Storage | None:
    """Return the drives that cache the store; None if there are none."""
    return host.local_storage if hardware.cache == LOCAL else cache


def _preparing(pipeline: InputPipeline) -> Iterator[Mistake]:
    needed = (
        ("device_time", Preparation.DEVICE, "time per sample, such as 0.2 ms", True),
        ("device_memory", Preparation.DEVICE, "", False),
        ("prepared_bytes_per_sample", Preparation.BEFOREHAND, "such as 602 kB", True),
    )
    for key, where, example, required in needed:
        given, there = pipeline.states(key), pipeline.where is where
        if there and required and not given:
            message = f'is missing, and input.where is "{where.value}"'
            yield Mistake(("input", key), message, hint=example)
        if given and not there:
            message = f'is given, but input.where is "{pipeline.where.value}"'
            hint = f'leave it out, or where = "{where.value}"'
            yield Mistake(("input", key), message, hint=hint)
    if pipeline.where is Preparation.BEFOREHAND and pipeline.decode + pipeline.augment == 0.0:
        hint = "give input.decode or input.augment"
        yield Mistake(("input", "where"), "leaves nothing to do beforehand", hint=hint)


def _prepared_where(pipeline: InputPipeline, train: Train, gpu: Gpu | None) -> Iterator[Mistake]:
    path = ("input", "where")
    if train.mode is Mode.PREPARE and pipeline.where is not Preparation.CPU:
        message = 'is for jobs that use what is prepared, and this one has mode "prepare"'
        yield Mistake(path, message, hint="leave it out")
    if gpu is None and pipeline.where is Preparation.DEVICE:
        message = "is an accelerator, and none is used"
        yield Mistake(path, message, hint='where = "cpu" or "beforehand"')


def _socket(host: Host, pipeline: InputPipeline) -> Iterator[Mistake]:
    socket, path = pipeline.socket, ("input", "socket")
    if socket is None:
        return
    if socket >= host.cpu.sockets:
        hint = f"sockets count from 0, and {host.name} has {host.cpu.sockets}"
        yield Mistake(path, "is not a socket of the machine", hint=hint)
    elif host.socket_link is None or not host.gpu_sockets:
        message = f"matters between sockets, and the layout of {host.name} is not known"
        yield Mistake(path, message, hint="leave it out")


def _slow_rank(ranks_per_host: int, pipeline: InputPipeline) -> Iterator[Mistake]:
    for index, slow in enumerate(pipeline.straggler):
        if slow.rank is not None and slow.rank >= ranks_per_host:
            path = ("input", "straggler", index, "rank")
            hint = f"ranks of a machine count from 0, and there are {ranks_per_host}"
            yield Mistake(path, "is not a rank", hint=hint)


def _actors(pipeline: InputPipeline) -> Iterator[Mistake]:
    if pipeline.loader is LoaderKind.ACTORS and pipeline.workers == 0:
        message = "is missing, and actors make the batches"
        if pipeline.states("workers"):
            message = "is zero, and actors make the batches"
        hint = "at least 1"
        yield Mistake(("input", "workers"), message, hint=hint)


def _copies(train: Train, gpus: int) -> Iterator[Mistake]:
    copies = train.copies
    if gpus and gpus % copies:
        message = "jobs cannot share the accelerators equally"
        hint = f"{gpus} are used on each machine"
        yield Mistake(("train", "copies"), message, hint=hint)


def _helper_store(
    remote: Remote | None, helper: Host | None, storage: Storage | None, data: Dataset
) -> Iterator[Mistake]:
    if remote is None or helper is None or remote.storage is not None:
        return
    shared = storage is not None and storage.scope is not Scope.LOCAL
    in_memory = data.cache is CachePolicy.PRELOADED
    if not shared and not in_memory and helper.local_storage is None:
        message = f"is missing: {helper.name} has no drives, and the trainers read their own"
        hint = "name a store, such as storage/s3"
        yield Mistake(("remote", "storage"), message, hint=hint)


def _helper_network(helper: Host | None, host: Host) -> Iterator[Mistake]:
    if helper is None:
        return
    for machine, path in (
        (helper, ("remote", "machine")),
        (host, ("hardware", "machine")),
    ):
        if machine.network is None:
            message = f"hands batches over a network, and that of {machine.name} is not known"
            hint = "choose another machine, or overlay its profile"
            yield Mistake(path, message, hint=hint)


def _helper_name(remote: Remote | None) -> Iterator[Mistake]:
    if remote is None:
        return
    taken = {"train", "serve", "preprocess"}
    if remote.name in taken or not remote.name.replace("-", "").replace("_", "").isalnum():
        hint = "a word of letters, digits, - and _, other than " + ", ".join(sorted(taken))
        yield Mistake(("remote", "name"), "cannot name a group", hint=hint)


def _helper_use(remote: Remote | None, mode: Mode, data: Dataset) -> Iterator[Mistake]:
    if remote is None:
        return
    if mode is Mode.PREPARE:
        message = 'is given, but a job of mode "prepare" has all its work where its data is'
        hint = "leave it out, and raise hardware.count"
        yield Mistake(("remote",), message, hint=hint, show=False)
    if data.placement is not Placement.STREAM:
        message = "copies data to machines that train, and those of [remote] read it too"
        path = ("data", "placement")
        yield Mistake(path, message, hint='leave it out, or cache = "preloaded"')


def _slow_helper(remote: Remote | None, pipeline: InputPipeline) -> Iterator[Mistake]:
    """Yield a mistake if a slow worker has an index though remote workers have no fixed order."""
    if remote is None:
        return
    for index, slow in enumerate(pipeline.straggler):
        if slow.worker is not None:
            message = "is about workers that take turns, and with [remote] the free one is next"
            path = ("input", "straggler", index, "worker")
            yield Mistake(path, message, hint="use every or rank")


_NEAR: Final = {
    Scope.LOCAL: "the machine's own drives are",
    Scope.VOLUME: "a block volume is",
}
"""Stores that are always in the region of their machines."""


def _placed(store: StorePlan, storage: Storage | None) -> Iterator[Mistake]:
    """Yield a location in another region for a block volume or a machine's own drives."""
    if store.location in {None, Location.SAME_REGION}:
        return
    scope = Scope.LOCAL if storage is None else storage.scope
    if scope in _NEAR:
        message = f"is {store.location}, but {_NEAR[scope]} in the region of its machine"
        yield Mistake(("store", "location"), message, hint="leave it out")


def _prefixes(storage: Storage | None, hardware: Hardware) -> Iterator[Mistake]:
    """Yield a number of prefixes for a store whose limit of requests does not depend on it."""
    if hardware.storage_prefixes == 1:
        return
    limited = None if storage is None else storage.limited_by
    if limited is not LimitedBy.PREFIX:
        held = "states none" if limited is None else f"is that of {_CALLED[limited]}"
        name = "the machine's own drives" if storage is None else storage.name
        message = f"raises no limit: the limit of requests of {name} {held}"
        path = ("hardware", "storage_prefixes")
        yield Mistake(path, message, hint="leave it out")


_CALLED: Final = {LimitedBy.BUCKET: "a bucket", LimitedBy.ACCOUNT: "an account"}
_WIDEST_UNIFORM: Final = 1.0 / math.sqrt(3.0)


def _spreads(data: Dataset, pipeline: InputPipeline, train: Train) -> Iterator[Mistake]:
    tables: tuple[tuple[str, Section, str], ...] = (
        ("data", data, "size_spread"),
        ("input", pipeline, "cost_spread"),
        ("train", train, "device_spread"),
        ("train", train, "step_jitter"),
    )
    for section, table, key in tables:
        if table.states(key):
            yield from _spread(getattr(table, key), (section, key))
    if train.states("step_jitter") and train.straggling > 0.0:
        hint = "leave one of them out: both say how late a step is by chance"
        path = ("train", "step_jitter")
        yield Mistake(path, "is given together with straggling", hint=hint)


def _spread(spread: Spread, path: KeyPath) -> Iterator[Mistake]:
    deviation, path = spread.relative_deviation, (*path, "relative_deviation")
    fixed = {Shape.CONSTANT: 0.0, Shape.EXPONENTIAL: 1.0}.get(spread.shape)
    if deviation is None:
        if fixed is None:
            hint = "standard deviation over mean, such as 0.3"
            yield Mistake(path, "is missing", hint=hint)
    elif fixed is not None and deviation != fixed:
        hint = f"leave it out: it is always {fixed:g}"
        yield Mistake(path, f"doesn't fit the shape {spread.shape.value}", hint=hint)
    elif spread.shape is Shape.UNIFORM and deviation > _WIDEST_UNIFORM:
        message = "is wider than a uniform distribution of positive amounts can be"
        yield Mistake(path, message, hint=f"at most {_WIDEST_UNIFORM:.3f}")


def _gpus(hardware: Hardware, host: Host) -> Iterator[Mistake]:
    wanted = hardware.gpus
    emulated = hardware.emulated is not None
    if wanted is not None and wanted > host.gpu_count and not emulated:
        larger = "hardware.gpu puts another card into a machine with more: plan hardware list"
        has = f"{host.name} has {host.gpu_count}" + (f"; {larger}" if host.gpu_count else "")
        path = ("hardware", "gpus")
        yield Mistake(path, "is more than the machine has", hint=has)


def _emulated(hardware: Hardware, step_times: tuple[StepTimeTable, ...]) -> Iterator[Mistake]:
    if hardware.emulated is None:
        return
    if hardware.gpus is not None:
        message = "is given together with hardware.emulated, which replaces accelerators"
        yield Mistake(("hardware", "gpus"), message, hint="leave one of them out")
    if not step_times:
        message = "needs to know how long a step takes"
        yield Mistake(("hardware", "emulated"), message, hint="give model.step_times")


def _network(host: Host, hardware: Hardware) -> Iterator[Mistake]:
    if hardware.network_bandwidth is None or host.network is not None:
        return
    message = "changes an attachment that the machine doesn't have"
    path = ("hardware", "network_bandwidth")
    yield Mistake(path, message, hint="leave it out")


def _store(
    hardware: Hardware, host: Host, data: Dataset, pipeline: InputPipeline, train: Train
) -> Iterator[Mistake]:
    if hardware.storage is not None or host.local_storage is not None:
        return
    in_memory = data.cache is CachePolicy.PRELOADED or pipeline.loader is LoaderKind.ACTORS
    writes = train.mode is Mode.PREPARE or train.checkpoint_every_steps is not None
    if not writes and in_memory and data.placement is Placement.STREAM:
        # Samples are in memory, or made there.
        return
    message = f"is missing, and {host.name} has no drives of its own"
    hint = (
        'name a store, such as storage/ebs-gp3; or set data.cache = "preloaded" where nothing is '
        "read, such as for synthetic data"
    )
    yield Mistake(("hardware", "storage"), message, hint=hint)


def _link(host: Host, hardware: Hardware) -> Iterator[Mistake]:
    if hardware.pcie_bandwidth is not None and host.host_link is None:
        message = "changes a link that the machine doesn't have"
        yield Mistake(("hardware", "pcie_bandwidth"), message, hint="leave it out")


def _cores(hardware: Hardware, host: Host) -> Iterator[Mistake]:
    if hardware.cores is None:
        return
    threads = hardware.vcpus or host.cpu.threads
    if hardware.cores > threads:
        hint = f"at most as many as vcpus, {threads:g}"
        path = ("hardware", "cores")
        yield Mistake(path, "is more than the hardware threads", hint=hint)


def _contention(
    hardware: Hardware, remote: Remote | None, host: Host, helper: Host | None
) -> Iterator[Mistake]:
    """Yield contention with which all cores together would be slower than one alone."""
    threads = hardware.vcpus or host.cpu.threads
    cores = {"hardware": hardware.cores or host.cpu.cores * threads / host.cpu.threads}
    if remote is not None and helper is not None:
        cores["remote"] = helper.cpu.cores
    given = {"hardware": hardware.contention, "remote": remote and remote.contention}
    for section, number in cores.items():
        most = max(1.0, number)
        if (given[section] or 0.0) > most:
            message = "says that all cores together do less than one of them alone"
            hint = f"at most the number of cores, {most:g}"
            yield Mistake((section, "contention"), message, hint=hint)


def _shards(data: Dataset) -> Iterator[Mistake]:
    path = ("data", "shard_size")
    sharded = data.layout is Layout.SHARDS
    if sharded and data.shard_size is None:
        hint = "such as '150 MB', or layout = \"files\""
        yield Mistake(path, "is missing, and shards have one", hint=hint)
    if not sharded and data.shard_size is not None:
        hint = f'leave it out, or layout = "shards" instead of "{data.layout.value}"'
        yield Mistake(path, "is given, but the data doesn't lie in shards", hint=hint)
    if data.shard_size is not None and data.shard_size < data.bytes_per_sample:
        hint = f"at least one sample, {show(data.bytes_per_sample, BYTE)}"
        yield Mistake(path, "is smaller than a sample", hint=hint)


def _last_batch(
    pipeline: InputPipeline, data: Dataset, ranks: int, train: Train
) -> Iterator[Mistake]:
    if not pipeline.drop_last:
        return
    share = math.ceil(data.samples / ranks)
    if train.batch_size > share:
        message = "is larger than the dataset, and drop_last drops incomplete batches"
        hint = f"at most {share}, the samples of one of {ranks} ranks"
        yield Mistake(("train", "batch_size"), message, hint=hint)


def _loader_settings(pipeline: InputPipeline) -> Iterator[Mistake]:
    if pipeline.loader is not LoaderKind.PYTORCH:
        for key in ("in_order", "persistent_workers"):
            if pipeline.states(key):
                message = f"is a setting of pytorch, not of {pipeline.loader.value}"
                yield Mistake(("input", key), message, hint="leave it out")


def _stragglers(pipeline: InputPipeline) -> Iterator[Mistake]:
    for index, straggler in enumerate(pipeline.straggler):
        rules = (straggler.worker, straggler.every, straggler.rank)
        given = sum(rule is not None for rule in rules)
        if given != 1:
            number = {0: "none", len(rules): "all"}.get(given, "two")
            message = f"needs exactly one of worker, every and rank, and has {number}"
            yield Mistake(("input", "straggler", index), message, show=False)
        if straggler.worker is not None and straggler.worker >= pipeline.workers:
            path = ("input", "straggler", index, "worker")
            hint = f"workers count from 0, and there are {pipeline.workers}"
            yield Mistake(path, "is not a worker", hint=hint)


def _device_copies(pipeline: InputPipeline, gpu: Gpu | None) -> Iterator[Mistake]:
    asked = [
        key
        for key in ("pin_memory", "overlap_copies")
        if pipeline.states(key) and getattr(pipeline, key)
    ]
    if not asked:
        return
    if gpu is None:
        message = "is about copies to an accelerator, and none is used"
    elif gpu.unified_memory:
        message = "is about copies to a device, and this one shares the host's memory"
    else:
        return
    for key in asked:
        yield Mistake(("input", key), message, hint="leave it out")


def _overlap(pipeline: InputPipeline, gpu: Gpu | None) -> Iterator[Mistake]:
    stated = pipeline.states("overlap_copies") and pipeline.overlap_copies
    if gpu is None or gpu.unified_memory or not stated:
        return
    dali = pipeline.loader is LoaderKind.DALI and not pipeline.states("pin_memory")
    if not (pipeline.pin_memory or dali):
        hint = "set input.pin_memory = true"
        path = ("input", "overlap_copies")
        yield Mistake(path, "needs page-locked memory", hint=hint)


def _yardstick(
    measured_on: Host | None, host: Host, remote: Remote | None, helper: Host | None
) -> Iterator[Mistake]:
    stated = remote is not None and remote.speed is not None
    helper = None if stated else helper
    if measured_on is None or (measured_on is host and helper is None):
        return
    for machine in {m.name: m for m in (measured_on, host, helper) if m}.values():
        if machine.cpu.coremark is None:
            message = f"needs a CoreMark to compare processors, and {machine.name} has none"
            hint = "measure on this machine, and leave it out"
            yield Mistake(("input", "measured_on"), message, hint=hint)


def _global_batch(train: Train, ranks: int, accumulation: int) -> Iterator[Mistake]:
    if train.global_batch_size is None:
        return
    product = train.batch_size * accumulation * ranks
    if train.global_batch_size != product:
        message = "contradicts batch_size x accumulation x ranks"
        hint = f"{train.batch_size:.0f} x {accumulation} x {ranks} = {product:.0f}"
        if not train.states("accumulation"):
            message = "is not a multiple of batch_size x ranks"
            hint = f"{train.batch_size:.0f} x {ranks} = {train.batch_size * ranks:.0f}"
        yield Mistake(("train", "global_batch_size"), message, hint=hint)


def _precision(
    train: Train, gpu: Gpu | None, model: ModelSection | None, library_model: Model | None
) -> Iterator[Mistake]:
    precision, path = train.precision, ("train", "precision")
    if gpu is not None and gpu.emulated:
        return
    if not train.states("precision"):
        if gpu is not None or (
            model is not None and (library_model is None or library_model.cpu_seconds == 0.0)
        ):
            hint = "such as fp32, tf32, fp16 or bf16"
            yield Mistake(path, "is missing", hint=hint)
        return
    if gpu is None or precision in gpu.peak or precision in gpu.fallback:
        return
    has = ", ".join(dict.fromkeys(form.value for form in (*gpu.peak, *gpu.fallback)))
    message = f"is not a format of {gpu.name}, and nothing replaces it"
    yield Mistake(path, message, hint=f"it takes {has}")


def _peers(hardware: Hardware, host: Host | None, gpus: int) -> Iterator[Mistake]:
    """Yield links between accelerators that the machine cannot have."""
    linked = host is None or host.peer_link is not None
    if host is None or linked or hardware.peer_link is not PeerPath.NVLINK or gpus < PAIR:
        return
    name = "its accelerators" if host.gpu is None else host.gpu.name
    if host.bridge is None:
        message = f"asks for NVLink, and no bridge of {name} is known"
    elif gpus > PAIR:
        message = f"asks for a bridge, which joins {PAIR} cards, and {gpus} of {name} are used"
    else:
        return
    yield Mistake(("hardware", "peer_link"), message, hint="p2p, host, or leave it out")


def _purpose(gpu: Gpu | None, mode: Mode) -> Iterator[Mistake]:
    if gpu is not None and gpu.inference_only and mode is Mode.TRAIN:
        hint = 'choose another machine, or set train.mode = "infer"'
        path = ("hardware", "machine")
        yield Mistake(path, f"has {gpu.name}, which doesn't train", hint=hint)


def _model_or_none(mode: Mode, model: ModelSection | None) -> Iterator[Mistake]:
    is_preparation = mode is Mode.PREPARE
    if is_preparation and model is not None:
        message = 'is given, but a job of mode "prepare" runs no model'
        yield Mistake(("model",), message, hint="leave it out", show=False)
    elif not is_preparation and model is None:
        hint = 'give a name, figures or step_times, or set train.mode = "prepare"'
        yield Mistake(("model",), "is missing", hint=hint)


def _checkpoint(model: ModelSection | None, train: Train) -> Iterator[Mistake]:
    has_parameters = model is not None and (model.name or model.family or model.parameters)
    if train.checkpoint_every_steps is not None and not has_parameters:
        message = "is given, but no model says how much there is to write"
        hint = "give model.name or model.parameters"
        path = ("train", "checkpoint_every_steps")
        yield Mistake(path, message, hint=hint)


CHECKS: Final[tuple[Check, ...]] = (
    _gpus,
    _emulated,
    _network,
    _store,
    _link,
    _cores,
    _contention,
    _shards,
    _spreads,
    _last_batch,
    _loader_settings,
    _stragglers,
    _device_copies,
    _overlap,
    _yardstick,
    _global_batch,
    _precision,
    _peers,
    _purpose,
    _model_or_none,
    _checkpoint,
    _figures,
    _recompute,
    _frozen,
    _adapters,
    _measured_steps,
    _swap,
    _staging,
    _stored_size,
    _placement,
    _window,
    _cache,
    _preparing,
    _prepared_where,
    _socket,
    _slow_rank,
    _actors,
    _copies,
    _helper_store,
    _helper_network,
    _helper_name,
    _helper_use,
    _slow_helper,
    _whole_replicas,
    _divided_experts,
    _degrees,
    _shard_group,
    _framework,
    price_problems,
    _prefixes,
    _placed,
)
"""All checks, in the order in which mistakes of one line are reported."""
