"""What layers keep: published formulas, recomputation, experts, parts of a sequence."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np
import pytest

from simulator.physics.layer_time import layer_pass
from simulator.physics.model_footprint import kept_bytes, logits_bytes, working_bytes
from simulator.physics.transformer import (
    Recomputation,
    TransformerStep,
    kernels_of,
    transformer_step,
)
from simulator.reading.scenario import load_scenario
from simulator.units import Real

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
