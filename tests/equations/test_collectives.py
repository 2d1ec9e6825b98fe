"""Collectives: volumes, limits, and the identities between them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from simulator.equations import collectives
from simulator.equations.collectives import distinct_places

RANKS = np.array([1.0, 2.0, 4.0, 8.0, 64.0])
LINK = {"bandwidth": 100e9, "latency": 5e-6}
TIMES = [
    collectives.ring_all_reduce_time,
    collectives.ring_shard_time,
    collectives.tree_all_reduce_time,
]


@pytest.mark.parametrize("time", TIMES)
def test_one_rank_has_nobody_to_talk_to(time: Callable[..., Any]) -> None:
    """With one rank nothing is sent and nothing takes time."""
    assert time(100e6, 1.0, **LINK) == 0.0


@pytest.mark.parametrize("time", TIMES)
def test_more_ranks_take_longer(time: Callable[..., Any]) -> None:
    """The same buffer over more ranks is never faster."""
    assert np.all(np.diff(time(100e6, RANKS, **LINK)) > 0.0)


def test_an_all_reduce_is_a_reduce_scatter_and_an_all_gather() -> None:
    """Volume and time of a ring all-reduce are twice those of a half of it."""
    volume = collectives.ring_wire_bytes(100e6, RANKS)
    assert volume == pytest.approx(2.0 * collectives.shard_bytes(100e6, RANKS))
    time = collectives.ring_all_reduce_time(100e6, RANKS, **LINK)
    assert time == pytest.approx(2.0 * collectives.ring_shard_time(100e6, RANKS, **LINK))


def test_volume_approaches_twice_the_buffer() -> None:
    """Two ranks send the buffer once, very many send it twice."""
    assert collectives.ring_wire_bytes(100e6, 2) == 100e6
    assert collectives.ring_wire_bytes(100e6, 1e9) == pytest.approx(200e6)


def test_small_buffers_go_by_tree_and_large_ones_by_ring() -> None:
    """The tree has fewer steps, the ring fewer bytes."""
    sizes = np.array([1e3, 1e10])
    ring = collectives.ring_all_reduce_time(sizes, 64, **LINK)
    tree = collectives.tree_all_reduce_time(sizes, 64, **LINK)
    assert tree[0] < ring[0]
    assert ring[1] < tree[1]


def test_a_tree_goes_up_and_down() -> None:
    """Eight ranks are three levels: six steps of 5 us, and 1 MB up and down at 100 GB/s."""
    assert collectives.tree_all_reduce_time(1e6, 8, **LINK) == pytest.approx(30e-6 + 20e-6)


def test_two_levels_fall_back_to_one() -> None:
    """One machine, or machines of one rank, leave one level."""
    links = {
        "local_bandwidth": 100e9,
        "node_bandwidth": 25e9,
        "local_latency": 5e-6,
        "node_latency": 1e-5,
    }
    one = collectives.hierarchical_all_reduce_time(100e6, local_ranks=8, nodes=1, **links)
    assert one == pytest.approx(collectives.ring_all_reduce_time(100e6, 8, 100e9, 5e-6))
    flat = collectives.hierarchical_all_reduce_time(100e6, local_ranks=1, nodes=4, **links)
    assert flat == pytest.approx(collectives.ring_all_reduce_time(100e6, 4, 25e9, 1e-5))


def test_a_device_sends_for_each_layer_and_once_to_its_neighbours() -> None:
    """Twice the layers send twice as much but for what goes to other stages."""
    one, two = (collectives.exchanged_bytes(n, 3.0, 2.0, 1.0, 10.0) for n in (4.0, 8.0))
    assert (one, two) == (34.0, 58.0)


def test_bytes_pass_at_one_rate() -> None:
    """The parts of a time carry all bytes; without time there are none."""
    part = collectives.part_meanwhile(100.0, 1.0, 3.0)
    assert part == 25.0
    assert part + collectives.part_meanwhile(100.0, 3.0, 1.0) == 100.0
    assert collectives.part_meanwhile(100.0, 0.0, 0.0) == 0.0


def test_drawn_places_are_as_many_as_said() -> None:
    """The mean number of different places of random draws."""
    draws = np.random.default_rng(11).integers(0, 8, (20_000, 4))
    mean = np.mean([len(set(row)) for row in draws.tolist()])
    assert distinct_places(8.0, 4.0) == pytest.approx(mean, rel=0.01)


def test_limits() -> None:
    """One place is hit by any draw; never more places than draws or places."""
    assert distinct_places(1.0, 5.0) == 1.0
    assert distinct_places(8.0, 1.0) == pytest.approx(1.0)
    assert distinct_places(4.0, 1000.0) == pytest.approx(4.0)
