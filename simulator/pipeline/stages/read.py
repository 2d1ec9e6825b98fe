"""Read one batch of samples from the store, or from the page cache."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from simulator.equations import page_cache, storage
from simulator.equations import storage as equations
from simulator.equations.batch import batch_bytes
from simulator.physics.footprint import page_cache_bytes
from simulator.pipeline.stages.base import Demand, Path, Phase, Resource, asking
from simulator.schema.hardware.cluster import Group, Role
from simulator.schema.hardware.storage import Scope, Storage
from simulator.schema.scenario import Scenario
from simulator.schema.workload.dataset import Access, CachePolicy, Dataset, Layout, Placement
from simulator.schema.workload.loader import Remote
from simulator.schema.workload.train import Mode
from simulator.terms import term
from simulator.units import PerSecond, Real, anywhere

UNLIMITED = float("inf")
INSTANT = 1e-15
"""A time too short to matter that can be divided by [s]."""

_HIT_RATIOS = {
    CachePolicy.RANDOM: page_cache.hit_ratio_random,
    CachePolicy.LRU: page_cache.hit_ratio_lru,
    CachePolicy.IDEAL: page_cache.hit_ratio_ideal,
    CachePolicy.SCAN: page_cache.hit_ratio_scan,
}


@dataclass(frozen=True, slots=True)
class Read:
    """A worker fetches the samples of a batch one after another."""

    name: str = "read"

    def demands(self, scenario: Scenario, phase: Phase) -> tuple[Demand, ...]:
        """Bytes and requests: what misses the page cache goes to the drives, then to the store."""
        job, site = scenario.job, scenario.site
        hit = hit_ratio(scenario, phase)
        missed = job.train.batch_size * (1.0 - hit)
        if job.dataset.read_time is not None:
            cached = _from_memory(scenario, job.train.batch_size * hit)
            return (_measured(scenario, missed), cached)
        kept = drive_hit_ratio(scenario, phase)
        found = [
            _from_drives(scenario, site.storage, Path.STORE_TO_HOST, missed * (1.0 - kept)),
            _from_memory(scenario, job.train.batch_size * hit),
        ]
        if site.cache is not None:
            found.insert(1, _from_drives(scenario, site.cache, Path.CACHE_TO_HOST, missed * kept))
        return tuple(found)


def read_from_store(scenario: Scenario, phase: Phase) -> Demand:
    """What one batch of one rank asks of the store, past all caches."""
    found = Read().demands(scenario, phase)
    return next(demand for demand in found if demand.path is Path.STORE_TO_HOST)


def hit_ratio(scenario: Scenario, phase: Phase) -> Real:
    """Share of reads the page cache answers in this phase (0..1)."""
    dataset = scenario.job.dataset
    policy = dataset.cache_policy
    if policy is CachePolicy.PRELOADED or dataset.placement is Placement.PRELOAD:
        return 1.0
    if policy is CachePolicy.NONE:
        return 0.0
    cached = page_cache.cached_fraction(_cache_bytes(scenario), scenario.job.stored_total)
    if phase is Phase.COLD:
        # What one of several jobs has read, the others find, as far as it is still there.
        return cached * (1.0 - 1.0 / scenario.job.copies)
    machines = scenario.cluster.trainers.count
    if policy is CachePolicy.RANDOM and anywhere(machines > 1):
        return page_cache.hit_ratio_random_servers(cached, machines)
    hits: Real = _HIT_RATIOS[policy](cached)
    return hits


def drive_hit_ratio(scenario: Scenario, phase: Phase) -> Real:
    """Share of reads past the page cache that the drives in front of the store answer (0..1).

    They keep what they have read once, as far as it fits.
    """
    cache = scenario.site.cache
    if cache is None or phase is Phase.COLD or cache.capacity is None:
        return 0.0
    drives = drives_of(scenario.site, cache)
    return page_cache.cached_fraction(cache.capacity * drives, scenario.job.stored_total)


def read_bytes(dataset: Dataset, stored: Real) -> Real:
    """Bytes read for one sample [B]: all of it, or the chunks that its window touches."""
    if dataset.window is None:
        return stored
    touched: Real = np.minimum(stored, chunks(dataset) * (dataset.chunk_size or dataset.window))
    return touched


def chunks(dataset: Dataset) -> Real:
    """Pieces in which one sample is read: the chunks its window touches, each on its own."""
    if dataset.window is None or dataset.chunk_size is None:
        return 1.0
    return equations.blocks_touched(dataset.window, dataset.chunk_size)


def _cache_bytes(scenario: Scenario) -> Real:
    """RAM for the page cache on the machines that read [B]."""
    if not scenario.at or scenario.job.remote is None:
        return page_cache_bytes(scenario)
    return page_cache_bytes(helpers_alone(scenario, scenario.job.remote))


def helpers_alone(scenario: Scenario, remote: Remote) -> Scenario:
    """The machines of remote workers as if they were all there is, for what their RAM holds.

    They make batches, and know nothing of the model that trains on them.
    """
    job = scenario.job
    there = replace(
        job,
        mode=Mode.PREPARE,
        model=None,
        step_times=None,
        remote=None,
        loader=replace(job.loader, workers=remote.workers),
    )
    own = next(group for group in scenario.cluster.groups if group.name == remote.group)
    group = replace(own, role=Role.TRAIN, gpus_per_host=0)
    alone = replace(scenario.cluster, groups=(group,))
    return replace(scenario, cluster=alone, jobs=(there,), at="")


def _measured(scenario: Scenario, samples: Real) -> Demand:
    """Samples fetched by readers that take a measured time for each.

    That is how fast one reader goes; what all of them ask of the store together counts as ever.
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
    """Operations of the store that one sample takes [1]."""
    dataset, stored = scenario.job.dataset, scenario.job.stored_bytes
    each = equations.operations_per_sample(
        read_bytes(dataset, stored),
        bytes_per_file(dataset, stored),
        store.operation_size or UNLIMITED,
        sequential=dataset.access is Access.SEQUENTIAL,
    )
    return each * chunks(dataset)


