"""Parameters of a layer: stored matrices and low-rank adapters."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np
import pytest

from simulator.errors import PlanError
from simulator.physics.communication import traffic
from simulator.physics.device_memory import device_memory
from simulator.physics.device_time import device_time
from simulator.physics.footprint import checkpoint_bytes
from simulator.physics.kernels import product_times
from simulator.physics.operators import model_utilization
from simulator.physics.parameters import (
    adapter_traffic,
    attention_products,
    kept_bytes,
    layer_parameters,
    learned_in_all,
    learned_parameters,
    logits_bytes,
    padded_vocabulary,
    whole_footprint,
    working_bytes,
)
from simulator.physics.training_step import TrainingStep, gather_times, layer_pass, training_step
from simulator.physics.transformer import (
    Recomputation,
    TransformerStep,
    kernels_of,
    transformer_step,
)
from simulator.reading.scenario import load_scenario
from simulator.schema.scenario import Scenario
from simulator.uncertainty.scenario import uncertainties_of, with_uncertainties
from simulator.units import Real


@pytest.mark.parametrize(("tensor", "rows"), [(1.0, 50304.0), (8.0, 51200.0)])
def test_each_rank_of_a_tensor_group_holds_whole_tiles_of_the_vocabulary(
    tensor: float, rows: float
) -> None:
    """50,257 rows become a multiple of 128 on each rank."""
    plain = transformer_step(load_scenario("gpt3-175b-megatron"))
    padded = replace(
        plain,
        shape=replace(plain.shape, vocabulary=50257.0),
        layout=replace(plain.layout, tensor=tensor),
        work=replace(plain.work, padded_vocabulary=1.0),
    )
    assert float(padded_vocabulary(padded)) == rows


def test_shared_experts_are_weights_that_every_rank_holds() -> None:
    """Three matrices of a shared expert's width, beside the experts that ranks share out."""
    plain = transformer_step(load_scenario("mixtral-8x7b-megatron"))
    width = 2048.0
    beside = replace(plain, shape=replace(plain.shape, shared_ffn=width))
    more = 3.0 * plain.shape.hidden * width
    for without, with_them in zip(layer_parameters(plain), layer_parameters(beside), strict=True):
        assert float(with_them - without) == pytest.approx(more)


LORA = "train.trained=lora"
EIGHT = ("model.name=llama-3.1-8b", "model.sequence=2048", "train.recompute=none")


def job(*overrides: str) -> Scenario:
    """Llama 3.1 8B on eight H100 under FSDP."""
    return load_scenario("llama3-8b-fsdp", overrides=(*EIGHT, *overrides))


def step(scenario: Scenario) -> TrainingStep:
    """Its step."""
    return training_step(transformer_step(scenario), kernels_of(scenario))


def memory(scenario: Scenario) -> dict[str, float]:
    """What a device of it holds, by item [B]."""
    found = device_memory(scenario)
    assert found is not None
    return {name: float(size) for name, size in found.items.items()}


@pytest.mark.parametrize(
    ("targets", "rank", "expected"),
    [
        ("linear", 16, 41_943_040),
        ("attention", 16, 13_631_488),
        ("queries-values", 8, 3_407_872),
        ("queries-keys-values", 8, 4_718_592),
    ],
)
def test_learned_parameters_are_those_that_peft_prints(
    targets: str, rank: int, expected: int
) -> None:
    """Of 32 layers, 4,096 wide, with keys 1,024 and an MLP 14,336 wide: rank x (in + out) each."""
    scenario = job(LORA, f"train.lora_targets={targets}", f"train.lora_rank={rank}")
    assert learned_in_all(scenario.job) == expected
    held, shared = learned_parameters(transformer_step(scenario))
    assert float(held) == float(shared) == expected / 32


