"""Hugging Face ``config.json`` as the [model] section of a scenario.

A model of one of the library's families becomes a section (or a file of the library). For other
models, parameters, FLOPs and KV-cache bytes are counted and shown, and no section is written.
Counted are the weights as transformers builds them and the FLOPs of the forward pass (2 for each
multiply-add; attention over the pairs that a fused causal kernel computes; 0 for lookups).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from simulator import units
from simulator.errors import Problem
from simulator.importers.foreign import Entry, changed, read_json, refuse
from simulator.importers.huggingface_shape import KNOWN, Config, Experts, Latent, Shape, shape_of
from simulator.importers.result import Fragment, Kind
from simulator.reading.hardware.profile_text import comment, quote
from simulator.reading.reading import fail
from simulator.schema.fields import nearest_hint
from simulator.units import Bytes, Flops

_MULTIPLY_ADD: Final = 2.0
_HALF: Final = 2.0
"""Size of an element of the KV cache, 16 bits [B]."""


Part = tuple[str, int, int]
"""Parameters of one kind: name, total number, and number used in products for each token."""


def parts(shape: Shape) -> dict[str, int]:
    """Return the number of parameters by kind of layer, such as ``attention`` or ``MLP``."""
    found: Counter[str] = Counter()
    for name, weights, _ in _parts(shape):
        found[name] += weights
    return {name: weights for name, weights in found.items() if weights}


def parameters(shape: Shape) -> int:
    """Return the total number of parameters."""
    return sum(parts(shape).values())


def active_parameters(shape: Shape) -> int:
    """Return the number of parameters used for one token: all but the experts not selected."""
    experts = shape.experts
    if experts is None:
        return parameters(shape)
    idle = experts.count - experts.chosen
    return parameters(shape) - idle * experts.layers * _mlp(shape, experts.width)


def forward_flops(shape: Shape, sequence: int) -> Flops:
    """Return the FLOPs of a forward pass per token of a sequence of `sequence` tokens [FLOP]."""
    # a tied head has no weights but is computed
    products = _MULTIPLY_ADD * sum(used for _, _, used in _parts(shape))
    seen = min(sequence, shape.window or sequence)
    pairs = seen * (0.5 if shape.causal else 1.0)
    # T5's decoder attends to preceding tokens (half of the pairs) and to the encoder (all).
    own = shape.layers + shape.decoder_layers * (0.5 + 1.0)
    return products + _MULTIPLY_ADD * own * pairs * _pair_width(shape)


def cached_bytes(shape: Shape) -> Bytes | None:
    """Return the KV-cache size per token over all layers in 16-bit precision [B].

    None for models that don't generate tokens.
    """
    if not shape.causal and not shape.decoder_layers:
        return None
    if shape.latent is not None:
        return _HALF * shape.layers * (shape.latent.rank + shape.latent.rotary)
    layers = shape.decoder_layers or shape.layers
    return _HALF * layers * 2.0 * shape.kv_heads * shape.head_width


def _pair_width(shape: Shape) -> float:
    if shape.latent is not None:
        return float(shape.heads * (shape.head_width + shape.latent.value))
    return 2.0 * shape.heads * shape.head_width


def _parts(shape: Shape) -> Iterator[Part]:
    yield from _embedding(shape)
    if shape.decoder_layers:
        yield from _encoder_decoder_parts(shape)
    else:
        yield from _times(shape.layers, _attention(shape))
        yield from _mlps(shape)
        yield _norms(shape, 2 * shape.layers + 1)
    yield from _head(shape)


def _embedding(shape: Shape) -> Iterator[Part]:
    rows = shape.vocabulary + shape.positions + shape.segments
    yield "embedding", rows * shape.hidden, 0


def _head(shape: Shape) -> Iterator[Part]:
    table = shape.vocabulary * shape.hidden
    # The configuration of an encoder ends with a pooler, without a language-model head.
    if shape.pooler:
        yield _product("pooler", shape.hidden, shape.hidden, bias=True)
    else:
        yield "head", 0 if shape.tied else table, table


def _times(count: int, found: Iterator[Part]) -> Iterator[Part]:
    for name, weights, used in found:
        yield name, count * weights, count * used


def _product(name: str, inputs: int, outputs: int, *, bias: bool = False) -> Part:
    weights = inputs * outputs
    return name, weights + (outputs if bias else 0), weights


def _norms(shape: Shape, count: int) -> Part:
    return "norms", count * shape.hidden * (2 if shape.centred else 1), 0


def _attention(shape: Shape) -> Iterator[Part]:
    if shape.latent is not None:
        yield from _latent_attention(shape, shape.latent)
        return
    wide, narrow = shape.heads * shape.head_width, shape.kv_heads * shape.head_width
    yield _product("attention", shape.hidden, wide + 2 * narrow, bias=shape.qkv_bias)
    yield _product("attention", wide, shape.hidden, bias=shape.output_bias)
    if shape.head_norms:
        yield "norms", 2 * shape.head_width, 0


def _latent_attention(shape: Shape, latent: Latent) -> Iterator[Part]:
    hidden, heads, query = shape.hidden, shape.heads, latent.query_rank
    if query:
        yield _product("attention", hidden, query)
        yield "norms", query, 0
    yield _product("attention", query or hidden, heads * shape.head_width)
    yield _product("attention", hidden, latent.rank + latent.rotary)
    yield "norms", latent.rank, 0
    yield _product("attention", latent.rank, heads * (latent.plain + latent.value))
    yield _product("attention", heads * latent.value, hidden)


def _mlp(shape: Shape, width: int) -> int:
    bias = ((2 if shape.gated else 1) * width + shape.hidden) if shape.mlp_bias else 0
    return (3 if shape.gated else 2) * shape.hidden * width + bias


def _mlps(shape: Shape) -> Iterator[Part]:
    experts = shape.experts
    plain = shape.layers - (experts.layers if experts else 0)
    bias = ((2 if shape.gated else 1) * shape.ffn + shape.hidden) if shape.mlp_bias else 0
    weights = plain * _mlp(shape, shape.ffn)
    yield "MLP", weights, weights - plain * bias
    if experts is not None:
        yield from _times(experts.layers, _sparse(shape, experts))


def _sparse(shape: Shape, experts: Experts) -> Iterator[Part]:
    one = _mlp(shape, experts.width)
    yield "experts", experts.count * one, experts.chosen * one
    yield _product("router", shape.hidden, experts.count)
    if experts.shared:
        weights = _mlp(shape, experts.shared)
        yield "shared experts", weights, weights
    if experts.shared_gate:
        yield _product("router", shape.hidden, 1)


def _encoder_decoder_parts(shape: Shape) -> Iterator[Part]:
    """Yield the parts of T5 without embeddings; its decoder adds cross-attention to each layer."""
    below, above = shape.layers, shape.decoder_layers
    mlp = _mlp(shape, shape.ffn)
    yield from _times(below + 2 * above, _attention(shape))
    yield "MLP", (below + above) * mlp, (below + above) * mlp
    yield _norms(shape, 2 * below + 3 * above + 2)
    yield "position buckets", 2 * shape.buckets * shape.heads, 0


WANTED: Final = "a config.json of Hugging Face"

_MAX_SEQUENCE: Final = 4096
"""Default limit of the sequence length [tokens]."""
_MLP_RATIO: Final = 4
_MASKED_SHARE: Final = 0.15
_HEAD_ASSUMED: Final = (
    f"a head over {_MASKED_SHARE:.0%} of the tokens is assumed (shape.scored_share: 1 where all "
    "are scored, as transformers does in pre-training; next to 0 in fine-tuning)"
)
_SOURCE: Final = "Hugging Face config.json"


def read(
    path: Path, *, sequence: int | None = None, name: str = "", library: bool = False
) -> Fragment:
    """Convert a Hugging Face ``config.json`` to the ``[model]`` section of a scenario.

    Parameters
    ----------
    path : pathlib.Path
        The file.
    sequence : int, optional
        Tokens per sample; by default the model's maximum sequence length, at most 4096.
    name : str
        Name of the model; by default the name in the file.
    library : bool
        Write a whole file of the model library instead of a section.

    Returns
    -------
    Fragment
        Its text is empty if no model family of the library can express the shape.

    Raises
    ------
    InputError
        For files that are not JSON, of an unknown ``model_type``, or with impossible values.
    """
    config, inner = _config(path)
    shape = shape_of(config)
    problems = config.entry.problems
    problems += () if problems else _contradictions(shape, str(path))
    refuse(problems)
    tokens = min(shape.longest, _MAX_SEQUENCE) if sequence is None else sequence
    if shape.positions and tokens > shape.positions:
        hint = f"at most {shape.positions}"
        fail(str(path), f"has no positions for {tokens} tokens", hint=hint)
    title = name or config.entry.text_at("_name_or_path") or f"{config.kind} of {path.name}"
    summary = _summary(shape, tokens, title)
    warnings = [*_warnings(config, shape, tokens, inner=inner, given=sequence is not None)]
    lacking, text = _lacking(shape), ""
    if not lacking:
        warnings += _left_out(shape)
        date = changed(path)
        head = comment("\n".join([f"From {path.name} ({_SOURCE}, {date}).", *summary]))
        family, figures = _figures(shape, tokens)
        body = [f"{key} = {str(value).lower()}" for key, value in figures.items()]
        if library:
            label = quote(f"{title}, training on {tokens} tokens")
            lines = ["schema = 1", f"title = {label}", f"family = {quote(family)}", "", "[shape]"]
            source = quote(f"{_SOURCE}: {path.name}")
            body += [f"source = {source}", f"date = {quote(date)}"]
        else:
            lines = ["[model]", f"family = {quote(family)}", "", "[model.shape]"]
        text = "\n".join([head, *lines, *body]) + "\n"
    return Fragment(
        kind=Kind.SCENARIO,
        text=text,
        summary=summary,
        warnings=tuple(warnings),
        lacking=lacking,
    )


def _config(path: Path) -> tuple[Config, bool]:
    """Return the configuration of the text model, and True if it is nested in a multimodal one."""
    top = Entry(read_json(path, WANTED), str(path))
    if not top.is_mapping():
        fail(str(path), f"is not {WANTED}", hint="it should be one JSON object")
    inner = top.get("text_config")
    inside = inner is not None and inner.is_mapping()
    entry = inner if inner is not None and inside else top
    kind = entry.text_at("model_type") or ""
    if inside:
        kind = kind.removesuffix("_text") or (top.text_at("model_type") or "")
    if not kind:
        fail(str(path), "has no 'model_type'", hint=f"it should be {WANTED}")
    if kind not in KNOWN:
        message = f"describes a model of the type '{kind}', which is not known"
        fail(str(path), message, hint=nearest_hint(kind, KNOWN))
    return Config(entry, kind), inside


def _contradictions(shape: Shape, origin: str) -> Iterator[Problem]:
    if shape.heads % shape.kv_heads:
        message = f"has {shape.heads} heads, which {shape.kv_heads} key-value heads don't divide"
        yield Problem(origin=origin, message=message)
    experts = shape.experts
    if experts is not None and experts.chosen > experts.count:
        message = f"sends each token to {experts.chosen} of {experts.count} experts"
        yield Problem(origin=origin, message=message)


def _warnings(
    config: Config, shape: Shape, tokens: int, *, inner: bool, given: bool
) -> Iterator[str]:
    if inner:
        yield "only the text model (text_config) is read; towers for images or sound are left out"
    if not given and shape.longest > tokens:
        yield f"samples of {tokens} tokens are assumed; give --sequence for others"
    if not shape.positions and tokens > shape.longest:
        yield f"{tokens} tokens are more than the {shape.longest} it was made for"
    if not config.given("tie_word_embeddings") and not shape.tied:
        table = shape.vocabulary * shape.hidden
        yield (
            "tie_word_embeddings is not in the file: the output has a table of its own, as by "
            f"default; if they share one, it has {table:,} parameters fewer"
        )
    if shape.window is not None and shape.window < tokens:
        yield f"attention looks back {shape.window} tokens; a section counts all {tokens}"


def _lacking(shape: Shape) -> str:
    """Return the reason why no model family of the library fits; an empty string if one does."""
    if shape.decoder_layers:
        return ""
    fixed = shape.kind in {"gpt2", "bert"}
    latent, sparse = shape.latent, _is_sparse(shape)
    wide = shape.heads * shape.head_width
    reasons = (
        (latent is not None and not sparse, "multi-head latent attention without experts"),
        (
            latent is not None and not latent.query_rank,
            "multi-head latent attention whose queries are not squeezed",
        ),
        (sparse and not shape.gated, "experts whose MLPs are not gated"),
        (
            wide != shape.hidden and not sparse,
            f"{shape.heads} heads of {shape.head_width} values, but a width of {shape.hidden}",
        ),
        (fixed and shape.ffn != _MLP_RATIO * shape.hidden, "MLPs that are not 4 times as wide"),
        (fixed and not shape.tied, f"{shape.kind} whose scores have a table of their own"),
        (not fixed and not shape.gated, f"{shape.kind} (rotary positions, plain MLPs)"),
    )
    return next((why for holds, why in reasons if holds), "")


def _is_sparse(shape: Shape) -> bool:
    return shape.experts is not None and shape.experts.layers > 0


def _summary(shape: Shape, tokens: int, title: str) -> tuple[str, ...]:
    total, active, by_kind = parameters(shape), active_parameters(shape), parts(shape)
    width = max(map(len, by_kind))
    lines = [f"{title}: {total:,} parameters"]
    lines += [f"  {name:<{width}}  {weights:>18,}" for name, weights in by_kind.items()]
    if active != total:
        lines.append(f"each token meets {active:,} of them ({active / total:.1%})")
    flops = units.show(forward_flops(shape, tokens), units.FLOP)
    per = "input and output token together" if shape.decoder_layers else "token"
    lines.append(f"forward pass: {flops} for each {per}, sequences of {tokens} tokens")
    cached = cached_bytes(shape)
    if cached is not None:
        size = units.show(cached, units.BYTE)
        lines.append(f"keys and values: {size} for each token in 16 bits")
    return tuple(lines)


def _left_out(shape: Shape) -> Iterator[str]:
    """Yield warnings about parameters and settings that a section of the library's family omits."""
    if shape.kind not in {"gpt2", "bert"} and shape.qkv_bias:
        left = shape.layers * (shape.heads + 2 * shape.kv_heads) * shape.head_width
        yield f"biases of queries, keys and values are left out: {left:,} parameters"
    if shape.kind == "bert":
        yield _HEAD_ASSUMED
    if shape.decoder_layers:
        yield "as many tokens written as read are assumed (shape.target)"


