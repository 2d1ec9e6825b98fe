"""Candidates together are answered as each alone, whichever of their numbers differ."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from simulator.physics.footprint import memory_fit
from simulator.physics.training_step import training_step
from simulator.physics.transformer import kernels_of, transformer_step
from simulator.reading.scenario import load_scenario
from simulator.schema.candidates import stack
from simulator.schema.scenario import Scenario

DIFFERENT: dict[str, list[float]] = {
    "tensor": [1, 2, 8],
    "pipeline": [2, 4, 8],
    "interleave": [1, 2, 4],
    "context": [1, 2, 4],
    "batch_size": [1.0, 2.0, 4.0],
    "accumulation": [2, 8, 64],
}
"""Values of each number that closed forms take as an array."""
SCENARIOS = ("megatron-1t", "llama3-8b-fsdp", "mixtral-8x7b-megatron", "llama3-405b-megatron")


def with_number(scenario: Scenario, name: str, value: float) -> Scenario:
    """The scenario with one number of its training or its parallelism changed."""
    job = scenario.job
    if name in {"batch_size", "accumulation"}:
        job = replace(job, train=replace(job.train, **{name: value}))
    else:
        job = replace(job, parallelism=replace(job.parallelism, **{name: value}))
    return replace(scenario, jobs=(job,))


@pytest.mark.parametrize("number", DIFFERENT)
@pytest.mark.parametrize("name", SCENARIOS)
def test_one_number_differs(name: str, number: str) -> None:
    """Time, exchange and memory of each candidate of a batch are those of the candidate alone."""
    base = load_scenario(name)
    each = [with_number(base, number, value) for value in DIFFERENT[number]]
    for batch in stack(each):
        step = training_step(transformer_step(batch.scenario), kernels_of(batch.scenario))
        memory = memory_fit(batch.scenario)
        assert memory is not None
        for place, index in enumerate(batch.indices):
            own = training_step(transformer_step(each[index]), kernels_of(each[index]))
            alone = memory_fit(each[index])
            assert alone is not None
            for whole, part in (
                (step.total, own.total),
                (step.exchange, own.exchange),
                (step.gradients, own.gradients),
                (memory.total, alone.total),
            ):
                found = np.broadcast_to(whole, batch.size)[place]
                assert float(found) == pytest.approx(float(part), rel=1e-12)


def test_a_candidate_alone_is_calculated_in_plain_numbers() -> None:
    """Arrays without dimensions, and numpy's own numbers, are many times as slow."""
    scenario = load_scenario("megatron-1t")
    step, memory = (
        training_step(transformer_step(scenario), kernels_of(scenario)),
        memory_fit(scenario),
    )
    assert memory is not None
    figures = (step.total, step.exchange, step.bubble, step.hidden, *step.stages, memory.total)
    assert [type(figure) for figure in figures] == [float] * len(figures)
    assert {type(size) for size in memory.items.values()} == {float}
