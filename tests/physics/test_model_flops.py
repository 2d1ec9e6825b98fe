"""FLOPs of a sample, against utilizations that others published for measured steps."""

from __future__ import annotations

import pytest

from simulator.physics.model_flops import hardware_utilization, model_utilization, tokens_per_sample
from simulator.predict import predict
from simulator.reading.scenario import load_scenario
from simulator.results.metrics import number_at

KORTHIKANTI = (
    # model, GPUs, tensor, pipeline, global batch, step [s], published MFU and HFU
    ("gpt3-22b", 8, 8, 1, 4, 1.10, 0.415, 0.437),
    ("gpt3-175b", 64, 8, 8, 64, 13.75, 0.514, 0.528),
    ("gpt-530b", 280, 8, 35, 280, 37.83, 0.560, 0.570),
    ("gpt-530b", 2240, 8, 35, 2240, 39.15, 0.542, None),
    ("gpt-1t", 512, 8, 64, 512, 71.49, 0.563, 0.570),
)
"""Korthikanti et al., 2022, table 5 and section 6.3, https://arxiv.org/abs/2205.05198."""


@pytest.mark.parametrize("row", KORTHIKANTI, ids=lambda row: f"{row[0]}-{row[1]}")
def test_a_measured_step_has_the_published_mfu(
    row: tuple[str, int, int, int, int, float, float, float | None],
) -> None:
    """A published step time gives the MFU and the HFU that were published with it."""
    model, gpus, tensor, pipeline, batch, step, published, hardware = row
    scenario = load_scenario(
        "turing-nlg-530b",
        overrides=(
            f"model.name={model}",
            f"hardware.count={gpus // 8}",
            f"parallelism.tensor={tensor}",
            f"parallelism.pipeline={pipeline}",
            "parallelism.interleave=1",
            f"parallelism.scattered_sends={'true' if pipeline > 1 else 'false'}",
            f"train.global_batch_size={batch}",
        ),
    )
    found = model_utilization(scenario, batch / step)
    assert found is not None
    assert float(found.value) == pytest.approx(published, rel=0.005)
    computed = hardware_utilization(scenario, batch / step)
    assert computed is not None
    if hardware is not None:
        assert float(computed.value) == pytest.approx(hardware, rel=0.005)


def test_full_recomputation_is_a_third_more() -> None:
    """A forward pass done twice makes four passes of three, but for the head's."""
    scenario = load_scenario("turing-nlg-530b", overrides=("train.recompute=full",))
    model, hardware = (one(scenario, 57.0) for one in (model_utilization, hardware_utilization))
    assert model is not None
    assert hardware is not None
    assert float(hardware.value) / float(model.value) == pytest.approx(4.0 / 3.0, rel=2e-3)


def test_without_recomputation_both_are_the_same() -> None:
    """Nothing computed twice, nothing counted twice."""
    scenario = load_scenario("turing-nlg-530b", overrides=("train.recompute=none",))
    model, hardware = (one(scenario, 57.0) for one in (model_utilization, hardware_utilization))
    assert model is not None
    assert hardware is not None
    assert float(hardware.value) == float(model.value)


def test_the_shipped_scenario_predicts_the_published_mfu() -> None:
    """Turing-NLG on 2,240 A100, 54.2% published: predicted within the model's error of a step."""
    prediction = predict(load_scenario("turing-nlg-530b"), intervals=False)
    assert number_at(prediction, "mfu") == pytest.approx(0.542, rel=0.05)


def test_metrics_of_tokens_agree() -> None:
    """Tokens a step over its time are tokens a second; a trillion take as long as they take."""
    prediction = predict(load_scenario("llama3-8b-fsdp"), intervals=False)
    rate = number_at(prediction, "tokens_per_s")
    each = number_at(prediction, "tokens_per_s_per_gpu")
    step = number_at(prediction, "tokens_per_step")
    whole = number_at(prediction, "time_per_trillion_tokens_s")
    assert None not in (rate, each, step, whole)
    assert rate == pytest.approx((step or 0.0) / prediction.timing.step_time.mean)
    assert rate == pytest.approx(8 * (each or 0.0))
    assert whole == pytest.approx(1e12 / (rate or 1.0))


def test_images_are_no_tokens() -> None:
    """A vision model has an MFU and no tokens; a job without an accelerator has neither."""
    vision = load_scenario("resnet50-imagenet-p4d")
    assert tokens_per_sample(vision) is None
    assert model_utilization(vision, 1000.0) is not None
    assert model_utilization(load_scenario("svm-cpu-only"), 1000.0) is None
