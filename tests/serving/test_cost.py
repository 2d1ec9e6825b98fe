"""What the machines of a service cost for what they answer, by hand."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from simulator.reading.merge_documents import chain_of
from simulator.reading.service.scenario import ServiceReader
from simulator.results.cost import service_cost, service_price
from simulator.results.energy import service_energy

TOLD: Any = SimpleNamespace(
    replicas=2.0,
    busy=0.5,
    busy_of={},
    links={},
    host_busy=0.0,
    output_rate=1000.0,
    prompt_rate=3000.0,
    request_rate=10.0,
)
"""What a run shows of half-busy replicas, two of them on average."""


def test_machines_that_were_there_on_average_are_paid_for() -> None:
    """At $36/h for all and two of four replicas there: $5 for a thousand seconds."""
    settings = {"cost.price": "$9/h", "serving.replicas": 4}
    service = ServiceReader(chain_of("llama3-8b-office-autoscaled"), "x").read(settings)
    assert service.serving.autoscaling is not None
    told: Any = SimpleNamespace(
        replicas=2.0, output_rate=1000.0, prompt_rate=3000.0, request_rate=10.0
    )
    service = replace(service, group=replace(service.group, count=4))
    found = service_cost(service, told, None)
    assert found.per_second == pytest.approx(0.005)
    assert found.per_million_output_tokens == pytest.approx(5.0)
    assert found.per_million_tokens == pytest.approx(1.25)
    assert found.per_thousand_requests == pytest.approx(0.5)


def test_owned_machines_cost_their_capital_room_and_electricity() -> None:
    """$1 of capital an hour for each of two, working half of the time, and the power they draw."""
    settings = {
        "cost.purchase": "owned",
        "owned.capex": "$43830",
        "owned.life": "5 years",
        "owned.network": "0%",
        "owned.interest": "0%",
        "owned.hosting": "$0/h",
        "owned.staff": "$0/h",
        "owned.utilization": 0.5,
        "energy.pue": 2.0,
        "energy.tariff": "$0.1/kWh",
        "hardware.count": 2,
        "serving.replicas": 2,
    }
    service = ServiceReader(chain_of("llama3-8b-chat-h100"), "x").read(settings)
    watts, idle = (service_energy(service, each, None).power for each in (TOLD, _at_rest()))
    assert watts is not None
    assert idle is not None
    hourly = 2 * 2.0 * 43830 / (5 * 8766) + (watts + idle) * 2.0 * 0.1 / 1000.0
    found = service_cost(service, TOLD, None)
    assert found.per_second is not None
    assert 3600.0 * found.per_second == pytest.approx(hourly, rel=2e-3)
    assert found.per_million_output_tokens == pytest.approx(1000.0 * found.per_second)


def test_owned_machines_that_are_scaled_down_are_paid_for() -> None:
    """They cost what they do at rest, whoever uses them."""
    settings = {"cost.purchase": "owned", "owned.capex": "$40000", "serving.replicas": 4}
    service = ServiceReader(chain_of("llama3-8b-office-autoscaled"), "x").read(settings)
    found, least = service_cost(service, TOLD, None), service_price(service, 0.0)
    assert found.per_second is not None
    assert least is not None
    assert found.per_second > least


def _at_rest() -> Any:
    return SimpleNamespace(**{**vars(TOLD), "busy": 0.0})
