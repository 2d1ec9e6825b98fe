"""What must agree about where data lies, who prepares it, and machines beside the trainers.

`GROUP_CHECKS` has the form of `checks.CHECKS`, which it is part of.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, TypeAlias

from simulator.errors import Problem
from simulator.reading.hardware.accelerator_swap import swap_problems
from simulator.reading.resolved import LOCAL, Check, Draft, check_of
from simulator.schema.hardware.storage import Scope, Storage
from simulator.schema.workload.dataset import CachePolicy, Placement
from simulator.schema.workload.loader import LoaderKind, Preparation
from simulator.schema.workload.train import Mode
from simulator.units import BYTE, show

Problems: TypeAlias = Iterator[Problem]


def _staging(draft: Draft) -> Problems:
    host, path = draft.host, ("data", "placement")
    if host is None or draft.data.placement is not Placement.STAGE:
        return
    if host.local_storage is None:
        message = f"copies to the machine's own drives, and {host.name} has none"
        yield draft.document.problem(path, message, hint="stream, preload, or another machine")
    elif draft.hardware.storage is None:
        message = "copies to the machine's own drives, where the data lies already"
        hint = "name the store it comes from in hardware.storage"
        yield draft.document.problem(path, message, hint=hint)


def _staged_size(draft: Draft) -> Problems:
    if draft.data.placement is Placement.STAGE:
        yield from _too_much(draft, ("data", "placement"))


def _stored_size(draft: Draft) -> Problems:
    made, in_memory = draft.loader is LoaderKind.ACTORS, CachePolicy.PRELOADED
    if draft.hardware.storage is None and not made and draft.data.cache is not in_memory:
        yield from _too_much(draft, ("data", "samples"))


def _too_much(draft: Draft, path: tuple[str, ...]) -> Problems:
    """Data that the machine's own drives don't hold, by how much."""
    host = draft.host
    if host is None or host.local_storage is None or host.local_storage.capacity is None:
        return
    room = host.local_storage.capacity * max(1, host.drive_count)
    size = stored_bytes(draft)
    if size > room:
        message = f"doesn't fit the drives of {host.name}: {show(size, BYTE)} of data"
        hint = f"{show(size - room, BYTE)} more than the {show(room, BYTE)} there"
        yield draft.document.problem(path, message, hint=hint)


def stored_bytes(draft: Draft) -> float:
    """Size of the whole data as it lies on the store while the job runs [B]."""
    pipeline = draft.input
    beforehand = pipeline.where is Preparation.BEFOREHAND
    prepared = pipeline.prepared_bytes_per_sample if beforehand else None
    return draft.data.samples * (prepared or draft.data.bytes_per_sample)


def _placement(draft: Draft) -> Problems:
    data, path = draft.data, ("data", "cache")
    if data.placement is Placement.PRELOAD and data.cache is not None:
        message = "says what stays in memory, and preloading keeps everything there"
        yield draft.document.problem(path, message, hint="leave it out")
    if data.placement is Placement.STAGE and data.cache is CachePolicy.PRELOADED:
        message = "has the data in memory, and data.placement copies it to drives"
        yield draft.document.problem(path, message, hint="leave one of them out")


def _window(draft: Draft) -> Problems:
    data, document = draft.data, draft.document
    if data.chunk_size is not None and data.window is None:
        message = "is given, but samples are read whole"
        yield document.problem(("data", "chunk_size"), message, hint="give data.window")
    if data.window is not None and data.window > data.bytes_per_sample:
        hint = f"at most {show(data.bytes_per_sample, BYTE)}"
        yield document.problem(("data", "window"), "is larger than a sample", hint=hint)


def _window_alone(draft: Draft) -> Problems:
    data = draft.data
    if data.window is not None and data.read_time is not None:
        message = "changes what is read, and data.read_time says how long that takes"
        hint = "leave one of them out"
        yield draft.document.problem(("data", "window"), message, hint=hint)


def _cache(draft: Draft) -> Problems:
    host, named, path = draft.host, draft.hardware.cache, ("hardware", "cache")
    store = draft.storage
    if host is None or named is None:
        return
    if named == LOCAL and host.local_storage is None:
        message = f"means the machine's own drives, and {host.name} has none"
        yield draft.document.problem(path, message, hint="name a store, such as storage/nvme-gen4")
    if store is None or store.scope is Scope.LOCAL:
        message = "stands in front of a store reached over the network, and the data lies on drives"
        hint = "name a store in hardware.storage, such as storage/s3"
        yield draft.document.problem(path, message, hint=hint)
    elif draft.data.placement is not Placement.STREAM:
        message = f"keeps what is streamed, and data.placement is {draft.data.placement.value}"
        yield draft.document.problem(path, message, hint="leave one of them out")
    yield from _size_of_cache(draft)


def _size_of_cache(draft: Draft) -> Problems:
    drives = cache_drives(draft)
    if drives is not None and drives.capacity is None:
        message = f"keeps what fits, and {drives.name} states no capacity"
        hint = 'name a store that does, or "local"'
        yield draft.document.problem(("hardware", "cache"), message, hint=hint)


def cache_drives(draft: Draft) -> Storage | None:
    """The drives in front of the store, if there are any."""
    if draft.hardware.cache == LOCAL:
        return None if draft.host is None else draft.host.local_storage
    return draft.cache


def _preparing(draft: Draft) -> Problems:
    pipeline, document = draft.input, draft.document
    needed = (
        ("device_time", Preparation.DEVICE, "time per sample, such as 0.2 ms", True),
        ("device_memory", Preparation.DEVICE, "", False),
        ("prepared_bytes_per_sample", Preparation.BEFOREHAND, "such as 602 kB", True),
    )
    for key, where, example, required in needed:
        given, there = getattr(pipeline, key) is not None, pipeline.where is where
        if there and required and not given:
            message = f'is missing, and input.where is "{where.value}"'
            yield document.problem(("input", key), message, hint=example)
        if given and not there:
            message = f'is given, but input.where is "{pipeline.where.value}"'
            hint = f'leave it out, or where = "{where.value}"'
            yield document.problem(("input", key), message, hint=hint)


def _prepares(draft: Draft) -> Problems:
    pipeline, path = draft.input, ("input", "where")
    if draft.mode is Mode.PREPARE and pipeline.where is not Preparation.CPU:
        message = 'is for jobs that use what is prepared, and this one has mode "prepare"'
        yield draft.document.problem(path, message, hint="leave it out")


def _device(draft: Draft) -> Problems:
    host, path = draft.host, ("input", "where")
    if host is not None and draft.gpu is None and draft.input.where is Preparation.DEVICE:
        message = "is an accelerator, and none is used"
        yield draft.document.problem(path, message, hint='where = "cpu" or "beforehand"')


def _work_beforehand(draft: Draft) -> Problems:
    pipeline, path = draft.input, ("input", "where")
    if pipeline.where is Preparation.BEFOREHAND and pipeline.decode + pipeline.augment == 0.0:
        hint = "give input.decode or input.augment"
        yield draft.document.problem(path, "leaves nothing to do beforehand", hint=hint)


def _socket(draft: Draft) -> Problems:
    host, socket, path = draft.host, draft.input.socket, ("input", "socket")
    if host is None or socket is None:
        return
    if socket >= host.cpu.sockets:
        hint = f"sockets count from 0, and {host.name} has {host.cpu.sockets}"
        yield draft.document.problem(path, "is no socket of the machine", hint=hint)
    elif host.socket_link is None or not host.gpu_sockets:
        message = f"matters between sockets, and the layout of {host.name} is not known"
        yield draft.document.problem(path, message, hint="leave it out")


def _slow_rank(draft: Draft) -> Problems:
    ranks = draft.ranks_per_host
    for index, slow in enumerate(draft.input.straggler):
        if draft.host is not None and slow.rank is not None and slow.rank >= ranks:
            path = ("input", "straggler", index, "rank")
            hint = f"ranks of a machine count from 0, and there are {ranks}"
            yield draft.document.problem(path, "is no rank", hint=hint)


def _actors(draft: Draft) -> Problems:
    pipeline = draft.input
    if pipeline.loader is LoaderKind.ACTORS and pipeline.workers == 0:
        message = "is missing, and actors make the batches"
        if pipeline.states("workers"):
            message = "is zero, and actors make the batches"
        hint = "at least 1"
        yield draft.document.problem(("input", "workers"), message, hint=hint)


def _copies(draft: Draft) -> Problems:
    copies, gpus = draft.train.copies, draft.gpus
    if draft.host is not None and gpus and gpus % copies:
        message = "jobs cannot share the accelerators equally"
        hint = f"{gpus} are used on each machine"
        yield draft.document.problem(("train", "copies"), message, hint=hint)


def _helper_store(draft: Draft) -> Problems:
    remote, helper = draft.remote, draft.helper
    if remote is None or helper is None or draft.host is None or remote.storage is not None:
        return
    shared = draft.storage is not None and draft.storage.scope is not Scope.LOCAL
    in_memory = draft.data.cache is CachePolicy.PRELOADED
    if not shared and not in_memory and helper.local_storage is None:
        message = f"is missing: {helper.name} has no drives, and the trainers read their own"
        hint = "name a store, such as storage/s3"
        yield draft.document.problem(("remote", "storage"), message, hint=hint)


def _helper_network(draft: Draft) -> Problems:
    for host, path in (
        (draft.helper, ("remote", "machine")),
        (draft.host, ("hardware", "machine")),
    ):
        if draft.remote is not None and host is not None and host.network is None:
            message = f"hands batches over a network, and that of {host.name} is not known"
            hint = "choose another machine, or overlay its profile"
            yield draft.document.problem(path, message, hint=hint)


def _helper_name(draft: Draft) -> Problems:
    remote = draft.remote
    if remote is None:
        return
    taken = {"train", "serve", "preprocess"}
    if remote.name in taken or not remote.name.replace("-", "").replace("_", "").isalnum():
        hint = "a word of letters, digits, - and _, other than " + ", ".join(sorted(taken))
        yield draft.document.problem(("remote", "name"), "cannot name a group", hint=hint)


def _helper_use(draft: Draft) -> Problems:
    if draft.remote is None:
        return
    if draft.mode is Mode.PREPARE:
        message = 'is given, but a job of mode "prepare" has all its work where its data is'
        hint = "leave it out, and raise hardware.count"
        yield draft.document.problem(("remote",), message, hint=hint, show=False)
    if draft.data.placement is not Placement.STREAM:
        message = "copies data to machines that train, and those of [remote] read it too"
        path = ("data", "placement")
        yield draft.document.problem(path, message, hint='leave it out, or cache = "preloaded"')


def _slow_helper(draft: Draft) -> Problems:
    """A straggler among a rank's own workers says nothing about those elsewhere."""
    if draft.remote is None:
        return
    for index, slow in enumerate(draft.input.straggler):
        if slow.worker is not None:
            message = "is about workers that take turns, and with [remote] the free one is next"
            path = ("input", "straggler", index, "worker")
            yield draft.document.problem(path, message, hint="use every or rank")


