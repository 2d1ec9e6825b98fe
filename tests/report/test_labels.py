"""Jobs that learn nothing are not said to train."""

from __future__ import annotations

from dataclasses import replace

import pytest

from simulator.predict import predict
from simulator.reading.scenario import load_scenario
from simulator.report import labels
from simulator.report.advise import document
from simulator.report.document import Format, render
from simulator.report.labels import batch_called, bill_called, device_called
from simulator.report.prediction.rows import cost_rows
from simulator.results.assumptions import warnings
from simulator.schema.uncertainty import Grade
from simulator.studies.advise import Advice, Setting


@pytest.mark.parametrize(
    ("name", "batch", "bill"),
    [
        ("resnet50-imagenet-p4d", "step", "to train"),
        ("rl-actors", "step", "to train"),
        ("inference-batch1-gpu", "batch", "bill"),
        ("offline-preparation", "batch", "bill"),
    ],
)
def test_what_a_job_repeats_and_pays_for(name: str, batch: str, bill: str) -> None:
    """A job that trains takes steps; others take batches, and pay for them."""
    scenario = load_scenario(name)
    assert (batch_called(scenario), bill_called(scenario)) == (batch, bill)
    found = predict(scenario, intervals=False)
    assert {batch, bill} <= {row for row, _ in cost_rows(found)}


def test_an_accelerator_of_another_kind_is_no_gpu() -> None:
    """A GPU is called so."""
    assert device_called(load_scenario("resnet50-imagenet-p4d")) == "GPU"


def test_advice_for_a_preparation_speaks_of_its_rate() -> None:
    """Nobody waits for the data that are prepared."""
    made = predict(load_scenario("offline-preparation"), intervals=False)
    now = Setting(workers=48, prefetch=2, prediction=made)
    advice = Advice(base=now, within=0.01, top=64, chosen=None, best=now, table=(now,))
    text = render(document(advice), Format.TABLE)
    assert "wait" not in text.replace("waiting", "")
    assert "Keep input.workers = 48, input.prefetch = 2: the smallest number that" in text


def test_advice_that_saves_memory_alone_does_not_speak_of_speed() -> None:
    """Fewer workers that are as fast are said to be so, not to take a step in place of its own."""
    made = predict(load_scenario("resnet50-imagenet-p4d"), intervals=False)
    now = Setting(workers=48, prefetch=2, prediction=made)
    fewer = Setting(workers=24, prefetch=2, prediction=made)
    advice = Advice(base=now, within=0.01, top=64, chosen=fewer, best=now, table=(now, fewer))
    text = render(document(advice), Format.TABLE)
    assert "Same step time (292 ms)" in " ".join(text.split())
    assert "(x1)" not in text


def test_a_warning_of_a_preparation_counts_batches() -> None:
    """What is simulated of a job that writes files are batches, and no steps."""
    made = predict(load_scenario("offline-preparation"), intervals=False)
    shaky = replace(made.timing, half_width=made.timing.step_time.mean, bounded=True)
    said = warnings(made.scenario, shaky, made.host_ram, None, ())
    (told,) = (text for text in said if text.startswith("batches differ so much"))
    assert told.endswith(" simulated ones is off by up to 100% by chance")
    assert any("is the lower bound of a sustained run" in text for text in said)
    assert not any("step" in text for text in said)


def test_every_grade_of_evidence_has_words() -> None:
    """A report never meets a grade that it has no words for."""
    assert set(labels._GRADES) == set(Grade)  # noqa: SLF001 - the table of words
