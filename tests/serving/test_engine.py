"""Iterations of one replica: what they hold, by the rules of the engine."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as tries
from hypothesis import strategies as st

from simulator.physics.forward_pass import Iteration
from simulator.schema.serving import Admission, Batching, Slo
from simulator.serving.engine import iterations_until
from simulator.serving.fleet import run as run_fleet
from simulator.serving.load import Requests
from simulator.serving.run import Ran, answered
from simulator.serving.scheduler import Reuse
from tests.support.serving import PLENTY, MadePass, fleet, run, settings, stays

RULES = [
    (Batching.MIXED, Admission.PROMPT),
    (Batching.PREFILL_FIRST, Admission.ESTIMATE),
    (Batching.MIXED, Admission.WHOLE),
]


def drawn(count: int, seed: int, rate: float = 50.0) -> Requests:
    """Requests with lengths and arrivals by chance."""
    draw = np.random.default_rng(seed)
    prompts, outputs = draw.integers(1, 200, count), draw.integers(1, 80, count)
    arrivals = np.cumsum(draw.exponential(1.0 / rate, count))
    return Requests(prompts.tolist(), outputs.tolist(), arrivals.tolist())


@pytest.mark.parametrize(("batching", "admission"), RULES)
@tries(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10_000), blocks=st.integers(20, 120), seats=st.integers(1, 40))
def test_tokens_are_conserved(
    batching: Batching, admission: Admission, seed: int, blocks: int, seats: int
) -> None:
    """Every answer is written once, in order, in no more blocks than there are."""
    requests = drawn(60, seed)
    work = MadePass(fixed=0.002, prompt_token=1e-5, sequence=1e-5, context=1e-7)
    serving = settings(seats, 128, batching, admission)
    counts = run(requests, work, serving, blocks)
    first, last, begun = (np.asarray(getattr(requests, n)) for n in ("first", "last", "scheduled"))
    assert (np.asarray(requests.arrivals) <= begun).all()
    assert (begun < first).all()
    assert (first <= last).all()
    assert counts.peak <= blocks
    written = counts.decoded + len(requests)
    assert written == sum(requests.outputs) or counts.preemptions
    assert counts.prefilled >= sum(requests.prompts)
    if admission is Admission.WHOLE or not counts.preemptions:
        assert counts.preemptions == 0
        assert counts.prefilled == sum(requests.prompts)


def test_alone_a_request_takes_the_bare_forward_pass() -> None:
    """One request takes its prompt's iteration and one iteration for each further token."""
    requests = Requests([100], [11], [5.0])
    work = MadePass(fixed=0.01, prompt_token=0.001, context=0.0001)
    run(requests, work, settings())
    first = 0.01 + 0.1
    assert requests.first[0] == pytest.approx(5.0 + first)
    later = sum(0.01 + 0.0001 * (100 + token) for token in range(1, 11))
    assert stays(requests)[0] == pytest.approx(first + later)


def test_a_long_prompt_is_cut_at_the_budget() -> None:
    """A prompt of two budgets and a half takes three iterations, beside sequences that decode."""
    requests = Requests([1, 25], [100, 1], [0.0, 0.5])
    counts = run(requests, MadePass(fixed=1.0), settings(tokens=11))
    assert requests.first[1] == pytest.approx(4.0)
    assert counts.iterations == 100


def test_without_chunks_a_prompt_waits_for_room_in_an_iteration() -> None:
    """Unless prompts may be cut, one that exceeds what is left holds up those behind it."""
    requests = Requests([6, 6, 1], [1, 1, 1], [0.0, 0.0, 0.0])
    run(requests, MadePass(fixed=1.0), settings(tokens=10, chunked=False))
    assert requests.first == pytest.approx([1.0, 2.0, 2.0])


def test_a_prompt_that_never_has_room_beside_answers_is_cut() -> None:
    """It fills iterations of whoever decodes, in place of waiting until nobody does."""
    requests = Requests([1, 10], [100, 1], [0.0, 0.5])
    run(requests, MadePass(fixed=1.0), settings(tokens=10, chunked=False))
    assert requests.first[1] == pytest.approx(3.0)


def test_prompts_first_let_answers_wait() -> None:
    """An engine that computes prompts alone stops decoding while one is computed."""
    for batching, last in ((Batching.MIXED, 10.0), (Batching.PREFILL_FIRST, 12.0)):
        requests = Requests([1, 20], [10, 1], [0.0, 2.5])
        run(requests, MadePass(fixed=1.0), settings(tokens=11, batching=batching))
        assert requests.last[0] == pytest.approx(last), batching


def test_the_request_that_started_last_gives_way() -> None:
    """When blocks run out, the newest request loses its own and is computed anew, at the head."""
    requests = Requests([16, 16, 16], [40, 40, 1], [0.0, 0.0, 0.5])
    counts = run(requests, MadePass(fixed=1.0), settings(), blocks=5)
    assert counts.preemptions == 1
    assert requests.last[0] == pytest.approx(40.0)
    assert requests.last[1] > requests.last[0]
    assert requests.first[1] == pytest.approx(1.0)


def test_whole_answers_have_room_before_they_start() -> None:
    """An engine that keeps room for whole answers lets the second request wait instead."""
    requests = Requests([16, 16], [40, 40], [0.0, 0.0])
    serving = settings(admission=Admission.WHOLE)
    counts = run(requests, MadePass(fixed=1.0), serving, blocks=5)
    assert counts.preemptions == 0
    assert requests.scheduled[1] == pytest.approx(40.0)


def test_a_closed_loop_follows_its_answers() -> None:
    """With two clients at most two requests are under way, and one follows each answer."""
    requests = Requests([4] * 10, [5] * 10, [0.0, 0.0], clients=2)
    counts = run(requests, MadePass(fixed=1.0), settings())
    assert len(requests.arrivals) == 10
    assert counts.end == pytest.approx(25.0)


