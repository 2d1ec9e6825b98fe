"""Parameters and activations of a model on one device.

A transformer is a stack of layers, counted from its shape and from its split over devices: the
parameters of a layer, and what it keeps of one micro-batch. Any other model is known as a whole:
one layer that keeps what the model states.

References
----------
.. [1] Korthikanti et al., "Reducing Activation Recomputation in Large Transformer Models",
       sections 4 and 5, https://arxiv.org/abs/2205.05198
.. [2] NVIDIA/Megatron-LM megatron/training/theoretical_memory_usage.py @d98e8a6, 2026-08
.. [3] NVIDIA/TransformerEngine transformer_engine/pytorch/module/linear.py: what is saved for the
       backward pass is the quantised input. Not looked up: a guess.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from simulator.equations.memory import FULL_PRECISION, recomputed_layer_bytes
from simulator.physics.parameters import (
    adapter_activations,
    attention_parameters,
    layer_parameters,
    learned_parameters,
    learned_table,
    padded_vocabulary,
    scored_tokens,
    table_parameters,
    tokens,
)
from simulator.physics.transformer import TransformerStep, once
from simulator.schema.convnets import ConvNet
from simulator.schema.models import Model
from simulator.schema.software import MemoryFigures
from simulator.schema.training import Recompute, Train
from simulator.schema.transformers import Transformer
from simulator.units import Bytes, Real, at_least, at_most, where

_MASKS: Final = 2.0
"""Bytes of a token's value for the masks of two dropouts [B]."""
_SCORE_MASK: Final = 1.0
"""Bytes of a score's dropout mask, which is kept with the dropped value and the probability [B]."""
_RESIDUALS: Final = 2.0
"""Values of the model's width that a layer adds to: input of attention, of the MLP."""
_ROUTED: Final = 3.0
"""Copies of a routed token: permuted, at its expert, and what the expert makes of it."""
_TOKEN_GRADIENTS: Final = 3.0
"""Gradients of the model's width that a layer's backward pass has at a time."""


@once
def sequence_ranks(step: TransformerStep) -> Real:
    """Return the ranks that share what tensor parallelism does not split."""
    return where(step.layout.sequence_parallel > 0, step.layout.tensor, 1.0)


@once
def _attention_width(step: TransformerStep) -> Real:
    shape = step.shape
    return (shape.heads + shape.kv_heads) * shape.head_width + shape.kv_heads * shape.value_width


@once
def _attention_kept(step: TransformerStep) -> Bytes | Real:
    return step.work.element * _attention_width(step) + _attention_output(step)


@once
def _attention_output(step: TransformerStep) -> Bytes | Real:
    """Return attention's output and a fused kernel's row sums of a token [B]."""
    shape = step.shape
    sums = where(step.work.fused_attention > 0, FULL_PRECISION * shape.heads, 0.0)
    return step.work.element * shape.heads * shape.value_width + sums


@once
def _mlp_width(step: TransformerStep) -> Real:
    """Return the width of the MLPs that a token passes, averaged over layers."""
    shape = step.shape
    routed = shape.top_k * shape.expert_ffn * step.layout.imbalance + shape.shared_ffn
    return shape.ffn * (1.0 - shape.routed) + routed * shape.routed


@once
def _routed_copies(step: TransformerStep) -> Bytes | Real:
    shape = step.shape
    return (
        _ROUTED
        * step.work.element
        * shape.top_k
        * shape.hidden
        * shape.routed
        * step.layout.imbalance
    )


@once
def _unfused_scores(step: TransformerStep) -> Bytes | Real:
    """Return the scores of unfused attention of a token [B]."""
    shape = step.shape
    kept = step.work.element + (step.work.element + _SCORE_MASK) * shape.dropout
    return where(step.work.fused_attention > 0, 0.0, kept * shape.heads * shape.sequence)


def _keeps_narrow(step: TransformerStep, memory_model: MemoryFigures) -> Real:
    return where((step.work.low > 0) & (memory_model.narrow > 0), 1.0, 0.0)


def _inputs_kept(step: TransformerStep) -> tuple[Real, Real]:
    """Return 1 where a gradient reads the input of attention's output, and of the MLP's products.

    A frozen product needs its weights alone for the gradient of its input; an adapter on it
    reads the same input. Adapters of queries are always there.
    """
    work = step.work
    return at_least(work.learned, work.adapted_output), at_least(work.learned, work.adapted_mlp)


