"""The step of a sharded model: published rows, schedule, optimizer on the host."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simulator.engine.run import Options, SimulationInput, solve
from simulator.equations.pipeline import pipeline_bubble, slowest_stage
from simulator.errors import NotModelled
from simulator.physics.collectives import InMachine
from simulator.physics.communication import activation_bytes, all_gather_time, send_time
from simulator.physics.device_time import device_time
from simulator.physics.footprint import memory_fit
from simulator.physics.kernels import PassTimes, cast_bytes, layer_launches, reached_bandwidth
from simulator.physics.kernels import memory_kernels_time as small_kernels
from simulator.physics.parameters import expert_products, kept_bytes, layer_parameters, tokens
from simulator.physics.schedule import Pipeline, simulate
from simulator.physics.training_step import (
    TrainingStep,
    expert_kernels_time,
    gather_times,
    host_update,
    small_kernels_share,
    training_step,
)
from simulator.physics.transformer import TransformerStep, kernels_of, transformer_step
from simulator.pipeline.program import check_modelled, demand_table
from simulator.pipeline.run_length import extras, lengths
from simulator.pipeline.stages.base import Phase
from simulator.pipeline.topology import build
from simulator.reading.scenario import load_scenario
from simulator.schema.scenario import Scenario
from simulator.schema.software import Kernels
from simulator.schema.training import Schedule

SELECTIVE = ("train.recompute=selective", "parallelism.sequence=true")


def spread(name: str, *overrides: str) -> tuple[TransformerStep, Kernels]:
    """What a shipped scenario's devices compute and send, and the figures that hold."""
    scenario = load_scenario(name, overrides=overrides)
    return transformer_step(scenario), kernels_of(scenario)


GPT = spread("gpt3-175b-megatron")
LLAMA = spread("llama3-8b-fsdp", "hardware.count=4")
EXPERTS = spread(
    "llama3-8b-fsdp",
    *("hardware.count=4", "model.name=qwen3-30b-a3b", "parallelism.expert=32"),
    *("parallelism.sharding=optimizer", "software.framework=megatron-bridge"),
    "software.attention_kernel=cudnn",
)
CASES = {"pipeline": GPT, "sharded": LLAMA, "experts": EXPERTS}


def changed(description: TransformerStep, **changes: Any) -> TransformerStep:
    """The description with figures changed, named as part_figure."""
    parts: dict[str, Any] = {}
    for name, value in changes.items():
        part, _, figure = name.partition("_")
        parts[part] = replace(parts.get(part, getattr(description, part)), **{figure: value})
    return replace(description, **parts)


@pytest.mark.parametrize(
    ("name", "overrides", "published", "within"),
    [
        ("gpt3-175b-megatron", (), 18.13, 0.03),
        ("gpt3-175b-megatron", SELECTIVE, 13.75, 0.03),
        ("megatron-1t", (), 94.42, 0.06),
        ("megatron-1t", SELECTIVE, 71.49, 0.06),
        ("bloom-176b", (), 105.22, 0.03),
        ("llama3-8b-fsdp", (), 2.8435, 0.04),
        ("llama3-8b-fsdp", ("hardware.count=16",), 2.9231, 0.04),
        ("llama3-8b-fsdp", ("software.compile=true",), 2.4575, 0.04),
    ],
)
def test_published_steps(
    name: str, overrides: tuple[str, ...], published: float, within: float
) -> None:
    """Steps come as near to those published as they did when the figures were fitted."""
    step = training_step(*spread(name, *overrides))
    assert float(step.total) == pytest.approx(published, rel=within)


