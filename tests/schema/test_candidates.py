"""Candidates of equal structure: who stands with whom, and what becomes an array."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from support.scenarios import SOURCE, scenario, store

from simulator.schema.candidates import stack
from simulator.schema.scenario import Scenario
from simulator.schema.training import Parallelism, Schedule

FEW = settings(max_examples=60, deadline=None, derandomize=True)


@FEW
@given(
    st.lists(
        st.tuples(st.integers(0, 3), st.sampled_from([1e9, 2e9]), st.booleans()),
        min_size=1,
        max_size=12,
    ),
    st.sampled_from([None, 2]),
)
def test_every_candidate_stands_in_one_batch_with_its_own_numbers(
    drawn: list[tuple[int, float, bool]], most: int | None
) -> None:
    """No candidate is lost or doubled, and arrays hold what each of them says."""
    jobs = [
        scenario(workers=workers, storage=store(rate=rate), pin_memory=pinned)
        for workers, rate, pinned in drawn
    ]
    batches = stack(jobs, most)
    assert sorted(i for batch in batches for i in batch.indices) == list(range(len(jobs)))
    for batch in batches:
        pipeline = batch.scenario.job.input
        rates = batch.scenario.cluster.trainers.storage.read_bandwidth
        own = [drawn[i] for i in batch.indices]
        assert batch.size <= (most or len(jobs))
        assert np.broadcast_to(pipeline.workers, batch.size).tolist() == [w for w, _, _ in own]
        assert np.broadcast_to(rates, batch.size).tolist() == [rate for _, rate, _ in own]
        assert {pinned for _, _, pinned in own} == {pipeline.pin_memory}


def batches_of(*jobs: Scenario) -> int:
    """How many batches some scenarios make."""
    return len(stack(jobs))


def test_numbers_that_decide_are_part_of_the_structure() -> None:
    """Without workers the trainer's own thread makes batches: another way of calculating."""
    assert batches_of(scenario(workers=1), scenario(workers=2)) == 1
    assert batches_of(scenario(workers=0), scenario(workers=2)) == 2


def test_what_nothing_depends_on_may_differ() -> None:
    """Names and sources are no figures."""
    one = scenario(workers=1)
    loader = replace(one.job.input, sources={"workers": SOURCE})
    other = replace(one, name="other", jobs=(replace(one.job, input=loader),))
    assert batches_of(one, other) == 1


def test_schedules_without_a_closed_form_stand_alone() -> None:
    """Their bubble is simulated, one candidate at a time."""
    job = scenario().job
    degrees = Parallelism(schedule=Schedule.ZERO_BUBBLE)
    alike = [replace(scenario(), jobs=(replace(job, parallelism=degrees),)) for _ in range(2)]
    assert batches_of(*alike) == 2


def test_one_candidate_stays_as_it_is() -> None:
    """There is nothing to be an array."""
    only = scenario(workers=3)
    (batch,) = stack([only])
    assert batch.scenario is only
    assert batch.indices == (0,)
