"""A validation made up by hand: two sets whose predictions are given, not computed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from simulator.reading.measured.measurement_set import parse_set
from simulator.schema.measurement import MeasurementSet
from simulator.validation import validate as study
from simulator.validation.features import Features
from simulator.validation.forecast import Fitted, Forecast
from simulator.validation.validate import Validated

STEPS = """
schema = 1
name = "steps"
title = "Steps of a made-up machine"
data = "steps.csv"
base = "resnet50-m40"
source = "made up for a test"
date = "2026-11"
metrics = ["step_time_s.mean", "accelerator_utilization"]
absolute = ["accelerator_utilization"]
split = "given"
group_by = ["machine"]
anchor = "one worker"

[[fit]]
key = "input.decode"
start = "5 ms"
low = "1 ms"
high = "1 s"

[[tolerance]]
metric = "step_time_s.mean"
mean = 0.05
target_mean = 0.03

[[tolerance]]
metric = "accelerator_utilization"
family = "*"
largest = 0.1
"""
_MEASURED = "measured.step_time_s.mean,measured.accelerator_utilization"
STEP_ROWS = f"""id,family,machine,input.workers,{_MEASURED},split,anchor,exclude
a1,small,m1,1,0.2,0.9,fit,yes,
a2,small,m1,2,0.1,0.8,test,,
a4,small,m1,4,0.05,,test,,
b1,large,m2,1,0.4,0.5,test,,
b2,large,m2,2,0.2,0.25,fit,,
b4,large,m2,4,,,test,,the disk was full
"""
PREDICTED = {
    "a1": (0.2, 0.9, 0.1),
    "a2": (0.104, 0.79, 0.1),
    "a4": (0.047, None, 0.02),
    "b1": (0.46, 0.52, 0.1),
    "b2": (0.19, 0.3, None),
}
"""Step, utilization, and half of the relative width of the step's interval."""


def steps() -> MeasurementSet:
    """The made-up set."""
    return parse_set(STEPS, STEP_ROWS, "steps.toml", Path())


def forecast(row: str) -> Forecast:
    """What is predicted of a row."""
    step, share, width = PREDICTED[row]
    band = {} if width is None else {"step_time_s.mean": (step * (1 - width), step * (1 + width))}
    figures = {"step_time_s.mean": step}
    if share is not None:
        figures["accelerator_utilization"] = share
    features = Features(devices=1, samples=32.0, operations=None, peak=None, numbers={}, words={})
    return Forecast(figures=figures, intervals=band, features=features)


def validated(
    monkeypatch: pytest.MonkeyPatch,
    one: MeasurementSet | None = None,
    forecasts: Mapping[str, Forecast] | None = None,
) -> Validated:
    """A validation of the set with what is predicted given."""
    found = one or steps()
    known = {row: forecast(row) for row in PREDICTED} if forecasts is None else forecasts
    rows = {(found.name, row): value for row, value in known.items()}
    groups = [
        Fitted(key=(found.name, ("m1",)), overrides=("input.decode=4.2 ms",)),
        Fitted(key=(found.name, ("m2",)), unfitted="no anchor"),
    ]
    monkeypatch.setattr(study, "forecast_all", lambda *_, **__: (rows, groups))
    return study.validate([found], processes=1)
