"""The report on the measured rows nearest a scenario, in a terminal of 80 columns."""

from __future__ import annotations

import json
from dataclasses import replace

from simulator.predict import predict
from simulator.reading.scenario import load_scenario
from simulator.report.document import Format, render
from simulator.report.evidence import headline, near_document
from simulator.report.html.prediction import as_page
from simulator.report.text import WIDTH
from simulator.results.prediction import Prediction
from simulator.schema.measurement import Row, Split
from simulator.validation.local_coverage import Near, Neighbourhood
from simulator.validation.scores import Judged, Point, Score, score


def as_text(found: Neighbourhood) -> str:
    """Return the report as text."""
    return render(near_document(found), Format.TABLE)


def as_json(found: Neighbourhood) -> str:
    """Return the report as JSON."""
    return render(near_document(found), Format.JSON)


METRIC = "throughput_samples_per_s"


def near(name: str, distance: float, predicted: float) -> Near:
    """A row with its one judged figure."""
    point = Point(predicted=predicted, measured=100.0)
    judged = Judged(
        set="mlperf_storage", id=name, family="f", split=Split.TEST, metric=METRIC, point=point
    )
    row = Row(id=name, base="", overrides=(), measured={METRIC: 100.0}, family="f")
    apart = {
        "accelerator": "gpu/h100-sxm5-80gb, not gpu/a100-sxm4-40gb",
        "bytes a sample": "1.28e+03x",
        "batch size": "57.1x",
    }
    return Near(
        set="mlperf_storage",
        row=replace(row, split=Split.TEST),
        distance=distance,
        apart=apart,
        judged=(judged,),
    )


ROWS = (
    near("short", 1.25, 93.0),
    near("DDN DDN_EXAScaler_AI400X3_1node_1xNDR400 unet3d-h100-1-host-run-20260704_050040", 4, 130),
)


def found(reach: float, *, within: int) -> Neighbourhood:
    """A neighbourhood of both rows; `within` of them are within reach."""
    one: Score | None = score([near.judged[0].point for near in ROWS[:within]], absolute=False)
    return Neighbourhood(
        scenario="mine",
        rows=ROWS,
        scores={} if one is None else {METRIC: one},
        compared=2000,
        reach=reach,
    )


def test_nothing_is_cut_off() -> None:
    """Every row's distance, error and differences are there; long names are wrapped."""
    text = as_text(found(2.5, within=1))
    assert max(len(line) for line in text.split("\n")) <= WIDTH
    words = " ".join(text.split())
    assert words.count("batch size 57.1x") == 2
    assert "-7.0%" in words
    assert "+30.0%" in words
    assert "..." not in text


def test_the_error_says_over_which_rows_it_is() -> None:
    """How many rows, within which distance; nothing is said where all are too far."""
    text = as_text(found(2.5, within=1))
    assert "over the 1 row within a distance of 2.5:" in text
    assert f"{METRIC}: median 7.0%, mean 7.0%, largest 7.0% (1 row)" in text
    assert "unknown: no measured row is within a distance of 1.0" in as_text(found(1.0, within=0))
    assert json.loads(as_json(found(2.5, within=1)))["reach"] == 2.5


def test_what_was_measured_here_leads() -> None:
    """A row that differs in nothing stands in the page's verdict; one that differs does not."""
    prediction = predict(load_scenario("resnet50-imagenet-p4d"))
    here = replace(near("the very same", 0.0, 400.0), apart={})
    text = headline(prediction, replace(found(2.5, within=1), rows=(here, *ROWS)))
    assert text == (
        "Measured at this very configuration: speed 100 samples/s, 0.25x the prediction "
        "(mlperf_storage: the very same); the intervals are widened to include it."
    )
    assert headline(prediction, found(2.5, within=1)) == ""


def test_a_page_shows_only_the_rows_that_are_near(prediction: Prediction) -> None:
    """A row beyond reach is not listed; where none is near, the page says so and claims nothing."""
    far = replace(ROWS[0], distance=9.0, row=replace(ROWS[0].row, id="a-far-row"))
    close = replace(ROWS[0], row=replace(ROWS[0].row, id="a-close-row"))
    near_one = replace(found(2.0, within=1), rows=(close, far))
    page = as_page(prediction, near_one)
    assert "a-close-row" in page
    assert "a-far-row" not in page
    alone = as_page(prediction, replace(near_one, rows=(far,)))
    assert "a-far-row" not in alone
    assert "The error is unknown." in " ".join(alone.split())
