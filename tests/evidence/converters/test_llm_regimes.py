"""Regimes of language-model runs."""

from __future__ import annotations

import pytest

from converters.llm.regimes import regimes_of

PLAIN = {
    "model.shape.hidden": "8192",
    "model.shape.sequence": "2048",
    "hardware.gpus": "8",
    "hardware.count": "8",
    "parallelism.tensor": "8",
    "train.precision": "bf16",
}


@pytest.mark.parametrize(
    ("changes", "regimes"),
    [
        ({}, ""),
        ({"model.shape.hidden": "4096"}, "small products"),
        ({"parallelism.tensor": "16", "model.shape.hidden": "16384"}, "tensor over machines"),
        ({"parallelism.tensor": "4"}, "part of a machine"),
        ({"parallelism.tensor": "4", "hardware.count": "1"}, ""),
        ({"model.shape.sequence": "16384"}, "long sequences"),
        ({"train.precision": "fp4", "model.family": "moe"}, "8 bit and below; experts"),
        ({"parallelism.sharding": "parameters"}, "sharded parameters"),
        ({"parallelism.sharding": "optimizer"}, ""),
        ({"software.fused_attention": "false"}, "scores in memory"),
        ({"hardware.count": "64"}, "512 devices and more"),
    ],
)
def test_a_run_lies_where_its_description_says(changes: dict[str, str], regimes: str) -> None:
    """Each regime by the key that makes it."""
    assert regimes_of({**PLAIN, **changes}) == regimes
