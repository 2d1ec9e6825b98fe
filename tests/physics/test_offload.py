"""An optimizer on the host: bytes by hand, what hides, switches, host memory that is shared."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simulator.engine.run import Options, SimulationInput, solve
from simulator.errors import NotModelled
from simulator.physics.describe import describe, kernels_of
from simulator.physics.offload import host_update
from simulator.physics.step import TrainingStep, training_step
from simulator.pipeline.limits import check_modelled
from simulator.pipeline.program import demand_table
from simulator.pipeline.run_length import extras, lengths
from simulator.pipeline.stages.base import Phase
from simulator.pipeline.topology import build
from simulator.reading.scenario import load_scenario
from simulator.schema.scenario import Scenario

OFFLOAD = "parallelism.offload_optimizer=true"


def job(*overrides: str) -> Scenario:
    """An 8B model on eight devices whose state is sharded and updated on the host."""
    scenario = load_scenario("llama3-8b-fsdp", overrides=(OFFLOAD, *overrides))
    check_modelled(scenario)
    return scenario


def step(scenario: Scenario) -> TrainingStep:
    """Its step."""
    return training_step(describe(scenario), kernels_of(scenario))


def parameters(scenario: Scenario) -> float:
    """Parameters of its model, tables as padded."""
    assert scenario.job.model is not None
    return float(scenario.job.model.parameters)


def test_the_update_moves_thirty_bytes_a_parameter_through_the_machine() -> None:
    """Adam: a gradient, and weight and two moments there and back in fp32, a weight in 16 bit.

    Eight billion parameters on one machine are 240 GB; two machines share them.
    """
    one, two = job(), job("hardware.count=2")
    rate = one.cluster.trainers.host.memory_bandwidth
    assert rate is not None
    assert float(step(one).host.moved) == pytest.approx(30.0 * parameters(one), rel=0.07)
    assert float(step(one).host.update) == pytest.approx(
        float(step(one).host.moved) / (rate * kernels_of(one).update.host)
    )
    assert float(step(two).host.moved) == pytest.approx(float(step(one).host.moved) / 2.0)


def test_the_device_updates_nothing_then() -> None:
    """What the host does is not done by the device as well."""
    assert float(step(job()).update) == 0.0
    plain = load_scenario("llama3-8b-fsdp")
    assert float(step(plain).host.total) == 0.0
    assert float(step(plain).update) > 0.0


def test_gradients_show_where_the_link_is_slower_than_the_backward_pass() -> None:
    """Copies of all layers but the last hide behind a longer backward pass; a longer copy shows."""
    description = describe(job())
    layers = float(description.shape.layers)
    slow = replace(description, device=replace(description.device, host_link=1e9))
    down = float(host_update(slow, kernels_of(job()), layers, 0.0).sent)
    assert float(host_update(slow, kernels_of(job()), layers, 2.0 * down).sent) == pytest.approx(
        down / layers
    )
    assert float(host_update(slow, kernels_of(job()), layers, 0.25 * down).sent) == pytest.approx(
        0.75 * down
    )


def test_parameters_show_where_the_update_is_quicker_than_their_way_up() -> None:
    """What the update does not hide of the parameters' copy is part of the wait for the host."""
    description, kernels = describe(job()), kernels_of(job())
    layers = float(description.shape.layers)
    quick = replace(description, device=replace(description.device, host_memory=1e18))
    found = host_update(quick, kernels, layers, 1e9)
    assert float(found.fetched) > 0.0
    assert float(found.total) == pytest.approx(
        float(found.sent) + float(found.update) + float(found.fetched)
    )
    assert float(found.total - found.update - found.sent) == pytest.approx(float(found.fetched))


def test_every_micro_batch_sends_its_gradients() -> None:
    """Four micro-batches wait for the host's link four times."""
    description = describe(job("train.accumulation=4"))
    once = describe(job())
    layers = float(once.shape.layers)
    assert float(host_update(description, kernels_of(job()), layers, 0.0).sent) == pytest.approx(
        4.0 * float(host_update(once, kernels_of(job()), layers, 0.0).sent)
    )


def test_devices_below_one_switch_share_its_uplink() -> None:
    """Where devices hang two and two below switches, each has half of an uplink while all copy."""
    alone = describe(job("hardware.gpus=1", "hardware.machine=instance/aws/p4d.24xlarge"))
    both = describe(job("hardware.machine=instance/aws/p4d.24xlarge"))
    assert both.device.host_link == pytest.approx(alone.device.host_link / 2.0)


def test_the_event_engine_takes_as_long_as_the_closed_form() -> None:
    """A step of the simulated job is the sum of its parts, the host's among them."""
    scenario = job()
    topology = build(scenario)
    demands = {phase: demand_table(scenario, phase) for phase in Phase}
    beside = extras(scenario, topology, demands[Phase.WARM])
    inputs = SimulationInput(
        scenario=scenario,
        topology=topology,
        demands=demands,
        lengths=lengths(scenario),
        extras=beside,
    )
    timing = solve(inputs, Options(seed=0))
    whole = step(scenario)
    assert timing.step_time.mean == pytest.approx(float(whole.total), rel=2e-3)
    assert timing.split.other == pytest.approx(float(whole.host.total), rel=2e-2)


@settings(max_examples=20, deadline=None)
@given(factor=st.floats(min_value=1.0, max_value=20.0))
@pytest.mark.parametrize("rate", ["host_link", "host_memory"])
def test_a_faster_host_never_slows_the_step(rate: str, factor: float) -> None:
    """More bandwidth of links or memory never takes longer."""
    description, kernels = describe(job()), kernels_of(job())
    own = getattr(description.device, rate)
    faster = replace(description, device=replace(description.device, **{rate: own * factor}))
    before, after = training_step(description, kernels), training_step(faster, kernels)
    assert float(after.total) <= float(before.total) * (1.0 + 1e-12)


def test_a_batch_of_candidates_may_differ_in_it() -> None:
    """With and without, side by side, as each alone."""
    description, kernels = describe(job()), kernels_of(job())
    layout = replace(description.layout, offloaded=np.array([0.0, 1.0]))
    both = training_step(replace(description, layout=layout), kernels).total
    alone = [float(step(each).total) for each in (load_scenario("llama3-8b-fsdp"), job())]
    assert np.broadcast_to(both, (2,)) == pytest.approx(alone, rel=1e-12)


def test_other_models_are_refused() -> None:
    """Networks without fitted kernels have no step with the optimizer elsewhere."""
    with pytest.raises(NotModelled, match="bert, gpt, llama and moe"):
        check_modelled(load_scenario("resnet50-imagenet-p4d", overrides=(OFFLOAD,)))
