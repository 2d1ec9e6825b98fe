"""Stages that prepare and move a batch: read, decode, collate, send, pin, copy, return, write."""

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from typing import Final, cast

import numpy as np

from simulator.equations import storage
from simulator.equations.cpu import core_cost, speed_ratio
from simulator.equations.memory import tensor_bytes
from simulator.equations.step import batch_bytes, batch_work, copied_bytes, decode_work
from simulator.equations.storage import operations_per_sample
from simulator.physics.device_memory import batch_in_bytes
from simulator.physics.footprint import page_cache_bytes
from simulator.pipeline.stages.base import Demand, Path, Phase, Resource, asking
from simulator.records import dataclass
from simulator.schema.accelerators import Precision
from simulator.schema.data_loading import (
    Access,
    CachePolicy,
    CostBasis,
    Dataset,
    Layout,
    Placement,
    Preparation,
    Remote,
)
from simulator.schema.machines import Group, Role
from simulator.schema.scenario import Scenario
from simulator.schema.storage import Scope, Storage, StoreClient
from simulator.schema.training import Mode
from simulator.terms import term
from simulator.units import (
    BYTE,
    Bytes,
    BytesPerSecond,
    PerSecond,
    Real,
    Seconds,
    anywhere,
    at_most,
    parse,
    where,
)

UNLIMITED = float("inf")
INSTANT = 1e-15
"""A time too short to matter that can be divided by [s]."""

_HIT_RATIOS = {
    CachePolicy.RANDOM: storage.hit_ratio_random,
    CachePolicy.LRU: storage.hit_ratio_lru,
    CachePolicy.IDEAL: storage.hit_ratio_ideal,
    CachePolicy.SCAN: storage.hit_ratio_scan,
}


@dataclass(frozen=True, slots=True)
class Read:
    """Reading of the samples of a batch by a worker, one after another."""

    name: str = "read"

    def demands(self, scenario: Scenario, phase: Phase) -> tuple[Demand, ...]:
        """Return bytes and requests to cache drives (for page-cache misses) and to the store."""
        job, site = scenario.job, scenario.site
        hit = hit_ratio(scenario, phase)
        missed = job.train.batch_size * (1.0 - hit)
        if job.dataset.read_time is not None:
            # The CPU time of a client is part of the measured time.
            cached = _from_memory(scenario, job.train.batch_size * hit)
            return (_measured(scenario, missed), cached)
        kept = drive_hit_ratio(scenario, phase)
        found = [
            _from_drives(scenario, site.storage, Path.STORE_TO_HOST, missed * (1.0 - kept)),
            _from_memory(scenario, job.train.batch_size * hit),
        ]
        if site.cache is not None:
            found.insert(1, _from_drives(scenario, site.cache, Path.CACHE_TO_HOST, missed * kept))
        client = client_of(scenario, site.storage)
        fetched = missed * (1.0 - kept)
        if client is not None and anywhere(fetched):
            found.append(_by_client(scenario, site.storage, client, fetched))
        return tuple(found)


def read_from_store(scenario: Scenario, phase: Phase) -> Demand:
    """Return the demand of one batch of one rank on the store, without cache hits."""
    found = Read().demands(scenario, phase)
    return next(demand for demand in found if demand.path is Path.STORE_TO_HOST)


def hit_ratio(scenario: Scenario, phase: Phase) -> Real:
    """Return the share of reads that hit the page cache in this phase [0..1]."""
    dataset = scenario.job.dataset
    policy = dataset.cache
    if policy is CachePolicy.PRELOADED or dataset.placement is Placement.PRELOAD:
        return 1.0
    if policy is CachePolicy.NONE:
        return 0.0
    cached = storage.cached_fraction(_cache_bytes(scenario), scenario.job.stored_total)
    if phase is Phase.COLD:
        # Of several jobs each finds what another has read, as far as it is still cached.
        return cached * (1.0 - 1.0 / scenario.job.copies)
    machines = scenario.cluster.trainers.count
    if policy is CachePolicy.RANDOM and anywhere(machines > 1):
        return storage.hit_ratio_random_servers(cached, machines)
    hits: Real = _HIT_RATIOS[policy](cached)
    return hits


def drive_hit_ratio(scenario: Scenario, phase: Phase) -> Real:
    """Return the share of page-cache misses that hit the drives in front of the store [0..1].

    The drives cache everything read once, as far as it fits.
    """
    cache = scenario.site.cache
    if cache is None or phase is Phase.COLD or cache.capacity is None:
        return 0.0
    drives = drives_of(scenario.site, cache)
    return storage.cached_fraction(cache.capacity * drives, scenario.job.stored_total)


