"""Storage: operations, latency, bursts and requests of one sample."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Protocol, TypeAlias

import numpy as np
import pytest

from simulator.equations import storage
from simulator.equations.storage import (
    bytes_from_store,
    cached_fraction,
    hit_ratio_ideal,
    hit_ratio_lru,
    hit_ratio_random,
    hit_ratio_random_servers,
    hit_ratio_scan,
)

SAMPLE, SHARD, BLOCK = 100e3, 100e6, 256e3
NETWORK = {"read_latency": 1e-3, "open_latency": 2.3e-3}


def test_one_file_a_sample_is_one_open_a_sample() -> None:
    """Small files pay for opening each sample, shards for one open in a thousand samples."""
    assert storage.opens_per_sample(SAMPLE, SAMPLE) == 1.0
    assert storage.opens_per_sample(SAMPLE, SHARD) == pytest.approx(1e-3)


def test_a_small_sample_read_alone_is_one_operation() -> None:
    """A read cannot be less than one operation, however large an operation may be."""
    for size in (BLOCK, math.inf):
        assert storage.operations_per_sample(SAMPLE, SHARD, size, sequential=False) == 1.0


def test_neighbours_share_operations() -> None:
    """Front to back, a shard takes as many operations as fit its bytes."""
    operations = storage.operations_per_sample(SAMPLE, SHARD, BLOCK, sequential=True)
    assert operations * 1000 == pytest.approx(math.ceil(SHARD / BLOCK))


def test_a_whole_shard_in_one_request() -> None:
    """Without a limit on its size, one request brings the shard."""
    operations = storage.operations_per_sample(SAMPLE, SHARD, math.inf, sequential=True)
    assert operations == pytest.approx(1e-3)


def test_order_makes_no_difference_to_files_of_one_sample() -> None:
    """A file that holds one sample is read alike in any order."""
    shuffled = storage.operations_per_sample(600e3, 600e3, BLOCK, sequential=False)
    in_order = storage.operations_per_sample(600e3, 600e3, BLOCK, sequential=True)
    assert shuffled == in_order == 3.0
    waits = [
        storage.latency_per_sample(600e3, 600e3, **NETWORK, sequential=order)
        for order in (False, True)
    ]
    assert waits[0] == waits[1] == pytest.approx(3.3e-3)


def test_shards_in_order_hide_the_latency() -> None:
    """Read-ahead leaves one wait a shard; shuffled reads in a shard still wait for each sample."""
    shuffled = storage.latency_per_sample(SAMPLE, SHARD, **NETWORK, sequential=False)
    in_order = storage.latency_per_sample(SAMPLE, SHARD, **NETWORK, sequential=True)
    assert shuffled == pytest.approx(1e-3 + 2.3e-6)
    assert in_order == pytest.approx(3.3e-6)


def test_flags_may_differ_within_a_batch() -> None:
    """Candidates with and without shuffling are worked out in one call."""
    order = np.array([False, True])
    waits = storage.latency_per_sample(SAMPLE, SHARD, **NETWORK, sequential=order)
    assert waits == pytest.approx([1.0023e-3, 3.3e-6])


def test_readers_wait_in_rounds() -> None:
    """A round of requests waits once, and a last round that is not full waits like a full one."""
    waits = [storage.latency_per_batch(32, 0.1, readers) for readers in (1, 8, 32, 100, 12)]
    assert waits == pytest.approx([3.2, 0.4, 0.1, 0.1, 0.3])


def test_a_window_touches_the_blocks_a_random_offset_gives() -> None:
    """Windows dropped at random touch the blocks counted one by one."""
    window, block = 2.6, 1.0
    offsets = np.linspace(0.0, 1.0, 100_001)[:-1]
    counted = np.floor((offsets + window) / block) - np.floor(offsets / block) + 1.0
    assert storage.blocks_touched(window, block) == pytest.approx(float(counted.mean()), rel=1e-4)
    assert storage.blocks_touched(0.0, block) == 1.0


def test_a_worker_waits_only_where_it_reads_one_after_another() -> None:
    """With several requests open something is transferred while others wait."""
    waits = storage.wait_per_batch(32.0, 0.01, np.array([1.0, 2.0]))
    assert waits == pytest.approx([0.32, 0.0])


def test_credits_end_where_the_bucket_is_empty() -> None:
    """Twice as much as the credits takes half of it at the baseline; none asked gets the burst."""
    assert storage.burst_rate(2e6, 100.0, 1e9, 1e6) == pytest.approx(200.0)
    assert storage.burst_rate(0.0, 100.0, 500.0, 1e6) == 500.0
    assert storage.burst_rate(1e12, 100.0, 500.0, 1e6) == pytest.approx(100.0, rel=1e-5)


def test_ceiling_grows_with_readers() -> None:
    """Two requests at once go twice as fast as one, which goes at its own rate."""
    assert storage.reader_ceiling(1, 30e6) == 30e6
    assert storage.reader_ceiling(2, 30e6) == 2 * storage.reader_ceiling(1, 30e6)


def test_half_the_rate_at_the_half_size() -> None:
    """A request of latency times rate spends half of its time waiting."""
    assert storage.request_throughput(0.1 * 80e6, 0.1, 80e6) == pytest.approx(40e6)
    assert storage.request_throughput(1e15, 0.1, 80e6) == pytest.approx(80e6)


def test_a_network_carries_headers_beside_the_object() -> None:
    """Of 1500 bytes 1448 are the object's, in frames of 1538 bytes; larger ones lose less."""
    assert storage.frame_payload() == 1448.0 / 1538.0
    assert storage.frame_payload() < storage.frame_payload(9001.0) < 1.0


