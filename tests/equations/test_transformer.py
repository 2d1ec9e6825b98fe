"""Transformers against published parameter counts and published arithmetic."""

from __future__ import annotations

import pytest

from simulator.equations import transformer

GPT3 = {"layers": 96, "hidden": 12288, "ffn": 4 * 12288}
BERT_LARGE = {"layers": 24, "hidden": 1024, "ffn": 4096}


def test_gpt2_sizes() -> None:
    """GPT-2 small and XL count as published."""
    assert transformer.gpt_parameters(12, 768, 3072, 50257, 1024) == 124_439_808
    assert transformer.gpt_parameters(48, 1600, 6400, 50257, 1024) == 1_557_611_200


def test_gpt3() -> None:
    """GPT-3 has 175 billion parameters."""
    count = transformer.gpt_parameters(**GPT3, vocabulary=50257, positions=2048)
    assert count == pytest.approx(175e9, rel=0.005)


def test_bert_sizes() -> None:
    """BERT base and large count as published: 110 M and, to 2%, 330 M or 340 M."""
    assert transformer.bert_parameters(12, 768, 3072, 30522, 512) == 109_482_240
    large = transformer.bert_parameters(**BERT_LARGE, vocabulary=30522, positions=512)
    assert large == 335_141_888


def test_llama_sizes() -> None:
    """Llama-7B and, with 8 of 64 key-value heads, Llama-2-70B count as published."""
    count = transformer.gated_decoder_parameters
    assert count(32, 4096, 11008, 32000, 1) == 6_738_415_616
    assert count(80, 8192, 28672, 32000, 8 / 64) == 68_976_648_192


def test_the_formula_of_megatron() -> None:
    """The whole of equation 2, 12 l h**2 (1 + 13/(12 h) + (V + s)/(12 l h)), but the last norm."""
    layers, hidden, words, positions = 24, 2304, 51200, 1024
    own = transformer.gpt_parameters(layers, hidden, 4 * hidden, words, positions) - 2 * hidden
    bracket = 1 + 13 / (12 * hidden) + (words + positions) / (12 * layers * hidden)
    assert own == pytest.approx(12 * layers * hidden**2 * bracket, rel=1e-12)
    assert transformer.layer_parameters(hidden, 4 * hidden) == 12 * hidden**2 + 13 * hidden


def test_published_arithmetic() -> None:
    """340 GFLOP for 512 tokens of BERT-large, 740 TFLOP for 2,048 tokens of GPT-3; within 2%."""
    bert = transformer.forward_flops(1, 512, **BERT_LARGE)
    assert bert == pytest.approx(340e9, rel=0.02)
    gpt3 = transformer.forward_flops(1, 2048, **GPT3) + transformer.logits_flops(2048, 12288, 50257)
    assert gpt3 == pytest.approx(740e12, rel=0.02)


def test_the_arithmetic_of_megatron() -> None:
    """Forward, backward and a recomputed forward are 96 B s l h**2 (1 + s/(6h) + V/(16 l h))."""
    batch, tokens, layers, hidden, words = 8, 1024, 12, 768, 51200
    layers_only = transformer.forward_flops(
        batch, tokens, layers=layers, hidden=hidden, ffn=4 * hidden
    )
    whole = 4 * layers_only + 3 * transformer.logits_flops(batch * tokens, hidden, words)
    bracket = 1 + tokens / (6 * hidden) + words / (16 * layers * hidden)
    assert whole == pytest.approx(96 * batch * tokens * layers * hidden**2 * bracket, rel=1e-12)


def test_two_flops_a_weight_and_token() -> None:
    """Matrices cost two FLOPs for each of their weights and each token."""
    hidden, ffn = 1024, 4096
    weights = 4 * hidden**2 + 2 * hidden * ffn
    assert transformer.layer_matrix_flops(7, hidden, ffn) == 2 * 7 * weights


def test_attention_grows_with_the_square() -> None:
    """Twice the sequence takes four times the work on scores."""
    once = transformer.attention_flops(2, 512, 64)
    assert transformer.attention_flops(2, 1024, 64) == 4 * once == 4 * 4 * 2 * 512**2 * 64


def test_kaplan() -> None:
    """Two FLOPs per parameter, and attention counted half."""
    layers, hidden, tokens = 12, 768, 1024
    weights = 12 * layers * hidden**2
    own = (
        transformer.forward_flops(1, tokens, layers=layers, hidden=hidden, ffn=4 * hidden) / tokens
    )
    kaplan = transformer.forward_flops_per_token(weights, layers, tokens, hidden)
    assert own - kaplan == pytest.approx(2 * layers * tokens * hidden)


def test_keys_and_values() -> None:
    """A token of Llama-7B in 16 bits keeps half a mebibyte."""
    assert transformer.key_value_bytes(4, 32, 4096, 2.0) == 4 * 524288