def read_bytes(dataset: Dataset, stored: Real) -> Real:
    """Return the bytes read for one sample [B]: all, or the chunks that its window touches."""
    if dataset.window is None:
        return stored
    touched: Real = np.minimum(stored, chunks(dataset) * (dataset.chunk_size or dataset.window))
    return touched


def chunks(dataset: Dataset) -> Real:
    """Return the number of reads for one sample: the chunks that its window touches."""
    if dataset.window is None or dataset.chunk_size is None:
        return 1.0
    return storage.blocks_touched(dataset.window, dataset.chunk_size)


def _cache_bytes(scenario: Scenario) -> Real:
    """Return the RAM for the page cache on the reading machines [B]."""
    if not scenario.at or scenario.job.remote is None:
        return page_cache_bytes(scenario)
    return page_cache_bytes(helpers_alone(scenario, scenario.job.remote))


def helpers_alone(scenario: Scenario, remote: Remote) -> Scenario:
    """Return a scenario of the helpers alone, from which the use of their RAM follows.

    They prepare batches, and do not hold the model.
    """
    job = scenario.job
    there = replace(
        job,
        mode=Mode.PREPARE,
        model=None,
        step_times=None,
        remote=None,
        input=replace(job.input, workers=remote.workers),
    )
    own = next(group for group in scenario.cluster.groups if group.name == remote.name)
    group = replace(own, role=Role.TRAIN, gpus_per_host=0)
    alone = replace(scenario.cluster, groups=(group,))
    return replace(scenario, cluster=alone, jobs=(there,), at="")


def _measured(scenario: Scenario, samples: Real) -> Demand:
    """Return the demand of readers with a measured time per sample.

    The time limits each reader; the load on the store is the same as without it.
    """
    dataset, threads = scenario.job.dataset, scenario.producer_threads
    size = read_bytes(dataset, scenario.job.stored_bytes)
    per_sample = dataset.read_time or 0.0
    return asking(
        term(batch_bytes, batch_size=samples, bytes_per_sample=size),
        Resource.STORAGE,
        Path.STORE_TO_HOST,
        operations=samples * _operations(scenario, scenario.site.storage),
        ceiling=threads * size / np.maximum(per_sample, INSTANT),
    )


def _operations(scenario: Scenario, store: Storage) -> Real:
    """Return the number of store operations for one sample [1]."""
    dataset, stored = scenario.job.dataset, scenario.job.stored_bytes
    each = storage.operations_per_sample(
        read_bytes(dataset, stored),
        bytes_per_file(dataset, stored),
        store.operation_size or UNLIMITED,
        sequential=dataset.access is Access.SEQUENTIAL,
    )
    return each * chunks(dataset) + _opening(dataset, stored, store)


def _opening(dataset: Dataset, stored: Real, store: Storage) -> Real:
    """Return the operations that open the file of a sample: those of its metadata [1].

    Metadata of data that is not in memory is taken not to be there either.
    """
    files: Real = np.minimum(1.0, stored / bytes_per_file(dataset, stored))
    return store.open_operations * files


def opening_share(scenario: Scenario) -> Real:
    """Return the share of the operations of a read that open its file [0..1]."""
    store, dataset = scenario.site.storage, scenario.job.dataset
    opening = _opening(dataset, scenario.job.stored_bytes, store)
    return opening / np.maximum(_operations(scenario, store), INSTANT)


def transfer_share(scenario: Scenario) -> Real:
    """Return the share of the time of a read from an object store that transfers bytes [0..1].

    It is at the rate of one reader; 0 if neither the store nor its client limits that rate.
    """
    store, dataset = scenario.site.storage, scenario.job.dataset
    single = single_rate(scenario, store)
    if single is None or dataset.read_time is not None:
        return 0.0
    moving = read_bytes(dataset, scenario.job.stored_bytes) / single
    share: Real = moving / (moving + _latency(scenario, store))
    return share


def client_of(scenario: Scenario, store: Storage) -> StoreClient | None:
    """Return the client through which the job reads a store; None but for object stores."""
    return scenario.job.client if store.scope is Scope.OBJECT else None


def first_byte(scenario: Scenario, store: Storage) -> Seconds | Real:
    """Return the time to the first byte of a read, that of a client included [s]."""
    client = client_of(scenario, store)
    added = 0.0 if client is None or store.as_read else client.request_time
    return store.read_latency + added


