"""Checks of keys and sections against each other; `CHECKS` is the list of all of them.

A check that reads what follows from a mistake finds nothing, so that one mistake is one message.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final, TypeAlias

from simulator.errors import InputError, Problem
from simulator.physics.transformer import is_classifier, of_tokens
from simulator.reading.document import Document
from simulator.reading.fitted.kernels import ANY, attentions, frameworks
from simulator.reading.lines import KeyPath
from simulator.reading.names import nearest_names
from simulator.reading.sections import ModelSection
from simulator.reading.training import named_frameworks
from simulator.reading.unresolved import (
    LIBRARY_CHANGES,
    LOCAL,
    Check,
    UnresolvedScenario,
    energy_of,
    stated_interruptions,
)
from simulator.schema.cost import Location, Purchase, price_of
from simulator.schema.data_loading import CachePolicy, Layout, LoaderKind, Placement, Preparation
from simulator.schema.fields import Shape, Spread
from simulator.schema.machines import Host
from simulator.schema.scenario import CostPlan
from simulator.schema.storage import LimitedBy, Scope, Storage
from simulator.schema.training import Mode, Recompute, Sharding, Trained
from simulator.units import BYTE, show

if TYPE_CHECKING:
    from simulator.reading.service.sections import ServiceFile


def price_problems(
    cost: CostPlan, host: Host | None, problem: Callable[..., Problem]
) -> Iterator[Problem]:
    """What a file asks to buy by name, and the machine's profile has no price for.

    A machine without any price is accepted: its bill is unknown. One that is owned has no rent.
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
    yield problem(("cost", key), message, hint=known)


def service_price_problems(
    document: Document, file: ServiceFile, host: Host | None
) -> Iterator[Problem]:
    """The same of a service; of machines that are owned, whether it is known what they cost."""
    cost = file.cost
    if cost is None:
        return
    yield from price_problems(cost, host, document.problem)
    if cost.purchase is not Purchase.OWNED or cost.price is not None or host is None:
        return
    if host.capex is None and (file.owned is None or file.owned.capex is None):
        message = f"finds no price to buy {host.name}"
        hint = "state owned.capex, or what one costs by the hour as cost.price"
        yield document.problem(("cost", "purchase"), message, hint=hint)
    elif host.gpu is not None and host.gpu.power is None:
        message = f"needs the power of {host.gpu.name}, and its profile states none"
        hint = "state what a machine costs by the hour as cost.price"
        yield document.problem(("cost", "purchase"), message, hint=hint)


def _trainers(file: UnresolvedScenario) -> Iterator[Problem]:
    yield from price_problems(file.cost, file.host, file.problem)


PRICE_CHECKS: Final[tuple[Check, ...]] = (_trainers,)


def _interruptions(file: UnresolvedScenario) -> Iterator[Problem]:
    try:
        stated_interruptions(file)
    except InputError as error:
        yield from error.problems


def _electricity(file: UnresolvedScenario) -> Iterator[Problem]:
    try:
        energy_of(file)
    except InputError as error:
        yield from error.problems


Problems: TypeAlias = Iterator[Problem]
_FIGURES: Final = (
    "parameters",
    "forward_flops_per_sample",
    "memory_traffic_per_sample",
    "activation_bytes_per_sample",
    "input_bytes_per_sample",
    "output_bytes_per_sample",
)


def _figures(file: UnresolvedScenario) -> Problems:
    model = file.model
    if model is None:
        return
    given = [key for key in _FIGURES if getattr(model, key) is not None]
    if model.name is not None or model.family is not None:
        stated = "name" if model.name is not None else "family"
        for key in (*given, *_beside(model)):
            message = f"is given, but model.{stated} says it already"
            yield file.problem(("model", key), message, hint="leave one of them out")
        return
    yield from _shapes(file, model)
    if not given:
        if not file.step_times:
            hint = "give a name, figures or step_times"
            yield file.problem(("model",), "says nothing", hint=hint, show=False)
        return
    needed = ["parameters"] if file.step_times else ["parameters", "forward_flops_per_sample"]
    for key in needed:
        if key not in given:
            hint = "a model without a name needs it"
            yield file.problem(("model", key), "is missing", hint=hint)


