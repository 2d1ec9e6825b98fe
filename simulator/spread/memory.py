"""Device memory of one rank of a spread model, on the first, a middle and the last stage.

States, parameters gathered, activations kept, and the larger of what the loss and the backward
pass of one layer need meanwhile. What the allocator wastes and libraries outside it come on top.

Not counted: 8-bit copies of weights; models whose layers are dealt to stages otherwise than
`stage_layers` does.

References
----------
.. [1] Korthikanti et al., "Reducing Activation Recomputation in Large Transformer Models",
       sections 4 and 5, https://arxiv.org/abs/2205.05198
.. [2] Rajbhandari et al., "ZeRO: Memory Optimizations Toward Training Trillion Parameter Models",
       https://arxiv.org/abs/1910.02054
.. [3] NVIDIA/Megatron-LM docs/user-guide/features/dist_optimizer.md @d98e8a6, 2026-08
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Final

import numpy as np

from simulator.equations.memory import FULL_PRECISION, fragmentation_bytes
from simulator.equations.spread_memory import (
    HALF_PRECISION,
    micro_batches_held,
    never_together,
)
from simulator.spread.activations import kept_bytes, logits_bytes, working_bytes
from simulator.spread.description import Description
from simulator.spread.shapes import (
    layer_parameters,
    shared_part,
    sharers,
    stage_layers,
    table_parameters,
    updated_parameters,
)
from simulator.units import Bytes, Real
from simulator.workload.kernels import MemoryFigures

_ENDS: Final = 2.0
"""Stages that hold an embedding or a head."""
_UNITS: Final = 2.0
"""Layers whose sharded parameters are together at a time: the running one and the next."""

Items = Mapping[str, Real]


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """Bytes of a parameter beside its 16-bit weight and gradient.

    `master` is its fp32 copy (0: there is none), `moments` what the optimizer keeps.
    """

    master: Bytes | Real
    moments: Bytes | Real


@dataclass(frozen=True, slots=True, kw_only=True)
class RankMemory:
    """Items on the stage that needs most [B], and what each stage needs in all [B].

    Stages that the job has not are left out, all where there is but one.
    """

    items: Items
    stages: Items


def rank_memory(d: Description, f: MemoryFigures, state: State) -> RankMemory:
    """Memory of a rank by item.

    Parameters
    ----------
    d : Description
        The step; its numbers may be arrays of candidates.
    f : MemoryFigures
        What the allocator and libraries take beside.
    state : State
        What is kept of a parameter.

    Returns
    -------
    RankMemory
        Floats, or arrays of one entry a candidate.
    """
    found = {name: items for name, items in _stages(d, f, state).items() if np.any(items["there"])}
    full = {name: _in_all(items, d, f) for name, items in found.items()}
    totals = {name: sum(items.values(), 0.0) for name, items in full.items()}
    most = reduce(np.maximum, totals.values())
    items: dict[str, Real] = {}
    for name, stage in full.items():
        fullest = totals[name] == most
        items = {key: np.where(fullest, size, items.get(key, 0.0)) for key, size in stage.items()}
    return RankMemory(items=items, stages=totals if len(totals) > 1 else {})


def _stages(d: Description, f: MemoryFigures, state: State) -> dict[str, dict[str, Real]]:
    """Items of each stage, and where there is one, for candidates of several numbers of stages."""
    stages = np.asarray(d.layout.pipeline)
    return {
        "first": {**_first(d, f, state), "there": np.ones_like(stages)},
        "middle": {**_middle(d, f, state), "there": np.where(stages > _ENDS, 1.0, 0.0)},
        "last": {**_last(d, f, state), "there": np.where(stages > 1, 1.0, 0.0)},
    }


def _in_all(items: Mapping[str, Real], d: Description, f: MemoryFigures) -> Items:
    """What a stage holds, what the allocator wastes, what lies outside it; 0 where none is."""
    held = {name: size for name, size in items.items() if name != "there"}
    waste = fragmentation_bytes(sum(held.values(), 0.0), f.waste - 1.0)
    every = {**held, "fragmentation": waste, **_outside(d, f)}
    return {name: size * items["there"] for name, size in every.items()}


def _first(d: Description, f: MemoryFigures, state: State) -> Items:
    """The stage with the embedding; with the head as well where there is no other."""
    ends, _ = stage_layers(d.shape.layers, d.layout.pipeline)
    alone = np.where(d.layout.pipeline > 1, 0.0, 1.0)
    tables = 1.0 + alone * (1.0 - d.shape.tied)
    return _stage(d, f, state, place=0.0, layers=ends, tables=tables, head=alone)


def _middle(d: Description, f: MemoryFigures, state: State) -> Items:
    """The second of three stages or more."""
    _, between = stage_layers(d.shape.layers, d.layout.pipeline)
    return _stage(d, f, state, place=1.0, layers=between, tables=0.0, head=0.0)


def _last(d: Description, f: MemoryFigures, state: State) -> Items:
    """The stage with the head."""
    ends, _ = stage_layers(d.shape.layers, d.layout.pipeline)
    place = d.layout.pipeline - 1.0
    return _stage(d, f, state, place=place, layers=ends, tables=1.0, head=1.0)


def _stage(  # noqa: PLR0913 - what a stage holds
    d: Description,
    f: MemoryFigures,
    state: State,
    *,
    place: Real,
    layers: Real,
    tables: Real,
    head: Real,
) -> Items:
    layout = d.layout
    held = micro_batches_held(
        layout.micro_batches, place, layout.pipeline, layout.chunks, layout.all_forward
    )
    own = _Own.of(d, layers, tables * table_parameters(d))
    activations = held * layers * kept_bytes(d, f)
    working, logits = working_bytes(d, f), head * logits_bytes(d, f)
    waiting = _waiting_gradients(d, own)
    one_round = (layout.chunks > 1) & (layout.micro_batches <= layout.pipeline)
    apart = np.where(one_round, never_together(waiting, activations, layout.chunks), 0.0)
    return {
        **_states(d, f, state, own),
        "gathered_parameters": _gathered(d, own) + waiting,
        "activations": activations - apart,
        "working_set": np.maximum(working - logits, 0.0),
        "logits": logits,
        "update": np.maximum(
            _update(d, state, own) - activations - np.maximum(working, logits), 0.0
        ),
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class _Own:
    """Parameters of a stage on one device.

    `shared` are those of all replicas, `experts` those of its experts, `unit` those of one layer,
    `table` those of the tables of tokens.
    """

    shared: Real
    experts: Real
    unit: Real
    table: Real

    @property
    def total(self) -> Real:
        return self.shared + self.experts

    @classmethod
    def of(cls, d: Description, layers: Real, table: Real) -> _Own:
        whole, shared = layer_parameters(d)
        return cls(
            shared=layers * shared + table,
            experts=layers * (whole - shared),
            unit=whole,
            table=table,
        )


def _states(d: Description, f: MemoryFigures, state: State, own: _Own) -> dict[str, Real]:
    """Weights, gradients, fp32 weights and moments; experts have fewer copies to be shared by."""
    layout = d.layout
    part, split = shared_part(d, own.shared, own.experts), layout.sharded > 0
    of_state = updated_parameters(d, own.shared, own.experts)
    here, wide = 1.0 - layout.offloaded, d.work.wide_gradients > 0
    summed = np.where(wide, FULL_PRECISION + HALF_PRECISION * f.copies, HALF_PRECISION)
    stored = np.where(state.master > 0.0, state.master * here, HALF_PRECISION)
    copied = np.where(state.master > 0.0, HALF_PRECISION * f.copies, 0.0)
    moments = here * state.moments * of_state
    return {
        "parameters": np.where(split, (stored + copied) * part, HALF_PRECISION * own.total),
        "gradients": np.where(split, stored * here * part, summed * own.total),
        "optimizer": np.where(split, moments, moments + here * state.master * of_state),
    }


def _update(d: Description, state: State, own: _Own) -> Bytes | Real:
    """Gradients summed in 16 bit are made into fp32 for the update, after all passes [3]_ [B]."""
    there = (d.work.wide_gradients > 0) | (d.layout.sharded > 0) | (d.layout.offloaded > 0)
    width = np.where(there | (np.asarray(state.master) == 0.0), 0.0, FULL_PRECISION)
    return width * updated_parameters(d, own.shared, own.experts)


def _spread(d: Description) -> Real:
    """1 where parameters are sharded over several ranks."""
    return np.where((d.layout.sharded > 0) & (sharers(d) > 1), 1.0, 0.0)


def _gathered(d: Description, own: _Own) -> Bytes | Real:
    """Sharded parameters that are together, and the gradients of one unit on their way [B].

    Two layers at a time, or all where they are not dropped after the forward pass; tables twice.
    """
    width, exchanged = d.work.gather_bytes, HALF_PRECISION + d.work.gradient_bytes
    matrices = own.total - own.table
    together = np.where(d.layout.again > 0, _UNITS * own.unit, matrices) * width
    tables = _UNITS * HALF_PRECISION * own.table
    return _spread(d) * (together + tables + exchanged * own.unit)


def _waiting_gradients(d: Description, own: _Own) -> Bytes | Real:
    """Whole gradients that are added up over the micro-batches of a pipeline first [B]."""
    several = (d.layout.pipeline > 1) & (d.layout.micro_batches > 1)
    return _spread(d) * np.where(several, d.work.gradient_bytes * own.total, 0.0)


def _outside(d: Description, f: MemoryFigures) -> dict[str, Real]:
    """What lies outside the allocator: context, buffers of each group of ranks, buckets."""
    layout = d.layout
    copies = layout.replicas * layout.context
    degrees = (layout.tensor, copies, layout.pipeline, layout.context, layout.expert)
    groups = sum((np.where(n > 1, 1.0, 0.0) for n in degrees), 0.0)
    reduced = ((layout.sharded_optimizer > 0) | (layout.sharded > 0)) & (sharers(d) > 1)
    return {
        "gradient_buckets": np.where(reduced, f.buckets, 0.0),
        "collective_buffers": groups * f.group,
        "context": f.context + 0.0 * layout.micro_batch,
    }
