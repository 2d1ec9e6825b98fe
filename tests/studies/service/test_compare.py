"""Services side by side: ratios of prices and rates, and the keys that differ."""

from __future__ import annotations

import pytest

from simulator.predict import predict_service
from simulator.reading.document import Document
from simulator.reading.effective_settings import service_inputs
from simulator.reading.merge_documents import chain_of
from simulator.reading.service.scenario import ServiceReader
from simulator.report.compare import document
from simulator.report.document import Format, render
from simulator.results.serving import ServicePrediction
from simulator.studies.compare import ServiceRatio, Side, differing, service_ratio

CHAT = "llama3-8b-chat-h100"


def side(*overrides: str) -> Side[ServicePrediction]:
    """The chat service with some settings."""
    reader = ServiceReader(chain_of(CHAT), CHAT, overrides=overrides)
    service, document = reader.read({}), reader.document()
    assert isinstance(document, Document)
    return Side(
        label=CHAT,
        prediction=predict_service(service, intervals=False),
        inputs=service_inputs(document, service),
    )


def test_twice_the_machines_take_twice_the_load_at_the_same_cost_of_a_request() -> None:
    """Two replicas on two machines: a request of full machines costs what it did."""
    double = side("hardware.count=2", "serving.replicas=2")
    found = service_ratio(side(), double)
    assert found is not None
    assert found.price == pytest.approx(2.0)
    assert found.requests == pytest.approx(2.0)
    assert found.saved == pytest.approx(0.0, abs=1e-9)
    said = " ".join(render(document([side(), double]), Format.TABLE).split())
    assert "cost per request at full load the same" in said


def test_a_cost_is_the_price_over_the_requests() -> None:
    """Half the requests at a price of three quarters: half as much again."""
    assert ServiceRatio(price=0.75, requests=0.5).cost == pytest.approx(1.5)
    assert ServiceRatio(price=0.75, requests=0.5).saved == pytest.approx(-0.5)
    assert ServiceRatio(price=None, requests=0.5).saved is None


def test_what_does_not_fit_has_no_ratio() -> None:
    """A model that is larger than the device answers nothing."""
    assert service_ratio(side(), side("model.name=llama-3.1-70b")) is None


def test_keys_that_differ_have_the_engine_s_own_values_where_nothing_is_said() -> None:
    """A stated budget beside the engine's default of it."""
    sides = [side(), side("serving.max_batched_tokens=2048")]
    assert differing(sides) == ("serving.max_batched_tokens",)
    texts = [one.inputs["serving.max_batched_tokens"].text for one in sides]
    assert texts == ["8192", "2048"]


def test_a_default_that_is_stated_makes_no_difference() -> None:
    """To say what the engine does anyway changes nothing."""
    assert differing([side(), side("serving.max_batched_tokens=8192")]) == ()