def _figures(shape: Shape, tokens: int) -> tuple[str, Mapping[str, float]]:
    """Return the name of the model family in the library and the keys of ``[model.shape]``."""
    stack = {"layers": shape.layers, "hidden": shape.hidden, "heads": shape.heads}
    samples = {"vocabulary": shape.vocabulary, "sequence": tokens}
    learned = {**stack, **samples, "positions": shape.positions}
    if shape.decoder_layers:
        second = {
            "decoder_layers": shape.decoder_layers,
            "head_dim": shape.head_width,
            "ffn": shape.ffn,
            "buckets": shape.buckets,
            "gated": shape.gated,
            "tied": shape.tied,
        }
        return "t5", {**stack, **second, **samples, "target": tokens}
    if shape.kind == "gpt2":
        return "gpt", learned
    if shape.kind == "bert":
        return "bert", {**learned, "segments": shape.segments, "scored_share": _MASKED_SHARE}
    tied = {"tied": True} if shape.tied else {}
    if shape.experts is not None and _is_sparse(shape):
        return "moe", {**stack, **_sparse_figures(shape, shape.experts), **samples, **tied}
    plain = {"kv_heads": shape.kv_heads, "ffn": shape.ffn}
    return "llama", {**stack, **plain, **samples, **tied}


def _sparse_figures(shape: Shape, experts: Experts) -> Mapping[str, int]:
    """Return the shape keys of an MoE model, with the keys of latent attention if it has it."""
    figures = {
        "kv_heads": shape.kv_heads,
        "experts": experts.count,
        "top_k": experts.chosen,
        "expert_ffn": experts.width,
        "shared_ffn": experts.shared,
    }
    dense = shape.layers - experts.layers
    if dense:
        figures |= {"dense_layers": dense, "ffn": shape.ffn}
    if shape.latent is not None:
        latent = shape.latent
        return figures | {
            "query_rank": latent.query_rank,
            "kv_rank": latent.rank,
            "rope_dim": latent.rotary,
            "nope_dim": latent.plain,
            "value_dim": latent.value,
        }
    other = shape.heads * shape.head_width != shape.hidden
    return figures | ({"head_dim": shape.head_width} if other else {})
