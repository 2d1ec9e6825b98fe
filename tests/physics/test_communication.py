"""Communication of a sharded model: bytes and times of each kind of parallelism, by hand."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from simulator.physics.collectives import HOP
from simulator.physics.communication import (
    SentBytes,
    all_gather_bytes,
    all_gather_time,
    all_reduce_bytes,
    all_reduce_time,
    gather_channels,
    machine_all_reduce_time,
    send_time,
    tensor_all_reduce_times,
    traffic,
)
from simulator.physics.parameters import layer_parameters, table_parameters
from simulator.physics.training_step import training_step
from simulator.physics.transformer import (
    Recomputation,
    TransformerStep,
    kernels_of,
    transformer_step,
)
from simulator.reading.scenario import load_scenario
from simulator.schema.software import Kernels


def described(name: str, *overrides: str, **layout: float) -> TransformerStep:
    """A shipped scenario's description, with entries of its layout in other numbers."""
    found = transformer_step(load_scenario(name, overrides=overrides))
    return replace(found, layout=replace(found.layout, **layout))


def test_a_tensor_group_in_a_machine_reduces_twice_a_layer_and_pass() -> None:
    """Eight ranks send 2 x 7/8 of a micro-batch's activations four times, more if recomputed."""
    d = described("gpt3-175b-megatron", tensor=8.0, domain=8.0, sequence_parallel=0.0)
    d = replace(d, work=replace(d.work, recomputation=Recomputation()))
    activations = 2048 * 12288 * 2.0
    found = traffic(d).tensor
    assert found.inside == pytest.approx(4.0 * 2.0 * 7.0 / 8.0 * activations)
    assert found.outside == 0.0
    again = replace(d, work=replace(d.work, recomputation=Recomputation(exchange=1.0)))
    assert traffic(again).tensor.inside == pytest.approx(1.5 * found.inside)


def test_sequence_parallelism_gathers_once_more_in_the_backward_pass() -> None:
    """Half an all-reduce for each of two blocks on top of four all-reduces."""
    plain = described("gpt3-175b-megatron", sequence_parallel=0.0)
    plain = replace(plain, work=replace(plain.work, recomputation=Recomputation()))
    along = replace(plain, layout=replace(plain.layout, sequence_parallel=1.0))
    assert traffic(along).tensor.inside == pytest.approx(1.25 * traffic(plain).tensor.inside)


@pytest.mark.parametrize(("ranks", "local", "machines"), [(16, 8, 2), (32, 8, 4)])
def test_an_all_reduce_over_machines_sends_parts_between_them(
    ranks: int, local: int, machines: int
) -> None:
    """Inside 2 (l-1)/l, between 2 (m-1)/m of a rank's part: together what a ring sends."""
    found = all_reduce_bytes(1.0, float(ranks), 8.0)
    assert found.inside == pytest.approx(2.0 * (local - 1) / local)
    assert found.outside == pytest.approx(2.0 * (machines - 1) / machines / local)
    assert found.whole == pytest.approx(2.0 * (ranks - 1) / ranks)


@pytest.mark.parametrize("ranks", [1.0, 2.0, 8.0, 64.0, 384.0])
def test_a_gather_sends_what_a_ring_does(ranks: float) -> None:
    """However ranks lie in machines, each sends (n - 1) / n of the whole."""
    d = described("llama3-8b-fsdp")
    for tensor in (1.0, 2.0, 8.0):
        d = replace(d, layout=replace(d.layout, tensor=tensor, domain=8.0))
        found = all_gather_bytes(1.0, ranks, d)
        assert found.whole == pytest.approx((ranks - 1.0) / ranks)
        assert (found.outside > 0.0) == (ranks * tensor > 8.0)


def test_fully_sharded_parameters_go_round_three_times() -> None:
    """FSDP on one machine gathers for both passes and scatters gradients; none once a step.

    The embedding does as layers do, the head is gathered once for both passes.
    """
    d = described("llama3-8b-fsdp")
    found, (held, _) = traffic(d), layer_parameters(d)
    bytes_of = d.work.gather_bytes * (1.0 + d.layout.again) + d.work.gradient_bytes
    assert found.parameters == SentBytes(pytest.approx(7.0 / 8.0 * held * bytes_of), 0.0)
    assert found.gradients.whole == 0.0
    table = 128256 * 4096
    tables = 7.0 / 8.0 * table * (bytes_of + d.work.gather_bytes + d.work.gradient_bytes)
    assert found.tables == SentBytes(pytest.approx(tables), 0.0)
    assert found.micro_batch.whole == pytest.approx(32.0 * found.parameters.inside + tables)


