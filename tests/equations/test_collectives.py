"""Collectives: volumes, limits, and the identities between them."""

from __future__ import annotations

import numpy as np
import pytest

from simulator.equations import collectives
from simulator.equations.collectives import distinct_places

RANKS = np.array([1.0, 2.0, 4.0, 8.0, 64.0])


def test_an_all_reduce_is_a_reduce_scatter_and_an_all_gather() -> None:
    """The volume of a ring all-reduce is twice that of a half of it; one rank sends nothing."""
    volume = collectives.ring_wire_bytes(100e6, RANKS)
    assert volume == pytest.approx(2.0 * collectives.shard_bytes(100e6, RANKS))
    assert volume[0] == 0.0
    assert np.all(np.diff(volume) > 0.0)


def test_volume_approaches_twice_the_buffer() -> None:
    """Two ranks send the buffer once, very many send it twice."""
    assert collectives.ring_wire_bytes(100e6, 2) == 100e6
    assert collectives.ring_wire_bytes(100e6, 1e9) == pytest.approx(200e6)


def test_a_device_sends_for_each_layer_and_once_to_its_neighbours() -> None:
    """Four layers of 3 + 5 + 2 + 1 bytes, tables of 7, sends of 10; eight layers: 44 more."""
    layer = {"tensor": 3.0, "context": 5.0, "experts": 2.0, "parameters": 1.0}
    one, two = (
        collectives.exchanged_bytes(layers=n, **layer, tables=7.0, sends=10.0) for n in (4.0, 8.0)
    )
    assert (one, two) == (61.0, 105.0)


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