def test_projections_that_are_one_product_have_one_adapter() -> None:
    """Queries, keys and values: 8 x (4,096 + 6,144) in place of 8 x (3 x 4,096 + 6,144)."""
    own = (LORA, "train.lora_targets=queries-keys-values", "train.lora_rank=8")
    joined = job(*own, "software.framework=nemo", "software.compile=false")
    assert learned_in_all(joined.job) == 32 * 8 * (4096 + 6144)


def test_frozen_products_leave_out_the_gradient_of_their_weights() -> None:
    """Forward and the gradient of the input take the same; that of the weights goes."""
    scenario = job()
    d, k = transformer_step(scenario), kernels_of(scenario)
    products = attention_products(d)
    forward, backward = product_times(products, d, k)
    frozen = [one._replace(learned=0.0) for one in products]
    same, inputs = product_times(frozen, d, k)
    weights = [one._replace(learned=-1.0) for one in products]
    _, difference = product_times(weights, d, k)
    assert same == pytest.approx(forward)
    assert (inputs < backward).all()
    assert inputs == pytest.approx((backward + difference) / 2.0)


def test_small_adapters_cost_less_than_what_is_frozen_saves() -> None:
    """A step is shorter, and its passes take more than two thirds of those that learn all."""
    few = job(LORA, "train.lora_targets=queries-values", "train.lora_rank=8")
    learning, adapted = step(job()), step(few)
    assert float(adapted.backward) < float(learning.backward)
    assert float(adapted.forward) > float(learning.forward)
    assert float(adapted.total) > 0.6 * float(learning.total)
    assert float(adapted.update) < 0.1 * float(learning.update)


def test_more_rank_and_more_targets_take_longer() -> None:
    """Each product more, and each column more, is work."""
    order = [
        (LORA, "train.lora_targets=queries-values", "train.lora_rank=8"),
        (LORA, "train.lora_targets=attention", "train.lora_rank=8"),
        (LORA, "train.lora_targets=linear", "train.lora_rank=8"),
        (LORA, "train.lora_targets=linear", "train.lora_rank=512"),
    ]
    times = [float(step(job(*own)).total) for own in order]
    assert times == sorted(times)
    assert len(set(times)) == len(times)


def test_memory_has_states_of_adapters_alone() -> None:
    """On one device, in 16 bit: 2 bytes a frozen parameter, and 2, 2 and 4 of one that learns."""
    half = ("train.mixed_precision=false", "train.gradient_precision=bf16")
    scenario = job(LORA, "hardware.gpus=1", *half)
    held, model = memory(scenario), scenario.job.model
    assert model is not None
    assert held["frozen_parameters"] == pytest.approx(2.0 * model.parameters, rel=1e-3)
    assert held["parameters"] == 2.0 * 41_943_040
    assert held["optimizer"] == 4.0 * 41_943_040
    assert held["gradients"] == 2.0 * 41_943_040
    assert "frozen_parameters" not in memory(job("hardware.gpus=1"))


def test_four_bit_weights_take_a_quarter_beside_their_scales() -> None:
    """Layers in 4.127 bit, tables of tokens in 16; bringing them to 16 bit takes time."""
    plain, narrow = (
        job(LORA, "hardware.gpus=1", *more) for more in ((), ("train.frozen_precision=fp4",))
    )
    model = plain.job.model
    assert model is not None
    tables = 2.0 * 128_256 * 4096
    layers = model.parameters - tables
    assert memory(narrow)["frozen_parameters"] == pytest.approx(
        layers * 4.127 / 8.0 + 2.0 * tables, rel=1e-3
    )
    assert float(step(narrow).forward) > float(step(plain).forward)


def test_weights_in_the_width_that_products_read_are_not_widened() -> None:
    """Stored in 8 bit they are as they are read in fp8, and twice as wide in bf16."""
    for precision, widened in (("fp8", 0.0), ("bf16", 1.0)):
        keys = ("train.frozen_precision=fp8", f"train.precision={precision}")
        assert transformer_step(job(LORA, *keys)).work.widened == widened