def test_plain_data_parallelism_reduces_all_gradients_once_a_step() -> None:
    """Eight replicas: 2 x 7/8 of the gradients of all layers and the table; nothing a layer."""
    d = described("bert-large-dgx-a100")
    found, (held, _) = traffic(d), layer_parameters(d)
    whole = held * d.shape.layers + table_parameters(d)
    assert found.gradients.inside == pytest.approx(2.0 * 7.0 / 8.0 * whole * d.work.gradient_bytes)
    assert found.micro_batch.whole == 0.0


def test_stages_send_an_activation_and_its_gradient() -> None:
    """A middle stage as large as a machine sends both out of it, and gathers what was scattered."""
    d = described("gpt3-175b-megatron", chunks=1.0, scattered_sends=1.0, sequence_parallel=0.0)
    activations = 2048 * 12288 * 2.0
    found = traffic(d).sends
    assert found.outside == pytest.approx(2.0 * activations / 8.0)
    assert found.inside == pytest.approx(2.0 * activations * 7.0 / 8.0)
    alone = replace(d, layout=replace(d.layout, pipeline=1.0))
    assert traffic(alone).sends.whole == 0.0


def test_tokens_go_to_experts_and_back() -> None:
    """In a machine of eight, each of two choices is elsewhere 7 times of 8; four such passes."""
    d = described("mixtral-8x7b-megatron", tensor=1.0, expert=8.0, domain=8.0, deduplicated=0.0)
    sent = 4096 * d.layout.micro_batch / d.layout.context * 4096 * d.work.element
    found = traffic(d).experts
    assert found.inside == pytest.approx(4.0 * 2.0 * 7.0 / 8.0 * sent)
    assert found.outside == 0.0


def test_gradients_take_as_long_as_the_bytes_they_put_on_links() -> None:
    """On one machine, twice the bytes take longer by just what the links need for the others."""
    name = "bert-large-dgx-a100"
    d, k = described(name, overlapped_gradients=0.0), kernels_of(load_scenario(name))
    work = replace(
        d.work,
        gradient_bytes=2.0 * d.work.gradient_bytes,
        gather_bytes=2.0 * d.work.gather_bytes,
    )
    once, twice = (training_step(one, k).gradients for one in (d, replace(d, work=work)))
    rate = d.device.gather.eight.large_rate * k.exchange.link
    assert twice - once == pytest.approx(traffic(d).gradients.inside / rate * k.slowness)


def test_whole_sums_of_a_sharded_optimizer_take_as_long_as_an_all_reduce_and_a_gather() -> None:
    """Without reduce-scatter, gradients go round twice and updated parameters once more."""
    name = "bert-large-dgx-a100"
    options = {"sharded_optimizer": 1.0, "overlapped_gradients": 0.0}
    plain, scattered, summed = (
        described(name, **{**options, **own})
        for own in ({"sharded_optimizer": 0.0}, {}, {"scattered_sums": 0.0})
    )
    gathered = traffic(scattered).gradients.whole - 0.5 * traffic(plain).gradients.whole
    assert gathered > 0.0
    assert traffic(summed).gradients.whole == pytest.approx(
        traffic(plain).gradients.whole + gathered
    )
    k = kernels_of(load_scenario(name))
    rate = plain.device.gather.eight.large_rate * k.exchange.link
    waits = [training_step(d, k).gradients for d in (plain, scattered, summed)]
    assert waits[1] < waits[2]
    assert waits[0] + gathered / rate < waits[2] < waits[0] + waits[1]


SIZE = 64e6


def tensor_group(ranks: int) -> tuple[TransformerStep, Kernels]:
    """GPT-3 with tensor groups of so many ranks on machines of eight devices."""
    scenario = load_scenario("gpt3-175b-megatron")
    description = transformer_step(scenario)
    layout = replace(description.layout, tensor=float(ranks), domain=8.0)
    return replace(description, layout=layout), kernels_of(scenario)


