"""What a cache holds, what a prompt attends to, what tokens cost."""

from __future__ import annotations

import numpy as np
import pytest

from simulator.equations.serving import (
    blocks_of,
    causal_pairs,
    little,
    per_million_tokens,
    pool_blocks,
    room_in_free,
    room_in_total,
)


def test_blocks_hold_their_tokens() -> None:
    """As many blocks as are needed and none that stays empty."""
    tokens = np.arange(1, 200)
    blocks = blocks_of(tokens, 16)
    assert (blocks * 16 >= tokens).all()
    assert ((blocks - 1) * 16 < tokens).all()


def test_the_pool_of_a_start_that_was_published() -> None:
    """vllm#21489: 0.9 of 178.36 GiB less 8.58, 9.96 and 0.07 GiB leaves 141.9 GiB."""
    assert room_in_total(178.36, 0.9, 8.58, 9.96 + 0.07, 0.0) == pytest.approx(141.9, abs=0.1)


def test_a_fraction_of_what_is_free_is_less_than_of_all() -> None:
    """With the same fraction, TensorRT-LLM's pool loses the fraction of what is not free."""
    total = room_in_total(80.0, 0.9, 16.0, 2.0, 1.0)
    assert total - room_in_free(80.0, 0.9, 16.0, 2.0, 1.0) == pytest.approx(-0.1 * 19.0)


def test_a_pool_is_never_negative() -> None:
    """Where weights do not fit there are no blocks."""
    assert pool_blocks(np.array([-5.0, 0.0, 33.0]), 1.0, 16.0) == pytest.approx([0.0, 0.0, 2.0])


def test_pairs_of_chunks_add_up_to_those_of_the_prompt() -> None:
    """However a prompt is cut, its tokens attend to the same pairs."""
    cut = causal_pairs(30, 0) + causal_pairs(50, 30) + causal_pairs(20, 80)
    assert cut == causal_pairs(100, 0) == sum(range(1, 101))


def test_tokens_cost_less_the_faster_they_come() -> None:
    """Twice the rate is half the price."""
    price = per_million_tokens(0.01, np.array([500.0, 1000.0]))
    assert price == pytest.approx([20.0, 10.0])


def test_littles_law_of_a_known_queue() -> None:
    """M/M/1 at 80% has four in it: 8 a second that stay half a second each."""
    assert little(8.0, 0.5) == pytest.approx(0.8 / 0.2)
