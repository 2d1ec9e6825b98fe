"""The report of a service: its verdict, and the quantiles that the SLO limits."""

from __future__ import annotations

from dataclasses import replace

import pytest

from simulator.predict import predict_service
from simulator.reading.merge_documents import chain_of
from simulator.reading.service.scenario import ServiceReader
from simulator.report.prediction.service import latencies_of, latency_table, slo_quantile, verdict
from simulator.results.serving import ServicePrediction
from simulator.schema.serving import Slo

CHAT = "llama3-8b-chat-h100"
CLOSED = ("load.arrivals=closed", "load.concurrency=5", "load.requests=300")


def predicted(*overrides: str, limits: bool = True) -> ServicePrediction:
    """The shipped chat with some settings, without intervals."""
    service = ServiceReader(chain_of(CHAT), CHAT, overrides=overrides).read({})
    return predict_service(service if limits else replace(service, slo=Slo()), intervals=False)


def test_clients_that_wait_for_one_another_are_counted() -> None:
    """Two requests run at a time and three of five wait: by Little's law the two add up to 5."""
    found = predicted(*CLOSED, "serving.max_sequences=2", limits=False)
    assert found.answered is not None
    assert found.answered.running + found.answered.waiting == pytest.approx(5.0, rel=0.05)
    text = verdict(found)
    assert "Keeps up" not in text
    assert "2 requests run and 2.9 wait" in text or "2 requests run and 3 wait" in text
    assert "before it starts" in text


def test_a_closed_load_that_runs_at_once_keeps_up() -> None:
    """Five of 1,024 seats: nobody waits for another."""
    assert verdict(predicted(*CLOSED, limits=False)) == "Keeps up with its load."


def test_the_verdict_has_the_capacity_and_the_rate_within_the_slo() -> None:
    """The second is lower, and both are figures of the answer."""
    service = ServiceReader(chain_of(CHAT), CHAT).read({})
    found = predict_service(service)
    assert found.saturation is not None
    assert found.saturation.within_slo is not None
    assert 10.0 < found.saturation.within_slo < found.saturation.request_rate
    assert "requests/s within the SLO" in verdict(found)


@pytest.mark.parametrize(
    ("share", "called"), [(0.95, "p95"), (0.99, "p99"), (0.999, "p99.9"), (1.0, "max")]
)
def test_the_quantile_shown_is_that_of_the_limit(share: float, called: str) -> None:
    """The share of requests that must be within a limit is the quantile next to it."""
    found = predicted(f"slo.share={share}", "load.requests=500")
    assert slo_quantile(found.service) == called
    assert list(latencies_of(found.service)) == [f"TTFT {called}", f"TPOT {called}"]
    table, answered = latency_table(found), found.answered
    assert table is not None
    assert answered is not None
    assert called in table.head
    first = answered.first_token
    # A limit is kept by the share of requests exactly if the quantile is within it.
    limit = found.service.slo.first_token or 0.0
    assert (answered.within["first_token"] >= share) == (first.at_slo <= limit)
    assert first.p50 <= first.at_slo