Policy: TypeAlias = Callable[..., Any]
POLICIES = [hit_ratio_ideal, hit_ratio_lru, hit_ratio_random, hit_ratio_scan]


@pytest.mark.parametrize(("cached", "missed"), [(0.35, 0.85), (0.65, 0.53)])
def test_the_linux_page_cache_under_shuffled_reads(cached: float, missed: float) -> None:
    """Two published miss ratios are met within two points (they are within 1.2)."""
    assert 1.0 - hit_ratio_random(cached) == pytest.approx(missed, abs=0.02)


def test_two_servers_with_half_the_data_each() -> None:
    """Two servers that cache 75 of 146 GiB each read 45 GiB an epoch; 2 points of 73 are 1.5."""
    hit = hit_ratio_random_servers(75 / 146, 2)
    assert bytes_from_store(146 / 2, hit) == pytest.approx(45, abs=0.02 * 73)


@pytest.mark.parametrize(("cached", "missed"), [(0.35, 0.85), (0.65, 0.53)])
@pytest.mark.parametrize("policy", [hit_ratio_lru, hit_ratio_ideal])
def test_other_policies_do_not_fit_the_measurements(
    policy: Policy, cached: float, missed: float
) -> None:
    """LRU and an ideal cache are off by more than two points, which is why they are no default."""
    assert abs(1.0 - policy(cached) - missed) > 0.02


@pytest.mark.parametrize("policy", POLICIES)
def test_limits(policy: Policy) -> None:
    """Nothing cached hits nothing, everything cached hits always, and more never hits less."""
    cached = np.linspace(0.0, 1.0, 201)
    hits = policy(cached)
    assert hits[0] == pytest.approx(0.0, abs=1e-12)
    assert hits[-1] == 1.0
    assert np.all(np.diff(hits) >= 0.0)
    assert policy(1.7) == 1.0


@pytest.mark.parametrize("policy", POLICIES)
def test_nothing_beats_the_ideal(policy: Policy) -> None:
    """Each item is read once an epoch, so what is cached is the most that can hit."""
    cached = np.linspace(0.0, 1.0, 201)
    assert np.all(policy(cached) <= cached + 1e-12)


@pytest.mark.parametrize("servers", [1.0, 2.0, 5.0])
def test_the_solution_satisfies_its_equation(servers: float) -> None:
    """The hit ratio found is a fixed point of the formula to 1e-12."""
    cached = np.linspace(0.05, 0.95, 19)
    hit = hit_ratio_random_servers(cached, servers)
    part = 1.0 / servers
    a = (1.0 - hit) * part / cached
    inside = (np.exp(a) - 1.0) / a * (1.0 - np.exp(-a)) / a
    stays = part * np.exp(-a) / (1.0 - (1.0 - part) * np.exp(-a))
    np.testing.assert_allclose(hit, inside * stays, atol=1e-12)


def test_one_server_is_the_plain_formula() -> None:
    """With one server the formula falls back to ((1 - exp(-a)) / a)**2."""
    cached = np.array([0.2, 0.5, 0.9])
    hit = hit_ratio_random(cached)
    a = (1.0 - hit) / cached
    np.testing.assert_allclose(hit, ((1.0 - np.exp(-a)) / a) ** 2, atol=1e-12)


def test_scan_passes_through_the_measured_points() -> None:
    """The points measured with files read in order are returned as they are."""
    assert hit_ratio_scan(np.array(storage.SCAN_CACHED)) == pytest.approx(storage.SCAN_HIT)


def test_misses_go_to_the_store() -> None:
    """A hit ratio of three quarters leaves a quarter of the bytes."""
    assert bytes_from_store(200.0, 0.75) == 50.0


def test_fraction_is_kept_between_none_and_all() -> None:
    """A cache larger than the data holds all of it, a negative one nothing."""
    assert cached_fraction(np.array([-1.0, 0.0, 5.0, 20.0]), 10.0) == pytest.approx([0, 0, 0.5, 1])


def test_eight_jobs_read_seven_times_the_data() -> None:
    """Eight uncoordinated jobs at x = 0.35 were measured to read 7.07 times the data; 3% off."""
    assert 8 * (1.0 - hit_ratio_random(0.35)) == pytest.approx(7.07, rel=0.03)


class Cache(Protocol):
    """A cache of items."""

    def read(self, item: int) -> bool:
        """Whether `item` was there."""