def _shapes(file: UnresolvedScenario, model: ModelSection) -> Problems:
    """Return keys that change the shape of a model, where none is named."""
    for key in LIBRARY_CHANGES:
        if getattr(model, key) is not None:
            message = "changes a model of the library, and none is named"
            yield file.problem(("model", key), message, hint="give model.name")
    if model.shape is not None:
        hint = "give model.family, such as gpt"
        yield file.problem(("model", "shape"), "is given without a family", hint=hint)


def _beside(model: ModelSection) -> list[str]:
    """Return keys that say what the name, or the shape, of the model says already."""
    rivals = ("family", "shape") if model.name is not None else LIBRARY_CHANGES
    return [key for key in rivals if getattr(model, key) is not None]


def _recompute(file: UnresolvedScenario) -> Problems:
    model = file.model
    unknown = model is not None and model.name is None and model.family is None
    if unknown and file.train.recompute is not Recompute.NONE:
        message = "needs to know the layers of the model, and figures don't tell"
        hint = "name a model of the library"
        yield file.problem(("train", "recompute"), message, hint=hint)


def _adapters(file: UnresolvedScenario) -> Problems:
    train = file.train
    if train.trained is not Trained.ALL:
        yield from _frozen(file)
    if train.trained is Trained.LORA:
        return
    keys = ["lora_rank", "lora_targets"]
    keys += ["frozen_precision"] if train.trained is Trained.ALL else []
    for key in keys:
        if getattr(train, key) is not None:
            message = "is about adapters of frozen weights, and there are none"
            yield file.problem(("train", key), message, hint='set train.trained = "lora"')


def _frozen(file: UnresolvedScenario) -> Problems:
    """Adapters need layers of a language model, a head alone an image classifier."""
    path, model = ("train", "trained"), file.library_model
    if file.mode is not Mode.TRAIN:
        message = f"is about training, and the mode is {file.mode.value}"
        yield file.problem(path, message, hint="leave it out")
    elif file.train.trained is Trained.LORA and not of_tokens(model):
        hint = "name a language model, such as llama-3.1-8b, or leave it out"
        yield file.problem(path, "needs a transformer over tokens", hint=hint)
    elif file.train.trained is Trained.HEAD and not is_classifier(model):
        hint = 'name one, such as resnet50 or vit-b16; language models have "lora"'
        yield file.problem(path, "needs a classifier of images", hint=hint)


def _measured_steps(file: UnresolvedScenario) -> Problems:
    model = file.model
    if model is not None and model.step_time is not None and model.step_times:
        message = "is given, and so is model.step_times"
        yield file.problem(("model", "step_time"), message, hint="leave one of them out")
    seen: dict[int, int] = {}
    for index, step in enumerate(file.step_times):
        if step.batch_size in seen:
            path = ("model", "step_times", index, "batch_size")
            hint = f"step_times[{seen[step.batch_size]}] has it too"
            yield file.problem(path, "is given twice", hint=hint)
        seen.setdefault(step.batch_size, index)


_FIGURE_KEYS: Final = " ".join(f"model.{key}" for key in _FIGURES)
MODEL_CHECKS: Final[tuple[Check, ...]] = (
    _figures,
    _recompute,
    _adapters,
    _measured_steps,
)


def _framework(file: UnresolvedScenario) -> Problems:
    software = file.software
    known = frameworks(compiled=software.compile)
    if not _is_timed_by_kernels(file) or software.framework.lower() in {*known, ANY}:
        return
    close = nearest_names(software.framework.lower(), known, most=1)
    nearest = f"did you mean '{close[0]}'? " if close else ""
    yield file.problem(
        ("software", "framework"),
        "has no figures of kernels, which a model spread over devices is timed by",
        hint=(
            f"{nearest}allowed: {', '.join(known)}; or '{ANY}', which takes those of PyTorch and "
            "widens the interval"
        ),
    )


