"""Device memory of one rank in training, on the first, a middle and the last stage.

States, parameters gathered, activations kept, and the larger of what the loss and the backward
pass of one layer need meanwhile. What the allocator wastes and libraries outside it come on top.
Plain data parallelism is the case in which nothing is sharded, and one device that of one rank.

Not counted: 8-bit copies of weights; models whose layers are dealt to stages otherwise than
`parallelism.partition` says.

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
from dataclasses import dataclass, field
from functools import reduce
from typing import Final

import numpy as np

from simulator.equations.memory import (
    FULL_PRECISION,
    HALF_PRECISION,
    fragmentation_bytes,
    kept_activations,
    micro_batches_held,
    never_together,
    tensor_bytes,
)
from simulator.physics.description import Description
from simulator.physics.holding import Holding
from simulator.physics.shapes import shared_part, sharers, stage_layers, updated_parameters
from simulator.schema.workload.kernels import MemoryFigures
from simulator.terms import Term, excess_of, product_of, stated, sum_of, term
from simulator.units import Bytes, Real, anywhere, at_least, at_most, where

_ENDS: Final = 2.0
"""Stages that hold an embedding or a head."""
_UNITS: Final = 2.0
"""Layers whose sharded parameters are together at a time: the running one and the next."""

Items = Mapping[str, Real]
Terms = Mapping[str, Term]


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """Bytes of a parameter beside its weight and gradient.

    `master` is its fp32 copy where it computes in 16 bit (0: there is none), `moments` what the
    optimizer keeps.
    """

    master: Bytes | Real
    moments: Bytes | Real


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceMemory:
    """Items on the stage that needs most [B], and what each stage needs in all [B].

    `terms` are the equations of the items; none for arrays of candidates, whose fullest stages may
    differ.

    Stages that the job has not are left out, all where there is but one.
    """

    items: Items
    stages: Items = field(default_factory=dict)
    terms: Terms = field(default_factory=dict)


def training_memory(d: Description, f: MemoryFigures, state: State, model: Holding) -> DeviceMemory:
    """Memory of a rank by item.

    Parameters
    ----------
    d : Description
        The step; its numbers may be arrays of candidates.
    f : MemoryFigures
        What the allocator and libraries take beside.
    state : State
        What is kept of a parameter.
    model : Holding
        What of the model lies on the device.

    Returns
    -------
    DeviceMemory
        Floats, or arrays of one entry a candidate.
    """
    common = _Common(d=d, f=f, state=state, model=model)
    stages = {name: stage for name, stage in _stages(common).items() if anywhere(stage.there)}
    full = {name: _in_all(common, stage) for name, stage in stages.items()}
    totals = {name: _sum(terms) for name, terms in full.items()}
    most = reduce(at_least, totals.values())
    items: dict[str, Real] = {}
    terms: Terms = {}
    for name, needed in full.items():
        fullest = totals[name] == most
        items = {key: where(fullest, one.value, items.get(key, 0.0)) for key, one in needed.items()}
        terms = needed if np.ndim(fullest) == 0 and fullest else terms
    alike = all(np.ndim(size) == 0 for size in items.values())
    return DeviceMemory(
        items=items, stages=totals if len(totals) > 1 else {}, terms=terms if alike else {}
    )


def _sum(terms: Terms) -> Real:
    return sum((one.value for one in terms.values()), 0.0)


def with_waste(held: Terms, outside: Terms, f: MemoryFigures) -> dict[str, Term]:
    """What is asked of the allocator, what it wastes beside, and what lies outside of it [B].

    Jobs that train and those that pass forward alone share this rule.
    """
    waste = term(fragmentation_bytes, activations=_sum(held), share=f.waste - 1.0)
    return {**held, "fragmentation": waste, **outside}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Common:
    """What all stages have in common."""

    d: Description
    f: MemoryFigures
    state: State
    model: Holding


@dataclass(frozen=True, slots=True, kw_only=True)
class _Stage:
    """A stage: its `place`, the `tables` of tokens and heads it holds, and where there is one."""

    place: Real
    layers: Real
    tables: Real
    head: Real
    there: Real


def _stages(common: _Common) -> dict[str, _Stage]:
    """The first stage, with the head too where it is the only one; the second of three; the last.

    Candidates may have different numbers of stages.
    """
    stages, model = common.d.layout.pipeline, common.model
    dealt = stage_layers(common.d)
    alone, several = where(stages > 1, 0.0, 1.0), where(stages > 1, 1.0, 0.0)
    tables = 1.0 + alone * (1.0 - model.tied)
    middle = where(stages > _ENDS, 1.0, 0.0)
    return {
        "first": _Stage(place=0.0, layers=dealt.first, tables=tables, head=alone, there=1.0),
        "middle": _Stage(place=1.0, layers=dealt.middle, tables=0.0, head=0.0, there=middle),
        "last": _Stage(place=stages - 1.0, layers=dealt.last, tables=1.0, head=1.0, there=several),
    }


def _in_all(common: _Common, stage: _Stage) -> Terms:
    """What a stage holds, what the allocator wastes, what lies outside it; 0 where none is."""
    every = with_waste(_held(common, stage), _outside(common, stage), common.f)
    if np.ndim(stage.there) == 0 and stage.there == 1.0:
        return every
    return {name: product_of(stage=one, exists=stage.there) for name, one in every.items()}


def _held(common: _Common, stage: _Stage) -> dict[str, Term]:
    """What a stage holds at its fullest."""
    d, model = common.d, common.model
    layout, own = d.layout, _Own.of(model, stage)
    learned = _Own.learning(model, stage)
    batches = micro_batches_held(
        layout.micro_batches, stage.place, layout.pipeline, layout.chunks, layout.all_forward
    )
    ends = where(stage.place == 0.0, model.ends, 0.0)
    activations = batches * (stage.layers * model.kept + ends)
    working, logits = model.working, stage.head * model.logits
    waiting = _waiting_gradients(d, learned)
    one_round = (layout.chunks > 1) & (layout.micro_batches <= layout.pipeline)
    apart = where(one_round, never_together(waiting, activations, layout.chunks), 0.0)
    scores = logits * _kept_scores(common.f)
    meanwhile = activations + at_least(working, logits)
    kept = term(
        kept_activations,
        batches=batches,
        layers=stage.layers,
        per_layer=model.kept,
        ends=ends,
        never_together=apart,
        of_loss=scores,
    )
    return {
        **_frozen(d, own),
        **_states(common, learned),
        "gathered_parameters": sum_of(
            gathered=_gathered(common, own, learned), waiting_gradients=waiting
        ),
        "activations": kept,
        "working_set": excess_of(working=working, logits=logits),
        "logits": excess_of(logits=logits, kept_scores=scores),
        "update": excess_of(update=_update(common, learned), freed_before=meanwhile),
    }


def _kept_scores(f: MemoryFigures) -> float:
    """Share of the scores and their copies at the loss that it keeps for its backward pass.

    One in fp32 counts as an activation like others; the rest are copies that come and go.
    """
    return min(1.0, FULL_PRECISION / f.scores) if f.scores else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Own:
    """Parameters of a stage on one device.

    `shared` are those of all replicas, `experts` those of its experts, `unit` those of one layer,
    `table` those of the tables of tokens, `looked_up` those without a dense gradient.
    """

    shared: Real
    experts: Real
    unit: Real
    table: Real
    looked_up: Real

    @property
    def total(self) -> Real:
        """All of them."""
        return self.shared + self.experts

    @property
    def dense(self) -> Real:
        """Those that have a gradient in every step."""
        return self.total - self.looked_up

    @classmethod
    def of(cls, model: Holding, stage: _Stage) -> _Own:
        """Those of a stage."""
        return cls._on(model, stage, (model.unit, model.shared, model.table))

    @classmethod
    def learning(cls, model: Holding, stage: _Stage) -> _Own:
        """What of them learns; adapters come beside what is frozen."""
        return cls._on(model, stage, (model.learned, model.learned_shared, model.learned_table))

    @classmethod
    def _on(cls, model: Holding, stage: _Stage, parts: tuple[Real, Real, Real]) -> _Own:
        """Those of a stage with so many in a layer, in what of it ranks share, and in a table."""
        unit, shared, own = parts
        table = stage.tables * own
        return cls(
            shared=stage.layers * shared + table,
            experts=stage.layers * (unit - shared),
            unit=unit,
            table=table,
            looked_up=stage.layers * model.looked_up,
        )


def _frozen(d: Description, own: _Own) -> dict[str, Term]:
    """Weights that don't learn: those of layers as they are stored, tables in 16 bit."""
    if not anywhere(d.work.learned < 1.0):
        return {}
    there = 1.0 - d.work.learned
    split = d.layout.sharded > 0
    layers = where(
        split, shared_part(d, own.shared - own.table, own.experts), own.total - own.table
    )
    tables = where(split, shared_part(d, own.table, 0.0), own.table)
    return {
        "frozen_parameters": sum_of(
            layers=term(tensor_bytes, elements=there * layers, element_bytes=d.work.frozen_bytes),
            tables=term(tensor_bytes, elements=there * tables, element_bytes=d.work.element),
        )
    }


