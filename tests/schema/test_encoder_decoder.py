"""Encoder and decoder side by side (T5)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from simulator.errors import NotModelled
from simulator.pipeline.program import check_modelled
from simulator.predict import predict
from simulator.reading.model_library import load_model
from simulator.reading.scenario import load_scenario
from simulator.schema.accelerators import Precision
from simulator.schema.training import Recompute
from simulator.schema.transformer_families import EncoderDecoder, t5, with_attention

JOB = ("model.name=t5-base", "train.batch_size=16", "software.framework=pytorch")


def base(**changes: int | bool) -> EncoderDecoder:
    """The shape of T5-base."""
    figures: dict[str, int | bool] = {
        "layers": 12,
        "decoder_layers": 12,
        "hidden": 768,
        "heads": 12,
        "head_dim": 64,
        "ffn": 3072,
        "vocabulary": 32128,
        "sequence": 512,
        "target": 114,
    }
    return t5(name="t5-base", **{**figures, **changes})


def flops(model: EncoderDecoder) -> dict[str, float]:
    """FLOPs of a forward pass over one sample, operator by operator."""
    return {op.name: float(op.flops) for op in model.operators(1.0, Precision.BF16)}


def test_version_1_1_has_gated_mlps_and_a_head_of_its_own() -> None:
    """248 million parameters, as transformers builds them.

    See tests/importers/test_huggingface.py.
    """
    assert base(ffn=2048, gated=True, tied=False).parameters == 247_577_856


def test_the_decoder_attends_to_all_that_is_encoded() -> None:
    """Keys and values are made of each token read, in each layer; pairs are written x read."""
    some = flops(base())
    layers, width = 12.0, 12.0 * 64.0
    assert some["decoder cross keys, values"] == 2.0 * layers * 512.0 * 768.0 * 2.0 * width
    assert some["decoder cross queries"] == 2.0 * layers * 114.0 * 768.0 * width
    assert some["decoder cross attention scores"] == 2.0 * layers * 114.0 * 512.0 * width
    assert some["encoder attention scores"] == 2.0 * layers * 512.0**2 * width
    assert "encoder cross queries" not in some
    assert "encoder scores" not in some


def test_twice_the_samples_to_write_is_twice_the_decoder() -> None:
    """Products of the decoder follow the target, those of the encoder the sequence."""
    few, many = flops(base()), flops(base(target=228))
    assert many["decoder MLP in"] == 2.0 * few["decoder MLP in"]
    assert many["encoder MLP in"] == few["encoder MLP in"]
    assert many["decoder cross keys, values"] == few["decoder cross keys, values"]


def test_attention_as_one_kernel_keeps_no_scores() -> None:
    """Both stacks change; memory for activations shrinks."""
    plain = base()
    fused = with_attention(plain, fused=True)
    assert isinstance(fused, EncoderDecoder)
    assert fused.fused_attention
    assert "decoder fused cross attention" in flops(fused)
    kept = [m.activation_bytes(8.0, Precision.BF16, Recompute.NONE) for m in (plain, fused)]
    assert kept[1] < kept[0]


def test_the_table_of_tokens_counts_once() -> None:
    """A larger vocabulary adds its rows once, twice where the head has its own."""
    more = [base(vocabulary=32128 + 1000, tied=tied).parameters for tied in (True, False)]
    known = [base(tied=tied).parameters for tied in (True, False)]
    assert [a - b for a, b in zip(more, known, strict=True)] == [768_000.0, 1_536_000.0]


def test_a_job_of_data_parallel_ranks_is_predicted() -> None:
    """The event engine takes its passes, all-reduce and update as those of any other model."""
    scenario = load_scenario("gpt2-tokens-h100", overrides=JOB)
    check_modelled(scenario)
    timing = predict(scenario).timing
    assert timing.split.compute > 0.0
    assert timing.step_time.mean >= timing.split.compute


def test_one_spread_over_devices_is_refused() -> None:
    """No kernel figures and no layout for two stacks."""
    scenario = load_scenario("gpt2-tokens-h100", overrides=(*JOB, "parallelism.tensor=2"))
    with pytest.raises(NotModelled, match="families bert, gpt, llama and moe"):
        check_modelled(scenario)


def test_the_library_says_what_it_is() -> None:
    """The library's T5-base is the shape above."""
    library = load_model("t5-base")
    assert isinstance(library, EncoderDecoder)
    assert replace(library, sources={}) == base()
