"""What the layers and the head of a spread model keep of one micro-batch on one device.

References
----------
.. [1] Korthikanti et al., "Reducing Activation Recomputation in Large Transformer Models",
       sections 4 and 5, https://arxiv.org/abs/2205.05198
.. [2] NVIDIA/Megatron-LM megatron/training/theoretical_memory_usage.py @d98e8a6, 2026-08
.. [3] NVIDIA/TransformerEngine transformer_engine/pytorch/module/linear.py: what is saved for the
       backward pass is the quantised input. Not looked up: a guess.
"""

from __future__ import annotations

from typing import Final

from simulator.equations.memory import FULL_PRECISION, recomputed_layer_bytes
from simulator.physics.adapters import kept_values
from simulator.physics.description import Description, once
from simulator.physics.shapes import padded_vocabulary, scored_tokens, tokens
from simulator.schema.workload.kernels import MemoryFigures
from simulator.units import Bytes, Real, at_least, at_most, where

_MASKS: Final = 2.0
"""Bytes of a token's value for the masks of two dropouts [B]."""
_SCORE_MASK: Final = 1.0
"""Bytes of a score's dropout mask, which is kept with the dropped beside the probability [B]."""
_RESIDUALS: Final = 2.0
"""Values of the model's width that a layer adds to: input of attention, of the MLP."""
_ROUTED: Final = 3.0
"""Copies of a routed token: permuted, at its expert, and what the expert makes of it."""
_TOKEN_GRADIENTS: Final = 3.0
"""Gradients of the model's width that a layer's backward pass has at a time."""


@once
def along(d: Description) -> Real:
    """Ranks that share what tensor parallelism leaves whole."""
    return where(d.layout.sequence_parallel > 0, d.layout.tensor, 1.0)


@once
def _sides(d: Description) -> Real:
    """Width of queries, keys and values."""
    s = d.shape
    return (s.heads + s.kv_heads) * s.head_width + s.kv_heads * s.value_width


@once
def _attention(d: Description) -> Bytes | Real:
    """Queries, keys, values and output of a token [B]."""
    return d.work.element * _sides(d) + _output(d)


@once
def _output(d: Description) -> Bytes | Real:
    """Attention's output, and the sums of a fused kernel's rows of scores, of a token [B]."""
    s = d.shape
    sums = where(d.work.fused_attention > 0, FULL_PRECISION * s.heads, 0.0)
    return d.work.element * s.heads * s.value_width + sums


@once
def _inside(d: Description) -> Real:
    """Width of the MLPs that a token passes, on average over the layers."""
    s = d.shape
    routed = s.top_k * s.expert_ffn * d.layout.imbalance + s.shared_ffn
    return s.ffn * (1.0 - s.routed) + routed * s.routed


@once
def _sent(d: Description) -> Bytes | Real:
    """Copies of a token that its experts need [B]."""
    s = d.shape
    return _ROUTED * d.work.element * s.top_k * s.hidden * s.routed * d.layout.imbalance


@once
def _scores(d: Description) -> Bytes | Real:
    """Scores of attention that is not fused, of a token [B]."""
    s = d.shape
    kept = d.work.element + (d.work.element + _SCORE_MASK) * s.dropout
    return where(d.work.fused_attention > 0, 0.0, kept * s.heads * s.sequence)


def _narrow(d: Description, f: MemoryFigures) -> Real:
    """1 where products below 16 bit keep their inputs as they read them [3]_."""
    return where((d.work.low > 0) & (f.narrow > 0), 1.0, 0.0)


def _inputs_read(d: Description) -> tuple[Real, Real]:
    """1 where a gradient of weights reads the input of attention's output, and those of the MLP.

    A frozen product needs its weights alone for the gradient of its input; an adapter beside it
    reads the same input. Adapters of queries are always there.
    """
    work = d.work
    return at_least(work.learned, work.adapted_output), at_least(work.learned, work.adapted_mlp)


