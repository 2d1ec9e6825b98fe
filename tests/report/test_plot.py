"""Figures show the prediction they were made of, in the format that was asked for."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from simulator.errors import PlanError, UnknownName
from simulator.report.plot import FIGURES, as_bytes, as_svg, prediction_figure
from simulator.results.prediction import Prediction


@pytest.mark.parametrize("what", FIGURES)
def test_every_figure_has_units(prediction: Prediction, what: str) -> None:
    """Each axis of amounts says what it is measured in."""
    figure = prediction_figure(prediction, what)
    assert all(re.search(r"\[.+\]", axes.get_xlabel()) for axes in figure.axes)


def test_the_bars_are_the_prediction(prediction: Prediction) -> None:
    """Twice the time, another figure; the bars of the step add up to it."""
    timing = prediction.timing
    doubled = replace(timing, step_time=replace(timing.step_time, mean=2 * timing.step_time.mean))
    figures = [
        prediction_figure(p, "step") for p in (prediction, replace(prediction, timing=doubled))
    ]
    assert as_svg(figures[0], "step") != as_svg(figures[1], "step")
    ends = [bar.get_x() + bar.get_width() for bar in figures[0].axes[0].patches]
    label = figures[0].axes[0].get_xlabel()
    assert "[ms]" in label
    assert max(ends) == pytest.approx(1000 * timing.step_time.mean, rel=1e-3)


@pytest.mark.parametrize(
    ("name", "start"), [("a.png", b"\x89PNG"), ("a.pdf", b"%PDF"), ("a.svg", b"<?xml")]
)
def test_formats(prediction: Prediction, name: str, start: bytes) -> None:
    """The file's name decides, and the same figure has the same bytes."""
    drawn = [as_bytes(prediction_figure(prediction, "memory"), Path(name)) for _ in range(2)]
    assert drawn[0].startswith(start)
    assert drawn[0] == drawn[1]


def test_names_are_taken_literally(prediction: Prediction) -> None:
    """A name that looks like a formula or a tag is text."""
    scenario = replace(prediction.scenario, name="$x^2$ <b>")
    svg = as_svg(prediction_figure(replace(prediction, scenario=scenario), "step"), "step")
    assert "$x^2$ &lt;b&gt;" in svg


def test_what_cannot_be_drawn_is_refused(prediction: Prediction) -> None:
    """An unknown figure and an unknown format name what there is."""
    with pytest.raises(UnknownName, match="allowed: step, utilization, memory"):
        prediction_figure(prediction, "pie")
    with pytest.raises(PlanError, match="allowed: png, svg, pdf"):
        as_bytes(prediction_figure(prediction, "step"), Path("a.bmp"))
