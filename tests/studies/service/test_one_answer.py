"""A service has one capacity, latency and price: in a prediction, in sizing and in a search."""

from __future__ import annotations

import pytest

from simulator.predict import predict_service
from simulator.reading.merge_documents import chain_of
from simulator.reading.service.scenario import ServiceReader
from simulator.reading.shipped import service_names
from simulator.results.metrics import service_figures
from simulator.schema.serving import OpenLoop, Service
from simulator.studies import service_sizing
from simulator.studies.service_sizing import Choice, Need, cheapest_machines, cost_at, needs
from simulator.units import HOUR

SEARCHED = ("llama3-8b-chat-h100", "image-classifier-t4")


def reader(name: str, *overrides: str) -> ServiceReader:
    """A shipped service with some settings."""
    return ServiceReader(chain_of(name), name, overrides=overrides)


def sized_services() -> list[str]:
    """The shipped services that have limits and a constant rate of arrivals."""
    found = list[str]()
    for name in service_names():
        service = reader(name).read({})
        steady = isinstance(service.load.arrivals, OpenLoop) and not service.load.is_bulk
        if steady and service.slo.limits:
            found.append(name)
    return found


def compare(found: Need | Choice, service: Service) -> None:
    """Check the figures of sized machines against the prediction of the same machines."""
    figures = service_figures(predict_service(service))
    answered = found.answered
    assert answered is not None
    expected = {
        "saturation.requests_per_s": found.capacity,
        "saturation.headroom": found.headroom,
        "slo.attainment": answered.attainment,
        "end_to_end_s.at_slo": answered.end_to_end.at_slo,
        "end_to_end_s.p99": answered.end_to_end.p99,
        "cost.usd_per_hour": None if found.price is None else found.price * HOUR,
    }
    if found.highest is not None:
        expected["saturation.requests_per_s_within_slo"] = found.highest
    if service.one_pass is None:
        expected["first_token_s.p99"] = answered.first_token.p99
        expected["per_token_s.p99"] = answered.per_token.p99
    if isinstance(found, Choice):
        expected["cost.usd_per_thousand_requests"] = cost_at(found).per_thousand_requests
    for name, value in expected.items():
        assert figures[name] == pytest.approx(value, rel=1e-9), name


@pytest.mark.parametrize("name", sized_services())
def test_sizing_says_what_a_prediction_says(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Capacity, rate within the limits, latencies and price of the machines that are needed."""
    monkeypatch.setattr(service_sizing, "RATE_FACTORS", (1.0,))
    asked = reader(name)
    need = needs(asked.read({}))[0]
    assert need.machines is not None
    compare(need, asked.read(need.settings))


@pytest.mark.parametrize("name", SEARCHED)
def test_a_search_says_what_a_prediction_says(name: str) -> None:
    """The same of every choice of ``plan recommend``, with the settings that it prints."""
    asked = reader(name)
    found = cheapest_machines(asked.read, asked.candidates())
    assert found.choices
    assert found.choices[0].highest is not None
    for choice in found.choices:
        compare(choice, asked.read(choice.settings))
