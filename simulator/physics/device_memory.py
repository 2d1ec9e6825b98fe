"""Device memory of one rank in training, on the first, a middle and the last stage.

The items are weights, gradients and optimizer state, gathered parameters, stored activations, and
the larger of the working memory of the loss and of the backward pass of one layer; then allocator
fragmentation and memory outside the allocator. Plain data parallelism is the case without sharding,
and one device that of one rank.

Not counted: 8-bit copies of weights; models whose layers are assigned to stages in another way than
`parallelism.partition`.

References
----------
.. [1] Korthikanti et al., "Reducing Activation Recomputation in Large Transformer Models",
       sections 4 and 5, https://arxiv.org/abs/2205.05198
.. [2] Rajbhandari et al., "ZeRO: Memory Optimizations Toward Training Trillion Parameter Models",
       https://arxiv.org/abs/1910.02054
.. [3] NVIDIA/Megatron-LM docs/user-guide/features/dist_optimizer.md @d98e8a6, 2026-08
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field
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
    offloaded_bytes,
    state_bytes,
    tensor_bytes,
)
from simulator.equations.step import batch_bytes
from simulator.memo import cached
from simulator.physics.parameters import (
    ParameterFootprint,
    head_only_footprint,
    layers_footprint,
    shared_part,
    sharers,
    stage_layers,
    updated_parameters,
    whole_footprint,
)
from simulator.physics.transformer import FULL, TransformerStep, describe_memory
from simulator.records import dataclass
from simulator.schema.convnets import ConvNet
from simulator.schema.models import Model
from simulator.schema.provenance import Assumption
from simulator.schema.scenario import Job, Scenario
from simulator.schema.software import MemoryFigures
from simulator.schema.training import Mode, Sharding, Train
from simulator.schema.transformers import Transformer
from simulator.terms import Term, excess_of, product_of, stated, sum_of, term
from simulator.units import BYTE, Bytes, Real, anywhere, at_least, at_most, show, where

_END_STAGES: Final = 2.0
"""Stages that hold an embedding or a head."""
_UNITS: Final = 2.0
"""Layers whose sharded parameters are together at a time: the running one and the next."""
Items = Mapping[str, Real]
Terms = Mapping[str, Term]


@dataclass(frozen=True, slots=True, kw_only=True)
class OptimizerState:
    """Bytes per parameter in addition to its weight and gradient.

    `master` is the fp32 copy of a 16-bit weight (0 without one), `moments` the state of the
    optimizer.
    """

    master: Bytes | Real
    moments: Bytes | Real


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceMemory:
    """Memory by item on the stage that needs most [B], and the total of each stage [B].

    `terms` are the equations of the items; empty for arrays of candidates, whose fullest stages may
    differ. `stages` has only the stages of the job, and is empty if there is one.
    """

    items: Items
    stages: Items = field(default_factory=dict)
    terms: Terms = field(default_factory=dict)


def training_memory(
    step: TransformerStep,
    memory_model: MemoryFigures,
    state: OptimizerState,
    model: ParameterFootprint,
) -> DeviceMemory:
    """Return the memory of a rank by item, on the fullest stage.

    Parameters
    ----------
    state : OptimizerState
        Bytes of master weight and moments per parameter.
    model : ParameterFootprint
        Parameters and activations on the device.
    """
    common = _Common(step=step, memory_model=memory_model, state=state, model=model)
    layout, full = step.layout, dict[str, Terms]()
    for name, stage in _stages(common).items():
        if not anywhere(stage.there):
            continue
        parameters = _StageParameters.of(model, stage, model.unit, model.shared, model.table)
        learned = _StageParameters.of(
            model, stage, model.learned, model.learned_shared, model.learned_table
        )
        batches = micro_batches_held(
            layout.micro_batches, stage.place, layout.pipeline, layout.chunks, layout.all_forward
        )
        ends = where(stage.place == 0.0, model.ends, 0.0)
        activations = batches * (stage.layers * model.kept + ends)
        working, logits = model.working, stage.head * model.logits
        waiting = _waiting_gradients(step, learned)
        one_round = (layout.chunks > 1) & (layout.micro_batches <= layout.pipeline)
        apart = where(one_round, never_together(waiting, activations, layout.chunks), 0.0)
        # One fp32 copy of the logits counts as an activation; the other copies are temporary.
        kept_scores = FULL_PRECISION / memory_model.scores if memory_model.scores else 0.0
        scores = logits * min(1.0, kept_scores)
        meanwhile = activations + at_least(working, logits)
        held = {
            **_frozen_weights(step, parameters),
            **_trained_state(common, learned),
            "gathered_parameters": sum_of(
                gathered=_gathered_parameters(common, parameters, learned),
                waiting_gradients=waiting,
            ),
            "activations": term(
                kept_activations,
                batches=batches,
                layers=stage.layers,
                per_layer=model.kept,
                ends=ends,
                never_together=apart,
                of_loss=scores,
            ),
            "working_set": excess_of(working=working, logits=logits),
            "logits": excess_of(logits=logits, kept_scores=scores),
            "update": excess_of(update=_update_gradients(common, learned), freed_before=meanwhile),
        }
        terms = with_waste(held, _outside_allocator(common, learned), memory_model)
        # 0 for candidates without such a stage.
        full[name] = (
            terms
            if np.ndim(stage.there) == 0
            else {key: product_of(stage=item, exists=stage.there) for key, item in terms.items()}
        )
    return _fullest(full)


def _fullest(full: Mapping[str, Terms]) -> DeviceMemory:
    """Return the items of the stage that needs most memory, for each candidate."""
    totals = {name: _sum(terms) for name, terms in full.items()}
    most = reduce(at_least, totals.values())
    items: dict[str, Real] = {}
    terms: Terms = {}
    for name, needed in full.items():
        fullest = totals[name] == most
        items = {
            key: where(fullest, item.value, items.get(key, 0.0)) for key, item in needed.items()
        }
        terms = needed if np.ndim(fullest) == 0 and fullest else terms
    alike = all(np.ndim(size) == 0 for size in items.values())
    return DeviceMemory(
        items=items, stages=totals if len(totals) > 1 else {}, terms=terms if alike else {}
    )


def _sum(terms: Terms) -> Real:
    return sum((item.value for item in terms.values()), 0.0)


def with_waste(held: Terms, outside: Terms, memory_model: MemoryFigures) -> dict[str, Term]:
    """Return allocated items, allocator fragmentation, and memory outside the allocator [B].

    Training and inference jobs share this rule.
    """
    waste = term(fragmentation_bytes, activations=_sum(held), share=memory_model.waste - 1.0)
    return {**held, "fragmentation": waste, **outside}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Common:
    """Inputs that all stages share."""

    step: TransformerStep
    memory_model: MemoryFigures
    state: OptimizerState
    model: ParameterFootprint


@dataclass(frozen=True, slots=True, kw_only=True)
class _Stage:
    """A pipeline stage: position, layers, number of embedding tables, and if it has the head.

    `there` is 1 if the job has such a stage, else 0.
    """

    place: Real
    layers: Real
    tables: Real
    head: Real
    there: Real


def _stages(common: _Common) -> dict[str, _Stage]:
    """Return the first stage, the second and the last.

    Candidates may have different numbers of stages. A single stage is the first one, with the head.
    """
    stages, model = common.step.layout.pipeline, common.model
    first, middle, last = stage_layers(common.step)
    alone, several = where(stages > 1, 0.0, 1.0), where(stages > 1, 1.0, 0.0)
    tables = 1.0 + alone * (1.0 - model.tied)
    has_middle = where(stages > _END_STAGES, 1.0, 0.0)
    return {
        "first": _Stage(place=0.0, layers=first, tables=tables, head=alone, there=1.0),
        "middle": _Stage(place=1.0, layers=middle, tables=0.0, head=0.0, there=has_middle),
        "last": _Stage(place=stages - 1.0, layers=last, tables=1.0, head=1.0, there=several),
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class _StageParameters:
    """Parameters of a stage on one device.

    `shared` are those that each replica has, `experts` those of its experts, `unit` those of one
    layer, `table` those of embedding tables, `looked_up` those without a dense gradient.
    """

    shared: Real
    experts: Real
    unit: Real
    table: Real
    looked_up: Real

    @property
    def total(self) -> Real:
        """Number of all parameters of the stage."""
        return self.shared + self.experts

    @property
    def dense(self) -> Real:
        """Number of parameters that have a gradient in every step."""
        return self.total - self.looked_up

    @classmethod
    def of(
        cls, model: ParameterFootprint, stage: _Stage, unit: Real, shared: Real, table: Real
    ) -> _StageParameters:
        """Return the parameters of a stage.

        They follow from those of a layer (`unit`), its part without experts (`shared`) and a
        `table`.
        """
        tables = stage.tables * table
        return cls(
            shared=stage.layers * shared + tables,
            experts=stage.layers * (unit - shared),
            unit=unit,
            table=tables,
            looked_up=stage.layers * model.looked_up,
        )


def _frozen_weights(step: TransformerStep, parameters: _StageParameters) -> dict[str, Term]:
    """Return the memory of frozen weights: layers in their storage format, tables in 16 bit."""
    if not anywhere(step.work.learned < 1.0):
        return {}
    there = 1.0 - step.work.learned
    split = step.layout.sharded > 0
    layers = where(
        split,
        shared_part(step, parameters.shared - parameters.table, parameters.experts),
        parameters.total - parameters.table,
    )
    tables = where(split, shared_part(step, parameters.table, 0.0), parameters.table)
    return {
        "frozen_parameters": sum_of(
            layers=term(
                tensor_bytes, elements=there * layers, element_bytes=step.work.frozen_bytes
            ),
            tables=term(tensor_bytes, elements=there * tables, element_bytes=step.work.element),
        )
    }


def _trained_state(common: _Common, parameters: _StageParameters) -> dict[str, Term]:
    """Return the memory of weights, gradients and optimizer state of trainable parameters.

    The state of experts is sharded over fewer ranks, as fewer have a copy. With sharded parameters
    their fp32 shards are the weights. Rows that are looked up have no 16-bit copy.
    """
    step, state = common.step, common.state
    layout, here = step.layout, 1.0 - step.layout.offloaded
    part, split = shared_part(step, parameters.shared, parameters.experts), layout.sharded > 0
    of_state = updated_parameters(step, parameters.shared, parameters.experts)
    mixed = state.master > 0.0
    stored = where(mixed, state.master * here, step.work.element)
    copied = where(mixed, HALF_PRECISION * common.memory_model.copies, 0.0)
    narrow = parameters.dense + where(mixed, 0.0, parameters.looked_up)
    width, wide = _gradient_width(common), (step.work.wide_gradients > 0) & mixed
    # A 16-bit gradient is held until it has been added to the wide sum.
    unsummed = where(wide, HALF_PRECISION * common.memory_model.copies, 0.0)
    narrowed, whole = here * at_most(stored, width), width + unsummed
    return {
        "parameters": term(
            tensor_bytes,
            elements=where(split, part, narrow),
            element_bytes=where(split, stored + copied, step.work.element),
        ),
        "master_weights": term(
            tensor_bytes, elements=of_state, element_bytes=where(split, 0.0, here * state.master)
        ),
        "gradients": term(
            tensor_bytes,
            elements=where(split, part, parameters.dense),
            element_bytes=where(split, narrowed, whole),
        ),
        "optimizer": term(tensor_bytes, elements=of_state, element_bytes=here * state.moments),
    }


def _gradient_width(common: _Common) -> Bytes | Real:
    step, mixed = common.step, common.state.master > 0.0
    wide = (step.work.wide_gradients > 0) | (mixed & (common.memory_model.autocast > 0))
    return where(wide, FULL_PRECISION, HALF_PRECISION)


def _update_gradients(common: _Common, parameters: _StageParameters) -> Bytes | Real:
    """Return the size of the fp32 copy of 16-bit gradients for the update [3]_ [B]."""
    step = common.step
    wide = _gradient_width(common) > HALF_PRECISION
    there = wide | (step.layout.sharded > 0) | (step.layout.offloaded > 0)
    width = where(there | (common.state.master == 0.0), 0.0, FULL_PRECISION)
    return width * updated_parameters(step, parameters.shared, parameters.experts)


def _is_sharded(step: TransformerStep) -> Real:
    return where((step.layout.sharded > 0) & (sharers(step) > 1), 1.0, 0.0)


def _gathered_parameters(
    common: _Common, parameters: _StageParameters, learned: _StageParameters
) -> Bytes | Real:
    """Return the memory of gathered parameters and of one layer's unsharded gradients [B].

    Two layers are gathered at a time: fewer if the library gathers one matrix after the other up to
    a limit, all if they are not freed after the forward pass. Tables count twice.
    """
    step, live = common.step, at_least(common.memory_model.live, _UNITS * common.model.largest)
    width, exchanged = step.work.gather_bytes, step.work.element + step.work.gradient_bytes
    matrices = parameters.total - parameters.table
    two = at_most(at_most(_UNITS * parameters.unit, live), matrices)
    together = where(step.layout.again > 0, two, matrices) * width
    tables = _UNITS * step.work.element * parameters.table
    return _is_sharded(step) * (together + tables + exchanged * at_most(learned.unit, live))


def _waiting_gradients(step: TransformerStep, parameters: _StageParameters) -> Bytes | Real:
    """Return the size of unsharded gradients accumulated over a pipeline's micro-batches [B]."""
    several = (step.layout.pipeline > 1) & (step.layout.micro_batches > 1)
    return _is_sharded(step) * where(several, step.work.gradient_bytes * parameters.total, 0.0)