def test_a_prefix_in_the_cache_is_not_computed() -> None:
    """Blocks that all prompts begin with are held once and computed for none."""
    requests = Requests([40, 40], [2, 2], [0.0, 0.0])
    one = fleet(requests, MadePass(fixed=1.0), settings(), 1, reuse=Reuse(shared_prefix=36))
    counts = run_fleet(one, requests)
    assert counts.prefilled == 2 * 8


@given(
    sequences=st.integers(1, 50),
    context=st.integers(1, 10_000),
    most=st.integers(1, 3000),
    until=st.floats(0.001, 100.0),
)
def test_iterations_until_a_time(sequences: int, context: int, most: int, until: float) -> None:
    """The iterations found end at or after the time, and one fewer ends before it."""
    work = MadePass(fixed=0.01, sequence=0.0001, context=1e-6)
    batch = Iteration(decoding=sequences, context_tokens=float(context))
    found, time = iterations_until(work, batch, most, until)
    assert time == pytest.approx(work.decode_seconds(sequences, context, found))
    assert found == most or time >= until
    assert found == 1 or work.decode_seconds(sequences, context, found - 1) < until


def test_a_request_waits_for_its_prompt_to_be_read_before_it_is_scheduled() -> None:
    """A tenth of a millisecond for each of 100 tokens passes before the first iteration."""
    work = MadePass(fixed=0.01)
    plain, late = Requests([100], [3], [5.0]), Requests([100], [3], [5.0])
    run(plain, work, settings())
    run(late, work, replace(settings(), prompt_overhead=1e-4))
    assert late.first[0] == pytest.approx(plain.first[0] + 0.01)


def test_requests_wait_for_a_host_thread_one_after_the_other() -> None:
    """Of three that come at once, the last has waited for the others' 0.1 s and had its own."""
    requests = Requests([1, 1, 1], [1, 1, 1], [0.0, 0.0, 0.0])
    serving = replace(settings(), host_time=0.1, host_threads=1)
    run(requests, MadePass(fixed=1e-6), serving)
    assert requests.scheduled == pytest.approx([0.1, 0.2, 0.3])


@pytest.mark.parametrize(("blocks", "second"), [(12, 0.0), (11, 80.0)])
def test_room_is_kept_for_answers_whose_prompts_are_still_computed(
    blocks: int, second: float
) -> None:
    """Two prompts of one block with answers of five start at once in twelve blocks, not in less."""
    requests = Requests([16, 16], [80, 80], [0.0, 0.0])
    serving = settings(admission=Admission.ESTIMATE)
    run(requests, MadePass(fixed=1.0), serving, blocks=blocks)
    assert requests.scheduled == pytest.approx([0.0, second])


def test_tokens_reach_the_client_some_iterations_later() -> None:
    """A lag of four iterations of 10 ms shifts the first and the last token, not the rate."""
    requests = Requests([100], [11], [0.0])
    counts = run(requests, MadePass(fixed=0.01), settings())
    told = {
        lag: answered(requests, Ran(counts), Slo(), blocks=PLENTY, steady=False, lag=lag)
        for lag in (0.0, 4.0)
    }
    assert told[4.0].first_token.mean == pytest.approx(told[0.0].first_token.mean + 0.04)
    assert told[4.0].end_to_end.mean == pytest.approx(told[0.0].end_to_end.mean + 0.04)
    assert told[4.0].per_token.mean == told[0.0].per_token.mean


def test_a_hit_rate_spares_its_share_of_prompts() -> None:
    """Half of each prompt is found, in whole blocks, and one token at least is computed."""
    found = {}
    for rate in (0.0, 0.5, 1.0):
        requests = Requests([100, 160], [2, 2], [0.0, 0.0])
        made = fleet(requests, MadePass(fixed=1.0), settings(), 1, reuse=Reuse(hit_rate=rate))
        found[rate] = run_fleet(made, requests).prefilled
    assert found == {0.0: 260, 0.5: 52 + 80, 1.0: 4 + 1}


def test_a_request_that_gave_way_finds_nothing() -> None:
    """Its blocks are gone: its prompt and what it had written are computed anew."""
    requests = Requests([16, 16, 16], [40, 40, 1], [0.0, 0.0, 0.5])
    made = fleet(requests, MadePass(fixed=1.0), settings(), 1, blocks=5, reuse=Reuse(hit_rate=1.0))
    counts = run_fleet(made, requests)
    assert counts.preemptions == 1
    assert counts.prefilled > 16 + 3


def test_each_group_of_accelerators_computes_a_prompt_of_its_own() -> None:
    """Four prompts of 32 tokens take four iterations with 8 tokens a group, and end together."""
    requests = Requests([32] * 4, [1] * 4, [0.0] * 4)
    serving = replace(settings(tokens=32), attention_groups=4)
    counts = run(requests, MadePass(fixed=1.0), serving)
    assert requests.last == pytest.approx([4.0] * 4)
    assert counts.prefilled == 4 * 32
    together = Requests([32] * 4, [1] * 4, [0.0] * 4)
    run(together, MadePass(fixed=1.0), settings(tokens=32))
    assert together.last == pytest.approx([1.0, 2.0, 3.0, 4.0])


def test_a_long_prompt_alone_keeps_one_group_busy() -> None:
    """It takes as many iterations as its group's share of the tokens makes of it."""
    requests = Requests([32], [1], [0.0])
    serving = replace(settings(tokens=32), attention_groups=4)
    run(requests, MadePass(fixed=1.0), serving)
    assert requests.last == pytest.approx([4.0])
