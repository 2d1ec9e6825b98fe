"""Matrix products, parameters and activations of a model on one device, adapters included.

With an adapter, a target x W is computed as x W + s (x A) B, where A has `rank` columns and B as
many rows [1]_; W is frozen, so that its gradient is neither computed, kept, exchanged nor used. The
gradient of x still passes every layer, since every layer has adapters. An adapter is counted for
each projection (queries, keys, values, gate and the rest), as PEFT has them [2]_, or one for a
fused projection, if the framework has one [3]_; experts have no adapter. A is whole on every
tensor-parallel rank where W is split by columns, and B where W is split by rows.

Not counted: dropout before an adapter, and the first layer's gradient of its input, which is not
needed.

A transformer is a stack of layers, counted from its shape and from its split over devices: the
parameters of a layer, and the activations it stores for one micro-batch. Any other model is treated
as one layer, with the activations that the model states.

References
----------
.. [1] Hu et al., "LoRA: Low-Rank Adaptation of Large Language Models",
       https://arxiv.org/abs/2106.09685
.. [2] huggingface/peft src/peft/tuners/lora/layer.py, Linear.forward and Linear.update_layer,
       read in peft 0.17.1 on PyPI.
.. [3] NVIDIA/NeMo and NVIDIA-NeMo/Megatron-Bridge: adapters on linear_qkv, linear_proj, linear_fc1
       and linear_fc2 of Megatron Core.
.. [4] Korthikanti et al., "Reducing Activation Recomputation in Large Transformer Models",
       sections 4 and 5, https://arxiv.org/abs/2205.05198
.. [5] NVIDIA/Megatron-LM megatron/training/theoretical_memory_usage.py @d98e8a6, 2026-08
.. [6] NVIDIA/TransformerEngine transformer_engine/pytorch/module/linear.py: the quantised input
       is saved for the backward pass. Unverified.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from simulator.equations.memory import FULL_PRECISION, recomputed_layer_bytes
from simulator.equations.pipeline import back_layers, end_layers, front_layers, middle_layers
from simulator.equations.step import mean_square_length
from simulator.memo import cached
from simulator.physics.transformer import (
    Layout,
    TransformerStep,
    learning_head,
    shape_of,
    work_of,
)
from simulator.records import dataclass
from simulator.schema.convnets import ConvNet
from simulator.schema.models import Model, Product
from simulator.schema.scenario import Job
from simulator.schema.software import Kernels, MemoryFigures
from simulator.schema.training import Recompute, Train
from simulator.schema.transformers import Transformer
from simulator.units import Bytes, Real, anywhere, at_least, at_most, rounded_up, where

_VOCABULARY_TILE: Final = 128.0
"""Columns that a padded vocabulary is a multiple of, on each tensor-parallel rank."""
_END_STAGES: Final = 2.0
"""Stages that hold an embedding or a head."""
_ALIGNED: Final = 8.0
"""Columns whose multiples let matrix units read whole words."""
_WHOLE: Final = 1e-8
"""Columns beyond a multiple that are rounding."""


@cached(most=512)
def tokens(step: TransformerStep) -> Real:
    """Return the mean number of tokens of a micro-batch on one device, without padding."""
    return step.layout.micro_batch * step.shape.sequence * step.shape.filled / step.layout.context


def keys_and_values(step: TransformerStep) -> Bytes | Real:
    """Return the size of keys and values of a micro-batch's tokens on a device, in a layer [B]."""
    shape = step.shape
    width = shape.kv_heads * (shape.head_width + shape.value_width)
    return tokens(step) * step.work.element * width / step.layout.tensor


def attended(step: TransformerStep) -> Real:
    """Return the sequence length whose square is the mean number of query-key pairs."""
    share: Real = mean_square_length(step.shape.filled) ** 0.5
    return step.shape.sequence * share


@cached(most=512)
def scored_tokens(step: TransformerStep) -> Real:
    """Return the number of tokens with logits: all of a decoder, the masked ones of an encoder."""
    return tokens(step) * step.shape.scored_share


