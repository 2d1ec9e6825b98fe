"""The cache: its size by the rules of each engine, and the blocks that sequences hold."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.schema.serving import MemoryBase
from simulator.serving.replica import Decoding, pool_of
from tests.support.serving import MadePass, settings

GIGA = 1e9


@given(
    contexts=st.lists(st.tuples(st.integers(1, 500), st.integers(1, 60)), min_size=1, max_size=30),
    block=st.sampled_from([1, 16, 32]),
    steps=st.lists(st.integers(1, 20), max_size=10),
    ahead=st.integers(0, 40),
)
def test_blocks_are_those_of_each_sequence(
    contexts: list[tuple[int, int]], block: int, steps: list[int], ahead: int
) -> None:
    """Counted together, sequences hold what they hold one by one, however far they have come."""
    decoding = Decoding(block)
    alive = {}
    for request, (context, left) in enumerate(contexts):
        decoding.join(request, context, left)
        alive[request] = [context, left]
    for wanted in steps:
        if not alive:
            break
        many = min(wanted, decoding.left)
        done = decoding.advance(many)
        for request in list(alive):
            alive[request][0] += many
            alive[request][1] -= many
            if not alive[request][1]:
                assert request in done
                del alive[request]
    assert len(decoding) == len(alive)
    assert decoding.context == sum(context for context, _ in alive.values())
    assert decoding.tokens_left == sum(left for _, left in alive.values())
    expected = sum(-(-(context + ahead) // block) for context, _ in alive.values())
    assert decoding.blocks(ahead) == expected


@given(
    contexts=st.lists(st.integers(1, 300), min_size=1, max_size=20),
    blocks=st.integers(1, 400),
    most=st.integers(1, 200),
)
def test_iterations_within_the_blocks(contexts: list[int], blocks: int, most: int) -> None:
    """The last iteration found fits, and the one after it does not."""
    decoding = Decoding(16)
    for request, context in enumerate(contexts):
        decoding.join(request, context, 10_000)
    found = decoding.iterations_within(blocks, most)
    assert found == 0 or decoding.blocks(found - 1) <= blocks
    assert found == most or decoding.blocks(found) > blocks


def test_iterations_that_just_fill_a_block() -> None:
    """A context of 1 token needs a second block of 16 for its 17th iteration, not before."""
    decoding = Decoding(16)
    decoding.join(0, 1, 100)
    found = [decoding.iterations_within(1, most) for most in range(1, 20)]
    assert found == [min(most, 16) for most in range(1, 20)]


def test_what_engines_leave_for_the_cache() -> None:
    """By hand: 80 GB at 0.9 with 16 of weights, 2 of activations and 1 of graphs."""
    work = MadePass(
        weights_bytes=16 * GIGA, kv_bytes_per_token=1e5, activation_bytes_per_token=2 * GIGA / 1000
    )
    serving = replace(settings(tokens=1000), graph_memory=GIGA, memory_fraction=0.9)
    room = {}
    for base, activations, graphs in (
        (MemoryBase.TOTAL, True, True),
        (MemoryBase.TOTAL, True, False),
        (MemoryBase.TOTAL, False, False),
        (MemoryBase.FREE, True, True),
    ):
        engine = replace(
            serving.rules, fraction_of=base, activations_inside=activations, graphs_inside=graphs
        )
        pool = pool_of(replace(serving, rules=engine), 80 * GIGA, work)
        room[base, activations, graphs] = pool.items["cache"] / GIGA
    assert list(room.values()) == pytest.approx([53.0, 54.0, 56.0, 0.9 * 61.0], abs=0.01)


def test_a_model_without_room_has_no_blocks() -> None:
    """Weights beyond the memory leave nothing, not less than nothing."""
    pool = pool_of(settings(tokens=1), GIGA, MadePass(weights_bytes=2 * GIGA))
    assert pool.blocks == 0