@pytest.mark.parametrize("case", CASES)
def test_a_batch_of_candidates_is_as_good_as_one_by_one(case: str) -> None:
    """Arrays of layouts give what each of them gives alone."""
    description, kernels = CASES[case]
    batches, groups = np.array([1.0, 2.0, 4.0]), np.array([1.0, 2.0, 8.0])
    together = training_step(
        changed(description, layout_micro_batch=batches, layout_tensor=groups), kernels
    )
    for index, (batch, group) in enumerate(zip(batches, groups, strict=True)):
        alone = changed(description, layout_micro_batch=float(batch), layout_tensor=float(group))
        step = training_step(alone, kernels)
        for figure in ("total", "forward", "backward", "exchange", "gradients", "hidden"):
            several = np.broadcast_to(getattr(together, figure), batches.shape)
            assert several[index] == pytest.approx(float(getattr(step, figure)), rel=1e-12)


def total(case: str, **changes: float) -> float:
    """Length of the step of a case with figures changed [s]."""
    description, kernels = CASES[case]
    return float(training_step(changed(description, **changes), kernels).total)


FASTER = st.floats(min_value=1.0, max_value=20.0)


@settings(max_examples=25, deadline=None)
@given(case=st.sampled_from(sorted(CASES)), factor=FASTER)
@pytest.mark.parametrize("rate", ["bandwidth", "link", "network"])
def test_a_faster_part_never_slows_the_step(rate: str, case: str, factor: float) -> None:
    """More bandwidth of memory, link or network never takes longer."""
    own = getattr(CASES[case][0].device, rate)
    assert total(case, **{f"device_{rate}": own * factor}) <= total(case) * (1.0 + 1e-12)


@settings(max_examples=25, deadline=None)
@given(case=st.sampled_from(sorted(CASES)), factor=FASTER)
def test_a_faster_device_never_slows_the_step(case: str, factor: float) -> None:
    """Higher peaks never take longer."""
    device = CASES[case][0].device
    faster = {"device_peak": device.peak * factor, "device_peak16": device.peak16 * factor}
    assert total(case, **faster) <= total(case) * (1.0 + 1e-12)


@settings(max_examples=25, deadline=None)
@given(case=st.sampled_from(sorted(CASES)), more=st.integers(min_value=1, max_value=50))
def test_more_micro_batches_add_equal_parts(case: str, more: int) -> None:
    """Each further micro-batch takes as long as the last one did."""
    own = CASES[case][0].layout.micro_batches
    first = total(case, layout_micro_batches=own + 1.0) - total(case)
    many = total(case, layout_micro_batches=own + float(more)) - total(case)
    assert many == pytest.approx(more * first, rel=1e-6)


def test_exchange_grows_with_slower_links_alone() -> None:
    """Compute of a micro-batch does not depend on the links, waiting does."""
    description, kernels = GPT
    reduce = description.device.reduce
    rates = reduce.eight.small_rate / 4.0, reduce.eight.large_rate / 4.0
    slower = replace(reduce.eight, small_rate=rates[0], large_rate=rates[1])
    slow = changed(description, device_reduce=InMachine(*(slower for _ in range(3))))
    before, after = training_step(description, kernels), training_step(slow, kernels)
    assert float(after.forward) == pytest.approx(float(before.forward), rel=1e-12)
    assert float(after.exchange) > 1.5 * float(before.exchange)


def test_full_recomputation_repeats_a_forward_pass() -> None:
    """Its backward pass is longer by about the forward pass."""
    plain = training_step(*spread("gpt3-175b-megatron", "train.recompute=none"))
    again = training_step(*GPT)
    ratio = (float(again.backward) - float(plain.backward)) / float(plain.forward)
    assert ratio == pytest.approx(1.0, abs=0.1)


def test_gradients_of_experts_are_added_up_over_their_copies_alone() -> None:
    """On 32 devices, one copy of the experts exchanges nothing for them, four copies do."""
    alone = changed(EXPERTS[0], layout_overlapped_gradients=0.0)
    four = changed(alone, layout_expert=8.0)
    held, shared = layer_parameters(four)
    size = float((held - shared) * four.shape.layers)
    ways = [
        float(
            all_gather_time(
                size * width, 4.0, four, EXPERTS[1], stride=8.0, messages=four.shape.layers
            )
        )
        for width in (four.work.gradient_bytes, four.work.gather_bytes)
    ]
    times = [float(training_step(each, EXPERTS[1]).gradients) for each in (alone, four)]
    assert min(ways) > 0.0
    assert times[1] - times[0] == pytest.approx(sum(ways), rel=1e-9)


