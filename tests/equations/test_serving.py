"""Serving: cache, attention pairs, tokens and their price."""

from __future__ import annotations

import numpy as np
import pytest

from simulator.equations.serving import (
    accepted_tokens,
    blocks_of,
    causal_pairs,
    growing_contexts,
    kv_token_bytes,
    little,
    per_million_tokens,
    pool_blocks,
    room_in_free,
    room_in_total,
    touched_experts,
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


def test_touched_experts_are_those_that_random_tokens_choose() -> None:
    """64 tokens that choose 8 of 256 experts by chance reach as many on average."""
    rng = np.random.default_rng(3)
    drawn = [
        len({int(e) for _ in range(64) for e in rng.choice(256, 8, replace=False)})
        for _ in range(40)
    ]
    assert touched_experts(256.0, 8.0, 64.0) == pytest.approx(np.mean(drawn), rel=0.01)


def test_touched_experts_of_one_token_and_of_many() -> None:
    """One token reaches its own; many reach all; arrays give one figure each."""
    found = touched_experts(128.0, 8.0, np.array([1.0, 100_000.0]))
    assert found == pytest.approx([8.0, 128.0])


def test_kv_token_bytes_of_a_latent_cache() -> None:
    """DeepSeek-V3 keeps 576 values a layer: 70,272 bytes in 16 bit over 61 layers."""
    assert kv_token_bytes(61.0, 1.0, 576.0, np.array([1.0, 2.0])) == pytest.approx([35136, 70272])


def test_growing_contexts_add_up_step_by_step() -> None:
    """The series agrees with adding iterations one by one, for arrays as well."""
    context, sequences, iterations = np.array([10.0, 500.0]), np.array([2.0, 7.0]), 9
    one_by_one = sum(context + sequences * step for step in range(iterations))
    assert growing_contexts(context, sequences, iterations) == pytest.approx(one_by_one)


def test_accepted_tokens_are_the_run_of_right_guesses_and_one() -> None:
    """Guesses drawn one by one until the first wrong one leave as many on average."""
    right = np.random.default_rng(5).random((200_000, 4)) < 0.7
    runs = np.cumprod(right, axis=1).sum(axis=1) + 1
    assert accepted_tokens(0.7, 4) == pytest.approx(runs.mean(), rel=0.005)
    assert accepted_tokens(0.0, 4) == 1.0
    assert np.asarray(accepted_tokens(np.array([0.5, 1.0]), 1)) == pytest.approx([1.5, 2.0])