def single_rate(scenario: Scenario, store: Storage) -> BytesPerSecond | Real | None:
    """Return the highest rate of one reader after the first byte [B/s]; None if unlimited.

    A client may fetch several parts of a large object at a time, each at the store's rate of one
    request.
    """
    client, one = client_of(scenario, store), store.request_rate
    if client is None or store.as_read:
        return one
    dataset, stored = scenario.job.dataset, scenario.job.stored_bytes
    whole = bytes_per_file(dataset, stored) if dataset.access is Access.SEQUENTIAL else stored
    parts = np.maximum(1.0, np.ceil(whole / (store.operation_size or PART)))
    limits = [client.stream_rate, one and one * np.minimum(client.connections or 1, parts)]
    known = [limit for limit in limits if limit is not None]
    return reduce(np.minimum, known) if known else None


PART: Final = parse("8 MiB", BYTE)
"""Bytes of a part of a large object if the store states none: the default of boto3 and of the AWS
common runtime (s3transfer 0.19.3 and aws-c-s3, 2026)."""


def _latency(scenario: Scenario, store: Storage) -> Real:
    """Return the latency of one sample before its bytes arrive [s]."""
    dataset, stored = scenario.job.dataset, scenario.job.stored_bytes
    latency = storage.latency_per_sample(
        read_bytes(dataset, stored),
        bytes_per_file(dataset, stored),
        first_byte(scenario, store),
        store.open_latency,
        sequential=dataset.access is Access.SEQUENTIAL,
    )
    return latency * chunks(dataset) if store.scope is Scope.OBJECT else latency


def _by_client(scenario: Scenario, store: Storage, client: StoreClient, samples: Real) -> Demand:
    """Return the CPU work of a client for `samples` samples, on the threads that it uses."""
    size = read_bytes(scenario.job.dataset, scenario.job.stored_bytes)
    work = term(
        storage.client_work,
        requests=samples * _operations(scenario, store),
        request_cpu=client.request_cpu,
        size=samples * size,
        core_rate=client.core_rate or UNLIMITED,
    )
    _, threads = _client_work(scenario, store, client)
    return asking(work, Resource.CPU, Path.CORES, threads=threads)


def _client_work(scenario: Scenario, store: Storage, client: StoreClient) -> tuple[Real, float]:
    """Return the CPU work of a client for one sample [core-seconds], and the threads it uses.

    One reader alone reads as fast as measured, on as many threads as that takes.
    """
    dataset = scenario.job.dataset
    size = read_bytes(dataset, scenario.job.stored_bytes)
    work = storage.client_work(
        _operations(scenario, store), client.request_cpu, size, client.core_rate or UNLIMITED
    )
    time = _latency(scenario, store) + size / _rate_alone(scenario, store)
    readers = scenario.producer_threads * (1.0 if client.one_core else dataset.readers)
    threads: Real = readers * np.maximum(1.0, work / time)
    return work, cast("float", threads)


def _rate_alone(scenario: Scenario, store: Storage) -> BytesPerSecond | Real:
    """Return the rate of one reader after the first byte, without others [B/s]."""
    whole = store.read_rate * drives_of(scenario.site, store)
    single = single_rate(scenario, store)
    return whole if single is None else at_most(single, whole)


def _from_drives(scenario: Scenario, store: Storage, path: Path, samples: Real) -> Demand:
    dataset = scenario.job.dataset
    size = read_bytes(dataset, scenario.job.stored_bytes)
    operations = _operations(scenario, store)
    latency = _latency(scenario, store)
    latency = np.maximum(0.0, latency - _in_service(scenario, store, operations))
    readers = dataset.readers * scenario.producer_threads
    alone = _rate_alone(scenario, store)
    several = storage.reader_ceiling(readers, storage.request_throughput(size, latency, alone))
    single = single_rate(scenario, store)
    one: BytesPerSecond | Real = UNLIMITED if single is None else single
    client = client_of(scenario, store)
    if client is not None:
        # While one reader works on a core, others wait for bytes; one alone does either.
        work, threads = _client_work(scenario, store, client)
        busy = work / threads
        several = _at_rate(size, storage.beside_work(size / several, busy))
        one = _at_rate(size, storage.beside_work(size / alone, busy))
        latency = storage.beside_work(latency, storage.beside_work(busy, size / alone))
    # One reader waits, then transfers; of several, some transfer while others wait.
    return asking(
        term(batch_bytes, batch_size=samples, bytes_per_sample=size),
        Resource.STORAGE,
        path,
        operations=samples * operations,
        ceiling=np.where(readers > 1.0, several, one)[()],
        latency=term(storage.wait_per_batch, samples=samples, latency=latency, readers=readers),
    )