def _name(file: UnresolvedScenario) -> Problems:
    named = file.software.framework.lower()
    if named in named_frameworks() or _is_timed_by_kernels(file):
        return
    known = named_frameworks().union(*(frameworks(compiled=compiled) for compiled in (True, False)))
    if named in known:
        return
    close = nearest_names(named, sorted(known - {ANY}), most=1)
    nearest = f"did you mean '{close[0]}'? " if close else ""
    yield file.problem(
        ("software", "framework"),
        "unknown framework",
        hint=(
            f"{nearest}allowed: {', '.join(sorted(known - {ANY}))}; or '{ANY}', whose figures are "
            "those of all frameworks together"
        ),
    )


def _attention(file: UnresolvedScenario) -> Problems:
    named, known = file.software.attention_kernel, attentions()
    if not named or not _is_timed_by_kernels(file) or named.lower() in known:
        return
    yield file.problem(
        ("software", "attention_kernel"),
        "unknown attention kernel",
        hint=f"allowed: {', '.join(known)}",
    )


def _is_timed_by_kernels(file: UnresolvedScenario) -> bool:
    """Return whether the step is computed from figures of kernels: an unmeasured parallel model."""
    measured = bool(file.step_times)
    device = file.gpu is not None and not file.gpu.emulated
    return device and not measured and file.parallelism.splits_model


KERNEL_CHECKS: Final[tuple[Check, ...]] = (
    _name,
    _framework,
    _attention,
)


def _whole_replicas(file: UnresolvedScenario) -> Problems:
    there = file.gpus * file.hardware.count
    degrees = file.parallelism
    if degrees.devices == 1 or there % degrees.devices == 0:
        return
    message = f"a replica of {degrees.devices} devices (tensor x pipeline x context) doesn't divide"
    hint = f"the job has {there} accelerators"
    yield file.problem(("parallelism",), message, hint=hint, show=False)


def _interleave(file: UnresolvedScenario) -> Problems:
    degrees = file.parallelism
    if degrees.interleave > 1 and degrees.pipeline == 1:
        hint = "leave it out, or give parallelism.pipeline"
        path = ("parallelism", "interleave")
        yield file.problem(path, "is given, but there is one stage", hint=hint)


def _tensor_only(file: UnresolvedScenario) -> Problems:
    degrees = file.parallelism
    for key in ("sequence", "async_tensor"):
        if getattr(degrees, key) and degrees.tensor == 1:
            hint = "leave it out, or give parallelism.tensor"
            path = ("parallelism", key)
            yield file.problem(path, "is given without tensor parallelism", hint=hint)


def _shard_group(file: UnresolvedScenario) -> Problems:
    degrees, path = file.parallelism, ("parallelism", "shard_group")
    group = degrees.shard_group
    if group is None:
        return
    if degrees.sharding is Sharding.NONE:
        hint = "leave it out, or give parallelism.sharding"
        yield file.problem(path, "is given, but nothing is sharded", hint=hint)
    elif file.ranks % group:
        hint = f"a divisor of {file.ranks}, the replicas"
        yield file.problem(path, "doesn't divide the replicas", hint=hint)


PARALLEL_CHECKS: Final[tuple[Check, ...]] = (
    _whole_replicas,
    _interleave,
    _tensor_only,
    _shard_group,
)


def _swap(file: UnresolvedScenario) -> Problems:
    """What speaks against another accelerator in the machine."""
    wanted, host = file.hardware.gpu, file.host
    if wanted is None:
        return
    path = ("hardware", "gpu")
    if file.hardware.emulated is not None:
        message = "is given together with hardware.emulated, which replaces accelerators"
        yield file.problem(path, message, hint="leave one of them out")
    elif host.gpu_count == 0:
        message = f"replaces accelerators, and {host.name} has none"
        yield file.problem(path, message, hint="name a machine that has some")


