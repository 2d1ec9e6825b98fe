"""Every shipped job has a bill with a dated price, or its report says which price is missing."""

from __future__ import annotations

import pytest
from support.catalogue import each

from simulator.predict import predict
from simulator.reading.document import read_document
from simulator.reading.merge_documents import chain_of, describes_service
from simulator.reading.scenario import load_scenario
from simulator.reading.service.scenario import ServiceReader
from simulator.reading.shipped import scenario_names, scenario_path, service_names
from simulator.report.prediction.rows import cost_rows
from simulator.results.cost import listed_prices, machines_price, service_price
from simulator.schema.machines import short_name


def is_job(name: str) -> bool:
    """Whether a shipped file is not a service."""
    path = scenario_path(name)
    return path is not None and not describes_service([read_document(path)])


JOBS = [name for name in scenario_names() if is_job(name)]


@each("name", JOBS)
def test_every_price_has_a_date_or_is_named_as_missing(name: str) -> None:
    """A price says who stated it, and when; without one the report names the machine."""
    scenario = load_scenario(name)
    for group in scenario.cluster.groups:
        for price in group.host.prices:
            assert price.source.date != ""
            assert price.source.reference != ""
    if machines_price(scenario) is not None:
        return
    found = predict(scenario, intervals=False)
    rows = dict(cost_rows(found))
    assert "rent" not in rows
    without = [short_name(group.host.name) for group in found.scenario.cluster.groups]
    assert any(host in rows["price"] for host in without)


@pytest.mark.parametrize("name", service_names())
def test_every_service_has_a_price_with_a_source(name: str) -> None:
    """What its machines cost is stated by its file, or by a profile that says who and when."""
    service = ServiceReader(chain_of(name), name).read({})
    assert service_price(service) is not None
    for listed in listed_prices(service):
        assert listed.price.source.date != ""
        assert listed.price.source.reference != ""
