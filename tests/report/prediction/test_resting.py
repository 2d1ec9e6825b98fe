"""Which assumptions a figure is said to hang on."""

from __future__ import annotations

import pytest

from simulator.predict import predict
from simulator.reading.scenario import load_scenario
from simulator.report.prediction.origins import resting
from simulator.results.metrics import select
from simulator.results.prediction import Prediction
from simulator.schema.provenance import Part


@pytest.fixture(scope="module")
def language_model() -> Prediction:
    """Llama 3.1 70B on 64 GPUs, whose data never keeps it waiting."""
    return predict(load_scenario("llama3-70b-megatron"), intervals=False)


def parts(prediction: Prediction, metric: str) -> set[Part]:
    """What the assumptions of a metric bear on."""
    found = resting(prediction, select(metric))
    assert found
    return {part for one in found for part in one.bears_on}


def test_a_utilization_hangs_on_what_its_step_is_made_of(language_model: Prediction) -> None:
    """Neither the store, nor forked workers, nor memory is part of a step that never waits."""
    named = [one.what for one in resting(language_model, select("mfu"))]
    assert any("device time of a batch" in what for what in named)
    assert not any(word in what for what in named for word in ("worker", "store", "RAM", "rent"))
    assert len(named) < len(language_model.assumptions) / 3


@pytest.mark.parametrize(
    ("metric", "without"),
    [
        ("gpu_memory_bytes", {Part.BILL, Part.DEVICE, Part.EXCHANGE}),
        ("host_ram_bytes", {Part.BILL, Part.DEVICE, Part.EXCHANGE}),
        ("total_time_s", {Part.BILL, Part.GPU_MEMORY}),
        ("cost.usd_to_train", {Part.GPU_MEMORY}),
    ],
)
def test_no_figure_hangs_on_what_is_no_part_of_it(
    language_model: Prediction, metric: str, without: set[Part]
) -> None:
    """Memory knows no price, and time no memory of a device."""
    assert parts(language_model, metric).isdisjoint(without)


def test_a_bill_hangs_on_its_prices(language_model: Prediction) -> None:
    """The rent of the machines, or of the stores."""
    assert Part.BILL in parts(language_model, "cost.usd_to_train")