def test_sharded_experts_are_gathered_from_their_copies_alone() -> None:
    """Layers whose experts have one copy gather what all replicas share, those with four more."""
    alone = changed(EXPERTS[0], layout_sharded=1.0, layout_sharded_optimizer=0.0)
    times = [
        float(gather_times(changed(alone, layout_expert=count), EXPERTS[1]).gather)
        for count in (32.0, 8.0)
    ]
    _, shared = layer_parameters(alone)
    replicas = float(alone.layout.replicas)
    own = float(all_gather_time(shared * alone.work.gather_bytes, replicas, alone, EXPERTS[1]))
    assert times[0] == pytest.approx(own, rel=1e-9)
    assert times[1] > times[0]


def test_a_stage_waits_for_an_activation_and_its_gradient_of_every_chunk() -> None:
    """Of sends that compute does not hide: two for each of the chunks of its layers."""
    description, kernels = GPT
    exposed = changed(description, layout_async_sends=0.0)
    quick = changed(exposed, layout_pipeline=1.0)
    one = float(send_time(activation_bytes(exposed), exposed, kernels))
    sent = training_step(exposed, kernels).terms["exchange"].inputs["sent"]
    assert one > 0.0
    assert float(sent) == pytest.approx(2.0 * float(exposed.layout.chunks) * one)
    assert float(training_step(quick, kernels).terms["exchange"].inputs["sent"]) == 0.0


def test_one_stage_has_no_bubble() -> None:
    """Without a pipeline nobody waits for another stage."""
    assert float(training_step(*LLAMA).bubble) == 0.0


@pytest.mark.parametrize(("stages", "batches"), [(2, 2), (4, 7), (8, 32)])
def test_the_closed_form_is_the_simulated_schedule(stages: int, batches: int) -> None:
    """1F1B of equal middle stages, with ends up to as long, takes what its simulation takes."""
    first, middle, last = 0.8, 1.0, 0.9
    lengths_ = [first, *([middle] * (stages - 2)), last]
    run = simulate(
        Schedule.ONE_FORWARD_ONE_BACKWARD,
        Pipeline(
            devices=stages,
            forward=[length / 3.0 for length in lengths_],
            backward=[length * 2.0 / 3.0 for length in lengths_],
            weights=[length / 3.0 for length in lengths_],
        ),
        batches,
    )
    slow = slowest_stage(first, middle, last, float(stages))
    closed = batches * slow + pipeline_bubble(first, middle, last, float(stages), 1.0)
    assert run.length == pytest.approx(float(closed), rel=0.02)


def test_the_closed_form_is_the_simulated_interleaved_schedule() -> None:
    """Equal chunks, as many groups of micro-batches as stages: exactly the simulation."""
    stages, chunks, batches = 4, 3, 16
    run = simulate(
        Schedule.ONE_FORWARD_ONE_BACKWARD,
        Pipeline(
            devices=stages,
            forward=[1.0] * stages * chunks,
            backward=[2.0] * stages * chunks,
            weights=[1.0] * stages * chunks,
        ),
        batches,
    )
    stage = 3.0 * chunks
    closed = batches * stage + pipeline_bubble(stage, stage, stage, float(stages), float(chunks))
    assert run.length == pytest.approx(float(closed), rel=1e-9)


def bubble(*overrides: str) -> float:
    """What the slowest stage of GPT-3 waits for others in a step [s]."""
    scenario = load_scenario(
        "gpt3-175b-megatron", overrides=("parallelism.interleave=1", *overrides)
    )
    time = device_time(scenario)
    assert time is not None
    assert time.step is not None
    return float(time.step.bubble)


