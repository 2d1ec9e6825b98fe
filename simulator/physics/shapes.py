"""Matrix products of one layer on one device, and the parameters it holds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from simulator.equations.batch import mean_square_length
from simulator.equations.pipeline import back_layers, end_layers, front_layers, middle_layers
from simulator.physics.description import Description, once
from simulator.schema.workload.kernels import Kernels
from simulator.schema.workload.models import Product
from simulator.units import Real, anywhere, at_least, at_most, rounded_up, where

_TILE: Final = 128.0
"""Columns that a padded vocabulary is a multiple of, on each tensor-parallel rank."""
_ENDS: Final = 2.0
"""Stages that hold an embedding or a head."""
_ALIGNED: Final = 8.0
"""Columns whose multiples let matrix units read whole words."""
_WHOLE: Final = 1e-8
"""Columns beyond a multiple that are rounding."""


@once
def tokens(d: Description) -> Real:
    """Tokens of one micro-batch that one device computes, on average."""
    return d.layout.micro_batch * d.shape.sequence * d.shape.filled / d.layout.context


def attended(d: Description) -> Real:
    """Length of a sequence whose square is the mean number of pairs of positions in one."""
    share: Real = mean_square_length(d.shape.filled) ** 0.5
    return d.shape.sequence * share


@once
def scored_tokens(d: Description) -> Real:
    """Those that the head scores: all of a decoder's, an encoder's masked ones."""
    return tokens(d) * d.shape.scored_share


@dataclass(frozen=True, slots=True)
class StageLayers:
    """Layers of the first stage, of one between, and of the last."""

    first: Real
    middle: Real
    last: Real


@once
def stage_layers(d: Description) -> StageLayers:
    """How layers are dealt to the stages of the pipeline."""
    layers, stages = d.shape.layers, d.layout.pipeline
    ends, between = end_layers(layers, stages), middle_layers(layers, stages)
    if not anywhere(d.layout.by_compute > 0):
        return StageLayers(ends, between, ends)
    head, dealt = _head_in_layers(d), d.layout.by_compute > 0
    front, back = front_layers(layers, stages, head), back_layers(layers, stages, head)
    others = at_least(stages - _ENDS, 1.0)
    left = where(stages > _ENDS, (layers - front - back) / others, between)
    return StageLayers(
        where(dealt, front, ends), where(dealt, left, between), where(dealt, back, ends)
    )


def _head_in_layers(d: Description) -> Real:
    """Products of the head over those of a layer, of whose experts a token passes some."""
    held, shared = layer_parameters(d)
    passed = d.shape.top_k * d.layout.expert / at_least(d.shape.experts, 1.0)
    head: Real = table_parameters(d) / at_least(shared + (held - shared) * passed, 1.0)
    return head


@once
def padded_vocabulary(d: Description) -> Real:
    """Rows of the table of tokens as stored."""
    group = _TILE * d.layout.tensor
    whole = rounded_up(d.shape.vocabulary / group) * group
    return where(d.work.padded_vocabulary > 0, whole, d.shape.vocabulary)


def attention_products(d: Description) -> list[Product]:
    """Products before and after attention, plain or latent, split over tensor-parallel ranks."""
    s, t, rows = d.shape, d.layout.tensor, tokens(d)
    plain = (s.heads + 2.0 * s.kv_heads) * s.head_width / t
    found = [
        Product(rows, plain, s.hidden, share=1.0 - s.latent),
        Product(rows, s.hidden, s.heads * s.value_width / t),
    ]
    if anywhere(s.latent > 0):
        still = s.heads * (s.head_width - s.rope_width + s.value_width) / t
        sides = (
            (s.query_rank, s.hidden),
            (s.heads * s.head_width / t, s.query_rank),
            (s.kv_rank + s.rope_width, s.hidden),
            (still, s.kv_rank),
        )
        found += [
            Product(rows, at_least(n, 1.0), at_least(k, 1.0), share=s.latent) for n, k in sides
        ]
    return found


def mlp_products(d: Description) -> list[Product]:
    """Products of the plain MLP, for the layers that have one."""
    s, t, rows = d.shape, d.layout.tensor, tokens(d)
    share = 1.0 - s.routed
    return [
        Product(rows, s.ffn * (1.0 + s.gated) / t, s.hidden, share=share),
        Product(rows, s.hidden, s.ffn / t, share=share),
    ]


def score_products(d: Description) -> list[Product]:
    """Scores and weighted values of unfused attention: many small products in 16 bit."""
    s, many = d.shape, d.layout.micro_batch * d.shape.heads / d.layout.tensor
    share, length = 1.0 - d.work.fused_attention, attended(d)
    return [
        Product(length, length, s.head_width, many, share, 0.0),
        Product(length, s.head_width, length, many, share, 0.0),
    ]


def expert_products(d: Description, k: Kernels) -> list[Product]:
    """Products of the experts on this device, one of a batch each, and of the shared ones."""
    s, share = d.shape, d.shape.routed
    rows = tokens(d) / d.layout.tensor
    local = at_least(1.0, s.experts / d.layout.expert)
    padding = where(d.layout.padded_experts > 0, k.expert.padding, 1.0)
    chosen = at_least(1.0, rows * s.top_k / local) * padding * d.layout.imbalance
    inside, shared = at_least(s.expert_ffn, 1.0), at_least(s.shared_ffn, 1.0)
    both = share * where(s.shared_ffn > 0, 1.0, 0.0)
    return [
        Product(chosen, inside * (1.0 + s.gated), s.hidden, local, share),
        Product(chosen, s.hidden, inside, local, share),
        Product(rows, shared * (1.0 + s.gated), s.hidden, 1.0, both),
        Product(rows, s.hidden, shared, 1.0, both),
    ]


def head_product(d: Description, k: Kernels) -> Product:
    """Scores of the tokens, in 16 bit; slow where the vocabulary is not a multiple of eight."""
    columns = padded_vocabulary(d) / d.layout.tensor
    whole = columns % _ALIGNED < _WHOLE
    aligned = where(whole, 1.0, k.product.unaligned)
    return Product(scored_tokens(d), columns, d.shape.hidden, low=0.0, aligned=aligned)


@once
def attention_parameters(d: Description) -> Real:
    """Weights of a layer's attention on one device."""
    s = d.shape
    plain = s.hidden * (s.heads + 2.0 * s.kv_heads) * s.head_width
    still = s.head_width - s.rope_width + s.value_width
    latent = (
        s.hidden * (s.query_rank + s.kv_rank + s.rope_width)
        + s.query_rank * s.heads * s.head_width
        + s.kv_rank * s.heads * still
    )
    own = where(s.latent > 0, latent, plain) + s.heads * s.value_width * s.hidden
    return own / d.layout.tensor