_MACHINE: Final = "hardware.machine"
_SIZE: Final = (
    "data.samples data.bytes_per_sample input.where input.prepared_bytes_per_sample "
    "hardware.machine hardware.storage"
)
_RANKS: Final = "hardware.machine hardware.gpus train.mode train.copies model.name"
_HELPER: Final = "remote.machine remote.storage hardware.machine hardware.storage data.cache"
GROUP_CHECKS: Final[tuple[Check, ...]] = (
    check_of(
        swap_problems, "hardware.machine hardware.gpu hardware.emulated", reads="hardware host"
    ),
    check_of(_staging, f"{_MACHINE} hardware.storage data.placement", reads="hardware data host"),
    check_of(_staged_size, f"{_SIZE} data.placement", reads="data input host"),
    check_of(
        _stored_size, f"{_SIZE} input.loader data.cache", reads="hardware data input host loader"
    ),
    check_of(_placement, "data.placement data.cache", reads="data"),
    check_of(_window, "data.window data.chunk_size data.bytes_per_sample", reads="data"),
    check_of(_window_alone, "data.window data.read_time", reads="data"),
    check_of(
        _cache,
        f"{_MACHINE} hardware.storage hardware.cache data.placement",
        reads="hardware data host storage cache",
    ),
    check_of(_preparing, "input.where input.device_time input.device_memory", reads="input"),
    check_of(_prepares, "input.where train.mode", reads="input mode"),
    check_of(_device, f"{_RANKS} input.where", reads="input host gpu"),
    check_of(_work_beforehand, "input.where input.decode input.augment", reads="input"),
    check_of(_socket, f"{_MACHINE} input.socket", reads="input host"),
    check_of(_slow_rank, f"{_RANKS} input.straggler", reads="input host ranks_per_host"),
    check_of(_actors, "input.loader input.workers", reads="input"),
    check_of(_copies, _RANKS, reads="train host gpus"),
    check_of(_helper_store, _HELPER, reads="data remote host storage helper"),
    check_of(
        _helper_network, "remote.machine hardware.machine", reads="hardware remote host helper"
    ),
    check_of(_helper_name, "remote.name", reads="remote"),
    check_of(_helper_use, "train.mode data.placement", reads="data remote mode"),
    check_of(_slow_helper, "input.straggler", reads="input remote"),
)
