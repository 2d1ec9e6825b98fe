"""Bytes that a spread model puts on links, in closed form for each kind of parallelism."""

from __future__ import annotations

from dataclasses import replace

import pytest

from simulator.physics.describe import describe, kernels_of
from simulator.physics.description import Description, Redone
from simulator.physics.shapes import layer_parameters, table_parameters
from simulator.physics.step import training_step
from simulator.physics.traffic import Moved, all_reduced, passed_round, traffic
from simulator.reading.scenario import load_scenario


def described(name: str, *overrides: str, **layout: float) -> Description:
    """A shipped scenario's description, with entries of its layout in other numbers."""
    found = describe(load_scenario(name, overrides=overrides))
    return replace(found, layout=replace(found.layout, **layout))


def test_a_tensor_group_in_a_machine_reduces_twice_a_layer_and_pass() -> None:
    """Eight ranks send 2 x 7/8 of a micro-batch's activations four times, more if recomputed."""
    d = described("gpt3-175b-megatron", tensor=8.0, domain=8.0, sequence_parallel=0.0)
    d = replace(d, work=replace(d.work, redone=Redone()))
    activations = 2048 * 12288 * 2.0
    found = traffic(d).tensor
    assert found.inside == pytest.approx(4.0 * 2.0 * 7.0 / 8.0 * activations)
    assert found.outside == 0.0
    again = replace(d, work=replace(d.work, redone=Redone(exchange=1.0)))
    assert traffic(again).tensor.inside == pytest.approx(1.5 * found.inside)


def test_sequence_parallelism_gathers_once_more_in_the_backward_pass() -> None:
    """Half an all-reduce for each of two blocks on top of four all-reduces."""
    plain = described("gpt3-175b-megatron", sequence_parallel=0.0)
    plain = replace(plain, work=replace(plain.work, redone=Redone()))
    along = replace(plain, layout=replace(plain.layout, sequence_parallel=1.0))
    assert traffic(along).tensor.inside == pytest.approx(1.25 * traffic(plain).tensor.inside)


@pytest.mark.parametrize(("ranks", "local", "machines"), [(16, 8, 2), (32, 8, 4)])
def test_an_all_reduce_over_machines_sends_parts_between_them(
    ranks: int, local: int, machines: int
) -> None:
    """Inside 2 (l-1)/l, between 2 (m-1)/m of a rank's part: together what a ring sends."""
    found = all_reduced(1.0, float(ranks), 8.0)
    assert found.inside == pytest.approx(2.0 * (local - 1) / local)
    assert found.outside == pytest.approx(2.0 * (machines - 1) / machines / local)
    assert found.whole == pytest.approx(2.0 * (ranks - 1) / ranks)


@pytest.mark.parametrize("ranks", [1.0, 2.0, 8.0, 64.0, 384.0])
def test_a_gather_sends_what_a_ring_does(ranks: float) -> None:
    """However ranks lie in machines, each sends (n - 1) / n of the whole."""
    d = described("llama3-8b-fsdp")
    for tensor in (1.0, 2.0, 8.0):
        d = replace(d, layout=replace(d.layout, tensor=tensor, domain=8.0))
        found = passed_round(1.0, ranks, d)
        assert found.whole == pytest.approx((ranks - 1.0) / ranks)
        assert (found.outside > 0.0) == (ranks * tensor > 8.0)


def test_fully_sharded_parameters_go_round_three_times() -> None:
    """FSDP on one machine gathers for both passes and scatters gradients; none once a step."""
    d = described("llama3-8b-fsdp")
    found, (held, _) = traffic(d), layer_parameters(d)
    bytes_of = d.work.gather_bytes * (1.0 + d.layout.again) + d.work.gradient_bytes
    assert found.parameters == Moved(pytest.approx(7.0 / 8.0 * held * bytes_of), 0.0)
    assert found.gradients.whole == 0.0
    assert found.micro_batch.whole == pytest.approx(32.0 * found.parameters.inside)


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