def test_schedules_differ_in_their_bubbles() -> None:
    """All forward first waits as long as 1F1B; weight gradients put off fill much of the time."""
    plain, first, filled = (
        bubble(f"parallelism.schedule={name}") for name in ("1f1b", "all-forward", "zero-bubble")
    )
    assert first == pytest.approx(plain, rel=0.05)
    assert 0.2 * plain < filled < 0.7 * plain


@pytest.mark.parametrize("schedule", list(Schedule))
def test_machines_with_a_fault_wait_longer_in_every_schedule(schedule: Schedule) -> None:
    """What slows all of a step slows its bubble too, whether it is simulated or a closed form."""
    own = f"parallelism.schedule={schedule}"
    figures = load_scenario("gpt3-175b-megatron").job.software.kernels
    slow = load_scenario("gpt3-175b-megatron", overrides=("software.degraded=true",))
    assert figures is not None
    assert slow.job.software.kernels is not None
    factor = slow.job.software.kernels.slowness
    assert factor > figures.slowness
    assert bubble(own, "software.degraded=true") == pytest.approx(factor * bubble(own), rel=1e-9)


def test_all_forward_passes_first_keep_everything() -> None:
    """With all forward passes first, all of 64 micro-batches are kept, not eight at most."""
    kept = [
        memory_fit(
            load_scenario("gpt3-175b-megatron", overrides=("parallelism.interleave=1", override))
        ).items["activations"]
        for override in ("parallelism.schedule=1f1b", "parallelism.schedule=all-forward")
    ]
    assert float(kept[1]) >= 64.0 / 8.0 * float(kept[0]) * (1.0 - 1e-9)


def solved(scenario: Scenario) -> Any:
    """What the event engine says of a scenario."""
    topology = build(scenario)
    demands = {phase: demand_table(scenario, phase) for phase in Phase}
    inputs = SimulationInput(
        scenario=scenario,
        topology=topology,
        demands=demands,
        lengths=lengths(scenario),
        extras=extras(scenario, topology, demands[Phase.WARM]),
    )
    return solve(inputs, Options(seed=0))


@pytest.mark.parametrize("name", ["gpt3-175b-megatron", "llama3-8b-fsdp"])
def test_the_engine_takes_the_step_apart(name: str) -> None:
    """Compute, exchange, bubble and hidden exchange of a simulated step are those of the model."""
    scenario = load_scenario(name)
    timing, time = solved(scenario), device_time(scenario)
    assert time is not None
    step: TrainingStep | None = time.step
    assert step is not None
    assert timing.split.bubble == pytest.approx(float(step.bubble), rel=1e-6)
    waited = float(step.micro_batches * step.exchange + step.gradients)
    assert timing.split.communication == pytest.approx(waited, rel=1e-6)
    assert timing.hidden_communication == pytest.approx(float(step.hidden), rel=1e-6)
    assert timing.step_time.mean == pytest.approx(float(step.total), rel=1e-3)
    samples = scenario.job.train.batch_size * scenario.job.train.accumulation * scenario.ranks
    assert timing.throughput == pytest.approx(samples / timing.step_time.mean, rel=1e-9)


def test_a_job_of_many_machines_costs_what_one_machine_costs() -> None:
    """A step on 384 machines is that of 64, but for the exchange of gradients."""
    few, many = (
        device_time(load_scenario("megatron-1t", overrides=(f"hardware.count={count}",)))
        for count in (64, 384)
    )
    assert few is not None
    assert many is not None
    assert few.step is not None
    assert many.step is not None
    rest = float(many.step.total) - float(many.step.gradients)
    assert rest == pytest.approx(float(few.step.total) - float(few.step.gradients), rel=1e-9)
    assert float(many.step.gradients) > float(few.step.gradients)


