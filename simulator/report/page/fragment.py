"""A prediction as a piece of HTML for a notebook: verdict, key figures and the step."""

from __future__ import annotations

from simulator.report.layout import printable
from simulator.report.page.bars import busy, waterfall
from simulator.report.page.environment import rendered
from simulator.report.page.prediction import tiles
from simulator.report.verdict import verdict
from simulator.results.prediction import Prediction


def as_fragment(prediction: Prediction) -> str:
    """A ``<div>`` that brings its own style and touches nothing around it."""
    return rendered(
        "fragment.html.j2",
        name=printable(prediction.scenario.name),
        verdict=printable(verdict(prediction)),
        fits=prediction.fits,
        tiles=tiles(prediction),
        waterfall=waterfall(prediction),
        busy=busy(prediction),
    )
