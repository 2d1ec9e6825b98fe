"""Storage: operations, latency, bursts and requests of one sample."""

from __future__ import annotations

import math

import numpy as np
import pytest

from simulator.equations import storage

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
