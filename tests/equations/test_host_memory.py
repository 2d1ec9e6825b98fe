"""Host memory: batches in flight, blocks of a power of two, the rule of thumb."""

from __future__ import annotations

import numpy as np
import pytest

from simulator.equations import host_memory
from simulator.units import BYTE, parse


def test_batches_of_a_loader() -> None:
    """Three workers with two batches each have six ahead and one in use; no workers have one."""
    assert host_memory.batches_in_flight(2, 3) == 7
    assert host_memory.batches_in_flight(2, 0) == 1
    assert host_memory.in_flight_bytes(7, 10.0, 8) == 560.0


def test_pinned_blocks_are_powers_of_two() -> None:
    """A published 20.4 GiB took 32 GiB; exact powers stay, nothing takes nothing."""
    sizes = np.array([parse(text, BYTE) for text in ("20.4 GiB", "32 GiB", "3 B")])
    expected = [parse(text, BYTE) for text in ("32 GiB", "32 GiB", "4 B")]
    assert host_memory.pinned_block_bytes(sizes) == pytest.approx(expected)
    assert host_memory.pinned_block_bytes(0.0) == 0.0


def test_workers_of_all_ranks() -> None:
    """Four workers of 1.8 GB, as measured with a data set of Python objects, take 7.2 GB a rank."""
    assert host_memory.workers_bytes(1, 4, 1.8e9) == pytest.approx(7.2e9)
    assert host_memory.workers_bytes(8, 4, 1.8e9) == pytest.approx(57.6e9)


def test_rule_of_thumb() -> None:
    """The rule adds the memory of the GPUs, the system and the application."""
    assert host_memory.rule_of_thumb(16e9, 2e9, 1e9) == pytest.approx(19e9)


def test_nothing_left_is_nothing() -> None:
    """A memory that is overcommitted leaves no page cache, and no negative one."""
    left = host_memory.memory_left(10.0, np.array([4.0, 10.0, 12.0]))
    assert left == pytest.approx([6.0, 0.0, 0.0])