@cached(most=512)
def stage_layers(step: TransformerStep) -> tuple[Real, Real, Real]:
    """Return the number of layers of the first, of a middle and of the last pipeline stage."""
    layers, stages = step.shape.layers, step.layout.pipeline
    ends, between = end_layers(layers, stages), middle_layers(layers, stages)
    if not anywhere(step.layout.by_compute > 0):
        return ends, between, ends
    head, dealt = _head_in_layers(step), step.layout.by_compute > 0
    front, back = front_layers(layers, stages, head), back_layers(layers, stages, head)
    others = at_least(stages - _END_STAGES, 1.0)
    left = where(stages > _END_STAGES, (layers - front - back) / others, between)
    return where(dealt, front, ends), where(dealt, left, between), where(dealt, back, ends)


def _head_in_layers(step: TransformerStep) -> Real:
    """Return the compute of the head relative to that of a layer, routed experts included."""
    held, shared = layer_parameters(step)
    passed = step.shape.top_k * step.layout.expert / at_least(step.shape.experts, 1.0)
    head: Real = table_parameters(step) / at_least(shared + (held - shared) * passed, 1.0)
    return head


@cached(most=512)
def padded_vocabulary(step: TransformerStep) -> Real:
    """Return the number of rows of the embedding table, padding included."""
    group = _VOCABULARY_TILE * step.layout.tensor
    whole = rounded_up(step.shape.vocabulary / group) * group
    return where(step.work.padded_vocabulary > 0, whole, step.shape.vocabulary)


def attention_products(step: TransformerStep) -> list[Product]:
    """Return the matrix products of attention (plain or latent) on a tensor-parallel rank."""
    shape, t, rows = step.shape, step.layout.tensor, tokens(step)
    plain = (shape.heads + 2.0 * shape.kv_heads) * shape.head_width / t
    products = [
        Product(rows, plain, shape.hidden, share=1.0 - shape.latent),
        Product(rows, shape.hidden, shape.heads * shape.value_width / t),
    ]
    if anywhere(shape.latent > 0):
        still = shape.heads * (shape.head_width - shape.rope_width + shape.value_width) / t
        sides = (
            (shape.query_rank, shape.hidden),
            (shape.heads * shape.head_width / t, shape.query_rank),
            (shape.kv_rank + shape.rope_width, shape.hidden),
            (still, shape.kv_rank),
        )
        products += [
            Product(rows, at_least(n, 1.0), at_least(inner, 1.0), share=shape.latent)
            for n, inner in sides
        ]
    return products


def mlp_products(step: TransformerStep) -> list[Product]:
    """Return the matrix products of the dense MLP; their `share` is that of dense layers."""
    shape, t, rows = step.shape, step.layout.tensor, tokens(step)
    share = 1.0 - shape.routed
    return [
        Product(rows, shape.ffn * (1.0 + shape.gated) / t, shape.hidden, share=share),
        Product(rows, shape.hidden, shape.ffn / t, share=share),
    ]


def score_products(step: TransformerStep) -> list[Product]:
    """Return the batched matrix products of unfused attention, in 16 bit."""
    shape, many = step.shape, step.layout.micro_batch * step.shape.heads / step.layout.tensor
    share, length = 1.0 - step.work.fused_attention, attended(step)
    return [
        Product(length, length, shape.head_width, many, share, 0.0),
        Product(length, shape.head_width, length, many, share, 0.0),
    ]


def expert_products(step: TransformerStep, kernels: Kernels) -> list[Product]:
    """Return the matrix products of this device's routed experts, and of shared experts.

    Devices that divide an expert all compute for the tokens of all of them.
    """
    shape, share, divided = step.shape, step.shape.routed, step.layout.expert_tensor
    rows = tokens(step) / step.layout.tensor
    local = at_least(1.0, shape.experts / step.layout.expert)
    padding = where(step.layout.padded_experts > 0, kernels.expert.padding, 1.0)
    chosen = at_least(1.0, divided * rows * shape.top_k / local) * padding * step.layout.imbalance
    inside = at_least(shape.expert_ffn / divided, 1.0)
    shared = at_least(shape.shared_ffn, 1.0)
    both = share * where(shape.shared_ffn > 0, 1.0, 0.0)
    return [
        Product(chosen, inside * (1.0 + shape.gated), shape.hidden, local, share),
        Product(chosen, shape.hidden, inside, local, share),
        Product(rows, shared * (1.0 + shape.gated), shape.hidden, 1.0, both),
        Product(rows, shape.hidden, shared, 1.0, both),
    ]