@pytest.mark.parametrize("machines", [2, 4])
def test_a_tensor_group_over_machines_pays_the_network_latency_of_each_hop(machines: int) -> None:
    """A ring over m machines has 2 (m - 1) hops; each adds the latency of the network."""
    description, kernels = tensor_group(8 * machines)
    hops = 2.0 * (machines - 1.0)
    moved = hops / machines * SIZE
    local = machine_all_reduce_time(SIZE, 8.0, description, kernels)
    rate = description.device.network * kernels.exchange.network
    between = moved / rate + hops * kernels.exchange.network_latency
    found = tensor_all_reduce_times(SIZE, description, kernels)
    assert tuple(map(float, found)) == pytest.approx((float(local), between))
    empty = tensor_all_reduce_times(0.0, description, kernels)
    assert float(empty[1]) == pytest.approx(hops * kernels.exchange.network_latency)


def test_a_tensor_group_over_single_cards_reaches_what_gradients_do() -> None:
    """With one card for eight devices the bytes take as long as at the rate of gradient sums."""
    description, kernels = tensor_group(16)
    alone = replace(description, device=replace(description.device, shared_card=1.0))
    latency = float(tensor_all_reduce_times(0.0, description, kernels)[1])
    times = [float(tensor_all_reduce_times(SIZE, d, kernels)[1]) for d in (description, alone)]
    rates = kernels.exchange.network, kernels.exchange.network_gradients
    assert (times[1] - latency) / (times[0] - latency) == pytest.approx(rates[0] / rates[1])


def test_a_tensor_group_inside_a_machine_uses_no_network() -> None:
    """With eight ranks on one machine the all-reduce is the local one."""
    description, kernels = tensor_group(8)
    slow = replace(description, device=replace(description.device, network=1.0))
    local = float(machine_all_reduce_time(SIZE, 8.0, description, kernels))
    assert tuple(map(float, tensor_all_reduce_times(SIZE, slow, kernels))) == (local, 0.0)


@pytest.mark.parametrize("ranks", [16.0, 384.0, 2240.0])
def test_a_gather_passes_all_ranks_in_turn_and_an_all_reduce_need_not(ranks: float) -> None:
    """Empty gathers take n - 1 steps, all-reduces twice a tree over the machines at most."""
    description, kernels = tensor_group(1)
    hop, start = kernels.exchange.ring, kernels.exchange.network_latency
    gathered = float(all_gather_time(0.0, ranks, description, kernels))
    assert gathered == pytest.approx(start + (ranks - 1.0) * hop)
    three = float(all_gather_time(0.0, ranks, description, kernels, messages=3.0))
    assert three == pytest.approx(3.0 * gathered)
    tree = 2.0 * (start + 7.0 * HOP + math.log2(ranks / 8.0) * hop)
    assert float(all_reduce_time(0.0, ranks, description, kernels)) == pytest.approx(tree)


def test_bytes_of_an_all_reduce_go_round_twice() -> None:
    """It is a scatter and a gather; beyond what empty messages take it needs twice a gather."""
    description, kernels = tensor_group(1)
    one, both = (
        float(each(SIZE, 64.0, description, kernels) - each(0.0, 64.0, description, kernels))
        for each in (all_gather_time, all_reduce_time)
    )
    assert one > 0.0
    assert both == pytest.approx(2.0 * one)


def test_a_slow_network_feeds_few_channels() -> None:
    """A gather of large messages over a network of a quarter of the links' rate: a quarter."""
    description, kernels = tensor_group(1)
    link = description.device.link
    slow = replace(description, device=replace(description.device, network=0.25 * link))
    assert float(gather_channels(1e15, 64.0, slow, kernels)) == pytest.approx(0.25, rel=1e-3)
    assert float(gather_channels(1e15, 8.0, slow, kernels)) == 1.0


def test_a_stage_at_the_end_of_a_machine_sends_over_the_network() -> None:
    """Two stages of four devices share a machine: the second one's sends leave it."""
    description, kernels = tensor_group(4)
    layout = replace(
        description.layout, replicas=1.0, pipeline=16.0, devices=64.0, scattered_sends=0.0
    )
    several = replace(description, layout=layout)
    own = description.device.network / 8.0 * kernels.exchange.network_sends
    expected = SIZE / own + kernels.exchange.network_latency
    assert float(send_time(SIZE, several, kernels)) == pytest.approx(expected)
    alone = replace(several, layout=replace(layout, pipeline=2.0, devices=8.0))
    assert float(send_time(SIZE, alone, kernels)) < expected