def test_the_share_of_small_kernels_is_what_a_step_loses_with_them() -> None:
    """Without norms and activations a step on one device is shorter by their share, about."""
    d, k = spread("gpt2-tokens-h100")
    share = small_kernels_share(d, k)
    none = replace(k, kernel=replace(k.kernel, gated=0.0, plain=0.0))
    lost = 1.0 - training_step(d, none).total / training_step(d, k).total
    assert 0.05 < share < 0.6
    assert lost == pytest.approx(share, rel=0.35)


OFFLOAD = "parallelism.offload_optimizer=true"


def job(*overrides: str) -> Scenario:
    """An 8B model on eight devices whose state is sharded and updated on the host."""
    scenario = load_scenario("llama3-8b-fsdp", overrides=(OFFLOAD, *overrides))
    check_modelled(scenario)
    return scenario


def step(scenario: Scenario) -> TrainingStep:
    """Its step."""
    return training_step(transformer_step(scenario), kernels_of(scenario))


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
    description = transformer_step(job())
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
    description, kernels = transformer_step(job()), kernels_of(job())
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
    description = transformer_step(job("train.accumulation=4"))
    once = transformer_step(job())
    layers = float(once.shape.layers)
    assert float(host_update(description, kernels_of(job()), layers, 0.0).sent) == pytest.approx(
        4.0 * float(host_update(once, kernels_of(job()), layers, 0.0).sent)
    )


def test_devices_below_one_switch_share_its_uplink() -> None:
    """Where devices hang two and two below switches, each has half of an uplink while all copy."""
    alone = transformer_step(job("hardware.gpus=1", "hardware.machine=instance/aws/p4d.24xlarge"))
    both = transformer_step(job("hardware.machine=instance/aws/p4d.24xlarge"))
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
    description, kernels = transformer_step(job()), kernels_of(job())
    own = getattr(description.device, rate)
    faster = replace(description, device=replace(description.device, **{rate: own * factor}))
    before, after = training_step(description, kernels), training_step(faster, kernels)
    assert float(after.total) <= float(before.total) * (1.0 + 1e-12)


def test_a_batch_of_candidates_may_differ_in_it() -> None:
    """With and without, side by side, as each alone."""
    description, kernels = transformer_step(job()), kernels_of(job())
    layout = replace(description.layout, offloaded=np.array([0.0, 1.0]))
    both = training_step(replace(description, layout=layout), kernels).total
    alone = [float(step(each).total) for each in (load_scenario("llama3-8b-fsdp"), job())]
    assert np.broadcast_to(both, (2,)) == pytest.approx(alone, rel=1e-12)


def test_other_models_are_refused() -> None:
    """Networks without fitted kernels have no step with the optimizer elsewhere."""
    with pytest.raises(NotModelled, match="bert, gpt, llama and moe"):
        check_modelled(load_scenario("resnet50-imagenet-p4d", overrides=(OFFLOAD,)))


def mixture(*, shared: float = 0.0, low: float = 0.0) -> tuple[TransformerStep, Kernels]:
    """Mixtral with shared experts of that width, in 16 bit or below."""
    scenario = load_scenario("mixtral-8x7b-megatron")
    description = transformer_step(scenario)
    shape = replace(description.shape, shared_ffn=shared)
    work = replace(description.work, low=low)
    return replace(description, shape=shape, work=work), kernels_of(scenario)


def rate(description: TransformerStep, kernels: Kernels) -> float:
    """Bytes per second of the layers' small kernels, for a byte of an average layer [B/s]."""
    gated = description.shape.gated > 0
    factor = kernels.kernel.gated if gated else kernels.kernel.plain
    return float(reached_bandwidth(description, kernels) / (factor * description.shape.routed))


def test_shared_experts_add_their_activations() -> None:
    """Each token moves 3 values of the shared width forward and 5 backward."""
    with_them, kernels = mixture(shared=4096.0)
    without, _ = mixture()
    sent = float(tokens(with_them) / with_them.layout.tensor)
    added = sent * 4096.0 * with_them.work.element / rate(with_them, kernels)
    more, less = expert_kernels_time(with_them, kernels), expert_kernels_time(without, kernels)
    assert float(more.forward - less.forward) == pytest.approx(3.0 * added)
    assert float(more.backward - less.backward) == pytest.approx(5.0 * added)