def transfer_share(scenario: Scenario) -> Real:
    """Share of a sample's read from an object store that its bytes take, waits apart (0..1).

    That is at the rate of one request; 0 where the store sets requests none.
    """
    store, dataset = scenario.site.storage, scenario.job.dataset
    if store.request_rate is None or dataset.read_time is not None:
        return 0.0
    moving = read_bytes(dataset, scenario.job.stored_bytes) / store.request_rate
    share: Real = moving / (moving + _latency(scenario, store))
    return share


def _latency(scenario: Scenario, store: Storage) -> Real:
    """What one reader waits for a sample before its bytes come [s]."""
    dataset, stored = scenario.job.dataset, scenario.job.stored_bytes
    latency = equations.latency_per_sample(
        read_bytes(dataset, stored),
        bytes_per_file(dataset, stored),
        store.read_latency,
        store.open_latency,
        sequential=dataset.access is Access.SEQUENTIAL,
    )
    return latency * chunks(dataset) if store.scope is Scope.OBJECT else latency


def _from_drives(scenario: Scenario, store: Storage, path: Path, samples: Real) -> Demand:
    dataset = scenario.job.dataset
    size = read_bytes(dataset, scenario.job.stored_bytes)
    operations = _operations(scenario, store)
    latency = _latency(scenario, store)
    latency = np.maximum(0.0, latency - _in_service(scenario, store, operations))
    readers = dataset.readers * scenario.producer_threads
    alone = store.read_rate * drives_of(scenario.site, store)
    own = storage.request_throughput(size, latency, np.minimum(store.request_rate or alone, alone))
    single = store.request_rate or UNLIMITED
    # One reader waits, then transfers; of several, some transfer while others wait.
    return asking(
        term(batch_bytes, batch_size=samples, bytes_per_sample=size),
        Resource.STORAGE,
        path,
        operations=samples * operations,
        ceiling=np.where(readers > 1.0, storage.reader_ceiling(readers, own), single)[()],
        latency=term(equations.wait_per_batch, samples=samples, latency=latency, readers=readers),
    )


def _in_service(scenario: Scenario, store: Storage, operations: Real) -> Real:
    """Part of the latency that the store's operations cap already takes [s].

    A disk's seek is both what a reader waits for and what the disk can do only so many of.
    """
    if store.read_operations is None:
        return 0.0 * operations
    return operations / (store.read_operations * drives_of(scenario.site, store))


def most_samples(scenario: Scenario) -> PerSecond | Real:
    """Samples a second that the store delivers, however many readers ask and wait [1/s]."""
    store, dataset = scenario.site.storage, scenario.job.dataset
    drives = drives_of(scenario.site, store)
    by_bytes = store.read_rate * drives / read_bytes(dataset, scenario.job.stored_bytes)
    if store.read_operations is None:
        return by_bytes
    return np.minimum(by_bytes, store.read_operations * drives / _operations(scenario, store))


def drives_of(group: Group, store: Storage) -> int:
    """Drives that share the reads: all alike inside the machine, else the one store."""
    inside = group.host.local_storage
    own = inside is not None and inside.name == store.name
    return max(1, group.host.drive_count) if own else 1


def bytes_per_file(dataset: Dataset, stored: Real) -> Real:
    """Size of a file of samples of a size [B]: a sample's, a shard's, or that of all of them."""
    if dataset.layout is Layout.FILES:
        return stored
    return dataset.shard_size or dataset.samples * stored


def _from_memory(scenario: Scenario, samples: Real) -> Demand:
    size = read_bytes(scenario.job.dataset, scenario.job.stored_bytes)
    read = term(batch_bytes, batch_size=samples, bytes_per_sample=size)
    return asking(read, Resource.HOST_MEMORY, Path.MEMORY)
