"""Models described by a config.json of Hugging Face."""

from __future__ import annotations

import json
import tempfile
import tomllib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.importing import DATA, call, check_prefix, refused

from simulator.errors import InputError
from simulator.importers import huggingface_config as hf_config
from simulator.importers.foreign import Entry
from simulator.importers.huggingface_config import (
    active_parameters,
    cached_bytes,
    forward_flops,
    parameters,
)
from simulator.importers.huggingface_shape import Config, Shape, shape_of
from simulator.reading.document import parse_document
from simulator.reading.model_library import build_model, load_model, parse_model
from simulator.schema.accelerators import Precision
from simulator.schema.models import forward_flops as model_flops

# Trainable parameters of the models that transformers 4.57.6 builds (torch 2.13.0, meta device)
# of these configurations, each tensor once; what is left out takes the type's default.
COUNTED = [
    ("llama", {}, 6_738_415_616),
    ("mistral", {}, 7_241_732_096),
    ("mixtral", {}, 46_702_792_704),
    ("qwen2", {}, 12_049_846_272),
    ("qwen2_moe", {}, 14_315_784_192),
    ("qwen3", {}, 12_049_461_248),
    ("qwen3_moe", {}, 15_350_731_776),
    (
        "qwen3_moe",
        {"num_hidden_layers": 48, "head_dim": 128},
        30_532_122_624,
    ),
    ("deepseek_v3", {}, 671_026_404_352),
    ("gpt2", {}, 124_439_808),
    ("gpt_neox", {}, 20_554_567_680),
    ("bert", {}, 109_482_240),
    ("t5", {}, 60_506_624),
    (
        "t5",
        {
            "d_model": 768,
            "num_layers": 12,
            "num_heads": 12,
            "feed_forward_proj": "gated-gelu",
            "tie_word_embeddings": False,
        },
        247_577_856,
    ),
]
# Parameters that the samples' vendors state.
PUBLISHED = {
    "llama-3.1-8b": 8.03e9,
    "gpt2": 124e6,
    "bert-base": 110e6,
    "mixtral-8x7b": 46.7e9,
    "qwen2-7b": 7.61e9,
    "qwen2-0.5b": 0.49e9,
    "t5-small": 60.5e6,
    "deepseek-v3": 671e9,
}
EXPRESSED = ["llama-3.1-8b", "gpt2", "bert-base", "qwen2-7b", "qwen2-0.5b"]


def shape(kind: str, **keys: object) -> Shape:
    """The shape of a configuration without problems."""
    entry = Entry(keys, "config.json")
    found = shape_of(Config(entry, kind))
    assert entry.problems == []
    return found


def write(folder: Path, **keys: object) -> Path:
    """A configuration file."""
    path = folder / "config.json"
    path.write_text(json.dumps(keys), encoding="utf-8")
    return path


@pytest.mark.parametrize(("kind", "keys", "expected"), COUNTED)
def test_parameters_are_those_that_transformers_builds(
    kind: str, keys: dict[str, object], expected: int
) -> None:
    """Every weight is counted, none twice, and defaults are those of the type."""
    assert parameters(shape(kind, **keys)) == expected


@pytest.mark.parametrize("name", PUBLISHED)
def test_samples_have_the_published_parameters(name: str) -> None:
    """A published configuration comes to the parameters its vendor states."""
    path = DATA / f"hf-{name}.json"
    keys = json.loads(path.read_text(encoding="utf-8"))
    found = parameters(shape(keys["model_type"], **keys))
    assert found == pytest.approx(PUBLISHED[name], rel=0.01)


@pytest.mark.parametrize("name", EXPRESSED)
def test_a_section_builds_the_counted_model(name: str) -> None:
    """What the section's family counts is what the configuration comes to, but for few biases."""
    path = DATA / f"hf-{name}.json"
    found = hf_config.read(path)
    assert not found.lacking
    model = build_model(parse_document(found.text.encode(), "fragment"), ("model",))
    keys = json.loads(path.read_text(encoding="utf-8"))
    assert model.parameters == pytest.approx(
        parameters(shape(keys["model_type"], **keys)), rel=2e-4
    )


def test_a_section_is_the_library_model() -> None:
    """The configuration of a model of the library describes the same model."""
    found = hf_config.read(DATA / "hf-llama-3.1-8b.json", sequence=8192)
    assert not found.lacking
    model = build_model(parse_document(found.text.encode(), "fragment"), ("model",))
    assert model.parameters == load_model("llama-3.1-8b").parameters
    assert model.input_bytes == load_model("llama-3.1-8b").input_bytes


def test_a_library_file_is_one_of_the_library() -> None:
    """``--library`` writes a whole file that the library reads."""
    found = hf_config.read(DATA / "hf-gpt2.json", name="mine", library=True)
    assert not found.lacking
    file = parse_model(parse_document(found.text.encode(), "mine.toml"), "mine")
    assert file.about.title == "mine, training on 1024 tokens"
    assert file.model().parameters == 124_439_808