def test_shared_experts_multiply_every_token_once() -> None:
    """Gate, input and output: three products of hidden x shared width, in layers with experts."""
    with_them, kernels = mixture(shared=4096.0)
    without, _ = mixture()
    products = [
        sum(
            p.rows * p.columns * p.inner * p.separate * p.share for p in expert_products(d, kernels)
        )
        for d in (with_them, without)
    ]
    shape, layout = with_them.shape, with_them.layout
    macs = tokens(with_them) / layout.tensor * 3.0 * shape.hidden * 4096.0 * shape.routed
    assert float(products[0] - products[1]) == pytest.approx(float(macs))


def test_casts_below_16_bit_cover_twice_the_width_of_experts_in_the_backward_pass() -> None:
    """Forward casts the input and the activation; backward casts two gradients of the width."""
    narrow, kernels = mixture(low=1.0)
    wide, _ = mixture()
    shape = narrow.shape
    rows = float(tokens(narrow) / narrow.layout.tensor * shape.top_k)
    each = float(cast_bytes(narrow, kernels)) * rows / rate(narrow, kernels)
    assert each > 0.0
    more, less = expert_kernels_time(narrow, kernels), expert_kernels_time(wide, kernels)
    fused = 1.0 if narrow.work.fused_experts == 0 else kernels.expert.fused
    assert float(more.forward - less.forward) == pytest.approx(
        fused * each * (shape.hidden + shape.expert_ffn)
    )
    assert float(more.backward - less.backward) == pytest.approx(
        fused * each * (shape.hidden + 2.0 * shape.expert_ffn)
    )


def test_shared_experts_add_what_they_keep() -> None:
    """Each token keeps the gate, the input of the function and its result of the shared width."""
    with_them, _ = mixture(shared=4096.0)
    without, _ = mixture()
    figures = load_scenario("mixtral-8x7b-megatron").job.software.memory
    widths = [kept_bytes(one, figures) for one in (with_them, without)]
    assert float(widths[0] - widths[1]) >= float(tokens(with_them)) * 4096.0 * (
        with_them.work.element / with_them.layout.tensor
    )


def test_casts_of_a_dense_layer_cover_its_sides_in_the_backward_pass() -> None:
    """Queries, keys, values and both halves of the gated width; forward the two results only."""
    scenario = load_scenario("llama3-8b-fsdp")
    wide, kernels = transformer_step(scenario), kernels_of(scenario)
    narrow = replace(wide, work=replace(wide.work, low=1.0))
    more, less = small_kernels(narrow, kernels), small_kernels(wide, kernels)
    shape = wide.shape
    width, sides = shape.heads * shape.head_width, 2.0 * shape.kv_heads * shape.head_width
    norms = 2.0 * shape.hidden
    forward = norms + width + shape.ffn
    backward = norms + width + sides + 2.0 * shape.ffn
    ratio = float((more.backward - less.backward) / (more.forward - less.forward))
    assert ratio == pytest.approx(backward / forward)


def test_only_a_layer_that_is_split_launches_collectives() -> None:
    """One more launch in each pass over two ranks than on a rank alone."""
    scenario = load_scenario("gpt3-175b-megatron")
    description, kernels = transformer_step(scenario), kernels_of(scenario)
    figures = replace(kernels.launch, jitter=0.0, collective=1e-3)
    kernels = replace(kernels, launch=figures)

    def over(ranks: float) -> PassTimes:
        layout = replace(description.layout, tensor=ranks)
        return layer_launches(replace(description, layout=layout), kernels)

    alone, split = over(1.0), over(2.0)
    one = figures.collective * figures.factor
    assert float(split.forward - alone.forward) == pytest.approx(one)
    assert float(split.backward - alone.backward) == pytest.approx(one)
