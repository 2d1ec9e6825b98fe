"""Every shipped job has a bill with a dated price, or its report says which price is missing."""

from __future__ import annotations

import pytest

from simulator.files.document import read_document
from simulator.files.scenario import load_scenario
from simulator.files.service_mode import describes_service
from simulator.files.shipped import scenario_names, scenario_path
from simulator.predict import predict
from simulator.report.rows import cost_rows
from simulator.results.cost import machines_price


def is_job(name: str) -> bool:
    """Whether a shipped file is no service."""
    path = scenario_path(name)
    return path is not None and not describes_service([read_document(path)])


JOBS = [name for name in scenario_names() if is_job(name)]
UNPRICED = [name for name in JOBS if machines_price(load_scenario(name)) is None]


@pytest.mark.parametrize("name", [name for name in JOBS if name not in UNPRICED])
def test_every_price_has_a_date(name: str) -> None:
    """A price from the catalogue says who stated it, and when it was read."""
    for group in load_scenario(name).cluster.groups:
        for price in group.host.prices:
            assert price.source.date != ""
            assert price.source.reference != ""


@pytest.mark.parametrize("name", UNPRICED)
def test_what_is_missing_is_named(name: str) -> None:
    """Without a bill the report names a machine of the job whose price is not known."""
    found = predict(load_scenario(name), doubts=False)
    rows = dict(cost_rows(found))
    assert "rent" not in rows
    without = [group.host.name for group in found.scenario.cluster.groups]
    assert any(host in rows["price"] for host in without)