def _outside_allocator(common: _Common, learned: _StageParameters) -> dict[str, Term]:
    """Return the memory outside the allocator: context, collective buffers, gradient buckets."""
    layout, memory_model = common.step.layout, common.memory_model
    copies = layout.replicas * layout.context
    of_experts = (layout.expert, layout.expert_tensor)
    degrees = (layout.tensor, copies, layout.pipeline, layout.context, *of_experts)
    groups = sum((where(n > 1, 1.0, 0.0) for n in degrees), 0.0)
    return {
        "gradient_buckets": _gradient_buckets(common, learned),
        "collective_buffers": product_of(group=memory_model.group, groups=groups),
        "context": stated(context=memory_model.context + 0.0 * layout.micro_batch),
    }


def _gradient_buckets(common: _Common, parameters: _StageParameters) -> Term:
    """Return the size of gradient buckets [B].

    Their size is set by the library, and is at most that of all gradients. Plain data parallelism
    without sharding holds a second copy of each gradient in them.
    """
    step, memory_model = common.step, common.memory_model
    ranks = step.layout.replicas * step.layout.context
    several = where(ranks > 1, 1.0, 0.0)
    filled = several * at_most(memory_model.buckets, memory_model.bucket_bytes * parameters.dense)
    plain = (step.layout.sharded == 0) & (step.layout.sharded_optimizer == 0)
    copy = several * memory_model.bucket_copy * _gradient_width(common) * parameters.dense
    return sum_of(filled=filled, copy=where(plain, copy, 0.0))


