"""Arithmetic of a model, against published counts."""

from __future__ import annotations

import pytest

from simulator.equations.flops import computed_flops, flops_rate, flops_utilization, trained_flops

H100 = 989.4e12
MPT_70B, WIDTH, LAYERS, POSITIONS = 64.8624e9, 8192, 80, 2048


@pytest.mark.parametrize(
    ("tokens", "mfu", "hfu"),
    [(1007.1, 0.4125, 0.55), (1035.74, 0.4242, 0.5656), (1058.52, 0.4336, 0.5781)],
)
def test_published_utilizations(tokens: float, mfu: float, hfu: float) -> None:
    """MPT-70b on 512, 256, 128 H100: mosaicml/llm-foundry scripts/train/benchmarking @8c8dd48."""
    forward = 2.0 * MPT_70B + 4.0 * LAYERS * WIDTH * POSITIONS
    model = trained_flops(2.0 * MPT_70B, 4.0 * LAYERS * WIDTH * POSITIONS)
    again = computed_flops(model, forward)
    found = flops_utilization(flops_rate(model, tokens, 1.0), H100)
    assert found == pytest.approx(mfu, abs=2e-4)
    assert flops_utilization(flops_rate(again, tokens, 1.0), H100) == pytest.approx(hfu, abs=3e-4)


def test_inference_is_one_pass() -> None:
    """Without a backward pass a third is left."""
    assert trained_flops(3.0, 1.0, 1.0) == trained_flops(3.0, 1.0) / 3.0
