"""Transformers against published counts and the activation formulas of arXiv 2205.05198."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from simulator.errors import NotModelled
from simulator.reading.model_library import load_model
from simulator.schema.accelerators import Precision
from simulator.schema.convnets import Block, resnet
from simulator.schema.models import Operator, forward_flops
from simulator.schema.training import Recompute
from simulator.schema.transformer_families import bert, gpt, llama, vit, with_attention
from simulator.schema.transformers import Transformer


def bert_large(sequence: int = 512, *, fused: bool = True) -> Transformer:
    """BERT-large as in its paper."""
    return bert(
        name="bert-large",
        layers=24,
        hidden=1024,
        heads=16,
        vocabulary=30522,
        positions=512,
        segments=2,
        sequence=sequence,
        scored_share=0.15,
        fused_attention=fused,
    )


def decoder(*, fused: bool = True, sequence: int = 1024, heads: int = 12) -> Transformer:
    """GPT-2 small."""
    return gpt(
        name="gpt2",
        layers=12,
        hidden=768,
        heads=heads,
        vocabulary=50257,
        positions=1024,
        sequence=sequence,
        fused_attention=fused,
    )


LLAMA = llama(
    name="llama-3.1-8b",
    layers=32,
    hidden=4096,
    heads=32,
    kv_heads=8,
    ffn=14336,
    vocabulary=128256,
    sequence=8192,
)
VIT = vit(
    name="vit-b16",
    layers=12,
    hidden=768,
    heads=12,
    ffn=3072,
    image=224,
    patch=16,
    classes=1000,
)


def named(model: Transformer, name: str, samples: float = 1.0) -> Operator:
    """The operator `name` of a forward pass in 16 bit."""
    operators = model.operators(samples, Precision.FP16)
    return next(op for op in operators if op.name == name)


def test_parameters_agree_with_published_counts() -> None:
    """Hugging Face and torchvision count these numbers of parameters."""
    assert decoder().parameters == 124_439_808
    assert bert_large().parameters == 335_141_888
    assert LLAMA.parameters == 8_030_261_248
    assert VIT.parameters == 86_567_656


def test_operations_agree_with_published_counts() -> None:
    """340 GFLOP for BERT-large at 512 tokens, 17.564 G multiply-adds for ViT-B/16."""
    counted = forward_flops(bert_large(), 1.0, Precision.FP32)
    assert counted == pytest.approx(340e9, rel=0.01)
    assert forward_flops(VIT, 1.0, Precision.FP32) / 2e9 == pytest.approx(17.564, abs=0.001)


def test_bert_large_keeps_what_was_published() -> None:
    """14.38 GB of activations for 16 sequences of 512 tokens in fp32, within 10 %."""
    kept = bert_large().activation_bytes(16.0, Precision.FP32, Recompute.NONE)
    assert kept == pytest.approx(14.38e9, rel=0.10)


@pytest.mark.parametrize(
    ("recompute", "per_value"),
    [(Recompute.NONE, 34.0 + 5.0 * 12 * 1024 / 768), (Recompute.SELECTIVE, 34.0)],
)
def test_kept_activations_follow_the_published_formula(
    recompute: Recompute, per_value: float
) -> None:
    """One more layer keeps sbh(34 + 5as/h) bytes in 16 bit, sbh 34 with selective recompute."""
    model = decoder(fused=False)
    more = replace(model, layers=model.layers + 1)
    kept = more.activation_bytes(4.0, Precision.FP16, recompute)
    kept -= model.activation_bytes(4.0, Precision.FP16, recompute)
    assert kept == pytest.approx(1024 * 4 * 768 * per_value)


def test_full_recomputation_keeps_the_inputs_of_layers() -> None:
    """One more layer keeps its input, 2sbh bytes in 16 bit."""
    model = decoder()
    more = replace(model, layers=model.layers + 1)
    kept = more.activation_bytes(4.0, Precision.BF16, Recompute.FULL)
    kept -= model.activation_bytes(4.0, Precision.BF16, Recompute.FULL)
    assert kept == pytest.approx(2 * 1024 * 4 * 768)


def test_fused_attention_keeps_no_probabilities() -> None:
    """It keeps what selective recomputation keeps, and one fp32 number a head and token."""
    fused = decoder().activation_bytes(1.0, Precision.FP16, Recompute.NONE)
    plain = decoder(fused=False).activation_bytes(1.0, Precision.FP16, Recompute.SELECTIVE)
    assert fused == pytest.approx(plain + 12 * 4 * 12 * 1024)


def test_logits_are_kept_in_both_widths() -> None:
    """Six bytes a logit in 16 bit, four in fp32."""
    model = decoder()
    wider = replace(model, head=replace(model.head, features=model.head.features + 1))
    for precision, size in ((Precision.FP16, 6.0), (Precision.FP32, 4.0)):
        kept = wider.activation_bytes(1.0, precision, Recompute.NONE)
        kept -= model.activation_bytes(1.0, precision, Recompute.NONE)
        assert kept == pytest.approx(1024 * size)


def test_a_causal_fused_kernel_skips_half_the_products() -> None:
    """An encoder's scores are all computed, a decoder's only below the diagonal."""
    encoder = named(replace(decoder(), causal=False), "fused attention")
    causal = named(decoder(), "fused attention")
    assert causal.flops == encoder.flops / 2
    assert causal.backward_flops == 2.5 * causal.flops


def test_plain_attention_moves_the_probabilities() -> None:
    """Writing and reading them is most of its traffic, and none of a fused kernel's."""
    plain = decoder(fused=False)
    probabilities = 2.0 * 12 * 12 * 1024**2
    assert named(plain, "softmax").traffic == 2 * probabilities
    fused = named(decoder(), "fused attention").traffic
    assert fused < named(plain, "attention scores").traffic
    assert named(plain, "attention scores").backward_flops == pytest.approx(
        2 * named(plain, "attention scores").flops
    )