def test_eager_code_converts_four_bits_slower_than_their_bytes() -> None:
    """A weight of 4.127 bit is read and 2 bytes are written; eager code takes as long as 11.2."""
    keys, width = ("train.frozen_precision=fp4", "train.precision=bf16"), 4.127 / 8.0 + 2.0
    eager, compiled = (job(LORA, *keys, f"software.compile={on}") for on in ("false", "true"))
    bytes_of = [transformer_step(one).work.widening_bytes for one in (eager, compiled)]
    assert bytes_of == pytest.approx([11.2, width])
    assert float(step(eager).forward) > float(step(compiled).forward)
    eight = transformer_step(job(LORA, "train.frozen_precision=fp8", "train.precision=bf16"))
    assert eight.work.widening_bytes == 3.0


def test_inputs_that_only_frozen_weights_would_read_are_not_kept() -> None:
    """Without adapters in the MLP its normed input and that of its last product go."""
    full = memory(job(LORA, "train.lora_rank=1", "train.lora_targets=linear"))["activations"]
    some = memory(job(LORA, "train.lora_rank=1", "train.lora_targets=attention"))["activations"]
    d = transformer_step(job())
    tokens = float(d.layout.micro_batch) * 2048.0
    assert full - some == pytest.approx(32 * tokens * 2.0 * (4096 + 14336), rel=1e-3)


def test_sharded_weights_are_gathered_and_gradients_of_adapters_scattered() -> None:
    """What a device sends for a layer is the gathers and next to nothing else."""
    learning, adapted = job(), job(LORA)
    d, k = transformer_step(adapted), kernels_of(adapted)
    own, all_learn = (
        gather_times(d, k),
        gather_times(transformer_step(learning), kernels_of(learning)),
    )
    assert float(own.gather) == float(all_learn.gather)
    assert float(own.scatter) < float(all_learn.scatter)
    sent, before = traffic(d), traffic(transformer_step(learning))
    assert float(sent.parameters.whole) < float(before.parameters.whole)
    assert float(sent.gradients.whole) <= 0.01 * float(before.parameters.whole)
    assert float(layer_pass(d, k).device.seconds.backward) > 0.0


def test_a_checkpoint_holds_the_adapters() -> None:
    """Their weights and moments, not the model."""
    assert checkpoint_bytes(job(LORA)) == pytest.approx(
        checkpoint_bytes(job()) * 41_943_040 / 8_030_261_248
    )


def test_utilization_counts_no_gradients_of_frozen_weights() -> None:
    """Two passes over products with weights in place of three."""
    learning, adapted = (model_utilization(job(*own), 10.0) for own in ((), (LORA,)))
    assert learning is not None
    assert adapted is not None
    # attention, a few per cent of all, has three passes in both
    assert 2.0 / 3.0 < float(adapted.value) / float(learning.value) < 0.69


def test_the_prediction_says_that_nobody_measured_it() -> None:
    """Nothing was fitted to adapters, so the interval is wider and a warning says why."""
    warned = [
        component.warning
        for component in uncertainties_of(job(LORA))
        if "trainable parameters adapters" in component.warning
    ]
    assert len(warned) == 1
    assert not any(
        "trainable parameters" in component.warning for component in uncertainties_of(job())
    )
    assert with_uncertainties(job(LORA)).memory_log_sd > with_uncertainties(job()).memory_log_sd


@pytest.mark.parametrize(
    ("name", "overrides", "words"),
    [
        ("llama3-8b-fsdp", ("train.lora_rank=8",), "train.lora_rank: is about adapters"),
        ("llama3-8b-fsdp", ("train.frozen_precision=fp4",), "train.frozen_precision: is about"),
        ("resnet50-imagenet-p4d", (LORA,), "train.trained: needs a transformer over tokens"),
        ("llama3-8b-fsdp", ("train.trained=head",), "train.trained: needs a classifier of images"),
    ],
)
def test_what_does_not_go_together_is_refused(
    name: str, overrides: tuple[str, ...], words: str
) -> None:
    """Keys of adapters without adapters, and adapters without a language model."""
    with pytest.raises(PlanError, match=words):
        load_scenario(name, overrides=overrides)