_SHOWN: Final = {
    "context": "GPU memory of the context and its kernels, per process",
    "group": "GPU memory of the collectives' buffers, for each group of ranks",
}
_WASTE: Final = "GPU memory the allocator cannot use, as a share of what it holds"


@cached(most=16)
def device_memory(scenario: Scenario) -> DeviceMemory | None:
    """Return the memory of the fullest device by item, input batches included.

    None if no model is on the device.

    Raises
    ------
    NotModelled
        If the model does not state its activations with this recomputation.
    """
    job = scenario.job
    model, train, memory_model = job.model, job.train, job.software.memory
    if model is None or job.mode is Mode.PREPARE:
        return None
    if job.mode is not Mode.TRAIN:
        terms = _forward_only(job, model)
        held = DeviceMemory(items={name: one.value for name, one in terms.items()}, terms=terms)
    else:
        step = describe_memory(scenario)
        if train.head_only and isinstance(model, ConvNet | Transformer):
            footprint = head_only_footprint(model, train)
        elif isinstance(model, Transformer):
            footprint = layers_footprint(step, memory_model, model)
        else:
            footprint = whole_footprint(model, train)
        held = training_memory(step, memory_model, state_of(train), footprint)
    buffers = 2.0 if job.input.copies_beside_compute else 1.0
    batches = {"input_batches": product_of(batch=batch_in_bytes(scenario), buffers=buffers)}
    if np.any(job.input.device_memory):
        batches["preparing"] = stated(device_memory=job.input.device_memory)
    return DeviceMemory(
        items={**held.items, **{name: item.value for name, item in batches.items()}},
        stages=held.stages,
        terms={**held.terms, **batches} if held.terms else {},
    )