def _whole(d: Description, f: MemoryFigures) -> Bytes | Real:
    """What a layer keeps of a token where nothing is recomputed [1]_ [B].

    The MLP keeps what goes into its activation and what comes out, and the function of its gate
    where a kernel of its own computes that. Products that keep their inputs
    below 16 bit keep that of attention's output beside it, which attention needs in 16 bit. What
    only the gradient of a frozen weight would read is not kept.
    """
    s, narrow = d.shape, _narrow(d, f)
    width = where(narrow > 0, d.work.width, d.work.element)
    read, read_inside = _inputs_read(d)
    wide = d.work.element * _RESIDUALS + width * (1.0 + read_inside) + _MASKS * s.dropout
    passed = d.work.element * (1.0 + s.gated * (1.0 + f.separate_gate)) + width * read_inside
    inner = passed * _inside(d)
    copied = narrow * width * s.heads * s.value_width * read
    adapted = d.work.element * kept_values(d) * d.layout.tensor
    split = _attention(d) + inner + copied + _sent(d) + adapted
    return s.hidden * wide / along(d) + split / d.layout.tensor


def _without_modules(d: Description) -> Bytes | Real:
    """The same without what norms and activations make, and without projections up [B]."""
    s = d.shape
    inner = d.work.element * (1.0 + s.gated) * _inside(d)
    up = where(s.latent > 0, s.kv_rank + s.rope_width + s.query_rank, _sides(d))
    split = (d.work.element * up + _output(d) + inner + _sent(d)) / d.layout.tensor
    return d.work.element * _RESIDUALS * s.hidden / along(d) + split


def _every_second(d: Description, f: MemoryFigures) -> Bytes | Real:
    """A token's input of the layer, attention's output, and every second product's [B].

    Queries and values are kept, one product into the MLP, and its output where nobody sees that
    the backward pass does not read it.
    """
    s = d.shape
    products = s.heads * s.head_width + s.kv_heads * s.value_width + _inside(d)
    # one product makes queries, keys and values where there are biases to add to them
    products = where(s.gated > 0, products, _sides(d) + _inside(d))
    output = where(s.gated > 0, f.unread, 0.0)
    split = (_output(d) + d.work.element * products) / d.layout.tensor
    return d.work.element * s.hidden * (1.0 + output) / along(d) + split


def kept_bytes(d: Description, f: MemoryFigures) -> Bytes | Real:
    """What a layer keeps of a micro-batch for its backward pass, the mean of all [B].

    Parameters
    ----------
    d : Description
        Its `redone` shares say what is recomputed, in which share of its layers.
    f : MemoryFigures
        Whether outputs that are not read are kept.
    """
    share, whole = d.work.redone.layers, _whole(d, f) + _scores(d) / d.layout.tensor
    return share * _kept_where_redone(d, f) + (1.0 - share) * tokens(d) * whole


def _kept_where_redone(d: Description, f: MemoryFigures) -> Bytes | Real:
    """The same of a layer that is recomputed [B]."""
    redone = d.work.redone
    scores = where(redone.attention > 0, 0.0, _scores(d)) / d.layout.tensor
    modules, whole = (redone.passes > 0) & (redone.passes < 1), _whole(d, f)
    plain = where(modules, at_most(_without_modules(d), whole), whole) + scores
    some = where(redone.products > 0, _every_second(d, f), plain)
    full = d.work.element * d.shape.hidden / along(d)
    return tokens(d) * where(redone.products >= 1, full, some)


def working_bytes(d: Description, f: MemoryFigures) -> Bytes | Real:
    """What one layer's backward pass needs beside: recomputed values and gradients [B].

    With sequence parallelism, whole inputs and their gradients; with context parallelism, keys and
    values on their way from and to neighbours.
    """
    s, layout, rows = d.shape, d.layout, tokens(d)
    whole = _whole(d, f) + _scores(d) / layout.tensor
    again = recomputed_layer_bytes(rows * whole, _kept_where_redone(d, f))
    widest = at_least((2.0 + s.gated) * _inside(d), 2.0 * _sides(d))
    split = d.work.element * widest + where(
        d.work.fused_attention > 0, 0.0, 2.0 * d.work.element * s.heads * s.sequence
    )
    gathered = where(layout.sequence_parallel > 0, 2.0 * d.work.element * s.hidden, 0.0)
    keys = s.kv_heads * (s.head_width + s.value_width)
    passed = where(layout.context > 1, 2.0 * d.work.element * keys, 0.0)
    gradients = d.work.element * _TOKEN_GRADIENTS * s.hidden / along(d)
    return again + rows * (gradients + gathered + (split + passed) / layout.tensor)


def logits_bytes(d: Description, f: MemoryFigures) -> Bytes | Real:
    """Scores of all words and their copies at the loss [B]."""
    scores = scored_tokens(d) * padded_vocabulary(d) / d.layout.tensor
    return scores * f.scores * d.shape.scored
