"""Checks of where data lies, who prepares it, and machines that help the trainers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, TypeAlias

from simulator.errors import Problem
from simulator.reading.unresolved import LOCAL, Check, UnresolvedScenario
from simulator.schema.hardware.storage import Scope, Storage
from simulator.schema.workload.dataset import CachePolicy, Placement
from simulator.schema.workload.loader import LoaderKind, Preparation
from simulator.schema.workload.train import Mode
from simulator.units import BYTE, show

Problems: TypeAlias = Iterator[Problem]


def _swap(file: UnresolvedScenario) -> Problems:
    """What speaks against another accelerator in the machine."""
    wanted, host = file.hardware.gpu, file.host
    if wanted is None:
        return
    path = ("hardware", "gpu")
    if file.hardware.emulated is not None:
        message = "is given beside hardware.emulated, which stands in place of accelerators"
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
        message = "stands in front of a store reached over the network, and the data lies on drives"
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
    """The drives in front of the store, if there are any."""
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
        given, there = getattr(pipeline, key) is not None, pipeline.where is where
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
        yield file.problem(path, "is no socket of the machine", hint=hint)
    elif host.socket_link is None or not host.gpu_sockets:
        message = f"matters between sockets, and the layout of {host.name} is not known"
        yield file.problem(path, message, hint="leave it out")


def _slow_rank(file: UnresolvedScenario) -> Problems:
    ranks = file.ranks_per_host
    for index, slow in enumerate(file.input.straggler):
        if slow.rank is not None and slow.rank >= ranks:
            path = ("input", "straggler", index, "rank")
            hint = f"ranks of a machine count from 0, and there are {ranks}"
            yield file.problem(path, "is no rank", hint=hint)


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
    """A straggler among a rank's own workers says nothing about those elsewhere."""
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