def _staging(file: UnresolvedScenario) -> Problems:
    host, path = file.host, ("data", "placement")
    if file.data.placement is not Placement.STAGE:
        return
    if host.local_storage is None:
        message = f"copies to the machine's own drives, and {host.name} has none"
        yield file.problem(path, message, hint="stream, preload, or another machine")
    elif file.hardware.storage is None:
        message = "copies to the machine's own drives, where the data lies already"
        hint = "name the store it comes from in hardware.storage"
        yield file.problem(path, message, hint=hint)


def _staged_size(file: UnresolvedScenario) -> Problems:
    if file.data.placement is Placement.STAGE:
        yield from _too_much(file, ("data", "placement"))


def _stored_size(file: UnresolvedScenario) -> Problems:
    made, in_memory = file.loader is LoaderKind.ACTORS, CachePolicy.PRELOADED
    if file.hardware.storage is None and not made and file.data.cache is not in_memory:
        yield from _too_much(file, ("data", "samples"))


def _too_much(file: UnresolvedScenario, path: tuple[str, ...]) -> Problems:
    """Data that the machine's own drives don't hold, by how much."""
    host = file.host
    if host.local_storage is None or host.local_storage.capacity is None:
        return
    room = host.local_storage.capacity * max(1, host.drive_count)
    size = stored_bytes(file)
    if size > room:
        message = f"doesn't fit the drives of {host.name}: {show(size, BYTE)} of data"
        hint = f"{show(size - room, BYTE)} more than the {show(room, BYTE)} there"
        yield file.problem(path, message, hint=hint)


def stored_bytes(file: UnresolvedScenario) -> float:
    """Size of the whole data as it lies on the store while the job runs [B]."""
    pipeline = file.input
    beforehand = pipeline.where is Preparation.BEFOREHAND
    prepared = pipeline.prepared_bytes_per_sample if beforehand else None
    return file.data.samples * (prepared or file.data.bytes_per_sample)


def _placement(file: UnresolvedScenario) -> Problems:
    data, path = file.data, ("data", "cache")
    if data.placement is Placement.PRELOAD and data.states("cache"):
        message = "says what stays in memory, and preloading keeps everything there"
        yield file.problem(path, message, hint="leave it out")
    if data.placement is Placement.STAGE and data.cache is CachePolicy.PRELOADED:
        message = "has the data in memory, and data.placement copies it to drives"
        yield file.problem(path, message, hint="leave one of them out")


def _window(file: UnresolvedScenario) -> Problems:
    data = file.data
    if data.chunk_size is not None and data.window is None:
        message = "is given, but samples are read whole"
        yield file.problem(("data", "chunk_size"), message, hint="give data.window")
    if data.window is not None and data.window > data.bytes_per_sample:
        hint = f"at most {show(data.bytes_per_sample, BYTE)}"
        yield file.problem(("data", "window"), "is larger than a sample", hint=hint)


def _window_alone(file: UnresolvedScenario) -> Problems:
    data = file.data
    if data.window is not None and data.read_time is not None:
        message = "changes what is read, and data.read_time says how long that takes"
        hint = "leave one of them out"
        yield file.problem(("data", "window"), message, hint=hint)


def _cache(file: UnresolvedScenario) -> Problems:
    host, named, path = file.host, file.hardware.cache, ("hardware", "cache")
    store = file.storage
    if named is None:
        return
    if named == LOCAL and host.local_storage is None:
        message = f"means the machine's own drives, and {host.name} has none"
        yield file.problem(path, message, hint="name a store, such as storage/nvme-gen4")
    if store is None or store.scope is Scope.LOCAL:
        message = "caches a store reached over the network, and the data lies on drives"
        hint = "name a store in hardware.storage, such as storage/s3"
        yield file.problem(path, message, hint=hint)
    elif file.data.placement is not Placement.STREAM:
        message = f"keeps what is streamed, and data.placement is {file.data.placement.value}"
        yield file.problem(path, message, hint="leave one of them out")
    yield from _size_of_cache(file)


def _size_of_cache(file: UnresolvedScenario) -> Problems:
    drives = cache_drives(file)
    if drives is not None and drives.capacity is None:
        message = f"keeps what fits, and {drives.name} states no capacity"
        hint = 'name a store that does, or "local"'
        yield file.problem(("hardware", "cache"), message, hint=hint)