def _kept_in_full(step: TransformerStep, memory_model: MemoryFigures) -> Bytes | Real:
    """Return what a layer keeps of a token without recomputation [1]_ [B].

    The MLP keeps what goes into its activation and what comes out, and the function of its gate
    where a kernel of its own computes that. Products that keep their inputs below 16 bit keep a
    narrow copy of attention's output too, which attention needs in 16 bit. What only the gradient
    of a frozen weight would read is not kept.
    """
    shape, narrow = step.shape, _keeps_narrow(step, memory_model)
    width = where(narrow > 0, step.work.width, step.work.element)
    read, read_inside = _inputs_kept(step)
    wide = step.work.element * _RESIDUALS + width * (1.0 + read_inside) + _MASKS * shape.dropout
    passed = (
        step.work.element * (1.0 + shape.gated * (1.0 + memory_model.separate_gate))
        + width * read_inside
    )
    inner = passed * _mlp_width(step)
    copied = narrow * width * shape.heads * shape.value_width * read
    adapted = step.work.element * adapter_activations(step) * step.layout.tensor
    split = _attention_kept(step) + inner + copied + _routed_copies(step) + adapted
    return shape.hidden * wide / sequence_ranks(step) + split / step.layout.tensor


def _kept_without_modules(step: TransformerStep) -> Bytes | Real:
    """Return the same without outputs of norms, activations and up-projections [B]."""
    shape = step.shape
    inner = step.work.element * (1.0 + shape.gated) * _mlp_width(step)
    up = where(
        shape.latent > 0,
        shape.kv_rank + shape.rope_width + shape.query_rank,
        _attention_width(step),
    )
    split = (
        step.work.element * up + _attention_output(step) + inner + _routed_copies(step)
    ) / step.layout.tensor
    return step.work.element * _RESIDUALS * shape.hidden / sequence_ranks(step) + split


def _kept_of_operators(step: TransformerStep, memory_model: MemoryFigures) -> Bytes | Real:
    """Return what a layer keeps of a token if every second product is recomputed [B].

    Queries and values are kept, one product into the MLP, and its output where it is not seen that
    the backward pass does not read it.
    """
    shape = step.shape
    products = (
        shape.heads * shape.head_width + shape.kv_heads * shape.value_width + _mlp_width(step)
    )
    # one product makes queries, keys and values where there are biases to add to them
    products = where(shape.gated > 0, products, _attention_width(step) + _mlp_width(step))
    output = where(shape.gated > 0, memory_model.unread, 0.0)
    split = (_attention_output(step) + step.work.element * products) / step.layout.tensor
    return step.work.element * shape.hidden * (1.0 + output) / sequence_ranks(step) + split


def kept_bytes(step: TransformerStep, memory_model: MemoryFigures) -> Bytes | Real:
    """Return the mean of what a layer keeps of a micro-batch for its backward pass [B]."""
    share, whole = (
        step.work.recomputation.layers,
        _kept_in_full(step, memory_model) + _unfused_scores(step) / step.layout.tensor,
    )
    return share * _kept_where_recomputed(step, memory_model) + (1.0 - share) * tokens(step) * whole


def _kept_where_recomputed(step: TransformerStep, memory_model: MemoryFigures) -> Bytes | Real:
    """Return what a recomputed layer keeps of a micro-batch [B]."""
    recomputation = step.work.recomputation
    scores = where(recomputation.attention > 0, 0.0, _unfused_scores(step)) / step.layout.tensor
    modules, whole = (
        (recomputation.passes > 0) & (recomputation.passes < 1),
        _kept_in_full(step, memory_model),
    )
    plain = where(modules, at_most(_kept_without_modules(step), whole), whole) + scores
    some = where(recomputation.products > 0, _kept_of_operators(step, memory_model), plain)
    full = step.work.element * step.shape.hidden / sequence_ranks(step)
    return tokens(step) * where(recomputation.products >= 1, full, some)


def working_bytes(step: TransformerStep, memory_model: MemoryFigures) -> Bytes | Real:
    """Return recomputed values and gradients of one layer's backward pass [B].

    With sequence parallelism, whole inputs and their gradients; with context parallelism, keys and
    values on their way from and to neighbours.
    """
    shape, layout, rows = step.shape, step.layout, tokens(step)
    whole = _kept_in_full(step, memory_model) + _unfused_scores(step) / layout.tensor
    again = recomputed_layer_bytes(rows * whole, _kept_where_recomputed(step, memory_model))
    widest = at_least((2.0 + shape.gated) * _mlp_width(step), 2.0 * _attention_width(step))
    split = step.work.element * widest + where(
        step.work.fused_attention > 0, 0.0, 2.0 * step.work.element * shape.heads * shape.sequence
    )
    gathered = where(layout.sequence_parallel > 0, 2.0 * step.work.element * shape.hidden, 0.0)
    keys = shape.kv_heads * (shape.head_width + shape.value_width)
    passed = where(layout.context > 1, 2.0 * step.work.element * keys, 0.0)
    gradients = step.work.element * _TOKEN_GRADIENTS * shape.hidden / sequence_ranks(step)
    return again + rows * (gradients + gathered + (split + passed) / layout.tensor)


