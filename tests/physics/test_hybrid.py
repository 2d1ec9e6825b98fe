"""Hybrid sharding: its limits are FSDP and DDP, its volumes those of the ZeRO and FSDP papers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simulator.physics.communication import all_gather_time
from simulator.physics.footprint import MemoryFit, memory_fit
from simulator.physics.parameters import layer_parameters, table_parameters
from simulator.physics.training_step import (
    TrainingStep,
    gather_times,
    table_gather_times,
    training_step,
)
from simulator.physics.transformer import TransformerStep, kernels_of, transformer_step
from simulator.pipeline.program import check_modelled
from simulator.reading.scenario import load_scenario
from simulator.schema.scenario import Scenario
from simulator.schema.software import Kernels

JOB = ("hardware.count=4", "train.batch_size=1")
"""32 devices on four machines of eight."""
ALL = 32


def job(*overrides: str) -> tuple[TransformerStep, Kernels]:
    """An 8B model on four machines of eight devices, and its kernels."""
    scenario = load_scenario("llama3-8b-fsdp", overrides=(*JOB, *overrides))
    check_modelled(scenario)
    return transformer_step(scenario), kernels_of(scenario)


def step(*overrides: str) -> TrainingStep:
    """Its step."""
    return training_step(*job(*overrides))


def memory(*overrides: str) -> float:
    """Memory of one of its devices [B]."""
    scenario = load_scenario("llama3-8b-fsdp", overrides=(*JOB, *overrides))
    return float(sum(fit_of(scenario).items.values()))


def fit_of(scenario: Scenario) -> MemoryFit:
    """What a device of it holds."""
    fit = memory_fit(scenario)
    assert fit is not None
    return fit


def group(size: int) -> str:
    """The override that shares state among so many ranks."""
    return f"parallelism.shard_group={size}"


SHARDINGS = ("parameters", "gradients", "optimizer")


@pytest.mark.parametrize("sharding", SHARDINGS)
def test_a_group_of_all_ranks_is_no_group(sharding: str) -> None:
    """State shared by all ranks is what sharding is without groups: time and memory."""
    own = f"parallelism.sharding={sharding}"
    assert float(step(own, group(ALL)).total) == float(step(own).total)
    assert memory(own, group(ALL)) == memory(own)


@pytest.mark.parametrize("sharding", SHARDINGS)
def test_a_group_of_one_is_plain_data_parallelism(sharding: str) -> None:
    """State shared by one rank is whole everywhere: time and memory of DDP."""
    own, plain = f"parallelism.sharding={sharding}", "parallelism.sharding=none"
    assert float(step(own, group(1)).total) == float(step(plain).total)
    assert memory(own, group(1)) == memory(plain)


def test_memory_falls_with_the_group_as_state_is_shared() -> None:
    """Twice the ranks halve a rank's part of 16 bytes a parameter (fp32 weights, Adam)."""
    found = [
        load_scenario("llama3-8b-fsdp", overrides=(*JOB, group(size))) for size in (4, 8, 16, 32)
    ]
    states = [
        sum(fit_of(each).items[key] for key in ("parameters", "gradients", "optimizer"))
        for each in found
    ]
    model = found[0].job.model
    assert model is not None
    for size, state in zip((4, 8, 16, 32), states, strict=True):
        assert float(state) == pytest.approx(16.0 * model.parameters / size, rel=0.01)


def without_latency(kernels: Kernels) -> Kernels:
    """Kernels whose collectives take no time but for bytes, and reach all of their links."""
    local = replace(kernels.exchange, latency=0.0, link=1.0, ring=0.0, part=1.0)
    exchange = replace(local, network_latency=0.0, network_gradients=1.0, unhidden_gradients=0.0)
    return replace(kernels, exchange=exchange)


def test_volumes_of_groups_of_a_machine() -> None:
    """Gathers and scatters stay inside; a machine sends 2 (n-1)/n of the gradients once a step.

    ZeRO's table 1 counts three times the parameters for a step of FSDP: two gathers and a scatter,
    here (g-1)/g of each over the links of a machine. An all-reduce of what eight ranks share,
    each its eighth, sends as much through a machine's network as one of the whole by one rank.
    """
    description, kernels = job(group(8), "train.overlap_communication=false")
    free = without_latency(kernels)
    held, _ = layer_parameters(description)
    work, device = description.work, description.device
    layer = gather_times(description, free)
    inside, start = 7.0 / 8.0 * held / device.gather.eight.large_rate, device.gather.eight
    gathered = float(inside * work.gather_bytes) + start.large_latency
    assert float(layer.gather) == pytest.approx(gathered)
    assert float(layer.again) == pytest.approx(gathered)
    scattered = float(inside * work.gradient_bytes) + start.large_latency
    assert float(layer.scatter) == pytest.approx(scattered)
    whole = held * description.shape.layers + table_parameters(description)
    whole = whole + table_parameters(description)
    between = 2.0 * 3.0 / 4.0 * whole * work.gradient_bytes / device.network
    assert float(training_step(description, free).gradients) == pytest.approx(float(between))