def head_product(step: TransformerStep, kernels: Kernels) -> Product:
    """Return the matrix product of the head, in 16 bit; slower for unaligned vocabularies."""
    columns = padded_vocabulary(step) / step.layout.tensor
    whole = columns % _ALIGNED < _WHOLE
    aligned = where(whole, 1.0, kernels.product.unaligned)
    return Product(scored_tokens(step), columns, step.shape.hidden, low=0.0, aligned=aligned)


@cached(most=512)
def attention_parameters(step: TransformerStep) -> Real:
    """Return the number of attention weights of a layer on one device."""
    shape = step.shape
    plain = shape.hidden * (shape.heads + 2.0 * shape.kv_heads) * shape.head_width
    still = shape.head_width - shape.rope_width + shape.value_width
    latent = (
        shape.hidden * (shape.query_rank + shape.kv_rank + shape.rope_width)
        + shape.query_rank * shape.heads * shape.head_width
        + shape.kv_rank * shape.heads * still
    )
    weights = (
        where(shape.latent > 0, latent, plain) + shape.heads * shape.value_width * shape.hidden
    )
    return weights / step.layout.tensor


@cached(most=512)
def layer_parameters(step: TransformerStep) -> tuple[Real, Real]:
    """Return the number of weights of a layer on one device: all, and without routed experts."""
    shape = step.shape
    matrices = (2.0 + shape.gated) * shape.hidden
    plain = attention_parameters(step) + matrices * shape.ffn / step.layout.tensor * (
        1.0 - shape.routed
    )
    shared = matrices * shape.shared_ffn * shape.routed
    experts = shape.experts / expert_holders(step) * matrices * shape.expert_ffn * shape.routed
    return plain + shared + experts, plain + shared


@cached(most=512)
def sharers(step: TransformerStep) -> Real:
    """Return the number of ranks over which one copy of sharded state is split.

    Context-parallel ranks are included.
    """
    return at_most(step.layout.replicas, step.layout.shard_group) * step.layout.context


@cached(most=512)
def expert_copies(step: TransformerStep) -> Real:
    """Return the number of ranks with the same experts, among those that share state."""
    return at_least(1.0, sharers(step) * step.layout.tensor / expert_holders(step))


def expert_holders(step: TransformerStep) -> Real:
    """Return the number of neighbouring devices that hold one copy of the experts.

    It is the distance between devices that hold the same ones.
    """
    return at_least(1.0, step.layout.expert) * step.layout.expert_tensor


def shared_part(step: TransformerStep, of_all: Real, of_experts: Real) -> Real:
    """Return the number of parameters whose sharded state is on this rank.

    Parameters
    ----------
    of_all : float or array
        Parameters on this device of which each replica has a copy.
    of_experts : float or array
        Parameters of its experts, which have fewer copies.
    """
    part: Real = of_all / sharers(step) + of_experts / expert_copies(step)
    return part


def updated_parameters(step: TransformerStep, of_all: Real, of_experts: Real) -> Real:
    """Return the number of parameters that this rank updates: its shard if state is sharded.

    Parameters are those of `shared_part`.
    """
    sharded = (step.layout.sharded > 0) | (step.layout.sharded_optimizer > 0)
    return where(sharded, shared_part(step, of_all, of_experts), of_all + of_experts)


@cached(most=512)
def table_parameters(step: TransformerStep) -> Real:
    """Return the number of weights of the embedding table on one device."""
    return padded_vocabulary(step) * step.shape.hidden / step.layout.tensor


ADAPTER_KERNELS: Final = (4.0, 6.0)
"""Kernels of an adapter, forward and backward: two products, the scale and the sum; four products,
the scale and the sum of two gradients of its input."""
_SCALED: Final = 2.0
_SUMMED: Final = 3.0
"""How often a value moves where it is scaled, and where two are added up."""


class Adapter(NamedTuple):
    """A LoRA adapter on one device: `inputs` x rank and rank x `outputs`.

    `share` is the share of layers that have it.
    """

    inputs: Real
    outputs: Real
    share: Real


def layer_adapters(step: TransformerStep) -> tuple[Adapter, ...]:
    """Return the adapters of a layer; empty if all parameters are trained."""
    if not anywhere(step.work.rank > 0):
        return ()
    return tuple(_attention_adapters(step)) + tuple(_mlp_adapters(step))