@pytest.mark.parametrize(("name", "classes"), [("resnet50", 2048), ("vit-b16", 768)])
def test_a_head_alone_learns_behind_a_frozen_rest(name: str, classes: int) -> None:
    """A thousand classes of so many values: their gradients and moments, and a pass forward."""
    keys = (f"model.name={name}", "train.precision=fp32", "train.optimizer=adam")
    scenarios = [
        load_scenario("resnet50-imagenet-p4d", overrides=(*keys, *more))
        for more in ((), ("train.trained=head",))
    ]
    whole, head = (device_time(scenario) for scenario in scenarios)
    assert whole is not None
    assert head is not None
    assert not head.measured
    assert float(head.backward) < 0.02 * float(head.forward)
    learned = (classes + 1) * 1000
    assert learned_in_all(scenarios[1].job) == learned
    held, before = memory(scenarios[1]), memory(scenarios[0])
    model = scenarios[1].job.model
    assert model is not None
    assert held["frozen_parameters"] == 4.0 * (model.parameters - learned)
    assert held["parameters"] == 4.0 * learned
    assert held["optimizer"] == 8.0 * learned
    assert held["activations"] < 0.3 * before["activations"]
    assert checkpoint_bytes(scenarios[1]) == 4.0 * model.parameters + 8.0 * learned


GPT3: Final = load_scenario("gpt3-175b-megatron")
FIGURES: Final = GPT3.job.software.memory
NOTHING: Final = {"recomputation": Recomputation(), "fused_attention": 0.0}


def described(**changes: Real | Recomputation) -> TransformerStep:
    """GPT-3's layers without recomputation and unfused, but for `changes` by name."""
    base = transformer_step(GPT3)
    parts = {}
    for name in ("shape", "layout", "work"):
        part = getattr(base, name)
        values = NOTHING | changes if name == "work" else changes
        known = {key: value for key, value in values.items() if hasattr(part, key)}
        parts[name] = replace(part, **known)
    return replace(base, **parts)


def per_value(d: TransformerStep) -> float:
    """Bytes kept of each token's value of the model's width."""
    tokens = d.layout.micro_batch * d.shape.sequence / d.layout.context
    return float(kept_bytes(d, FIGURES) / (tokens * d.shape.hidden))


@pytest.mark.parametrize(
    ("tensor", "sequence_parallel", "outer", "inner"),
    [(1.0, 0.0, 10.0, 24.0), (8.0, 0.0, 10.0, 3.0), (8.0, 1.0, 1.25, 3.0)],
    ids=["one device", "tensor", "tensor and sequence"],
)
def test_layers_as_published(
    tensor: float, sequence_parallel: float, outer: float, inner: float
) -> None:
    """Sbh (10 + 24 / t + 5 a s / (h t)), all over t with sequence parallelism: 2205.05198."""
    d = described(tensor=tensor, sequence_parallel=sequence_parallel)
    scores = 5.0 * d.shape.heads * d.shape.sequence / d.shape.hidden / tensor
    assert per_value(d) == pytest.approx(outer + inner + scores)
    redone = Recomputation(attention=1.0)
    selective = described(tensor=tensor, sequence_parallel=sequence_parallel, recomputation=redone)
    assert per_value(selective) == pytest.approx(outer + inner)


def test_full_recomputation_keeps_inputs_only() -> None:
    """Two bytes of each value; the layer at work has the rest, so nothing is lost."""
    full = described(recomputation=Recomputation(products=1.0, attention=1.0, passes=1.0))
    plain = described()
    assert per_value(full) == pytest.approx(2.0)
    more = working_bytes(full, FIGURES) - working_bytes(plain, FIGURES)
    assert float(more) == pytest.approx(
        float(kept_bytes(plain, FIGURES) - kept_bytes(full, FIGURES))
    )