class RandomCache:
    """Evicts any item alike."""

    def __init__(self, size: int, rng: np.random.Generator) -> None:
        self.size, self.rng = size, rng
        self.slots: list[int] = []
        self.where: dict[int, int] = {}

    def read(self, item: int) -> bool:
        """Whether `item` was there; it is afterwards."""
        if item in self.where:
            return True
        if len(self.slots) < self.size:
            self.slots.append(item)
            self.where[item] = len(self.slots) - 1
            return False
        slot = int(self.rng.integers(self.size))
        del self.where[self.slots[slot]]
        self.slots[slot], self.where[item] = item, slot
        return False


class LruCache:
    """Evicts what was not read for longest."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.items: dict[int, None] = {}

    def read(self, item: int) -> bool:
        """Whether `item` was there; it is the latest afterwards."""
        hit = item in self.items
        self.items.pop(item, None)
        self.items[item] = None
        if len(self.items) > self.size:
            del self.items[next(iter(self.items))]
        return hit


class KeepingCache:
    """Keeps what came first."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.items: set[int] = set()

    def read(self, item: int) -> bool:
        """Whether `item` was there."""
        hit = item in self.items
        if len(self.items) < self.size:
            self.items.add(item)
        return hit


def played(
    cache: Cache, items: int, reads: int, rng: np.random.Generator, epochs: int = 24
) -> list[float]:
    """Hit ratio of each epoch after the first four, `reads` of `items` shuffled in each."""
    ratios = []
    for _ in range(epochs):
        order = rng.permutation(items)[:reads].tolist()
        ratios.append(sum(cache.read(item) for item in order) / reads)
    return ratios[4:]


def within_error(ratios: list[float], formula: float, bias: float) -> None:
    """The mean of the epochs lies within four standard errors and a stated bias of the formula."""
    error = np.std(ratios, ddof=1) / np.sqrt(len(ratios))
    assert abs(np.mean(ratios) - formula) < 4.0 * error + bias


@pytest.mark.parametrize("cached", [0.35, 0.65])
def test_random_replacement_played(cached: float) -> None:
    """A cache played item by item confirms random replacement.

    The formula spreads the misses evenly over an epoch; really they come late in it, which is
    worth less than half a point.
    """
    rng = np.random.default_rng(1)
    ratios = played(RandomCache(int(4000 * cached), rng), 4000, 4000, rng)
    within_error(ratios, hit_ratio_random(cached), bias=0.005)


def test_random_replacement_played_by_two_servers() -> None:
    """A server that reads a random half every epoch hits as the formula says."""
    rng = np.random.default_rng(2)
    ratios = played(RandomCache(2055, rng), 4000, 2000, rng)
    within_error(ratios, hit_ratio_random_servers(2055 / 4000, 2), bias=0.005)


@pytest.mark.parametrize("cached", [0.35, 0.65])
def test_least_recently_used_played(cached: float) -> None:
    """A cache played item by item confirms LRU, with a bias of an item or two."""
    rng = np.random.default_rng(3)
    ratios = played(LruCache(int(4000 * cached)), 4000, 4000, rng)
    within_error(ratios, hit_ratio_lru(cached), bias=0.001)


def test_a_cache_that_keeps_its_items_played() -> None:
    """Without eviction each epoch hits exactly what is cached."""
    ratios = played(KeepingCache(1400), 4000, 4000, np.random.default_rng(4))
    assert set(ratios) == {float(hit_ratio_ideal(0.35))}


def test_a_scan_under_lru_finds_nothing() -> None:
    """Read in the same order every epoch, LRU has always just dropped what comes next."""
    cache = LruCache(3999)
    assert [sum(cache.read(i) for i in range(4000)) for _ in range(3)] == [0, 0, 0]


@pytest.mark.parametrize("policy", POLICIES)
def test_next_to_no_cache_hits_nothing_and_not_less(policy: Callable[[float], float]) -> None:
    """Differences of nearly equal numbers must not turn into reads of negative length."""
    shares = [10.0**-power for power in range(3, 20)]
    assert all(0.0 <= float(policy(share)) <= max(share, 1e-15) for share in shares)


def test_a_client_works_by_request_and_by_byte() -> None:
    """10 requests of 2 ms and 1 GB at 500 MB/s a core are 20 ms and 2 s of a core."""
    assert storage.client_work(10.0, 2e-3, 1e9, 500e6) == pytest.approx(2.02)
    assert storage.client_work(10.0, 0.0, 1e9, math.inf) == 0.0


def test_a_python_process_carries_what_one_core_does() -> None:
    """32 readers of boto3: 64 MB each in 1.23 s, 106 ms of one core: 604 MB/s, not 1,661."""
    work = storage.client_work(1.0, 0.0, 64e6, 604e6)
    each = 64e6 / 51.9e6 / 32.0
    assert storage.beside_work(each, work) == 0.0
    assert 64e6 / (storage.beside_work(each, work) + work) == pytest.approx(604e6)


def test_work_is_part_of_the_time_of_a_reader_alone() -> None:
    """One reader at 52 MB/s stays at 52 MB/s: 1.23 s are 106 ms of work and 1.13 s of waiting."""
    time, work = 64e6 / 51.9e6, 64e6 / 604e6
    assert storage.beside_work(time, work) + work == pytest.approx(time)
