"""One layer: memory traffic of experts and launches, by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from simulator.physics.kernels import PassTimes, cast_bytes, layer_launches, reached_bandwidth
from simulator.physics.kernels import memory_kernels_time as small_kernels
from simulator.physics.layer_time import expert_kernels_time
from simulator.physics.model_footprint import kept_bytes
from simulator.physics.parameters import expert_products, tokens
from simulator.physics.transformer import TransformerStep, kernels_of, transformer_step
from simulator.reading.scenario import load_scenario
from simulator.schema.software import Kernels


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
