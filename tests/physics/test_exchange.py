"""Collectives inside a layer: tensor groups within a machine and over machines, by hand."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from simulator.physics.describe import describe, kernels_of
from simulator.physics.description import Description
from simulator.physics.exchange import (
    all_reduce,
    channels,
    inside,
    ring,
    send,
    tensor_all_reduce,
)
from simulator.physics.latency import HOP
from simulator.reading.scenario import load_scenario
from simulator.schema.workload.kernels import Kernels

SIZE = 64e6


def tensor_group(ranks: int) -> tuple[Description, Kernels]:
    """GPT-3 with tensor groups of so many ranks on machines of eight devices."""
    scenario = load_scenario("gpt3-175b-megatron")
    description = describe(scenario)
    layout = replace(description.layout, tensor=float(ranks), domain=8.0)
    return replace(description, layout=layout), kernels_of(scenario)


@pytest.mark.parametrize("machines", [2, 4])
def test_a_tensor_group_over_machines_pays_the_network_latency_of_each_hop(machines: int) -> None:
    """A ring over m machines has 2 (m - 1) hops; each adds the latency of the network."""
    description, kernels = tensor_group(8 * machines)
    hops = 2.0 * (machines - 1.0)
    moved = hops / machines * SIZE
    local = inside(SIZE, 8.0, description, kernels)
    rate = description.device.network * kernels.exchange.network
    between = moved / rate + hops * kernels.exchange.network_latency
    found = tensor_all_reduce(SIZE, description, kernels)
    assert tuple(map(float, found)) == pytest.approx((float(local), between))
    empty = tensor_all_reduce(0.0, description, kernels)
    assert float(empty[1]) == pytest.approx(hops * kernels.exchange.network_latency)


def test_a_tensor_group_inside_a_machine_uses_no_network() -> None:
    """With eight ranks on one machine the all-reduce is the local one."""
    description, kernels = tensor_group(8)
    slow = replace(description, device=replace(description.device, network=1.0))
    local = float(inside(SIZE, 8.0, description, kernels))
    assert tuple(map(float, tensor_all_reduce(SIZE, slow, kernels))) == (local, 0.0)


@pytest.mark.parametrize("ranks", [16.0, 384.0, 2240.0])
def test_a_gather_passes_all_ranks_in_turn_and_an_all_reduce_need_not(ranks: float) -> None:
    """Empty gathers take n - 1 steps, all-reduces twice a tree over the machines at most."""
    description, kernels = tensor_group(1)
    hop, start = kernels.exchange.ring, kernels.exchange.network_latency
    gathered = float(ring(0.0, ranks, description, kernels))
    assert gathered == pytest.approx(start + (ranks - 1.0) * hop)
    three = float(ring(0.0, ranks, description, kernels, messages=3.0))
    assert three == pytest.approx(3.0 * gathered)
    tree = 2.0 * (start + 7.0 * HOP + math.log2(ranks / 8.0) * hop)
    assert float(all_reduce(0.0, ranks, description, kernels)) == pytest.approx(tree)


def test_bytes_of_an_all_reduce_go_round_twice() -> None:
    """It is a scatter and a gather; beyond what empty messages take it needs twice a gather."""
    description, kernels = tensor_group(1)
    one, both = (
        float(each(SIZE, 64.0, description, kernels) - each(0.0, 64.0, description, kernels))
        for each in (ring, all_reduce)
    )
    assert one > 0.0
    assert both == pytest.approx(2.0 * one)


def test_a_slow_network_feeds_few_channels() -> None:
    """A gather of large messages over a network of a quarter of the links' rate: a quarter."""
    description, kernels = tensor_group(1)
    link = description.device.link
    slow = replace(description, device=replace(description.device, network=0.25 * link))
    assert float(channels(1e15, 64.0, slow, kernels)) == pytest.approx(0.25, rel=1e-3)
    assert float(channels(1e15, 8.0, slow, kernels)) == 1.0


def test_a_stage_at_the_end_of_a_machine_sends_over_the_network() -> None:
    """Two stages of four devices share a machine: the second one's sends leave it."""
    description, kernels = tensor_group(4)
    layout = replace(
        description.layout, replicas=1.0, pipeline=16.0, devices=64.0, scattered_sends=0.0
    )
    several = replace(description, layout=layout)
    own = description.device.network / 8.0 * kernels.exchange.network_sends
    expected = SIZE / own + kernels.exchange.network_latency
    assert float(send(SIZE, several, kernels)) == pytest.approx(expected)
    alone = replace(several, layout=replace(layout, pipeline=2.0, devices=8.0))
    assert float(send(SIZE, alone, kernels)) < expected