def batch_in_bytes(scenario: Scenario) -> Term:
    """Return the size of one rank's batch as the loader delivers and copies it [B]."""
    return term(
        batch_bytes,
        batch_size=scenario.job.train.batch_size,
        bytes_per_sample=scenario.job.input.output_bytes_per_sample,
    )


def weight_width(train: Train) -> Bytes:
    """Return the bytes of a stored weight, of its gradient and of an optimizer state [B]."""
    return FULL_PRECISION if train.mixed_precision else train.precision.bytes_per_element


def state_of(train: Train) -> OptimizerState:
    """Return the bytes per parameter in addition to its weight and gradient."""
    width = weight_width(train)
    copied = train.mixed_precision and train.precision not in FULL
    return OptimizerState(
        master=width if copied else 0.0, moments=state_bytes(train.optimizer, width)
    )


def _forward_only(job: Job, model: Model) -> dict[str, Term]:
    """Return the memory of a forward pass: weights, live activations, KV cache and results."""
    train, memory_model = job.train, job.software.memory
    held = model.forward_memory(train.batch_size, train.precision)
    width = train.precision.bytes_per_element
    terms = {
        "parameters": term(tensor_bytes, elements=model.parameters, element_bytes=width),
        "activations": stated(live=held.live),
        "results": term(
            batch_bytes, batch_size=train.batch_size, bytes_per_sample=model.output_bytes
        ),
    }
    if np.any(held.cache):
        terms["keys_and_values"] = stated(cache=held.cache)
    return with_waste(terms, {"context": stated(context=memory_model.context)}, memory_model)


