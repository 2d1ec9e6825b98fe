"""What-if keys of [hardware] that reach beyond one figure."""

from __future__ import annotations

import pytest

from simulator.physics.collectives import network_rate
from simulator.physics.transformer import transformer_step
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


@pytest.mark.parametrize(
    ("stated", "gpus", "cards"),
    [
        # One of four cards of 12.5 GB/s carries as much, and two accelerators reach all of it.
        ("100 Gb/s", 8, 1),
        ("100 Gb/s", 2, 1),
        # Eight times as much needs all cards, or those of the accelerators in use.
        ("800 Gb/s", 8, 4),
        ("800 Gb/s", 2, 2),
    ],
)
def test_a_stated_network_belongs_to_the_accelerators_in_use(
    stated: str, gpus: int, cards: int
) -> None:
    """The rate is that of the accelerators in use, through as many cards as it takes."""
    own = ("hardware.machine=node/dgx-1v", f"hardware.gpus={gpus}", "hardware.count=2")
    own = (*own, "train.precision=fp16")
    scenario = load_scenario("llama3-8b-fsdp", overrides=own)
    assert scenario.cluster.trainers.host.network is not None
    assert scenario.cluster.trainers.host.network.cards == 4
    said = f"hardware.network_bandwidth='{stated}'"
    found = load_scenario("llama3-8b-fsdp", overrides=(*own, said))
    network = found.cluster.trainers.host.network
    assert network is not None
    assert network.cards == cards
    assert transformer_step(found).device.network == network.bandwidth
