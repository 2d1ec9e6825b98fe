"""Low-rank adapters beside frozen layers, and what of a layer learns on one device.

A target x W is computed as x W + s (x A) B, where A has `rank` columns and B as many rows; W is
frozen, so that its gradient is neither computed, kept, exchanged nor used. The gradient of x still
passes every layer, since adapters lie in all of them. An adapter is counted for each projection
(queries, keys, values, gate and the rest), as PEFT has them [2]_, or for the product that computes
several of them, where the framework has one [3]_; experts have none. A is whole on
every tensor-parallel rank where W is split by columns, and B where W is split by rows.

Not counted: dropout before an adapter, and the first layer's gradient of its input, which nobody
needs.

References
----------
.. [1] Hu et al., "LoRA: Low-Rank Adaptation of Large Language Models",
       https://arxiv.org/abs/2106.09685
.. [2] huggingface/peft src/peft/tuners/lora/layer.py, Linear.forward and Linear.update_layer,
       read in peft 0.17.1 on PyPI.
.. [3] NVIDIA/NeMo and NVIDIA-NeMo/Megatron-Bridge: adapters on linear_qkv, linear_proj, linear_fc1
       and linear_fc2 of Megatron Core.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from simulator.physics.description import Description, once
from simulator.physics.shapes import layer_parameters, table_parameters, tokens
from simulator.schema.workload.models import Product
from simulator.units import Bytes, Real, anywhere, where

KERNELS: Final = (4.0, 6.0)
"""Kernels of an adapter, forward and backward: two products, the scale and the sum; four products,
the scale and the sum of two gradients of its input."""
_SCALED: Final = 2.0
_SUMMED: Final = 3.0
"""How often a value moves where it is scaled, and where two are added up."""


class Adapter(NamedTuple):
    """An adapter on one device: `inputs` x rank and rank x `outputs`, on a `share` of layers."""

    inputs: Real
    outputs: Real
    share: Real


def adapters(d: Description) -> tuple[Adapter, ...]:
    """The adapters of a layer; none where all parameters learn."""
    if not anywhere(d.work.rank > 0):
        return ()
    return tuple(_of_attention(d)) + tuple(_of_mlp(d))


def _of_attention(d: Description) -> Iterator[Adapter]:
    s, t, work = d.shape, d.layout.tensor, d.work
    queries, keys = s.heads * s.head_width / t, s.kv_heads * s.head_width / t
    values = s.kv_heads * s.value_width / t
    plain = 1.0 - s.latent
    if anywhere(work.joined > 0):
        yield Adapter(s.hidden, queries + keys + values, plain * work.joined)
    apart = plain * (1.0 - work.joined)
    yield Adapter(s.hidden, queries, apart)
    yield Adapter(s.hidden, keys, apart * work.adapted_keys)
    yield Adapter(s.hidden, values, apart)
    if anywhere(s.latent > 0):
        still = s.heads * (s.head_width - s.rope_width + s.value_width) / t
        yield Adapter(s.hidden, s.query_rank, s.latent)
        yield Adapter(s.query_rank, s.heads * s.head_width / t, s.latent)
        yield Adapter(s.hidden, s.kv_rank + s.rope_width, s.latent)
        yield Adapter(s.kv_rank, still, s.latent)
    yield Adapter(s.heads * s.value_width / t, s.hidden, work.adapted_output)


def _of_mlp(d: Description) -> Iterator[Adapter]:
    s, inside = d.shape, d.shape.ffn / d.layout.tensor
    share, joined = d.work.adapted_mlp * (1.0 - s.routed), d.work.joined
    if anywhere(joined > 0):
        yield Adapter(s.hidden, inside * (1.0 + s.gated), share * joined)
    yield Adapter(s.hidden, inside, share * (1.0 - joined))
    yield Adapter(s.hidden, inside, share * s.gated * (1.0 - joined))
    yield Adapter(inside, s.hidden, share)


def adapter_products(d: Description) -> list[Product]:
    """Products of a layer's adapters, in 16 bit."""
    rows, rank = tokens(d), d.work.rank
    return [
        product
        for one in adapters(d)
        for product in (
            Product(rows, rank, one.inputs, share=one.share, low=0.0),
            Product(rows, one.outputs, rank, share=one.share, low=0.0),
        )
    ]


@once
def number(d: Description) -> Real:
    """Adapters of a layer, on average over the layers."""
    return sum((one.share for one in adapters(d)), 0.0)


def moved_bytes(d: Description) -> tuple[Bytes | Real, Bytes | Real]:
    """Bytes of scales and sums, forward and backward [B]."""
    forward: Bytes | Real = 0.0
    backward: Bytes | Real = 0.0
    for one in adapters(d):
        size = tokens(d) * d.work.element * one.share
        forward = forward + size * (_SCALED + _SUMMED) * one.outputs
        backward = backward + size * (_SCALED * one.outputs + _SUMMED * one.inputs)
    return forward, backward


def kept_values(d: Description) -> Real:
    """Values of a token that a layer's adapters keep between their two products."""
    return d.work.rank * number(d)


@once
def learned_parameters(d: Description) -> tuple[Real, Real]:
    """Parameters of a layer that learn, on one device: all of them, and without its experts."""
    held, shared = layer_parameters(d)
    if not anywhere(d.work.rank > 0):
        return held, shared
    own = sum((one.share * d.work.rank * (one.inputs + one.outputs) for one in adapters(d)), 0.0)
    learned = d.work.learned > 0
    return where(learned, held, own), where(learned, shared, own)


def learned_table(d: Description) -> Real:
    """Parameters of the table of tokens that learn, on one device."""
    return d.work.learned * table_parameters(d)
