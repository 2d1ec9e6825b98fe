"""What the machines of a service cost for what they answer, by hand."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from simulator.files.merge_documents import chain_of
from simulator.files.service import ServiceReader
from simulator.serving.cost import cost_of


def test_machines_that_were_there_on_average_are_paid_for() -> None:
    """At $36/h for all and two of four replicas there: $5 for a thousand seconds."""
    settings = {"cost.price": "$9/h", "serving.replicas": 4}
    service = ServiceReader(chain_of("llama3-8b-office-autoscaled"), "x").read(settings)
    assert service.serving.autoscaling is not None
    told: Any = SimpleNamespace(
        replicas=2.0, output_rate=1000.0, prompt_rate=3000.0, request_rate=10.0
    )
    service = replace(service, group=replace(service.group, count=4))
    found = cost_of(service, told, None)
    assert found.per_second == pytest.approx(0.005)
    assert found.per_million_output_tokens == pytest.approx(5.0)
    assert found.per_million_tokens == pytest.approx(1.25)
    assert found.per_thousand_requests == pytest.approx(0.5)