def _attention_adapters(step: TransformerStep) -> Iterator[Adapter]:
    shape, t, work = step.shape, step.layout.tensor, step.work
    queries, keys = shape.heads * shape.head_width / t, shape.kv_heads * shape.head_width / t
    values = shape.kv_heads * shape.value_width / t
    plain = 1.0 - shape.latent
    if anywhere(work.joined > 0):
        yield Adapter(shape.hidden, queries + keys + values, plain * work.joined)
    apart = plain * (1.0 - work.joined)
    yield Adapter(shape.hidden, queries, apart)
    yield Adapter(shape.hidden, keys, apart * work.adapted_keys)
    yield Adapter(shape.hidden, values, apart)
    if anywhere(shape.latent > 0):
        still = shape.heads * (shape.head_width - shape.rope_width + shape.value_width) / t
        yield Adapter(shape.hidden, shape.query_rank, shape.latent)
        yield Adapter(shape.query_rank, shape.heads * shape.head_width / t, shape.latent)
        yield Adapter(shape.hidden, shape.kv_rank + shape.rope_width, shape.latent)
        yield Adapter(shape.kv_rank, still, shape.latent)
    yield Adapter(shape.heads * shape.value_width / t, shape.hidden, work.adapted_output)


def _mlp_adapters(step: TransformerStep) -> Iterator[Adapter]:
    shape, inside = step.shape, step.shape.ffn / step.layout.tensor
    share, joined = step.work.adapted_mlp * (1.0 - shape.routed), step.work.joined
    if anywhere(joined > 0):
        yield Adapter(shape.hidden, inside * (1.0 + shape.gated), share * joined)
    yield Adapter(shape.hidden, inside, share * (1.0 - joined))
    yield Adapter(shape.hidden, inside, share * shape.gated * (1.0 - joined))
    yield Adapter(inside, shape.hidden, share)


def adapter_products(step: TransformerStep) -> list[Product]:
    """Return the matrix products of a layer's adapters, in 16 bit."""
    rows, rank = tokens(step), step.work.rank
    return [
        product
        for adapter in layer_adapters(step)
        for product in (
            Product(rows, rank, adapter.inputs, share=adapter.share, low=0.0),
            Product(rows, adapter.outputs, rank, share=adapter.share, low=0.0),
        )
    ]


@cached(most=512)
def adapters_per_layer(step: TransformerStep) -> Real:
    """Return the number of adapters of a layer, averaged over layers."""
    return sum((adapter.share for adapter in layer_adapters(step)), 0.0)


def adapter_traffic(step: TransformerStep) -> tuple[Bytes | Real, Bytes | Real]:
    """Return the memory traffic of adapters' scaling and summation, forward and backward [B]."""
    forward: Bytes | Real = 0.0
    backward: Bytes | Real = 0.0
    for adapter in layer_adapters(step):
        size = tokens(step) * step.work.element * adapter.share
        forward = forward + size * (_SCALED + _SUMMED) * adapter.outputs
        backward = backward + size * (_SCALED * adapter.outputs + _SUMMED * adapter.inputs)
    return forward, backward


def adapter_activations(step: TransformerStep) -> Real:
    """Return the number of values per token between both products of a layer's adapters."""
    return step.work.rank * adapters_per_layer(step)


@cached(most=512)
def learned_parameters(step: TransformerStep) -> tuple[Real, Real]:
    """Return the trainable parameters of a layer on one device: all, and without experts."""
    held, shared = layer_parameters(step)
    if not anywhere(step.work.rank > 0):
        return held, shared
    adapters = sum(
        (
            adapter.share * step.work.rank * (adapter.inputs + adapter.outputs)
            for adapter in layer_adapters(step)
        ),
        0.0,
    )
    learned = step.work.learned > 0
    return where(learned, held, adapters), where(learned, shared, adapters)


def learned_table(step: TransformerStep) -> Real:
    """Return the number of trainable parameters of the embedding table on one device."""
    return step.work.learned * table_parameters(step)


def tables_held(step: TransformerStep) -> Real:
    """Return the number of embedding tables of a stage with an end: two if it has both, untied."""
    return where(step.layout.pipeline > 1, 1.0, 2.0 - step.shape.tied)


def learned_in_all(job: Job) -> float:
    """Return the number of trainable parameters of the whole model, its head or its adapters."""
    model = job.model
    if job.train.head_only:
        return learning_head(model)
    if model is None or job.train.adapters is None or not isinstance(model, Transformer):
        return 0.0 if model is None else model.parameters
    single_device = Layout(
        **dict.fromkeys(("devices", "domain", "tensor", "pipeline", "chunks"), 1.0),
        **dict.fromkeys(("context", "expert", "replicas", "micro_batch", "micro_batches"), 1.0),
    )
    alone = TransformerStep(shape=shape_of(model), layout=single_device, work=work_of(job, model))
    held, _ = learned_parameters(alone)
    return float(held * alone.shape.layers)


