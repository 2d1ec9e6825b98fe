"""Memory that a job needs on one device: one model for training and one for forward passes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from simulator.equations.batch import batch_bytes
from simulator.equations.memory import FULL_PRECISION, offloaded_bytes, state_bytes, tensor_bytes
from simulator.physics.describe import FULL, describe_memory
from simulator.physics.description import Description
from simulator.physics.holding import Holding, behind_frozen, of_layers, of_whole
from simulator.physics.memory import DeviceMemory, State, training_memory, with_waste
from simulator.schema.scenario import Job, Scenario
from simulator.schema.workload.kernels import MemoryFigures
from simulator.schema.workload.models import Model
from simulator.schema.workload.models.convnet import ConvNet
from simulator.schema.workload.models.transformer import Transformer
from simulator.schema.workload.parallelism import Sharding
from simulator.schema.workload.train import Mode, Train
from simulator.terms import Term, stated, term
from simulator.uncertainty.provenance import Assumption
from simulator.units import BYTE, Bytes, show

_SHOWN: Final = {
    "context": "GPU memory of the context and its kernels, per process",
    "group": "GPU memory of the collectives' buffers, for each group of ranks",
}
_WASTE: Final = "GPU memory the allocator cannot use, as a share of what it holds"


def device_memory(scenario: Scenario) -> DeviceMemory | None:
    """What one device of a job holds at its fullest, by item; None without a model on it.

    Parameters
    ----------
    scenario : Scenario
        Batch, accumulation and degrees of parallelism may be arrays of candidates.

    Raises
    ------
    NotModelled
        Where the model does not say what some recomputation saves.
    """
    job = scenario.job
    model, f = job.model, job.software.memory
    if model is None or job.mode is Mode.PREPARE:
        return None
    if job.mode is not Mode.TRAIN:
        terms = _forward_only(job, model)
        return DeviceMemory(items={name: one.value for name, one in terms.items()}, terms=terms)
    d = describe_memory(scenario)
    return training_memory(d, f, state_of(job.train), _holding(d, f, model, job.train))


def _holding(d: Description, f: MemoryFigures, model: Model, train: Train) -> Holding:
    if train.head_only and isinstance(model, ConvNet | Transformer):
        return behind_frozen(model, train)
    if isinstance(model, Transformer):
        return of_layers(d, f, model)
    return of_whole(model, train)


def weight_width(train: Train) -> Bytes:
    """Bytes a stored weight takes, and the gradient and each optimizer state beside it [B]."""
    return FULL_PRECISION if train.mixed else train.precision.bytes_per_element


def state_of(train: Train) -> State:
    """Bytes of a parameter beside its weight and gradient."""
    width = weight_width(train)
    copied = train.mixed and train.precision not in FULL
    return State(master=width if copied else 0.0, moments=state_bytes(train.optimizer, width))


def _forward_only(job: Job, model: Model) -> dict[str, Term]:
    """Weights, the largest activations that exist at a time, keys and values, and results."""
    train, f = job.train, job.software.memory
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
    return with_waste(terms, {"context": stated(context=f.context)}, f)


def assumptions(scenario: Scenario, found: DeviceMemory | None) -> Iterator[Assumption]:
    """The figures beside what is counted that what was found a device to hold rests on."""
    figures = scenario.job.software.memory
    if found is None:
        return
    sizes = {"context": figures.context, "group": figures.group}
    there = {"context": "context", "group": "collective_buffers"}
    for name, what in _SHOWN.items():
        if np.any(found.items.get(there[name], 0.0)) and name in figures.sources:
            source = figures.sources[name]
            yield Assumption(what=what, value=show(sizes[name], BYTE), source=source)
    if "waste" in figures.sources:
        value = f"{figures.waste - 1.0:.1%}"
        yield Assumption(what=_WASTE, value=value, source=figures.sources["waste"])


def offloaded(scenario: Scenario) -> dict[str, Term]:
    """RAM of one machine for an optimizer that runs there, as an item [B]; none without."""
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