def _at_rate(size: Bytes | Real, time: Seconds | Real) -> BytesPerSecond | Real:
    """Return the rate at which `size` bytes take `time`; unlimited for no time [B/s]."""
    some = time > 0.0
    return np.where(some, size / np.where(some, time, 1.0), UNLIMITED)[()]


def _in_service(scenario: Scenario, store: Storage, operations: Real) -> Real:
    """Return the part of the latency that the limit on operations already covers [s].

    A disk's seek delays the reader and limits the operations per second of the disk.
    """
    if store.read_operations is None:
        return 0.0 * operations
    return operations / (store.read_operations * drives_of(scenario.site, store))


def most_samples(scenario: Scenario) -> PerSecond | Real:
    """Return the highest rate of samples from the store, with unlimited readers [1/s]."""
    store, dataset = scenario.site.storage, scenario.job.dataset
    drives = drives_of(scenario.site, store)
    by_bytes = store.read_rate * drives / read_bytes(dataset, scenario.job.stored_bytes)
    if store.read_operations is None:
        return by_bytes
    return np.minimum(by_bytes, store.read_operations * drives / _operations(scenario, store))


def drives_of(group: Group, store: Storage) -> int:
    """Return the number of drives that share the reads: of a local store, else 1."""
    inside = group.host.local_storage
    own = inside is not None and inside.name == store.name
    return max(1, group.host.drive_count) if own else 1


def bytes_per_file(dataset: Dataset, stored: Real) -> Real:
    """Return the size of a file [B]: a sample, a shard, or the whole data set."""
    if dataset.layout is Layout.FILES:
        return stored
    return dataset.shard_size or dataset.samples * stored


def _from_memory(scenario: Scenario, samples: Real) -> Demand:
    size = read_bytes(scenario.job.dataset, scenario.job.stored_bytes)
    read = term(batch_bytes, batch_size=samples, bytes_per_sample=size)
    return asking(read, Resource.HOST_MEMORY, Path.MEMORY)


@dataclass(frozen=True, slots=True)
class Decode:
    """Decoding and augmentation of each sample by a worker."""

    name: str = "decode"

    def demands(self, scenario: Scenario, phase: Phase) -> tuple[Demand, ...]:
        """Return core-seconds of the machine that prepares the batch."""
        work = scenario.job.input
        if work.where is Preparation.BEFOREHAND and scenario.job.mode is not Mode.PREPARE:
            return ()
        asked = term(
            decode_work,
            batch_size=scenario.job.train.batch_size,
            decode=work.decode,
            augment=work.augment,
            scale=core_scale(scenario),
        )
        return (asking(asked, Resource.CPU, Path.CORES, threads=scenario.producer_threads),)


def core_scale(scenario: Scenario) -> Real:
    """Return the core-seconds on this machine for one stated second of preprocessing."""
    work = scenario.job.input
    pool = scenario.site.host.cpu
    scale: Real = 1.0
    if work.cost_basis is CostBasis.VCPU:
        scale = core_cost(1.0, pool.capacity, pool.threads)
    if work.coremark_per_vcpu is not None and pool.coremark is not None:
        scale = scale / speed_ratio(pool.coremark / pool.threads, work.coremark_per_vcpu)
    return scale


@dataclass(frozen=True, slots=True)
class Collate:
    """Stacking of samples into a batch by a worker, and serialization for its transfer."""

    name: str = "collate"

    def demands(self, scenario: Scenario, phase: Phase) -> tuple[Demand, ...]:
        """Return core-seconds of this machine, and the bytes of the batch to host memory."""
        work = scenario.job.input
        asked = term(
            batch_work,
            batch_size=scenario.job.train.batch_size,
            per_sample=work.collate,
            per_batch=work.per_batch,
            scale=core_scale(scenario),
        )
        return (
            asking(asked, Resource.CPU, Path.CORES, threads=scenario.producer_threads),
            asking(batch_in_bytes(scenario), Resource.HOST_MEMORY, Path.MEMORY),
        )