def test_every_second_product_as_counted_by_hand() -> None:
    """Llama 8B: input, queries, values, attention, one MLP product; its output where eager."""
    llama = load_scenario("llama3-8b-fsdp", overrides=("train.recompute=operators",))
    d = transformer_step(llama)
    tokens = d.layout.micro_batch * d.shape.sequence
    kept = 2.0 * (4096 + 4096 + 1024 + 4096 + 14336) + 4.0 * 32
    figures = llama.job.software.memory
    eager, compiled = (replace(figures, unread=unread) for unread in (1.0, 0.0))
    assert float(kept_bytes(d, compiled) / tokens) == pytest.approx(kept)
    assert float(kept_bytes(d, eager) / tokens) == pytest.approx(kept + 2.0 * 4096)


def test_small_modules_keep_less_than_everything_and_more_than_inputs() -> None:
    """Norms and activations again: two normed inputs, masks and the MLP's inner output go."""
    modules, plain = described(recomputation=Recomputation(passes=0.2)), described()
    assert per_value(plain) - per_value(modules) == pytest.approx(2.0 * 2.0 + 2.0 + 2.0 * 4.0 / 8.0)


def test_context_parallelism_splits_the_sequence() -> None:
    """Half of the tokens where attention is fused; neighbours' keys and values come on top."""
    one, two = (described(context=n, fused_attention=1.0) for n in (1.0, 2.0))
    assert float(kept_bytes(two, FIGURES)) == pytest.approx(float(kept_bytes(one, FIGURES)) / 2.0)
    assert float(working_bytes(two, FIGURES)) > float(working_bytes(one, FIGURES)) / 2.0


def test_experts_keep_the_tokens_they_are_sent() -> None:
    """Each further choice adds three copies of a token and an expert's insides."""
    moe = load_scenario(
        "llama3-8b-fsdp",
        overrides=(
            *("model.name=mixtral-8x7b", "software.framework=megatron-bridge"),
            *("software.attention_kernel=cudnn", "train.recompute=none"),
        ),
    )
    d, figures = transformer_step(moe), moe.job.software.memory
    more = replace(d, shape=replace(d.shape, top_k=d.shape.top_k + 1.0))
    added = kept_bytes(more, figures) - kept_bytes(d, figures)
    tokens = d.layout.micro_batch * d.shape.sequence
    copies, insides = 3.0 * 2.0 * d.shape.hidden, 3.0 * 2.0 * d.shape.expert_ffn
    assert float(added / tokens) == pytest.approx(copies + insides)


def test_scores_are_split_by_tensor_parallelism() -> None:
    """Tokens times words, once for each set of scores."""
    one, two = (described(tensor=8.0, scored=n) for n in (1.0, 2.0))
    assert float(logits_bytes(two, FIGURES)) == 2.0 * float(logits_bytes(one, FIGURES))
    words = (
        float(logits_bytes(one, FIGURES))
        / FIGURES.scores
        / (one.layout.micro_batch * one.shape.sequence)
    )
    assert words == pytest.approx(np.ceil(one.shape.vocabulary / 1024.0) * 1024.0 / 8.0)


def test_narrow_inputs_are_kept_as_they_are_read() -> None:
    """A GPT in 8 bit: two normed inputs, one inside the MLP, and attention's output twice.

    By hand, a value of the model's width: 34 bytes less 2 x 1 of norms and 4 x 1 inside the MLP,
    and 1 more beside attention's output.
    """
    plain = described(fused_attention=1.0)
    low = replace(plain, work=replace(plain.work, low=1.0, width=1.0))
    narrow = replace(FIGURES, narrow=1.0)
    one = replace(low, layout=replace(low.layout, tensor=1.0, sequence_parallel=0.0))
    tokens = one.layout.micro_batch * one.shape.sequence
    wide, kept = kept_bytes(one, FIGURES), kept_bytes(one, narrow)
    assert float((wide - kept) / (tokens * one.shape.hidden)) == pytest.approx(2.0 + 4.0 - 1.0)
    assert float(kept_bytes(plain, narrow)) == float(kept_bytes(plain, FIGURES))


