"""Encoders in a spread step: attention to both sides, scores of masked tokens alone."""

from __future__ import annotations

from dataclasses import replace

import pytest

from simulator.files.scenario import load_scenario
from simulator.footprint import memory_fit
from simulator.limits import check_modelled
from simulator.predict import predict
from simulator.scenario import Scenario
from simulator.spread.activations import logits_bytes
from simulator.spread.describe import describe, kernels_of
from simulator.spread.kernels import fused_attention, loss
from simulator.spread.products import product_times
from simulator.spread.shapes import head_product, layer_parameters, table_parameters
from simulator.spread.step import spread_step

MASKED = 0.15
"""Share of its tokens that the library's BERT guesses."""


def job(*overrides: str) -> Scenario:
    """BERT-large over eight machines, by a framework with fitted kernels."""
    given = ("software.framework=megatron-lm", "train.accumulation=1", *overrides)
    scenario = load_scenario("bert-large-multinode", overrides=given)
    check_modelled(scenario)
    return scenario


def test_each_position_attends_to_all_others() -> None:
    """An encoder does all of the work of which a decoder does half and its diagonal's tiles."""
    scenario = job()
    both, kernels = describe(scenario), kernels_of(scenario)
    ahead = replace(both, shape=replace(both.shape, causal=1.0))
    whole = float(fused_attention(both, kernels).forward)
    half = float(fused_attention(ahead, kernels).forward)
    tiles = 128.0 / float(both.shape.sequence)
    assert half == pytest.approx(0.5 * (1.0 + tiles) * whole)


def test_the_head_scores_masked_tokens_alone() -> None:
    """Product, loss and scores in memory are in proportion to the share that is guessed."""
    scenario = job()
    some, kernels = describe(scenario), kernels_of(scenario)
    every = replace(some, shape=replace(some.shape, scored_share=1.0))
    assert float(some.shape.scored_share) == pytest.approx(MASKED)
    tokens = float(some.layout.micro_batch * some.shape.sequence)
    assert float(head_product(some, kernels).m) == pytest.approx(MASKED * tokens)
    assert float(loss(some, kernels)) == pytest.approx(MASKED * float(loss(every, kernels)))
    of_some, of_all = (float(logits_bytes(each, kernels.memory)) for each in (some, every))
    assert of_some == pytest.approx(MASKED * of_all)
    times = [product_times([head_product(d, kernels)], d, kernels)[0] for d in (some, every)]
    assert float(times[0].sum()) < 2.0 * MASKED * float(times[1].sum())


def test_parameters_are_those_of_the_layers_and_the_table() -> None:
    """BERT-large but for biases, norms, positions, pooler and transform: 1.5% of 335 million."""
    scenario = job()
    described = describe(scenario)
    held, _ = layer_parameters(described)
    model = scenario.job.model
    assert model is not None
    counted = held * described.shape.layers + table_parameters(described)
    assert float(counted) == pytest.approx(model.parameters, rel=0.015)


@pytest.mark.parametrize(
    "layout",
    [
        ("parallelism.tensor=4", "parallelism.sequence=true"),
        ("parallelism.pipeline=4", "train.accumulation=8"),
        ("parallelism.sharding=optimizer",),
    ],
    ids=["tensor", "pipeline", "ZeRO-1"],
)
def test_encoders_can_be_spread(layout: tuple[str, ...]) -> None:
    """Time and memory of a layout, simulated, and less memory than of a device with all of it."""
    whole, spread = job(), job(*layout)
    timing = predict(spread).timing
    step = spread_step(describe(spread), kernels_of(spread))
    assert timing.step_time.mean == pytest.approx(float(step.total), rel=0.01)
    alone, part = memory_fit(whole), memory_fit(spread)
    assert alone is not None
    assert part is not None
    assert part.items["optimizer"] < 0.51 * alone.items["optimizer"]
