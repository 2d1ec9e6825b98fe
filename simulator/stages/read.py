"""Read one batch of samples from the store, or from the page cache."""

from __future__ import annotations

from dataclasses import dataclass

from simulator.equations import page_cache
from simulator.equations import storage as equations
from simulator.footprint import page_cache_bytes
from simulator.hardware.storage import Scope
from simulator.scenario import Scenario
from simulator.stages.base import Actor, Demand, Path, Phase, Resource
from simulator.units import Real
from simulator.workload.dataset import Access, CachePolicy, Dataset, Layout

UNLIMITED = float("inf")

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
    actor: Actor = Actor.WORKER

    def demands(self, scenario: Scenario, phase: Phase) -> tuple[Demand, ...]:
        """Bytes and requests that miss the cache go to the store, the rest to host memory."""
        job = scenario.job
        hit = hit_ratio(scenario, phase)
        if job.dataset.read_time is not None:
            return (_measured(scenario, hit),)
        missed = job.train.batch_size * (1.0 - hit)
        return (
            _from_store(scenario, missed),
            _from_memory(job.dataset, job.train.batch_size * hit, hit),
        )


def hit_ratio(scenario: Scenario, phase: Phase) -> Real:
    """Share of reads the page cache answers in this phase (0..1)."""
    policy = scenario.job.dataset.cache_policy
    if policy is CachePolicy.PRELOADED:
        return 1.0
    if phase is Phase.COLD or policy is CachePolicy.NONE:
        return 0.0
    dataset = scenario.job.dataset
    cached = page_cache.cached_fraction(page_cache_bytes(scenario), dataset.total_bytes)
    return _HIT_RATIOS[policy](cached)


def _measured(scenario: Scenario, hit: Real) -> Demand:
    batch = scenario.job.train.batch_size
    per_sample = scenario.job.dataset.read_time or 0.0
    threads = scenario.maker_threads
    return Demand(
        resource=Resource.STORAGE,
        path=Path.STORE_TO_HOST,
        amount=0.0 * batch,
        latency=batch * (1.0 - hit) * per_sample / threads,
        equation="measured read time x samples that miss the cache",
        inputs={"read_time [s]": per_sample, "batch_size": batch, "cache hit ratio": hit},
    )


def _from_store(scenario: Scenario, samples: Real) -> Demand:
    dataset = scenario.job.dataset
    store = scenario.site.storage
    threads = scenario.maker_threads
    sequential = dataset.access is Access.SEQUENTIAL
    file_size = _bytes_per_file(dataset)
    operations = equations.operations_per_sample(
        dataset.bytes_per_sample,
        file_size,
        store.operation_size or UNLIMITED,
        sequential=sequential,
    )
    latency = equations.latency_per_sample(
        dataset.bytes_per_sample,
        file_size,
        store.read_latency,
        store.open_latency,
        sequential=sequential,
    )
    readers = dataset.readers * threads
    ceiling = store.request_rate if store.scope is Scope.OBJECT else None
    return Demand(
        resource=Resource.STORAGE,
        path=Path.STORE_TO_HOST,
        amount=samples * dataset.bytes_per_sample,
        operations=samples * operations,
        ceiling=None if ceiling is None else equations.reader_ceiling(readers, ceiling),
        latency=equations.latency_per_batch(samples, latency, readers),
        equation="storage.operations_per_sample, storage.latency_per_batch",
        inputs={
            "samples read": samples,
            "bytes_per_sample [B]": dataset.bytes_per_sample,
            "requests per sample": operations,
            "latency per sample [s]": latency,
            "requests kept open": readers,
        },
    )


def _bytes_per_file(dataset: Dataset) -> Real:
    if dataset.layout is Layout.FILES:
        return dataset.bytes_per_sample
    return dataset.shard_size or dataset.total_bytes


def _from_memory(dataset: Dataset, samples: Real, hit: Real) -> Demand:
    return Demand(
        resource=Resource.HOST_MEMORY,
        path=Path.MEMORY,
        amount=samples * dataset.bytes_per_sample,
        equation="samples that hit the page cache x bytes per sample",
        inputs={"cache hit ratio": hit, "bytes_per_sample [B]": dataset.bytes_per_sample},
    )
