"""Drawings of the page of a service: latencies against the load, with their intervals."""

from __future__ import annotations

from dataclasses import replace

import pytest

from simulator.predict import predict_service
from simulator.reading.merge_documents import chain_of
from simulator.reading.service.scenario import ServiceReader
from simulator.report.html.service import as_page, drawing
from simulator.results.serving import ServicePrediction

NAME = "first_token_s.at_slo"


@pytest.fixture(scope="module")
def prediction() -> ServicePrediction:
    """A service at a small load."""
    reader = ServiceReader(chain_of("llama3-8b-chat-h100"), "x")
    return predict_service(reader.read({"load.requests": 300}))


def test_intervals_are_drawn_as_far_as_the_drawing_goes(prediction: ServicePrediction) -> None:
    """Around their point, and to the upper end where the slower run is beyond saturation."""
    ends = {**prediction.interval[NAME], "p90": None}
    endless = replace(prediction, interval={**prediction.interval, NAME: ends})
    for one in (prediction, endless):
        found = drawing([one], NAME)
        assert found is not None
        (dot,) = found.dots
        assert dot.ends is not None
        assert 0.0 <= dot.ends[0] < dot.y < dot.ends[1] <= 1.0
    assert dot.ends[1] == 1.0
    assert dot.hint.endswith("to unbounded)")


def test_a_point_without_an_interval_has_no_line(prediction: ServicePrediction) -> None:
    """Nothing is drawn of an uncertainty that was not worked out."""
    found = drawing([replace(prediction, interval={})], NAME)
    assert found is not None
    assert found.dots[0].ends is None
    assert "(" not in found.dots[0].hint


def test_the_page_has_the_energy_of_a_service(prediction: ServicePrediction) -> None:
    """Costs and energies stand in tables of their own."""
    page = as_page(prediction, [])
    assert "<h2>Energy</h2>" in page
    assert "kW" in page


def test_the_question_and_what_to_do_next_come_first(prediction: ServicePrediction) -> None:
    """As on the page of a job: question, how it was made, verdict, actions, what was asked."""
    page = as_page(prediction, [], next_steps=["buy less", "sell more"])
    order = [
        f"<p>{prediction.service.title}</p>",
        'id="verdict"',
        'id="next"',
        "<li>buy less</li>",
        'id="asked"',
        "<h2>Latency</h2>",
    ]
    places = [page.index(part) for part in order]
    assert places == sorted(places)
    assert "80% interval of the mean" in page