def cache_drives(file: UnresolvedScenario) -> Storage | None:
    """Return the drives in front of the store, if there are any."""
    if file.hardware.cache == LOCAL:
        return file.host.local_storage
    return file.cache


def _preparing(file: UnresolvedScenario) -> Problems:
    pipeline = file.input
    needed = (
        ("device_time", Preparation.DEVICE, "time per sample, such as 0.2 ms", True),
        ("device_memory", Preparation.DEVICE, "", False),
        ("prepared_bytes_per_sample", Preparation.BEFOREHAND, "such as 602 kB", True),
    )
    for key, where, example, required in needed:
        given, there = pipeline.states(key), pipeline.where is where
        if there and required and not given:
            message = f'is missing, and input.where is "{where.value}"'
            yield file.problem(("input", key), message, hint=example)
        if given and not there:
            message = f'is given, but input.where is "{pipeline.where.value}"'
            hint = f'leave it out, or where = "{where.value}"'
            yield file.problem(("input", key), message, hint=hint)


def _prepares(file: UnresolvedScenario) -> Problems:
    pipeline, path = file.input, ("input", "where")
    if file.mode is Mode.PREPARE and pipeline.where is not Preparation.CPU:
        message = 'is for jobs that use what is prepared, and this one has mode "prepare"'
        yield file.problem(path, message, hint="leave it out")


def _device(file: UnresolvedScenario) -> Problems:
    path = ("input", "where")
    if file.gpu is None and file.input.where is Preparation.DEVICE:
        message = "is an accelerator, and none is used"
        yield file.problem(path, message, hint='where = "cpu" or "beforehand"')


def _work_beforehand(file: UnresolvedScenario) -> Problems:
    pipeline, path = file.input, ("input", "where")
    if pipeline.where is Preparation.BEFOREHAND and pipeline.decode + pipeline.augment == 0.0:
        hint = "give input.decode or input.augment"
        yield file.problem(path, "leaves nothing to do beforehand", hint=hint)


def _socket(file: UnresolvedScenario) -> Problems:
    host, socket, path = file.host, file.input.socket, ("input", "socket")
    if socket is None:
        return
    if socket >= host.cpu.sockets:
        hint = f"sockets count from 0, and {host.name} has {host.cpu.sockets}"
        yield file.problem(path, "is not a socket of the machine", hint=hint)
    elif host.socket_link is None or not host.gpu_sockets:
        message = f"matters between sockets, and the layout of {host.name} is not known"
        yield file.problem(path, message, hint="leave it out")


def _slow_rank(file: UnresolvedScenario) -> Problems:
    ranks = file.ranks_per_host
    for index, slow in enumerate(file.input.straggler):
        if slow.rank is not None and slow.rank >= ranks:
            path = ("input", "straggler", index, "rank")
            hint = f"ranks of a machine count from 0, and there are {ranks}"
            yield file.problem(path, "is not a rank", hint=hint)


def _actors(file: UnresolvedScenario) -> Problems:
    pipeline = file.input
    if pipeline.loader is LoaderKind.ACTORS and pipeline.workers == 0:
        message = "is missing, and actors make the batches"
        if pipeline.states("workers"):
            message = "is zero, and actors make the batches"
        hint = "at least 1"
        yield file.problem(("input", "workers"), message, hint=hint)


def _copies(file: UnresolvedScenario) -> Problems:
    copies, gpus = file.train.copies, file.gpus
    if gpus and gpus % copies:
        message = "jobs cannot share the accelerators equally"
        hint = f"{gpus} are used on each machine"
        yield file.problem(("train", "copies"), message, hint=hint)


def _helper_store(file: UnresolvedScenario) -> Problems:
    remote, helper = file.remote, file.helper
    if remote is None or helper is None or remote.storage is not None:
        return
    shared = file.storage is not None and file.storage.scope is not Scope.LOCAL
    in_memory = file.data.cache is CachePolicy.PRELOADED
    if not shared and not in_memory and helper.local_storage is None:
        message = f"is missing: {helper.name} has no drives, and the trainers read their own"
        hint = "name a store, such as storage/s3"
        yield file.problem(("remote", "storage"), message, hint=hint)


