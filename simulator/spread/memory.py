"""Device memory of one rank of a spread model, on the stage of the pipeline that needs most.

References
----------
.. [1] Korthikanti et al., "Reducing Activation Recomputation in Large Transformer Models",
       sections 4 and 5, https://arxiv.org/abs/2205.05198
.. [2] Rajbhandari et al., "ZeRO: Memory Optimizations Toward Training Trillion Parameter Models",
       https://arxiv.org/abs/1910.02054
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from simulator.equations.pipeline import stage_layers
from simulator.spread.description import Description
from simulator.spread.shapes import layer_parameters, padded_vocabulary, table_parameters, tokens
from simulator.units import Bytes, Real
from simulator.workload.kernels import MemoryFigures

_HALF: Final = 2.0
_FULL: Final = 4.0
"""Bytes of a value in 16 bit, and in fp32 [B]."""
_PROBABILITIES: Final = 5.0
"""Bytes kept of a score: the probability, dropped and not, and the mask [B]."""
_UNITS_GATHERED: Final = 2.0
"""Layers whose sharded parameters are together at a time: the running one and the next."""
_ENDS: Final = 2.0

Items = Mapping[str, Real]


def rank_memory(d: Description, f: MemoryFigures, moments: Bytes | Real) -> Items:
    """Memory of a rank by item, on the stage that needs most [B].

    Parameters
    ----------
    d : Description
        The step; its numbers may be arrays of candidates.
    f : MemoryFigures
        What the allocator and libraries take beside.
    moments : float or array
        Bytes of the optimizer's state of a parameter, without its fp32 copy [B].
    """
    found = _stages(d, f, moments)
    totals = [sum(stage.values(), 0.0) for stage in found]
    most = np.maximum(np.maximum(totals[0], totals[1]), totals[2])
    items: dict[str, Real] = {}
    for name in found[0]:
        first, middle, last = (stage[name] for stage in found)
        later = np.where(totals[1] == most, middle, last)
        items[name] = np.where(totals[0] == most, first, later)
    items["unusable"] = (f.waste - 1.0) * most
    return items | _outside(d, f)


def _stages(d: Description, f: MemoryFigures, moments: Bytes | Real) -> tuple[Items, Items, Items]:
    """Items on the first, a middle and the last stage; none on a stage that is not there."""
    ends, between = stage_layers(d.shape.layers, d.layout.pipeline)
    stages, table = d.layout.pipeline, table_parameters(d)
    several, long = np.where(stages > 1, 1.0, 0.0), np.where(stages > _ENDS, 1.0, 0.0)
    chunks = d.layout.chunks
    ahead = np.where(chunks > 1, 1.0 + (stages - 1.0) / (stages * chunks), 1.0)
    batches = d.layout.micro_batches
    most = np.where(d.layout.forward_first > 0, batches, np.minimum(batches, stages))
    held = np.where(stages > 1, most, 1.0) * ahead
    looked_up = held * _HALF * tokens(d) * d.shape.hidden / _along(d)
    tables = table * np.where(stages > 1, 1.0, 2.0 - d.shape.tied)
    work, scores = _working(d), _scores(d, f)
    first = _stage(d, f, moments, layers=ends, tables=tables, held=held)
    first |= {"working": work + (1.0 - several) * scores}
    first["activations"] = first["activations"] + looked_up
    behind = np.minimum(most, np.maximum(stages - 1.0, 1.0))
    behind = np.where(d.layout.forward_first > 0, batches, behind)
    middle = _stage(d, f, moments, layers=between, tables=0.0, held=behind)
    middle |= {"working": work}
    behind = np.where(d.layout.forward_first > 0, batches, 1.0)
    last = _stage(d, f, moments, layers=ends, tables=tables, held=behind)
    last |= {"working": np.maximum(work, scores)}
    return first, _only(middle, long), _only(last, several)


def _only(items: Items, there: Real) -> Items:
    return {name: size * there for name, size in items.items()}


def _stage(  # noqa: PLR0913 - what a stage holds
    d: Description,
    f: MemoryFigures,
    moments: Bytes | Real,
    *,
    layers: Real,
    tables: Real,
    held: Real,
) -> dict[str, Real]:
    """States, gathered parameters and kept activations of `held` micro-batches."""
    whole, shared = layer_parameters(d)
    states = _states(d, moments, layers * shared + tables, layers * (whole - shared))
    gathered = _gathered(d, whole, layers)
    return states | {"gathered_parameters": gathered, "activations": held * layers * _kept(d, f)}


def _states(d: Description, moments: Bytes | Real, shared: Real, experts: Real) -> dict[str, Real]:
    """Weights, gradients, fp32 weights and moments; experts have fewer copies to be shared by."""
    layout, total = d.layout, shared + experts
    copies = layout.replicas * layout.context
    of_expert = np.maximum(1.0, copies * layout.tensor / np.maximum(1.0, layout.expert))
    split, zero = layout.sharded > 0, layout.sharded_optimizer > 0
    part = shared / copies + experts / of_expert
    own = np.where(split | zero, part, total)
    # one buffer in 16 bit; fp32 sums lie beside it, fp32 copies for the exchange half beside it
    wide = np.where(zero, _FULL * d.work.wide_gradients, 0.0)
    copied = np.where(~zero & (d.work.gradient_bytes == _FULL), _HALF, 0.0)
    return {
        "parameters": np.where(split, _FULL * part, _HALF * total),
        "gradients": np.where(split, _FULL * part, (_HALF + wide + copied) * total),
        "optimizer": np.where(split, moments, _FULL + moments) * own,
    }


def _gathered(d: Description, of_layer: Real, layers: Real) -> Bytes | Real:
    """Sharded parameters that are together: two layers and tables, or all of them if kept [B]."""
    some = of_layer * (_UNITS_GATHERED * _HALF + _FULL)
    some = some + _UNITS_GATHERED * _HALF * table_parameters(d)
    kept = np.where(d.layout.again > 0, 0.0, of_layer * layers * (_HALF + _FULL))
    spread = (d.layout.sharded > 0) & (d.layout.replicas * d.layout.context > 1)
    return np.where(spread, some + kept, 0.0)


def _along(d: Description) -> Real:
    """Ranks that share what tensor parallelism leaves whole."""
    return np.where(d.layout.sequence_parallel > 0, d.layout.tensor, 1.0)


def _sides(d: Description) -> Real:
    """Queries, keys and values of a token."""
    return (d.shape.heads + 2.0 * d.shape.kv_heads) * d.shape.head_width


def _inside(d: Description) -> Real:
    """Width of the MLPs that a token passes, on average over the layers."""
    s = d.shape
    return s.ffn * (1.0 - s.routed) + (s.top_k * s.expert_ffn + s.shared_ffn) * s.routed


def _kept(d: Description, f: MemoryFigures) -> Bytes | Real:
    """What one layer keeps of a micro-batch for its backward pass [1]_ [B]."""
    s, t, work = d.shape, d.layout.tensor, d.work
    rows, along = tokens(d), _along(d)
    attention = _HALF * (_sides(d) + s.heads * s.value_width) + _FULL * s.heads
    inside = _inside(d)
    sent = 3.0 * _HALF * s.top_k * s.hidden * s.routed
    every = rows * (4.0 * _HALF * s.hidden / along)
    every = every + rows * (attention + inside * (2.0 + 2.0 * s.gated) + sent) / t
    scores = _PROBABILITIES * s.heads * s.sequence * rows / t
    apart = (work.fused_attention < 1) & (work.redo_attention == 0)
    whole = every + np.where(apart, scores, 0.0)
    half = rows * (2.0 * _HALF * s.hidden / along + (attention + _HALF * f.kept * inside) / t)
    some = np.where(work.redo_products > 0, half, whole)
    return np.where(work.redo_products >= 1, _HALF * rows * s.hidden / along, some)


def _working(d: Description) -> Bytes | Real:
    """What one layer's backward pass needs at its peak [B]."""
    s, t, rows = d.shape, d.layout.tensor, tokens(d)
    scores = np.where(d.work.fused_attention > 0, 0.0, _FULL * s.heads * s.sequence)
    inner = _FULL * _sides(d) + _inside(d) * (4.0 + 4.0 * s.gated) + scores
    return rows * (10.0 * s.hidden / _along(d) + inner / t)


def _scores(d: Description, f: MemoryFigures) -> Bytes | Real:
    """Scores and their copies at the loss [B]."""
    return tokens(d) * padded_vocabulary(d) / d.layout.tensor * f.scores


def _outside(d: Description, f: MemoryFigures) -> dict[str, Real]:
    """What lies outside the allocator: context, buffers of each group of ranks, of ZeRO-1."""
    layout = d.layout
    groups = sum(
        (np.where(n > 1, 1.0, 0.0) for n in (layout.tensor, layout.replicas, layout.pipeline)), 0.0
    )
    return {
        "context_and_libraries": f.context + 0.0 * layout.micro_batch,
        "group_buffers": groups * f.group,
        "optimizer_buffers": np.where(layout.sharded_optimizer > 0, f.buckets, 0.0),
    }
