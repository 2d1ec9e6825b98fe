"""What-if keys of [hardware] that reach beyond one figure."""

from __future__ import annotations

import pytest

from simulator.physics.collectives import network_rate
from simulator.reading.scenario import load_scenario
from simulator.schema.machines import Host

SCENARIO = "two-nodes-cpu-starved"


def machine(*overrides: str) -> Host:
    """The machine that trains, whose cards have a link of their own."""
    return load_scenario(SCENARIO, overrides=overrides).cluster.trainers.host


def test_more_network_carries_more_of_an_exchange() -> None:
    """Twice the cards are twice what collectives reach between machines, measured or not."""
    before = machine()
    assert before.network is not None
    assert before.network.link is not None
    after = machine(f"hardware.network_bandwidth={2.0 * before.network.bandwidth} B/s")
    assert network_rate(after) == pytest.approx(2.0 * network_rate(before))
    assert after.network is not None
    assert after.network.link is not None
    for wide, narrow in zip(
        after.network.link.collective, before.network.link.collective, strict=True
    ):
        for more, less in zip(wide.regimes, narrow.regimes, strict=True):
            assert (more.bandwidth, more.latency) == (2.0 * less.bandwidth, less.latency)


def test_the_bandwidth_that_is_there_changes_nothing() -> None:
    """Stating the catalogue's figure leaves the link as it was measured."""
    before = machine()
    assert before.network is not None
    after = machine(f"hardware.network_bandwidth={before.network.bandwidth} B/s")
    assert after.network == before.network