def memory_assumptions(scenario: Scenario, memory: DeviceMemory | None) -> Iterator[Assumption]:
    """Yield the assumptions on which the memory of a device depends."""
    figures = scenario.job.software.memory
    if memory is None:
        return
    sizes = {"context": figures.context, "group": figures.group}
    there = {"context": "context", "group": "collective_buffers"}
    for name, what in _SHOWN.items():
        if np.any(memory.items.get(there[name], 0.0)) and name in figures.sources:
            source = figures.sources[name]
            yield Assumption(what=what, value=show(sizes[name], BYTE), source=source)
    if "waste" in figures.sources:
        value = f"{figures.waste - 1.0:.1%}"
        yield Assumption(what=_WASTE, value=value, source=figures.sources["waste"])


def offloaded(scenario: Scenario) -> dict[str, Term]:
    """Return the host RAM of an offloaded optimizer as an item [B]; empty without offloading."""
    job = scenario.job
    if job.model is None or not job.parallelism.offload_optimizer:
        return {}
    degrees, machine = job.parallelism, scenario.cluster.trainers.gpus_per_host
    sharers = min(scenario.ranks, degrees.shard_group or scenario.ranks)
    devices = sharers * degrees.devices * job.copies
    partitioned = float(job.parallelism.sharding is Sharding.PARAMETERS)
    size = term(
        offloaded_bytes,
        parameters=job.model.parameters,
        machine=float(machine),
        devices=float(devices),
        partitioned=partitioned,
    )
    return {"optimizer": size}
