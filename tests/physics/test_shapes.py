"""Matrices as they are stored."""

from __future__ import annotations

from dataclasses import replace

import pytest

from simulator.physics.describe import describe
from simulator.physics.shapes import layer_parameters, padded_vocabulary
from simulator.reading.scenario import load_scenario


@pytest.mark.parametrize(("tensor", "rows"), [(1.0, 50304.0), (8.0, 51200.0)])
def test_each_rank_of_a_tensor_group_holds_whole_tiles_of_the_vocabulary(
    tensor: float, rows: float
) -> None:
    """50,257 rows become a multiple of 128 on each rank."""
    plain = describe(load_scenario("gpt3-175b-megatron"))
    padded = replace(
        plain,
        shape=replace(plain.shape, vocabulary=50257.0),
        layout=replace(plain.layout, tensor=tensor),
        work=replace(plain.work, padded_vocabulary=1.0),
    )
    assert float(padded_vocabulary(padded)) == rows


def test_shared_experts_are_weights_that_every_rank_holds() -> None:
    """Three matrices of a shared expert's width, beside the experts that ranks share out."""
    plain = describe(load_scenario("mixtral-8x7b-megatron"))
    width = 2048.0
    beside = replace(plain, shape=replace(plain.shape, shared_ffn=width))
    more = 3.0 * plain.shape.hidden * width
    for without, with_them in zip(layer_parameters(plain), layer_parameters(beside), strict=True):
        assert float(with_them - without) == pytest.approx(more)