_MASKS: Final = 2.0
"""Bytes of a token's value for the masks of two dropouts [B]."""
_SCORE_MASK: Final = 1.0
"""Bytes of a score's dropout mask, which is kept with the dropped value and the probability [B]."""
_RESIDUALS: Final = 2.0
"""Values of the model's width that a layer adds to: input of attention, of the MLP."""
_ROUTED: Final = 1.0
"""Copies of a routed token before its expert: permuted."""
_AT_EXPERT: Final = 2.0
"""Copies of a routed token at its expert: the input, and what the expert makes of it."""
_TOKEN_GRADIENTS: Final = 3.0
"""Gradients of the model's width that a layer's backward pass has at a time."""


@cached(most=512)
def sequence_ranks(step: TransformerStep) -> Real:
    """Return the ranks over which sequence parallelism splits norms and residual streams."""
    return where(step.layout.sequence_parallel > 0, step.layout.tensor, 1.0)


@cached(most=512)
def _attention_width(step: TransformerStep) -> Real:
    shape = step.shape
    return (shape.heads + shape.kv_heads) * shape.head_width + shape.kv_heads * shape.value_width


@cached(most=512)
def _attention_kept(step: TransformerStep) -> Bytes | Real:
    return step.work.element * _attention_width(step) + _attention_output(step)


@cached(most=512)
def _attention_output(step: TransformerStep) -> Bytes | Real:
    """Return the size per token of attention's output and fused softmax statistics [B]."""
    shape = step.shape
    sums = where(step.work.fused_attention > 0, FULL_PRECISION * shape.heads, 0.0)
    return step.work.element * shape.heads * shape.value_width + sums


@cached(most=512)
def _mlp_width(step: TransformerStep) -> Real:
    """Return the summed width of the MLPs that a token passes, averaged over layers."""
    shape = step.shape
    routed = shape.top_k * shape.expert_ffn * step.layout.imbalance + shape.shared_ffn
    return shape.ffn * (1.0 - shape.routed) + routed * shape.routed


@cached(most=512)
def _routed_copies(step: TransformerStep) -> Bytes | Real:
    shape = step.shape
    return (
        (_ROUTED + _AT_EXPERT * step.layout.expert_tensor)
        * step.work.element
        * shape.top_k
        * shape.hidden
        * shape.routed
        * step.layout.imbalance
    )


@cached(most=512)
def _unfused_scores(step: TransformerStep) -> Bytes | Real:
    """Return the size per token of the attention scores that unfused attention stores [B]."""
    shape = step.shape
    kept = step.work.element + (step.work.element + _SCORE_MASK) * shape.dropout
    return where(step.work.fused_attention > 0, 0.0, kept * shape.heads * shape.sequence)


def _inputs_kept(step: TransformerStep) -> tuple[Real, Real]:
    """Return 1 if the input of the attention output projection is stored; same for MLP products.

    The input gradient of a frozen product needs its weights only; an adapter reads the input for
    its own gradient. Queries always have an adapter.
    """
    work = step.work
    return at_least(work.learned, work.adapted_output), at_least(work.learned, work.adapted_mlp)


def _kept_in_full(step: TransformerStep, memory_model: MemoryFigures) -> Bytes | Real:
    """Return the activations per token that a layer stores without recomputation [4]_ [B].

    The MLP stores input and output of its activation function, and that function of its gate if a
    separate kernel computes it. Products that store their inputs below 16 bit store a narrow copy
    of attention's output too, which attention needs in 16 bit. Inputs that only the gradient of a
    frozen weight would read are not stored.
    """
    shape, narrow = step.shape, where((step.work.low > 0) & (memory_model.narrow > 0), 1.0, 0.0)
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
    """Return the activations per token that a layer stores if small modules are recomputed [B].

    These modules are norms, activation functions and up-projections.
    """
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
    """Return the activations per token that a layer stores if every second product is recomputed.

    Queries and values are stored, one product into the MLP, and the MLP's output unless the
    framework detects that the backward pass does not read it [B].
    """
    shape = step.shape
    products = (
        shape.heads * shape.head_width + shape.kv_heads * shape.value_width + _mlp_width(step)
    )
    # with biases, one fused product computes queries, keys and values
    products = where(shape.gated > 0, products, _attention_width(step) + _mlp_width(step))
    output = where(shape.gated > 0, memory_model.unread, 0.0)
    split = (_attention_output(step) + step.work.element * products) / step.layout.tensor
    return step.work.element * shape.hidden * (1.0 + output) / sequence_ranks(step) + split