@once
def layer_parameters(d: Description) -> tuple[Real, Real]:
    """Weights of a layer on one device: all of them, and without the experts it shares out."""
    s = d.shape
    matrices = (2.0 + s.gated) * s.hidden
    plain = attention_parameters(d) + matrices * s.ffn / d.layout.tensor * (1.0 - s.routed)
    shared = matrices * s.shared_ffn * s.routed
    own = s.experts / at_least(1.0, d.layout.expert) * matrices * s.expert_ffn * s.routed
    return plain + shared + own, plain + shared


@once
def sharers(d: Description) -> Real:
    """Ranks that one copy of sharded state is spread over; context-parallel ones take part."""
    return at_most(d.layout.replicas, d.layout.shard_group) * d.layout.context


@once
def expert_copies(d: Description) -> Real:
    """Ranks that hold the same experts, among those that share state."""
    return at_least(1.0, sharers(d) * d.layout.tensor / at_least(1.0, d.layout.expert))


def between_copies(d: Description) -> Real:
    """Replicas from one rank to the next that holds the same experts."""
    apart: Real = d.layout.expert / (d.layout.tensor * d.layout.context)
    return apart


def shared_part(d: Description, of_all: Real, of_experts: Real) -> Real:
    """Parameters whose state is this rank's where it is sharded.

    Parameters
    ----------
    of_all : float or array
        Parameters on this device of which each replica has a copy.
    of_experts : float or array
        Those of its experts, of which there are fewer copies.
    """
    part: Real = of_all / sharers(d) + of_experts / expert_copies(d)
    return part


def updated_parameters(d: Description, of_all: Real, of_experts: Real) -> Real:
    """Parameters that this rank updates: its part where the optimizer's state is sharded."""
    sharded = (d.layout.sharded > 0) | (d.layout.sharded_optimizer > 0)
    return where(sharded, shared_part(d, of_all, of_experts), of_all + of_experts)


@once
def table_parameters(d: Description) -> Real:
    """Weights of the table of tokens on one device."""
    return padded_vocabulary(d) * d.shape.hidden / d.layout.tensor