@pytest.mark.parametrize("sharding", ["optimizer", "gradients", "parameters"])
def test_exchange_that_does_not_overlap_is_waited_for(sharding: str) -> None:
    """Without overlap a step takes longer, and of what is sharded nothing is hidden."""
    options = (f"parallelism.sharding={sharding}",)
    beside, apart = (
        training_step(*job(*options, f"train.overlap_communication={how}"))
        for how in ("true", "false")
    )
    waits = [float(s.micro_batches * s.exchange + s.gradients) for s in (apart, beside)]
    assert waits[0] > waits[1] * 1.5
    assert float(apart.total) > float(beside.total)
    assert float(apart.hidden) == pytest.approx(0.0, abs=1e-12)


def test_sharded_parameters_in_turn_show_every_gather() -> None:
    """A step in turn waits for two gathers and one scatter of each layer, and one of each.

    It also waits for those of the embedding, and for one gather and one scatter of the head.
    """
    description, kernels = job("train.overlap_communication=false")
    free = without_latency(kernels)
    layer, step = gather_times(description, free), training_step(description, free)
    layers = description.shape.layers
    shown = layers * (layer.gather + layer.again + layer.scatter) + layer.gather + layer.scatter
    shown = shown + sum(table.total for table in table_gather_times(description, free))
    batches = float(step.micro_batches)
    assert float(step.exchange) * batches == pytest.approx(float(shown) * batches, rel=1e-9)


def test_groups_over_two_machines_send_their_gathers_through_the_network() -> None:
    """A group of two machines gathers half of a layer over the network of each."""
    description, kernels = job(group(16))
    device = replace(description.device, network=description.device.network / 4.0)
    description, free = replace(description, device=device), without_latency(kernels)
    held, _ = layer_parameters(description)
    layer = gather_times(description, free)
    half = 0.5 * held * description.work.gather_bytes / description.device.network
    assert float(layer.gather) == pytest.approx(float(half))


def test_ranks_far_apart_meet_over_the_network_alone() -> None:
    """Two ranks of different machines send half of it each way, all eight pairs at once."""
    description, kernels = job()
    free, size = without_latency(kernels), 1e9
    time = all_gather_time(size, 2.0, description, free, stride=8.0)
    assert float(time) == pytest.approx(0.5 * size * 8.0 / description.device.network)


@settings(max_examples=20, deadline=None)
@given(factor=st.floats(min_value=1.0, max_value=20.0), size=st.sampled_from([1, 2, 4, 8, 16, 32]))
@pytest.mark.parametrize("rate", ["link", "network"])
def test_a_faster_link_never_slows_a_group(rate: str, factor: float, size: int) -> None:
    """More bandwidth never takes longer, whatever the group."""
    description, kernels = job(group(size))
    device = description.device
    faster = replace(device, **{rate: getattr(device, rate) * factor})
    before = float(training_step(description, kernels).total)
    after = float(training_step(replace(description, device=faster), kernels).total)
    assert after <= before * (1.0 + 1e-12)


def test_a_batch_of_groups_is_as_good_as_one_by_one() -> None:
    """An array of groups gives what each gives alone."""
    description, kernels = job(group(8))
    sizes = np.array([2.0, 8.0, 16.0, 32.0])
    layout = replace(description.layout, shard_group=sizes)
    together = training_step(replace(description, layout=layout), kernels).total
    alone = [float(step(group(int(size))).total) for size in sizes]
    assert np.broadcast_to(together, sizes.shape) == pytest.approx(alone, rel=1e-12)


def test_slow_networks_favour_groups_of_a_machine() -> None:
    """Groups send once a step what sharding over all sends with each of four micro-batches."""
    description, kernels = job("train.accumulation=4")
    hybrid, _ = job(group(8), "train.accumulation=4")
    slow = replace(description.device, network=description.device.network / 16.0)
    times = [
        float(training_step(replace(each, device=slow), kernels).total)
        for each in (description, hybrid)
    ]
    assert times[1] < times[0]
