"""The answer on one screen."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache

import pytest

from simulator.predict import predict
from simulator.reading.scenario import load_scenario
from simulator.reading.shipped import scenario_names
from simulator.report.document import Format, render
from simulator.report.numbers import known, quantity, significant
from simulator.report.prediction.job import document
from simulator.results.prediction import Prediction
from simulator.units import SECOND, USD


def as_text(prediction: Prediction, *, width: int = 100) -> str:
    """Return the short report."""
    return render(document(prediction), Format.TABLE, width=width)


@cache
def predicted(name: str, *settings: str) -> Prediction:
    """A shipped scenario's prediction, intervals included."""
    return predict(load_scenario(name, overrides=settings))


def row(text: str, name: str) -> str:
    """What stands beside a name at the left."""
    return next(
        line.removeprefix(name).strip() for line in text.splitlines() if line.startswith(f"{name} ")
    )


def test_inputs_that_decide_are_repeated() -> None:
    """Machine, data, workers in all, model and global batch stand above the answer."""
    text = as_text(predicted("resnet50-imagenet-p4d"))
    assert row(text, "Machine") == "1 x p4d.24xlarge: 8 x A100-SXM4-40GB, 96 vCPUs, 1.24 TB RAM"
    assert "12 workers per process, 96 per machine, prefetch 2" in row(text, "Input")
    assert "2,048 in all" in row(text, "Model")


@pytest.mark.parametrize("width", [60, 80, 100])
@pytest.mark.parametrize("name", ["resnet50-imagenet-p4d", "llama3-70b-megatron", "svm-cpu-only"])
def test_no_line_is_wider_than_the_terminal(name: str, width: int) -> None:
    """Narrow terminals get shorter lines, not wrapped ones."""
    assert max(map(len, as_text(predicted(name), width=width).splitlines())) <= width


def test_no_row_of_nothing() -> None:
    """Idle resources and parts of a step that take no time are left out."""
    text = as_text(predicted("resnet50-imagenet-p4d"))
    assert "disk" not in row(text, "Busy")
    assert " 0%" not in text
    assert "communication" not in text


def test_language_models_get_their_words() -> None:
    """Tokens, MFU and a trillion tokens for text; nothing of it for images."""
    said = row(as_text(predicted("llama3-70b-megatron")), "Tokens")
    assert re.search(r"tokens/s \(.*\); [\d,]+ per GPU; MFU 3\d\.\d% \(7\d\d TFLOP/s\); 1T", said)
    assert "\nTokens" not in as_text(predicted("resnet50-imagenet-p4d"))


def test_preparation_has_no_step() -> None:
    """Files read and written have no step, no training and nobody who waits for data."""
    text = as_text(predicted("offline-preparation"))
    words = set(text.lower().replace(":", " ").split())
    assert not words & {"step", "steps", "train", "training", "stall", "epoch", "gpu"}


def test_inference_has_batches() -> None:
    """A model that answers takes batches, not steps."""
    text = as_text(predicted("inference-batch1-gpu"))
    assert "\nBatch " in text
    assert "\nStep " not in text
    assert "loading the input" in text


def test_what_the_answer_hangs_on_comes_by_its_worth() -> None:
    """The decode time that a starved job rests on is named first, the price of memory never."""
    lines = as_text(predicted("resnet50-imagenet-p4d")).splitlines()
    first = lines[lines.index("Largest uncertainties") + 1]
    assert first.strip().startswith("CPU time per sample (measured on another machine)")


def test_warnings_leave_out_what_is_said_already() -> None:
    """The list of guesses is one number, the misfit is the verdict's."""
    text = as_text(predicted("bert-large-v100-16gb"))
    assert "rests on unverified" not in text
    assert "GPU memory: the job" not in text
    assert text.startswith("bert-large")
    assert "inputs are unverified" in text


def test_names_of_resources_are_peoples() -> None:
    """Nobody has to look up what host_memory or h2d is."""
    for name in scenario_names()[::6]:
        text = as_text(predicted(name))
        assert not any(word in text for word in ("host_memory", "h2d", "nvlink", "data_stall"))


def test_digits_follow_the_interval() -> None:
    """Two digits where the interval is wide, three where it is narrow."""
    whole = predicted("resnet18-imagenet-serial")
    step = replace(whole.timing.step_time, mean=0.2704)
    timing = replace(whole.timing, step_time=step)
    wide = {"step_time_s.mean": {"p10": 0.211, "p50": 0.27, "p90": 0.351}}
    shown = known(replace(whole, timing=timing, interval=wide), "step_time_s.mean")
    assert shown == "270 ms (210-350 ms)"
    narrow = {"step_time_s.mean": {"p10": 0.2677, "p50": 0.27, "p90": 0.2723}}
    shown = known(replace(whole, timing=timing, interval=narrow), "step_time_s.mean")
    assert shown == "270 ms (268-272 ms)"


@pytest.mark.parametrize(
    ("value", "unit", "digits", "said"),
    [
        (0.43, USD, 2, "$0.43"),
        (0.3, USD, 2, "$0.30"),
        (12345.0, USD, 2, "$12,000"),
        (0.0, SECOND, 3, "0 s"),
        (59.96, SECOND, 3, "60 s"),
    ],
)
def test_quantities(value: float, unit: object, digits: int, said: str) -> None:
    """Money has cents or none, times keep their unit."""
    assert quantity(value, unit, digits) == said  # type: ignore[arg-type] # a unit


def test_numbers_beyond_reason_stay_words() -> None:
    """No digits of what is not finite."""
    assert significant(float("inf"), 2) == "inf"


def test_an_owned_machine_of_unknown_price_names_what_to_state() -> None:
    """Who owns the machine is told to state what it cost, not what it rents for."""
    text = as_text(predicted("gpt2-tokens-h100", "cost.purchase=owned"))
    assert "state owned.capex" in row(text, "Cost")
    assert "cost.price" not in text


def test_electricity_of_owned_machines_is_in_the_cost() -> None:
    """It comes on top of what the machine costs by the hour; rent has it in it."""
    one = predicted("resnet50-imagenet-p4d", "cost.purchase=owned", "owned.capex=$150000")
    text = " ".join(row(as_text(one, width=200), "Cost").split())
    assert re.search(r"for the run at \$[\d.]+/h and \$[\d.]+ of electricity; ", text)
    assert "electricity" not in row(as_text(predicted("resnet50-imagenet-p4d")), "Cost")


def test_energy_is_told_where_electricity_is() -> None:
    """Energy, its price and emissions with their dates in a line; none where nobody asks for it."""
    name = "resnet50-imagenet-p4d"
    asked = ("energy.grid=gcp/us-central1", "energy.tariff=us/iowa/industrial")
    told = row(as_text(predicted(name, *asked)), "Energy")
    found = r"[\d.]+ kWh \([\d.]+-[\d.]+ kWh\) for the run, "
    found += r"\$[\d.]+ at \$0.0604/kWh \(2025-04\), [\d.]+ kg CO2e \(2024\)"
    assert re.fullmatch(found, told)
    assert "\nEnergy" not in as_text(predicted(name))
