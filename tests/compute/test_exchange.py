"""Collectives inside a layer: tensor groups within a machine and over machines, by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from simulator.compute.describe import describe, kernels_of
from simulator.compute.description import Description
from simulator.compute.exchange import inside, tensor_all_reduce
from simulator.files.scenario import load_scenario
from simulator.scenario.workload.kernels import Kernels

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
    expected = float(local) + moved / rate + hops * kernels.exchange.network_latency
    assert float(tensor_all_reduce(SIZE, description, kernels)) == pytest.approx(expected)
    assert float(tensor_all_reduce(0.0, description, kernels)) > float(
        inside(0.0, 8.0, description, kernels)
    )


def test_a_tensor_group_inside_a_machine_uses_no_network() -> None:
    """With eight ranks on one machine the all-reduce is the local one."""
    description, kernels = tensor_group(8)
    slow = replace(description, device=replace(description.device, network=1.0))
    assert float(tensor_all_reduce(SIZE, slow, kernels)) == float(
        inside(SIZE, 8.0, description, kernels)
    )
