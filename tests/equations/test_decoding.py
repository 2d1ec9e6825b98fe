"""What a serving engine reads and holds for the tokens it generates."""

from __future__ import annotations

import numpy as np
import pytest

from simulator.equations.decoding import (
    accepted_tokens,
    growing_contexts,
    kv_token_bytes,
    touched_experts,
)


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