@dataclass(frozen=True, slots=True)
class Send:
    """Serialization of a finished batch by a helper, and its transfer over the network."""

    name: str = "send"

    def demands(self, scenario: Scenario, phase: Phase) -> tuple[Demand, ...]:
        """Return core-seconds of serialization, and the bytes between the machines."""
        remote = scenario.job.remote
        if remote is None:
            return ()
        network = scenario.site.host.network
        work = term(
            batch_work,
            batch_size=scenario.job.train.batch_size,
            per_sample=remote.send_per_sample,
            per_batch=remote.send_per_batch,
        )
        return (
            asking(work, Resource.CPU, Path.CORES),
            asking(
                batch_in_bytes(scenario),
                Resource.NETWORK,
                Path.HOST_TO_TRAINER,
                ceiling=None if network is None else network.per_flow,
            ),
        )


@dataclass(frozen=True, slots=True)
class Write:
    """Writing of a prepared batch by a worker, in the layout of the raw data."""

    name: str = "write"

    def demands(self, scenario: Scenario, phase: Phase) -> tuple[Demand, ...]:
        """Return the bytes of the batch to the store, with one latency for each operation."""
        store, batch = scenario.site.storage, scenario.job.train.batch_size
        size = scenario.job.input.output_bytes_per_sample
        operations = batch * write_operations(scenario.job.dataset, size, store)
        return (
            asking(
                batch_in_bytes(scenario),
                Resource.STORAGE,
                Path.HOST_TO_STORE,
                operations=operations,
                latency=operations * store.write_latency,
            ),
        )


def write_operations(dataset: Dataset, size: Real, store: Storage) -> Real:
    """Return the number of operations that write one prepared sample [1]; 0 if it is empty.

    A file per sample is one operation; in shards, many samples share an operation.
    """
    if dataset.layout is not Layout.SHARDS:
        return where(size > 0.0, 1.0, 0.0)
    largest, file = store.operation_size or UNLIMITED, bytes_per_file(dataset, size)
    return operations_per_sample(size, file, largest, sequential=True)


@dataclass(frozen=True, slots=True)
class PinMemory:
    """Unpacking and pinning of a batch by the pin-memory thread (else the main thread)."""

    name: str = "receive"

    def demands(self, scenario: Scenario, phase: Phase) -> tuple[Demand, ...]:
        """Return core-seconds of one thread, and bytes through host memory with pinning."""
        job = scenario.job
        pipeline, batch = job.input, job.train.batch_size
        work = term(
            batch_work,
            batch_size=batch,
            per_sample=pipeline.receive_per_sample,
            per_batch=pipeline.receive_per_batch,
        )
        cpu = asking(work, Resource.CPU, Path.CORES)
        if not pipeline.pin_memory:
            return (cpu,)
        copied = term(copied_bytes, size=batch_in_bytes(scenario))
        return (cpu, asking(copied, Resource.HOST_MEMORY, Path.MEMORY))


@dataclass(frozen=True, slots=True)
class Copy:
    """Copy of the batch from host memory over PCIe by the device's copy engine."""

    name: str = "copy"

    def demands(self, scenario: Scenario, phase: Phase) -> tuple[Demand, ...]:
        """Return bytes from host memory to the device; empty with unified memory."""
        host = scenario.cluster.trainers.host
        if host.gpu is None or host.gpu.unified_memory or host.host_link is None:
            return ()
        pinned = scenario.job.input.pin_memory
        link, size = host.host_link, batch_in_bytes(scenario)
        # Without bytes there is no copy, and no latency of the link.
        latency = np.where(np.asarray(size.value) > 0.0, link.latency, 0.0)[()]
        return (
            asking(
                size,
                Resource.PCIE,
                Path.HOST_TO_DEVICE,
                ceiling=None if pinned else link.pageable,
                latency=latency,
            ),
        )


LOSS = Precision.FP32.bytes_per_element


@dataclass(frozen=True, slots=True)
class Result:
    """Copy of results (losses, predictions) over PCIe by the device's second copy engine."""

    name: str = "result"

    def demands(self, scenario: Scenario, phase: Phase) -> tuple[Demand, ...]:
        """Return bytes from the device to host memory."""
        host = scenario.cluster.trainers.host
        model = scenario.job.model
        if host.gpu is None or host.gpu.unified_memory or host.host_link is None or model is None:
            return ()
        batch = scenario.job.train.batch_size
        if scenario.job.mode is Mode.TRAIN:
            # The loss is one number at any batch size.
            amount = term(tensor_bytes, elements=0.0 * batch + 1.0, element_bytes=LOSS)
        else:
            amount = term(batch_bytes, batch_size=batch, bytes_per_sample=model.output_bytes)
        latency = host.host_link.latency
        return (asking(amount, Resource.PCIE, Path.DEVICE_TO_HOST, latency=latency),)