def test_tied_scores_need_no_table() -> None:
    """A model that shares its table says so in the section."""
    found = hf_config.read(DATA / "hf-qwen2-0.5b.json")
    assert not found.lacking
    assert tomllib.loads(found.text)["model"]["shape"]["tied"] is True
    assert any("27,648 parameters" in warning for warning in found.warnings)


def test_operations_are_two_for_each_weight_and_pair() -> None:
    """Llama 3.1 8B by hand: 2 x 7.505 G weights, and half of 4096 tokens attended to."""
    found = shape("llama", vocab_size=128256, num_key_value_heads=8, intermediate_size=14336)
    weights = 2.0 * (8_030_261_248 - 128256 * 4096 - 65 * 4096)
    pairs = 4.0 * 32 * 4096 * 4096 / 2.0
    assert forward_flops(found, 4096) == pytest.approx(weights + pairs)
    assert cached_bytes(found) == 2 * 2 * 32 * 8 * 128


def test_a_token_meets_the_experts_it_is_sent_to() -> None:
    """Active parameters as published: 12.9 B of Mixtral, 37 B of DeepSeek-V3."""
    assert active_parameters(shape("mixtral")) == pytest.approx(12.9e9, rel=0.01)
    assert active_parameters(shape("deepseek_v3")) == pytest.approx(37e9, rel=0.02)


def test_latent_attention_caches_the_latent_vector() -> None:
    """DeepSeek-V3 keeps 512 + 64 values of each token and layer."""
    assert cached_bytes(shape("deepseek_v3")) == 2 * 61 * (512 + 64)


def test_layers_without_experts_are_counted_apart() -> None:
    """Layer i has experts if i + 1 is a multiple of the step and i is not listed."""
    found = shape("qwen3_moe", decoder_sparse_step=2, mlp_only_layers=[1, 2])
    assert found.experts is not None
    assert found.experts.layers == 11


@pytest.mark.parametrize(
    ("kind", "keys"),
    [
        ("mixtral", {}),
        ("qwen2_moe", {}),
        ("qwen3_moe", {}),
        ("qwen3_moe", {"num_hidden_layers": 48, "head_dim": 128}),
        ("qwen3_moe", {"decoder_sparse_step": 2, "mlp_only_layers": [1, 2]}),
        ("mixtral", {"tie_word_embeddings": True}),
        ("deepseek_v3", {}),
    ],
)
def test_experts_become_a_section(kind: str, keys: dict[str, object], tmp_path: Path) -> None:
    """The family's parameters are the counted ones, but for gates and norms of heads."""
    found = hf_config.read(write(tmp_path, model_type=kind, **keys))
    assert not found.lacking
    document = parse_document(found.text.encode(), "fragment")
    assert document.data["model"]["family"] == "moe"
    model = build_model(document, ("model",))
    assert model.parameters == pytest.approx(parameters(shape(kind, **keys)), rel=1e-5 * 4)


@pytest.mark.parametrize("name", ["mixtral-8x7b", "deepseek-v3"])
def test_a_section_of_experts_is_the_library_model(name: str) -> None:
    """The published configuration describes the model of the library, layer by layer."""
    found = hf_config.read(DATA / f"hf-{name}.json", sequence=4096)
    assert not found.lacking
    model = build_model(parse_document(found.text.encode(), "fragment"), ("model",))
    known = load_model(name)
    assert model.parameters == known.parameters
    assert model.operators(2.0, Precision.BF16) == known.operators(2.0, Precision.BF16)


@pytest.mark.parametrize("keys", [{}, {"feed_forward_proj": "gated-gelu", "d_model": 768}])
def test_two_stacks_become_a_section(keys: dict[str, object], tmp_path: Path) -> None:
    """An encoder and a decoder: parameters and operations are those counted from the file."""
    found = hf_config.read(write(tmp_path, model_type="t5", **keys), sequence=256)
    assert not found.lacking
    assert "as many tokens written as read are assumed (shape.target)" in found.warnings
    model = build_model(parse_document(found.text.encode(), "fragment"), ("model",))
    counted = shape("t5", **keys)
    assert model.parameters == parameters(counted)
    flops = model_flops(model, 1.0, Precision.BF16)
    # the decoder computes the scores of later positions too, and throws them away
    thrown = 2.0 * counted.decoder_layers * 0.5 * 256**2 * 2.0 * counted.heads * counted.head_width
    assert flops - thrown == pytest.approx(256.0 * forward_flops(counted, 256), rel=1e-9)