def logits_bytes(step: TransformerStep, memory_model: MemoryFigures) -> Bytes | Real:
    """Return the logits and their copies at the loss [B]."""
    scores = scored_tokens(step) * padded_vocabulary(step) / step.layout.tensor
    return scores * memory_model.scores * step.shape.scored


@dataclass(frozen=True, slots=True, kw_only=True)
class ParameterFootprint:
    """Parameters and activations of a model on one device.

    There are equal `layers` of `unit` parameters, of which `shared` are held by all replicas
    (experts are not), and tables of `table` parameters at both ends, one alone where they are
    `tied`. `looked_up` parameters have no dense gradient. A layer keeps `kept` of a micro-batch for
    its backward pass, which needs `working` too; a normed embedding keeps `ends`, the loss needs
    `logits` [B].

    Of a layer's parameters `learned` have a gradient, `learned_shared` of those that all replicas
    hold, and of the tables `learned_table`. No product of a layer has more than `largest`, 0 where
    the model does not say.
    """

    layers: Real
    unit: Real
    shared: Real
    learned: Real
    learned_shared: Real
    learned_table: Real = 0.0
    table: Real = 0.0
    tied: Real = 1.0
    looked_up: Real = 0.0
    kept: Bytes | Real = 0.0
    ends: Bytes | Real = 0.0
    working: Bytes | Real = 0.0
    logits: Bytes | Real = 0.0
    largest: Real = 0.0


def layers_footprint(
    step: TransformerStep, memory_model: MemoryFigures, model: Transformer
) -> ParameterFootprint:
    """Return the footprint of a transformer's layers, split over devices.

    Norms, biases and positions, which no matrix product reads, are shared out to the layers.
    """
    unit, shared = layer_parameters(step)
    rest = _small_parameters(step, model) / step.shape.layers
    learned, learned_shared = learned_parameters(step)
    return ParameterFootprint(
        layers=step.shape.layers,
        unit=unit + rest,
        shared=shared + rest,
        learned=learned + step.work.learned * rest,
        learned_shared=learned_shared + step.work.learned * rest,
        learned_table=learned_table(step),
        table=table_parameters(step),
        tied=step.shape.tied,
        kept=kept_bytes(step, memory_model),
        ends=_embedding_kept(step, model),
        working=working_bytes(step, memory_model),
        logits=logits_bytes(step, memory_model),
        largest=at_least(
            step.shape.hidden * step.shape.ffn / step.layout.tensor, attention_parameters(step)
        ),
    )


def _small_parameters(step: TransformerStep, model: Transformer) -> Real:
    """Return the parameters other than those of products and tables, on one device."""
    shape, layout = step.shape, step.layout
    unit, shared = layer_parameters(step)
    of_experts = (unit - shared) * at_least(1.0, layout.expert)
    in_layers = shape.layers * (shared * layout.tensor + of_experts)
    in_tables = shape.vocabulary * shape.hidden * (2.0 - shape.tied)
    return at_least(0.0, model.parameters - in_layers - in_tables)


def _embedding_kept(step: TransformerStep, model: Transformer) -> Bytes | Real:
    """Return what a normed embedding keeps of a micro-batch, dropout mask included [B]."""
    kept = float(model.embedding.normalized) * (step.work.element + step.shape.dropout)
    return tokens(step) * step.shape.hidden * kept / sequence_ranks(step)


def whole_footprint(model: Model, train: Train) -> ParameterFootprint:
    """Return the footprint of a model that is known as a whole, on every device.

    Raises
    ------
    NotModelled
        Where the model does not say what some recomputation saves.
    """
    looked_up = model.parameters - model.dense_parameters
    plain, recomputation = (
        model.activation_bytes(train.batch_size, train.precision, recompute)
        for recompute in (Recompute.NONE, train.recompute)
    )
    kept = plain + train.recompute_share * (recomputation - plain)
    return ParameterFootprint(
        layers=1.0,
        unit=model.parameters,
        shared=model.parameters,
        learned=model.parameters,
        learned_shared=model.parameters,
        looked_up=looked_up,
        kept=kept,
    )


def head_only_footprint(model: ConvNet | Transformer, train: Train) -> ParameterFootprint:
    """Return the footprint of a model of which only the head is trained."""
    frozen = model.parameters - model.head_parameters
    held = model.forward_memory(train.batch_size, train.precision)
    return ParameterFootprint(
        layers=1.0,
        unit=frozen,
        shared=frozen,
        learned=model.head_parameters,
        learned_shared=model.head_parameters,
        kept=held.live,
    )