def kept_bytes(step: TransformerStep, memory_model: MemoryFigures) -> Bytes | Real:
    """Return the mean size of the activations that a layer stores for a micro-batch [B]."""
    share, whole = (
        step.work.recomputation.layers,
        _kept_in_full(step, memory_model) + _unfused_scores(step) / step.layout.tensor,
    )
    return share * _kept_where_recomputed(step, memory_model) + (1.0 - share) * tokens(step) * whole


def _kept_where_recomputed(step: TransformerStep, memory_model: MemoryFigures) -> Bytes | Real:
    """Return the activations that a recomputed layer stores for a micro-batch [B]."""
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
    """Return the working memory of one layer's backward pass [B].

    It holds recomputed activations and gradients; with sequence parallelism also gathered inputs
    and their gradients, with context parallelism keys and values in transfer: two chunks of a ring,
    or those of all ranks.
    """
    shape, layout, rows = step.shape, step.layout, tokens(step)
    whole = _kept_in_full(step, memory_model) + _unfused_scores(step) / layout.tensor
    again = recomputed_layer_bytes(rows * whole, _kept_where_recomputed(step, memory_model))
    widest = at_least((2.0 + shape.gated) * _mlp_width(step), 2.0 * _attention_width(step))
    split = step.work.element * widest + where(
        step.work.fused_attention > 0, 0.0, 2.0 * step.work.element * shape.heads * shape.sequence
    )
    gathered = where(layout.sequence_parallel > 0, 2.0 * step.work.element * shape.hidden, 0.0)
    chunks = where(layout.gathered_context > 0, layout.context, 2.0)
    passed = where(layout.context > 1, chunks * keys_and_values(step), 0.0)
    gradients = step.work.element * _TOKEN_GRADIENTS * shape.hidden / sequence_ranks(step)
    return again + rows * (gradients + gathered + split / layout.tensor) + passed


def logits_bytes(step: TransformerStep, memory_model: MemoryFigures) -> Bytes | Real:
    """Return the size of the logits and their copies at the loss [B]."""
    scores = scored_tokens(step) * padded_vocabulary(step) / step.layout.tensor
    return scores * memory_model.scores * step.shape.scored


@dataclass(frozen=True, slots=True, kw_only=True)
class ParameterFootprint:
    """Parameters and activations of a model on one device.

    There are `layers` equal layers of `unit` parameters, of which each replica has `shared` (all
    but experts), and embedding tables of `table` parameters at both ends; one table if `tied`.
    `looked_up` parameters have no dense gradient. A layer stores `kept` for the backward pass of a
    micro-batch, which needs `working` too; a normed embedding stores `ends`, the loss needs
    `logits` [B].

    The trainable parameters are `learned` of a layer, `learned_shared` of its part without experts,
    and `learned_table` of the tables. `largest` is the largest parameter matrix of a layer, 0 if
    unknown.
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

    Parameters of norms, biases and position embeddings are distributed evenly over the layers.
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
    """Return the number of parameters on one device other than products and tables."""
    shape, layout = step.shape, step.layout
    unit, shared = layer_parameters(step)
    of_experts = (unit - shared) * expert_holders(step)
    in_layers = shape.layers * (shared * layout.tensor + of_experts)
    in_tables = shape.vocabulary * shape.hidden * (2.0 - shape.tied)
    return at_least(0.0, model.parameters - in_layers - in_tables)


def _embedding_kept(step: TransformerStep, model: Transformer) -> Bytes | Real:
    """Return the activations that a normed embedding stores for a micro-batch [B].

    They include the dropout mask.
    """
    kept = float(model.embedding.normalized) * (step.work.element + step.shape.dropout)
    return tokens(step) * step.shape.hidden * kept / sequence_ranks(step)


def whole_footprint(model: Model, train: Train) -> ParameterFootprint:
    """Return the footprint of a model that is not split, on every device.

    Raises
    ------
    NotModelled
        If the model does not state its activations with this recomputation.
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
