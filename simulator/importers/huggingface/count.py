"""Parameters, operations and cached bytes of a transformer's shape, counted part by part.

What is counted are the weights as transformers builds them (a multiply-add is two operations; the
forward pass; attention of all pairs a fused causal kernel computes). Lookups cost nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from simulator.importers.huggingface.shape import Experts, Latent, Shape
from simulator.units import Bytes, Flops

_MULTIPLY_ADD: Final = 2.0
_HALF: Final = 2.0
"""Bytes of an element of the cache: 16 bits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Weights of one kind: all of them, and those each token is multiplied with."""

    name: str
    parameters: int
    used: int


def parts(shape: Shape) -> tuple[Part, ...]:
    """All weights of a shape, by kind."""
    found: dict[str, Part] = {}
    for part in _parts(shape):
        before = found.get(part.name, Part(name=part.name, parameters=0, used=0))
        found[part.name] = Part(
            name=part.name,
            parameters=before.parameters + part.parameters,
            used=before.used + part.used,
        )
    return tuple(part for part in found.values() if part.parameters)


def parameters(shape: Shape) -> int:
    """All trainable parameters."""
    return sum(part.parameters for part in parts(shape))


def active_parameters(shape: Shape) -> int:
    """Parameters that one token meets: all but the experts it is not sent to."""
    experts = shape.experts
    if experts is None:
        return parameters(shape)
    idle = experts.count - experts.chosen
    return parameters(shape) - idle * experts.layers * _mlp(shape, experts.width)


def forward_flops(shape: Shape, sequence: int) -> Flops:
    """Operations of a forward pass over one token of a sequence of `sequence` tokens [FLOP]."""
    # a head without weights of its own is computed all the same
    products = _MULTIPLY_ADD * sum(part.used for part in _parts(shape))
    seen = min(sequence, shape.window or sequence)
    pairs = seen * (0.5 if shape.causal else 1.0)
    # T5's second stack looks at what came before it, and at all of the first stack.
    own = shape.layers + shape.decoder_layers * (0.5 + 1.0)
    return products + _MULTIPLY_ADD * own * pairs * _pair_width(shape)


def cached_bytes(shape: Shape) -> Bytes | None:
    """Keys and values of one token in 16 bits, all layers [B]; None where nothing is generated."""
    if not shape.causal and not shape.decoder_layers:
        return None
    if shape.latent is not None:
        return _HALF * shape.layers * (shape.latent.rank + shape.latent.rotary)
    layers = shape.decoder_layers or shape.layers
    return _HALF * layers * 2.0 * shape.kv_heads * shape.head_width


def _pair_width(shape: Shape) -> float:
    """Values of all heads that a pair of tokens is multiplied over: scores, then values."""
    if shape.latent is not None:
        return float(shape.heads * (shape.head_width + shape.latent.value))
    return 2.0 * shape.heads * shape.head_width


def _parts(shape: Shape) -> Iterator[Part]:
    yield from _embedding(shape)
    if shape.decoder_layers:
        yield from _two_stacks(shape)
    else:
        yield from _times(shape.layers, _attention(shape))
        yield from _mlps(shape)
        yield _norms(shape, 2 * shape.layers + 1)
    yield from _head(shape)


def _embedding(shape: Shape) -> Iterator[Part]:
    rows = shape.vocabulary + shape.positions + shape.segments
    yield Part(name="embedding", parameters=rows * shape.hidden, used=0)


def _head(shape: Shape) -> Iterator[Part]:
    table = shape.vocabulary * shape.hidden
    # An encoder's file describes what its pooler gives, without a head over tokens.
    if shape.pooler:
        yield _product("pooler", shape.hidden, shape.hidden, bias=True)
    else:
        yield Part(name="head", parameters=0 if shape.tied else table, used=table)


def _times(count: int, found: Iterator[Part]) -> Iterator[Part]:
    for part in found:
        yield Part(name=part.name, parameters=count * part.parameters, used=count * part.used)


def _product(name: str, inputs: int, outputs: int, *, bias: bool = False) -> Part:
    weights = inputs * outputs
    return Part(name=name, parameters=weights + (outputs if bias else 0), used=weights)


def _norms(shape: Shape, count: int) -> Part:
    learned = count * shape.hidden * (2 if shape.centred else 1)
    return Part(name="norms", parameters=learned, used=0)


def _attention(shape: Shape) -> Iterator[Part]:
    if shape.latent is not None:
        yield from _latent_attention(shape, shape.latent)
        return
    wide, narrow = shape.heads * shape.head_width, shape.kv_heads * shape.head_width
    yield _product("attention", shape.hidden, wide + 2 * narrow, bias=shape.qkv_bias)
    yield _product("attention", wide, shape.hidden, bias=shape.output_bias)
    if shape.head_norms:
        yield Part(name="norms", parameters=2 * shape.head_width, used=0)


def _latent_attention(shape: Shape, latent: Latent) -> Iterator[Part]:
    hidden, heads, query = shape.hidden, shape.heads, latent.query_rank
    if query:
        yield _product("attention", hidden, query)
        yield Part(name="norms", parameters=query, used=0)
    yield _product("attention", query or hidden, heads * shape.head_width)
    yield _product("attention", hidden, latent.rank + latent.rotary)
    yield Part(name="norms", parameters=latent.rank, used=0)
    yield _product("attention", latent.rank, heads * (latent.plain + latent.value))
    yield _product("attention", heads * latent.value, hidden)


def _mlp(shape: Shape, width: int) -> int:
    """Weights of one MLP."""
    bias = ((2 if shape.gated else 1) * width + shape.hidden) if shape.mlp_bias else 0
    return (3 if shape.gated else 2) * shape.hidden * width + bias


def _mlps(shape: Shape) -> Iterator[Part]:
    experts = shape.experts
    plain = shape.layers - (experts.layers if experts else 0)
    bias = ((2 if shape.gated else 1) * shape.ffn + shape.hidden) if shape.mlp_bias else 0
    weights = plain * _mlp(shape, shape.ffn)
    yield Part(name="MLP", parameters=weights, used=weights - plain * bias)
    if experts is not None:
        yield from _times(experts.layers, _sparse(shape, experts))


def _sparse(shape: Shape, experts: Experts) -> Iterator[Part]:
    one = _mlp(shape, experts.width)
    yield Part(name="experts", parameters=experts.count * one, used=experts.chosen * one)
    yield _product("router", shape.hidden, experts.count)
    if experts.shared:
        weights = _mlp(shape, experts.shared)
        yield Part(name="shared experts", parameters=weights, used=weights)
    if experts.shared_gate:
        yield _product("router", shape.hidden, 1)


def _two_stacks(shape: Shape) -> Iterator[Part]:
    """T5: the second stack attends to itself and to the first; norms without bias."""
    below, above = shape.layers, shape.decoder_layers
    mlp = _mlp(shape, shape.ffn)
    yield from _times(below + 2 * above, _attention(shape))
    yield Part(name="MLP", parameters=(below + above) * mlp, used=(below + above) * mlp)
    yield _norms(shape, 2 * below + 3 * above + 2)
    yield Part(name="position buckets", parameters=2 * shape.buckets * shape.heads, used=0)
