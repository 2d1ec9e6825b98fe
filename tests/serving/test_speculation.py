"""Speculative decoding: several tokens an iteration, at the price of the guesses."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as tries
from hypothesis import strategies as st

from simulator.physics.forward_pass import Iteration, SpeculativePass
from simulator.schema.serving import Serving, Speculation
from simulator.serving.load import Requests
from tests.serving.test_engine import drawn
from tests.support.serving import MadePass, run, settings, stays

WORK = MadePass(fixed=0.01, prompt_token=1e-4, sequence=1e-4, context=1e-6)


def guessing(drafts: int, accepted: float, draft: float = 0.0) -> tuple[Serving, SpeculativePass]:
    """Settings and a forward pass with guesses."""
    told = Speculation(drafts=drafts, accepted=accepted, draft=draft)
    return replace(settings(), speculation=told), SpeculativePass(WORK, told)


def test_an_answer_takes_fewer_iterations() -> None:
    """Alone, 300 further tokens at 2.5 an iteration take 120 iterations."""
    serving, _ = guessing(3, 2.5)
    requests = Requests([100], [301], [0.0])
    counts = run(requests, MadePass(fixed=0.01), serving)
    assert counts.decoded == 120
    assert stays(requests)[0] == pytest.approx(1.21)


@pytest.mark.parametrize("accepted", [1.0, 2.0, 4.0])
def test_guesses_do_not_make_blocks_larger(accepted: float) -> None:
    """Twenty blocks of 16 tokens hold ten requests of 10 + 5, however many come an iteration."""
    serving, _ = guessing(3, accepted)
    found = []
    for blocks in (20, 10**6):
        requests = Requests([10] * 10, [5] * 10, [0.0] * 10)
        counts = run(requests, MadePass(fixed=0.01), serving, blocks=blocks)
        found.append((counts.iterations, counts.preemptions, requests.last))
    assert found[0] == found[1]


def test_one_token_an_iteration_is_no_speculation() -> None:
    """Guesses that are never right and cost nothing change nothing."""
    plain, guessed = drawn(200, 3), drawn(200, 3)
    work = MadePass(fixed=0.01, prompt_token=1e-4, context=1e-6)
    run(plain, work, settings(8), blocks=100)
    serving, _ = guessing(2, 1.0)
    run(guessed, work, replace(serving, max_sequences=8), blocks=100)
    assert guessed.last == plain.last
    assert guessed.first == plain.first


@given(
    sequences=st.integers(1, 60),
    context=st.integers(1, 100_000),
    iterations=st.integers(1, 400),
    drafts=st.integers(1, 7),
    share=st.floats(0.0, 1.0),
)
def test_many_iterations_are_the_sum_of_each(
    sequences: int, context: int, iterations: int, drafts: int, share: float
) -> None:
    """The closed form adds up iterations whose contexts grow by what is accepted."""
    told = Speculation(drafts=drafts, accepted=1.0 + share * drafts, draft=0.05)
    work = SpeculativePass(WORK, told)
    each = [
        work.seconds(
            Iteration(
                decoding=sequences,
                context_tokens=context + number * told.accepted * sequences,
            )
        )
        for number in range(iterations)
    ]
    assert work.decode_seconds(sequences, context, iterations) == pytest.approx(sum(each))


def test_guesses_cost_their_rows_and_their_making() -> None:
    """Three guesses of ten sequences: forty rows, one reading of contexts, three small passes."""
    told = Speculation(drafts=3, accepted=2.0, draft=0.1)
    one = SpeculativePass(WORK, told).seconds(Iteration(decoding=10, context_tokens=1000.0))
    plain = 0.01 + 10 * 1e-4 + 0.001
    assert one == pytest.approx(0.01 + 40 * 1e-4 + 0.001 + 0.3 * plain)
    assert SpeculativePass(MadePass(weights_bytes=10.0), told).weights_bytes == pytest.approx(11.0)


@tries(max_examples=25, deadline=None)
@given(seed=st.integers(0, 1000), blocks=st.integers(20, 120), accepted=st.floats(1.0, 4.0))
def test_the_cache_holds_what_it_holds(seed: int, blocks: int, accepted: float) -> None:
    """However many tokens come at once, no more blocks are taken than there are, and all end."""
    serving, work = guessing(3, accepted)
    requests = drawn(60, seed)
    longest = max(map(sum, zip(requests.prompts, requests.outputs, strict=True)))
    counts = run(requests, work, replace(serving, max_sequences=16), max(blocks, longest // 8))
    assert counts.peak <= max(blocks, longest // 8) + 1e-9
    assert not np.isnan(requests.last).any()
    assert (np.asarray(requests.first) <= np.asarray(requests.last)).all()


def test_guesses_count_as_tokens_of_an_iteration() -> None:
    """Four sequences with three guesses each leave 4 of 20 tokens for a prompt."""
    serving, _ = guessing(3, 2.0)
    requests = Requests([1, 1, 1, 1, 12], [201] * 4 + [1], [0.0] * 4 + [0.5])
    run(requests, MadePass(fixed=1.0), replace(serving, max_batched_tokens=20))
    assert requests.first[4] == pytest.approx(4.0)
