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

from simulator.compute.activations import kept_bytes, logits_bytes, working_bytes
from simulator.compute.description import Description
from simulator.compute.shapes import (
    layer_parameters,
    shared_part,
    sharers,
    stage_layers,
    table_parameters,
    updated_parameters,
)
from simulator.equations.memory import FULL_PRECISION, fragmentation_bytes
from simulator.equations.spread_memory import (
    HALF_PRECISION,
    micro_batches_held,
    never_together,
)
from simulator.units import Bytes, Real, anywhere, at_least, where
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
    common = _Common(
        d=d,
        f=f,
        state=state,
        kept=kept_bytes(d, f),
        working=working_bytes(d, f),
        logits=logits_bytes(d, f),
        outside=_outside(d, f),
    )
    stages = {name: stage for name, stage in _stages(d).items() if anywhere(stage.there)}
    full = {name: _in_all(common, stage) for name, stage in stages.items()}
    totals = {name: sum(items.values(), 0.0) for name, items in full.items()}
    most = reduce(at_least, totals.values())
    items: dict[str, Real] = {}
    for name, needed in full.items():
        fullest = totals[name] == most
        items = {key: where(fullest, size, items.get(key, 0.0)) for key, size in needed.items()}
    return RankMemory(items=items, stages=totals if len(totals) > 1 else {})


@dataclass(frozen=True, slots=True, kw_only=True)
class _Common:
    """What all stages have in common: what a layer keeps and works with, the loss, the outside."""

    d: Description
    f: MemoryFigures
    state: State
    kept: Bytes | Real
    working: Bytes | Real
    logits: Bytes | Real
    outside: Items


@dataclass(frozen=True, slots=True, kw_only=True)
class _Stage:
    """A stage: its `place`, the `tables` of tokens and heads it holds, and where there is one."""

    place: Real
    layers: Real
    tables: Real
    head: Real
    there: Real


def _stages(d: Description) -> dict[str, _Stage]:
    """The first stage, with the head too where it is the only one; the second of three; the last.

    Candidates may have different numbers of stages.
    """
    stages = d.layout.pipeline
    ends, between = stage_layers(d.shape.layers, stages)
    alone, several = where(stages > 1, 0.0, 1.0), where(stages > 1, 1.0, 0.0)
    tables = 1.0 + alone * (1.0 - d.shape.tied)
    middle = where(stages > _ENDS, 1.0, 0.0)
    return {
        "first": _Stage(place=0.0, layers=ends, tables=tables, head=alone, there=1.0),
        "middle": _Stage(place=1.0, layers=between, tables=0.0, head=0.0, there=middle),
        "last": _Stage(place=stages - 1.0, layers=ends, tables=1.0, head=1.0, there=several),
    }


def _in_all(common: _Common, stage: _Stage) -> Items:
    """What a stage holds, what the allocator wastes, what lies outside it; 0 where none is."""
    held = _held(common, stage)
    waste = fragmentation_bytes(sum(held.values(), 0.0), common.f.waste - 1.0)
    every = {**held, "fragmentation": waste, **common.outside}
    return {name: size * stage.there for name, size in every.items()}


def _held(common: _Common, stage: _Stage) -> dict[str, Real]:
    """What a stage holds at its fullest."""
    d, f, state = common.d, common.f, common.state
    layout = d.layout
    batches = micro_batches_held(
        layout.micro_batches, stage.place, layout.pipeline, layout.chunks, layout.all_forward
    )
    own = _Own.of(d, stage.layers, stage.tables * table_parameters(d))
    activations = batches * stage.layers * common.kept
    working, logits = common.working, stage.head * common.logits
    waiting = _waiting_gradients(d, own)
    one_round = (layout.chunks > 1) & (layout.micro_batches <= layout.pipeline)
    apart = where(one_round, never_together(waiting, activations, layout.chunks), 0.0)
    return {
        **_states(d, f, state, own),
        "gathered_parameters": _gathered(d, own) + waiting,
        "activations": activations - apart,
        "working_set": at_least(working - logits, 0.0),
        "logits": logits,
        "update": at_least(_update(d, state, own) - activations - at_least(working, logits), 0.0),
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
    summed = where(wide, FULL_PRECISION + HALF_PRECISION * f.copies, HALF_PRECISION)
    stored = where(state.master > 0.0, state.master * here, d.work.element)
    copied = where(state.master > 0.0, HALF_PRECISION * f.copies, 0.0)
    moments = here * state.moments * of_state
    return {
        "parameters": where(split, (stored + copied) * part, d.work.element * own.total),
        "gradients": where(split, stored * here * part, summed * own.total),
        "optimizer": where(split, moments, moments + here * state.master * of_state),
    }


def _update(d: Description, state: State, own: _Own) -> Bytes | Real:
    """Gradients summed in 16 bit are made into fp32 for the update, after all passes [3]_ [B]."""
    there = (d.work.wide_gradients > 0) | (d.layout.sharded > 0) | (d.layout.offloaded > 0)
    width = where(there | (state.master == 0.0), 0.0, FULL_PRECISION)
    return width * updated_parameters(d, own.shared, own.experts)


def _spread(d: Description) -> Real:
    """1 where parameters are sharded over several ranks."""
    return where((d.layout.sharded > 0) & (sharers(d) > 1), 1.0, 0.0)


def _gathered(d: Description, own: _Own) -> Bytes | Real:
    """Sharded parameters that are together, and the gradients of one unit on their way [B].

    Two layers at a time, or all where they are not dropped after the forward pass; tables twice.
    """
    width, exchanged = d.work.gather_bytes, d.work.element + d.work.gradient_bytes
    matrices = own.total - own.table
    together = where(d.layout.again > 0, _UNITS * own.unit, matrices) * width
    tables = _UNITS * d.work.element * own.table
    return _spread(d) * (together + tables + exchanged * own.unit)


def _waiting_gradients(d: Description, own: _Own) -> Bytes | Real:
    """Whole gradients that are added up over the micro-batches of a pipeline first [B]."""
    several = (d.layout.pipeline > 1) & (d.layout.micro_batches > 1)
    return _spread(d) * where(several, d.work.gradient_bytes * own.total, 0.0)


def _outside(d: Description, f: MemoryFigures) -> dict[str, Real]:
    """What lies outside the allocator: context, buffers of each group of ranks, buckets."""
    layout = d.layout
    copies = layout.replicas * layout.context
    degrees = (layout.tensor, copies, layout.pipeline, layout.context, layout.expert)
    groups = sum((where(n > 1, 1.0, 0.0) for n in degrees), 0.0)
    reduced = ((layout.sharded_optimizer > 0) | (layout.sharded > 0)) & (sharers(d) > 1)
    return {
        "gradient_buckets": where(reduced, f.buckets, 0.0),
        "collective_buffers": groups * f.group,
        "context": f.context + 0.0 * layout.micro_batch,
    }