def test_layers_that_are_not_recomputed_keep_everything() -> None:
    """With a quarter of the layers recomputed the mean layer keeps and repeats a quarter of it."""
    keys = ("train.recompute=full", "train.recompute_share=0.25")
    base = "llama3-8b-fsdp"
    quarter, full = (load_scenario(base, overrides=some) for some in (keys, keys[:1]))
    none = load_scenario(base, overrides=("train.recompute=none",))
    figures = full.job.software.memory
    kept = [kept_bytes(transformer_step(one), figures) for one in (none, quarter, full)]
    assert kept[1] == pytest.approx(0.75 * kept[0] + 0.25 * kept[2])
    again = [
        layer_pass(transformer_step(one), kernels_of(one)).device.seconds.backward
        for one in (none, quarter, full)
    ]
    assert again[1] == pytest.approx(0.75 * again[0] + 0.25 * again[2])


def test_an_unbalanced_router_doubles_what_experts_keep() -> None:
    """Imbalance 2 adds as much as the routed part has: copies of tokens, and experts' insides.

    Top 2 of experts of 14,336: three copies of a token of 4,096 and three insides, 2 bytes each,
    for each of the two; nothing else of a layer changes.
    """
    moe = load_scenario(
        "llama3-8b-fsdp",
        overrides=(
            *("model.name=mixtral-8x7b", "software.framework=megatron-bridge"),
            *("software.attention_kernel=cudnn", "train.recompute=none"),
        ),
    )
    d, figures = transformer_step(moe), moe.job.software.memory
    uneven = replace(d, layout=replace(d.layout, imbalance=2.0))
    added = kept_bytes(uneven, figures) - kept_bytes(d, figures)
    routed = 2.0 * 3.0 * 2.0 * (d.shape.hidden + d.shape.expert_ffn)
    tokens = d.layout.micro_batch * d.shape.sequence
    assert float(added / tokens) == pytest.approx(routed)


def test_traffic_of_one_adapter_by_hand() -> None:
    """Forward 5 passes over the outputs; backward 2 over the outputs and 3 over the inputs.

    An adapter scales its output (read, write) and adds it (two reads, a write); backward it scales
    the gradient of its output and adds a gradient of its input.
    """
    scenario = job("train.trained=lora", "train.lora_targets=queries-values", "train.lora_rank=8")
    d = transformer_step(scenario)
    forward, backward = adapter_traffic(d)
    tokens = float(d.layout.micro_batch * d.shape.sequence)
    width, narrow = 4096, 1024  # queries, values of 8 of 32 heads
    assert float(forward) == pytest.approx(tokens * 2.0 * 5.0 * (width + narrow))
    assert float(backward) == pytest.approx(
        tokens * 2.0 * (2.0 * (width + narrow) + 3.0 * 2 * width)
    )


def test_half_of_the_layers_recomputed_keep_half_of_the_difference() -> None:
    """BERT on a whole device: recompute_share moves between both ends."""
    kept = {}
    for share, recompute in ((1.0, "none"), (1.0, "full"), (0.5, "full")):
        keys = (f"train.recompute={recompute}", f"train.recompute_share={share}")
        scenario = load_scenario("llama3-8b-fsdp", overrides=("model.name=bert-large", *keys))
        assert scenario.job.model is not None
        kept[share, recompute] = float(whole_footprint(scenario.job.model, scenario.job.train).kept)
    middle = (kept[1.0, "none"] + kept[1.0, "full"]) / 2.0
    assert kept[0.5, "full"] == pytest.approx(middle)
    assert kept[1.0, "full"] < kept[1.0, "none"]