def _states(common: _Common, own: _Own) -> dict[str, Term]:
    """Of what learns: weights, gradients, fp32 weights and moments.

    Experts have fewer copies to be shared by.

    Where parameters are sharded their fp32 parts are the weights. Rows that are looked up have no
    16-bit copy.
    """
    d, state = common.d, common.state
    layout, here = d.layout, 1.0 - d.layout.offloaded
    part, split = shared_part(d, own.shared, own.experts), layout.sharded > 0
    of_state = updated_parameters(d, own.shared, own.experts)
    mixed = state.master > 0.0
    stored = where(mixed, state.master * here, d.work.element)
    copied = where(mixed, HALF_PRECISION * common.f.copies, 0.0)
    narrow = own.dense + where(mixed, 0.0, own.looked_up)
    narrowed, whole = here * at_most(stored, _summed(common)), _summed(common) + _unsummed(common)
    return {
        "parameters": term(
            tensor_bytes,
            elements=where(split, part, narrow),
            element_bytes=where(split, stored + copied, d.work.element),
        ),
        "master_weights": term(
            tensor_bytes, elements=of_state, element_bytes=where(split, 0.0, here * state.master)
        ),
        "gradients": term(
            tensor_bytes,
            elements=where(split, part, own.dense),
            element_bytes=where(split, narrowed, whole),
        ),
        "optimizer": term(tensor_bytes, elements=of_state, element_bytes=here * state.moments),
    }