def _helper_network(file: UnresolvedScenario) -> Problems:
    if file.helper is None:
        return
    for host, path in (
        (file.helper, ("remote", "machine")),
        (file.host, ("hardware", "machine")),
    ):
        if host.network is None:
            message = f"hands batches over a network, and that of {host.name} is not known"
            hint = "choose another machine, or overlay its profile"
            yield file.problem(path, message, hint=hint)


def _helper_name(file: UnresolvedScenario) -> Problems:
    remote = file.remote
    if remote is None:
        return
    taken = {"train", "serve", "preprocess"}
    if remote.name in taken or not remote.name.replace("-", "").replace("_", "").isalnum():
        hint = "a word of letters, digits, - and _, other than " + ", ".join(sorted(taken))
        yield file.problem(("remote", "name"), "cannot name a group", hint=hint)


def _helper_use(file: UnresolvedScenario) -> Problems:
    if file.remote is None:
        return
    if file.mode is Mode.PREPARE:
        message = 'is given, but a job of mode "prepare" has all its work where its data is'
        hint = "leave it out, and raise hardware.count"
        yield file.problem(("remote",), message, hint=hint, show=False)
    if file.data.placement is not Placement.STREAM:
        message = "copies data to machines that train, and those of [remote] read it too"
        path = ("data", "placement")
        yield file.problem(path, message, hint='leave it out, or cache = "preloaded"')


def _slow_helper(file: UnresolvedScenario) -> Problems:
    """Return a straggler among a rank's own workers says nothing about those elsewhere."""
    if file.remote is None:
        return
    for index, slow in enumerate(file.input.straggler):
        if slow.worker is not None:
            message = "is about workers that take turns, and with [remote] the free one is next"
            path = ("input", "straggler", index, "worker")
            yield file.problem(path, message, hint="use every or rank")


GROUP_CHECKS: Final[tuple[Check, ...]] = (
    _swap,
    _staging,
    _staged_size,
    _stored_size,
    _placement,
    _window,
    _window_alone,
    _cache,
    _preparing,
    _prepares,
    _device,
    _work_beforehand,
    _socket,
    _slow_rank,
    _actors,
    _copies,
    _helper_store,
    _helper_network,
    _helper_name,
    _helper_use,
    _slow_helper,
)


_NEAR: Final = {
    Scope.LOCAL: "the machine's own drives are",
    Scope.VOLUME: "a block volume is",
}
"""Stores that are where their machines are."""


def _placed(file: UnresolvedScenario) -> Iterator[Problem]:
    """Yield a volume or a machine's own drives that are said to be elsewhere."""
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
        yield file.problem(path, "is given together with straggling", hint=hint)


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
        message = "is given together with hardware.emulated, which replaces accelerators"
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
        hint = f'leave it out, or layout = "shards" instead of "{data.layout.value}"'
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
    if pytorch and pipeline.workers == 0 and pipeline.states("prefetch"):
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
            yield file.problem(path, "is not a worker", hint=hint)


def _device_copies(file: UnresolvedScenario) -> Problems:
    pipeline = file.input
    asked = [
        key
        for key in ("pin_memory", "overlap_copies")
        if pipeline.states(key) and getattr(pipeline, key)
    ]
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
    stated = pipeline.states("overlap_copies") and pipeline.overlap_copies
    if file.gpu is None or file.gpu.unified_memory or not stated:
        return
    dali = pipeline.loader is LoaderKind.DALI and not pipeline.states("pin_memory")
    if not (pipeline.pin_memory or dali):
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
            message = "is not a multiple of batch_size x ranks"
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
    message = f"is not a format of {gpu.name}, and nothing replaces it"
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
    _device_copies,
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
    _interruptions,
    _electricity,
    *PRICE_CHECKS,
    *STORE_CHECKS,
)
"""All checks, in the order in which mistakes of one line are reported."""