@pytest.mark.parametrize(
    ("keys", "why"),
    [({"model_type": "gpt2", "n_inner": 1000}, "MLPs that are not 4 times as wide")],
)
def test_what_is_not_modelled_is_shown_and_not_written(
    keys: dict[str, object], why: str, tmp_path: Path
) -> None:
    """Parameters are printed, the reason is said, the exit code is 1, and no file appears."""
    (tmp_path / "model").mkdir()
    given = write(tmp_path / "model", **keys)
    outcome = call("hf-config", given, "-o", tmp_path / "model.toml")
    assert outcome.code == 1
    assert "parameters" in outcome.out
    assert f"not modelled yet: {why}; no section is written" in outcome.err
    assert list(tmp_path.iterdir()) == [tmp_path / "model"]


@pytest.mark.parametrize(
    ("keys", "why"),
    [
        ({"model_type": "gpt2", "n_inner": 1000}, "MLPs that are not 4 times as wide"),
        ({"model_type": "gpt2", "tie_word_embeddings": False}, "a table of their own"),
        ({"model_type": "gpt_neox"}, "gpt_neox (rotary positions, plain MLPs)"),
        ({"model_type": "llama", "head_dim": 64}, "32 heads of 64 values"),
        ({"model_type": "deepseek_v3", "q_lora_rank": None}, "whose queries are not squeezed"),
        ({"model_type": "deepseek_v3", "first_k_dense_replace": 61}, "attention without experts"),
    ],
)
def test_a_shape_that_no_family_has_is_no_section(
    keys: dict[str, object], why: str, tmp_path: Path
) -> None:
    """Nothing is made up for a shape that a family fixes otherwise."""
    found = hf_config.read(write(tmp_path, **keys))
    assert not found.text
    assert why in found.lacking


def test_the_text_model_of_a_multimodal_one_is_read(tmp_path: Path) -> None:
    """``text_config`` is the transformer; what is left out is said."""
    path = write(tmp_path, model_type="llava", text_config={"model_type": "mistral"})
    found = hf_config.read(path)
    assert "7,241,732,096" in found.summary[0]
    assert any("text_config" in warning for warning in found.warnings)


def test_what_is_assumed_is_said(tmp_path: Path) -> None:
    """An unsaid sequence, an unsaid table of scores and a window are warned of."""
    path = write(tmp_path, model_type="mistral", sliding_window=1024)
    said = " ".join(hf_config.read(path).warnings)
    assert "4096 tokens are assumed" in said
    assert "131,072,000 parameters fewer" in said
    assert "looks back 1024 tokens" in said


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"a": 1}, "has no 'model_type'"),
        ({"model_type": "lama"}, "'lama', which is not known; did you mean 'llama'?"),
        ({"model_type": "llama", "hidden_size": -4096}, "hidden_size: is below 1, found -4096"),
        (
            {"model_type": "llama", "vocab_size": 1.5},
            "vocab_size: is not a whole number, found 1.5",
        ),
        ({"model_type": "llama", "num_hidden_layers": 1e8}, "is above 10000"),
        ({"model_type": "llama", "num_hidden_layers": float("nan")}, "is not a finite number"),
        ({"model_type": "llama", "hidden_size": "wide"}, "is not a number, found 'wide'"),
        ({"model_type": "llama", "hidden_size": 4097}, "which don't divide the width 4097"),
        ({"model_type": "llama", "num_key_value_heads": 5}, "5 key-value heads don't divide"),
        ({"model_type": "llama", "tie_word_embeddings": "no"}, "is neither true nor false"),
        ({"model_type": "mixtral", "num_experts_per_tok": 9}, "to 9 of 8 experts"),
    ],
)
def test_one_message_says_what_is_wrong(
    keys: dict[str, object], message: str, tmp_path: Path
) -> None:
    """Each mistake is one message with its key."""
    lines = refused("hf-config", write(tmp_path, **keys))
    assert len(lines) == 1
    assert message in lines[0]


def test_all_mistakes_are_told_at_once(tmp_path: Path) -> None:
    """Two mistakes are two messages."""
    path = write(tmp_path, model_type="llama", vocab_size=0, intermediate_size=-1)
    assert len(refused("hf-config", path)) == 2


def test_a_sequence_longer_than_the_learned_positions_is_refused() -> None:
    """Learned positions end."""
    with pytest.raises(InputError, match="at most 1024"):
        hf_config.read(DATA / "hf-gpt2.json", sequence=2048)


@settings(max_examples=30, deadline=None)
@given(share=st.floats(0.0, 1.0))
def test_a_prefix_is_read_or_refused(share: float) -> None:
    """A file cut off anywhere never ends in a traceback."""
    content = (DATA / "hf-llama-3.1-8b.json").read_bytes()
    with tempfile.TemporaryDirectory() as folder:
        check_prefix(content[: int(share * len(content))], Path(folder), "hf-config")