def test_shared_experts_add_three_products_to_each_layer_of_experts() -> None:
    """Gate, input and output of the shared width, which every token passes."""
    model = replace(load_model("qwen3-30b-a3b"), sequence=128)
    assert isinstance(model, Transformer)
    assert model.experts is not None
    shared = replace(model, experts=replace(model.experts, shared_ffn=1024))
    weights = model.layers * 3.0 * model.hidden * 1024
    assert shared.parameters - model.parameters == pytest.approx(weights)
    flops = [float(forward_flops(each, 1.0, Precision.BF16)) for each in (shared, model)]
    assert flops[0] - flops[1] == pytest.approx(2.0 * 128 * weights)


def test_grouped_keys_are_smaller() -> None:
    """Eight of 32 heads of keys and values: the projection is 1.5 times the width, not 3."""
    operator = named(LLAMA, "queries, keys, values")
    assert operator.flops == 32 * 2 * 8192 * 4096 * (1.5 * 4096)


def test_bytes_in_and_out() -> None:
    """Tokens travel as 64-bit integers, images as fp32."""
    assert decoder().input_bytes == 8 * 1024
    assert bert_large().input_bytes == 3 * 8 * 512
    assert VIT.input_bytes == 4 * 3 * 224 * 224
    assert VIT.output_bytes == 4 * 1000


def test_a_transformer_lowers_to_few_operators() -> None:
    """Equal layers are merged; kernels count all of them."""
    for model in (decoder(), decoder(fused=False), bert_large(), LLAMA, VIT):
        operators = model.operators(1.0, Precision.BF16)
        assert len(operators) < 20
        names = [op.name for op in operators]
        assert len(set(names)) == len(names)
    assert named(decoder(), "MLP in").kernels == 12


def test_arrays_of_batches_equal_one_batch_at_a_time() -> None:
    """Operators and activations take an array of batches."""
    sizes = np.array([1.0, 7.0, 64.0])
    model = bert_large(128)
    together = model.activation_bytes(sizes, Precision.FP16, Recompute.NONE)
    alone = [model.activation_bytes(float(b), Precision.FP16, Recompute.NONE) for b in sizes]
    assert np.array_equal(together, np.array(alone))
    many = model.operators(sizes, Precision.FP16)[2].traffic
    one = [model.operators(float(b), Precision.FP16)[2].traffic for b in sizes]
    assert np.array_equal(many, np.array(one))


def test_attention_can_be_switched() -> None:
    """A transformer changes, another model stays as it is."""
    plain = with_attention(decoder(), fused=False)
    assert isinstance(plain, Transformer)
    assert not plain.fused_attention
    image = resnet(name="r", block=Block.BASIC, blocks=(1,), image=32, classes=10)
    assert with_attention(image, fused=False) is image


def test_samples_of_unequal_lengths() -> None:
    """Half-filled samples: half of the products, a third of the pairs; weights and memory stay."""
    full = bert_large(fused=False)
    half = replace(full, filled=0.5)
    all_of, some = (
        {op.name: op.flops for op in model.operators(8.0, Precision.FP16)} for model in (full, half)
    )
    assert some["MLP in"] == pytest.approx(0.5 * float(all_of["MLP in"]))
    assert some["scores"] == pytest.approx(0.5 * float(all_of["scores"]))
    assert some["attention scores"] == pytest.approx(float(all_of["attention scores"]) / 3.0)
    assert some["pooler"] == all_of["pooler"]
    assert half.parameters == full.parameters
    kept = [m.activation_bytes(8.0, Precision.FP16, Recompute.NONE) for m in (full, half)]
    assert kept[0] == kept[1]


def test_an_image_below_a_patch_is_refused() -> None:
    """It would have no position to compute."""
    smallest = load_model("vit-b16", image=16)
    assert isinstance(smallest, Transformer)
    assert smallest.sequence == 2
    with pytest.raises(NotModelled, match="an image of 15 pixels holds no patch of 16"):
        load_model("vit-b16", image=15)