def _summed(common: _Common) -> Bytes | Real:
    """Width of a gradient as it is added up [B]."""
    d, mixed = common.d, common.state.master > 0.0
    wide = (d.work.wide_gradients > 0) | (mixed & (common.f.autocast > 0))
    return where(wide, FULL_PRECISION, HALF_PRECISION)


def _unsummed(common: _Common) -> Bytes | Real:
    """Width of a 16-bit gradient that stays beside its fp32 sum [B]."""
    wide = (common.d.work.wide_gradients > 0) & (common.state.master > 0.0)
    return where(wide, HALF_PRECISION * common.f.copies, 0.0)


def _update(common: _Common, own: _Own) -> Bytes | Real:
    """Gradients summed in 16 bit are made into fp32 for the update, after all passes [3]_ [B]."""
    d = common.d
    wide = _summed(common) > HALF_PRECISION
    there = wide | (d.layout.sharded > 0) | (d.layout.offloaded > 0)
    width = where(there | (common.state.master == 0.0), 0.0, FULL_PRECISION)
    return width * updated_parameters(d, own.shared, own.experts)


def _spread(d: Description) -> Real:
    """1 where parameters are sharded over several ranks."""
    return where((d.layout.sharded > 0) & (sharers(d) > 1), 1.0, 0.0)


def _gathered(common: _Common, own: _Own, learned: _Own) -> Bytes | Real:
    """Sharded parameters that are together, and the gradients of one unit on their way [B].

    Two layers at a time, less where a library gathers a product after the other and has a limit, or
    all where they are not dropped after the forward pass; tables twice.
    """
    d, live = common.d, at_least(common.f.live, _UNITS * common.model.largest)
    width, exchanged = d.work.gather_bytes, d.work.element + d.work.gradient_bytes
    matrices = own.total - own.table
    two = at_most(at_most(_UNITS * own.unit, live), matrices)
    together = where(d.layout.again > 0, two, matrices) * width
    tables = _UNITS * d.work.element * own.table
    return _spread(d) * (together + tables + exchanged * at_most(learned.unit, live))


def _waiting_gradients(d: Description, own: _Own) -> Bytes | Real:
    """Whole gradients that are added up over the micro-batches of a pipeline first [B]."""
    several = (d.layout.pipeline > 1) & (d.layout.micro_batches > 1)
    return _spread(d) * where(several, d.work.gradient_bytes * own.total, 0.0)


def _outside(common: _Common, stage: _Stage) -> dict[str, Term]:
    """What lies outside the allocator: context, buffers of each group of ranks, buckets."""
    layout, f = common.d.layout, common.f
    copies = layout.replicas * layout.context
    degrees = (layout.tensor, copies, layout.pipeline, layout.context, layout.expert)
    groups = sum((where(n > 1, 1.0, 0.0) for n in degrees), 0.0)
    return {
        "gradient_buckets": _buckets(common, _Own.learning(common.model, stage)),
        "collective_buffers": product_of(group=f.group, groups=groups),
        "context": stated(context=f.context + 0.0 * layout.micro_batch),
    }


def _buckets(common: _Common, own: _Own) -> Term:
    """Gradients on their way to the other replicas [B].

    Buckets of a library's own size, never more than the gradients fill; where nothing is sharded,
    those of plain data parallelism, which hold each gradient once more.
    """
    d, f = common.d, common.f
    ranks = d.layout.replicas * d.layout.context
    several = where(ranks > 1, 1.0, 0.0)
    filled = several * at_most(f.buckets, f.bucket_bytes * own.dense)
    plain = (d.layout.sharded == 0) & (d.layout.sharded_optimizer == 0)
    copy = several * f.bucket_copy * _summed(common) * own.dense
    return sum_of(filled=filled, copy=where(plain, copy, 0.0))
