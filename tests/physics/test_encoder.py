"""Encoders in a spread step: attention to both sides, scores of masked tokens alone."""

from __future__ import annotations

from dataclasses import replace

import pytest

from simulator.physics.footprint import memory_fit
from simulator.physics.kernels import (
    fused_attention_time,
    loss_time,
    product_times,
    score_traffic_time,
)
from simulator.physics.kernels import layer_launches as launches
from simulator.physics.parameters import (
    attention_products,
    head_product,
    layer_parameters,
    logits_bytes,
    table_parameters,
)
from simulator.physics.training_step import training_step
from simulator.physics.transformer import kernels_of, transformer_step
from simulator.pipeline.program import check_modelled
from simulator.predict import predict
from simulator.reading.scenario import load_scenario
from simulator.schema.scenario import Scenario

ALL_FULL = ("software.framework=megatron-lm", "software.fused_attention=true", "model.filled=1")
MASKED = 0.15
"""Share of its tokens that the library's BERT guesses."""


def job(*overrides: str) -> Scenario:
    """BERT-large over eight machines, by a framework with fitted kernels."""
    given = (*ALL_FULL, "train.accumulation=1", *overrides)
    scenario = load_scenario("bert-large-multinode", overrides=given)
    check_modelled(scenario)
    return scenario


def test_each_position_attends_to_all_others() -> None:
    """An encoder does all of the work of which a decoder does half and its diagonal's tiles."""
    scenario = job()
    both, kernels = transformer_step(scenario), kernels_of(scenario)
    ahead = replace(both, shape=replace(both.shape, causal=1.0))
    whole = float(fused_attention_time(both, kernels).forward)
    half = float(fused_attention_time(ahead, kernels).forward)
    tiles = 128.0 / float(both.shape.sequence)
    assert half == pytest.approx(0.5 * (1.0 + tiles) * whole)


def test_the_head_scores_masked_tokens_alone() -> None:
    """Product, loss and scores in memory are in proportion to the share that is guessed."""
    scenario = job()
    some, kernels = transformer_step(scenario), kernels_of(scenario)
    every = replace(some, shape=replace(some.shape, scored_share=1.0))
    assert float(some.shape.scored_share) == pytest.approx(MASKED)
    tokens = float(some.layout.micro_batch * some.shape.sequence)
    assert float(head_product(some, kernels).rows) == pytest.approx(MASKED * tokens)
    assert float(loss_time(some, kernels)) == pytest.approx(
        MASKED * float(loss_time(every, kernels))
    )
    figures = scenario.job.software.memory
    of_some, of_all = (float(logits_bytes(each, figures)) for each in (some, every))
    assert of_some == pytest.approx(MASKED * of_all)
    times = [product_times([head_product(d, kernels)], d, kernels)[0] for d in (some, every)]
    assert float(times[0].sum()) < 2.0 * MASKED * float(times[1].sum())


def test_positions_that_hold_nothing_are_not_computed() -> None:
    """Products of half-filled samples have half the rows; pairs are those of even lengths."""
    whole, half = job(), job("model.filled=0.5")
    every, some, kernels = transformer_step(whole), transformer_step(half), kernels_of(whole)
    rows = [float(attention_products(d)[0].rows) for d in (every, some)]
    assert rows[1] == pytest.approx(0.5 * rows[0])
    pairs = [float(fused_attention_time(d, kernels).forward) for d in (every, some)]
    assert pairs[1] == pytest.approx(pairs[0] / 3.0)
    steps = [float(training_step(d, kernels).total) for d in (every, some)]
    assert 0.4 * steps[0] < steps[1] < 0.65 * steps[0]


def test_memory_holds_the_longest_samples() -> None:
    """A spread encoder whose samples are half filled keeps what full ones keep."""
    layout = ("parallelism.sharding=optimizer",)
    kept = [memory_fit(job(*layout, fill)) for fill in ("model.filled=0.5", "model.filled=1")]
    assert kept[0] is not None
    assert kept[1] is not None
    assert kept[0].items["activations"] == kept[1].items["activations"]


def test_only_megatron_has_one_kernel_for_scale_mask_and_softmax() -> None:
    """Torch's own kernels move the scores more often, and launching them takes the host longer."""
    unfused = "software.fused_attention=false"
    own, torch = job(unfused), job(unfused, "software.framework=apex")
    traffic = [
        float(score_traffic_time(transformer_step(s), kernels_of(s)).forward) for s in (own, torch)
    ]
    assert traffic[1] == pytest.approx(traffic[0] * (26.0 + 5.0) / (4.0 + 5.0))
    host = [float(launches(transformer_step(s), kernels_of(s)).forward) for s in (own, torch)]
    assert host[1] > host[0]


def test_parameters_are_those_of_the_layers_and_the_table() -> None:
    """BERT-large but for biases, norms, positions, pooler and transform: 1.5% of 335 million."""
    scenario = job()
    described = transformer_step(scenario)
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
    step = training_step(transformer_step(spread), kernels_of(spread))
    assert timing.step_time.mean == pytest.approx(float(step.total), rel=0.01)
    alone, part = memory_fit(whole), memory_fit(spread)
    assert alone is not None
    assert part is not None
    assert part.items["optimizer"] < 0.51 * alone.items["optimizer"]
