"""What collectives of a trace would take among other numbers of ranks: limits and identities."""

from __future__ import annotations

import pytest

from simulator.importers.torch_profiler.trace_file import Message, Wire

WIRE = Wire(latency=5e-6, bandwidth=100e9)
RANKS = (1, 2, 4, 8, 64)


def collective(operation: str, *, tree: bool = False) -> Message:
    """A collective of four ranks in bf16; its size is given again."""
    return Message(operation=operation, size=1.0, ranks=4, element=2.0, tree=tree)


RING = collective("all_reduce")
TREE = collective("all_reduce", tree=True)
GATHER = collective("all_gather")


@pytest.mark.parametrize("message", [RING, TREE, GATHER], ids=["ring", "tree", "gather"])
def test_more_ranks_take_longer(message: Message) -> None:
    """One rank has no peer; the same buffer over more ranks is never faster."""
    times = [WIRE.time(message, 100e6, ranks) for ranks in RANKS]
    assert times[0] == 0.0
    assert times == sorted(set(times))


def test_an_all_reduce_is_a_reduce_scatter_and_an_all_gather() -> None:
    """14 steps of 5 us and 175 MB at 100 GB/s: twice what a half of it takes."""
    assert WIRE.time(RING, 100e6, 8) == pytest.approx(1.82e-3)
    assert WIRE.time(GATHER, 100e6, 8) == pytest.approx(0.91e-3)


def test_small_buffers_go_by_tree_and_large_ones_by_ring() -> None:
    """The tree has fewer steps, the ring fewer bytes."""
    assert WIRE.time(TREE, 1e3, 64) < WIRE.time(RING, 1e3, 64)
    assert WIRE.time(RING, 1e10, 64) < WIRE.time(TREE, 1e10, 64)


def test_a_tree_goes_up_and_down() -> None:
    """Eight ranks are three levels: six steps of 5 us, and 1 MB up and down at 100 GB/s."""
    assert WIRE.time(TREE, 1e6, 8) == pytest.approx(30e-6 + 20e-6)


def test_what_is_sent_to_one_peer_takes_a_step() -> None:
    """Activations between stages: one latency and their bytes."""
    assert WIRE.time(collective("sendrecv"), 1e6, 8) == pytest.approx(5e-6 + 10e-6)


def test_two_levels() -> None:
    """Two machines of 8: inside 2 x 0.875 ms, between them 2 ms, and 16 steps of 5 us."""
    assert WIRE.time_over_machines(100e6, 8, 2.0, 50e9) == pytest.approx(3.75e-3 + 80e-6)


def test_two_levels_fall_back_to_one() -> None:
    """One machine, or machines of one rank, leave one level."""
    assert WIRE.time_over_machines(100e6, 8, 1.0, 25e9) == WIRE.time(RING, 100e6, 8)
    flat = Wire(latency=5e-6, bandwidth=25e9).time(RING, 100e6, 4)
    assert WIRE.time_over_machines(100e6, 1, 4.0, 25e9) == pytest.approx(flat)
