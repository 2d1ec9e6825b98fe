"""Recommenders, CPU-only models and models known by their totals; layers themselves."""

from __future__ import annotations

import numpy as np
import pytest

from simulator.errors import NotModelled
from simulator.schema.accelerators import Precision
from simulator.schema.models import CpuOnly, CustomModel, Dlrm, Layer, activation_element, merge
from simulator.schema.training import Recompute

KAGGLE = Dlrm(
    name="dlrm-kaggle",
    tables=26,
    rows=33_762_577.0,
    width=16,
    dense_features=13,
    bottom=(512, 256, 64, 16),
    top=(512, 256, 1),
)
OWN = CustomModel(
    name="mine",
    parameters=1e6,
    forward_flops=2e9,
    traffic=3e6,
    activation=4e6,
    input_bytes=10.0,
    output_bytes=1.0,
)


def test_dlrm_parameters_are_tables_and_mlps() -> None:
    """540 M parameters on Criteo Kaggle, of which the MLPs are counted by hand."""
    bottom = 13 * 512 + 512 + 512 * 256 + 256 + 256 * 64 + 64 + 64 * 16 + 16
    pairs = 27 * 26 // 2 + 16
    top = pairs * 512 + 512 + 512 * 256 + 256 + 256 + 1
    assert KAGGLE.dense_parameters == bottom + top
    assert KAGGLE.parameters == pytest.approx(540e6, rel=0.01)


def test_dlrm_looks_rows_up_without_arithmetic() -> None:
    """The embedding operator moves looked-up rows only, whatever the size of the tables."""
    embedding = KAGGLE.operators(100.0, Precision.FP32)[0]
    assert (embedding.flops, embedding.matrix) == (0.0, False)
    assert embedding.traffic == 100 * 26 * (2 * 16 * 4 + 8)


def test_dlrm_input_and_activations_grow_with_samples() -> None:
    """13 fp32 and 26 64-bit integers a sample; recomputation keeps the looked-up rows."""
    assert KAGGLE.input_bytes == 13 * 4 + 26 * 8
    kept = KAGGLE.activation_bytes(10.0, Precision.FP16, Recompute.FULL)
    assert kept == 10 * 27 * 16 * 2
    assert KAGGLE.activation_bytes(10.0, Precision.FP16, Recompute.NONE) > kept


def test_a_cpu_model_asks_nothing_of_a_device() -> None:
    """No operators, no activations, no gradients; only core seconds."""
    model = CpuOnly(
        name="svm", parameters=29.0, cpu_seconds=1e-6, input_bytes=224.0, output_bytes=8.0
    )
    assert model.operators(10.0, Precision.FP32) == ()
    assert model.dense_parameters == 0.0
    kept = model.activation_bytes(np.array([1.0, 2.0]), Precision.FP32, Recompute.NONE)
    assert np.array_equal(kept, np.zeros(2))


def test_a_custom_model_is_one_operator() -> None:
    """Per-sample figures times samples, weights once, twice as much backward."""
    (operator,) = OWN.operators(8.0, Precision.FP16)
    assert operator.flops == 8 * 2e9
    assert operator.traffic == 8 * 3e6 + 2 * 1e6
    assert operator.backward_flops == 2 * operator.flops
    assert OWN.activation_bytes(8.0, Precision.FP16, Recompute.NONE) == 8 * 4e6
    assert OWN.cpu_seconds == 0.0


def test_counted_totals_follow_the_precision() -> None:
    """Figures counted in fp32 halve in 16 bit; a user's own are taken as they are."""
    counted = CustomModel(
        name="counted",
        parameters=0.0,
        forward_flops=1.0,
        traffic=8.0,
        activation=4.0,
        element_bytes=4.0,
    )
    assert counted.operators(1.0, Precision.BF16)[0].traffic == 4.0
    assert counted.activation_bytes(1.0, Precision.FP32, Recompute.NONE) == 4.0


def test_recomputing_a_custom_model_is_refused() -> None:
    """Totals don't say what recomputation saves."""
    with pytest.raises(NotModelled, match="mine"):
        OWN.activation_bytes(1.0, Precision.FP32, Recompute.SELECTIVE)


def test_activations_stay_in_16_bit_below_it() -> None:
    """fp8 and fp4 shrink the factors of products, not what lies between them."""
    assert activation_element(Precision.FP8) == 2.0
    assert activation_element(Precision.FP32) == 4.0
    layer = Layer(name="product", moved=10.0, weights=100.0)
    assert layer.operator(1.0, Precision.FP8).traffic == 10 * 2 + 100 * 1


def test_merging_adds_layers_of_one_name() -> None:
    """Order of first appearance, sums of all counts."""
    first, second = Layer(name="a", macs=1.0, kept=2.0), Layer(name="b", moved=3.0)
    merged = merge((first, second, first.times(4.0)))
    assert [layer.name for layer in merged] == ["a", "b"]
    assert (merged[0].macs, merged[0].kept, merged[0].kernels) == (5.0, 10.0, 5.0)


def test_wide_elements_are_fp32_whatever_the_precision() -> None:
    """A loss in fp32 moves four bytes an element in 16-bit training."""
    operator = Layer(name="loss", moved=1.0, wide=1.0).operator(3.0, Precision.FP16)
    assert operator.traffic == 3 * (2 + 4)
