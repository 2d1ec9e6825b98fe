"""Defaults of the [data] and [input] sections."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from simulator.memo import cached
from simulator.reading import defaults
from simulator.reading.defaults import Default
from simulator.schema.accelerators import Gpu
from simulator.schema.data_loading import (
    Access,
    CachePolicy,
    Dataset,
    InputPipeline,
    Layout,
    LoaderKind,
    Preparation,
    Transport,
)
from simulator.schema.models import Model
from simulator.schema.provenance import Assumption, Part
from simulator.units import BYTE, Bytes, show


@cached()
def dataset_of(data: Dataset, loader: LoaderKind) -> Dataset:
    """Return the samples on the store."""
    return replace(
        data,
        access=_access(data),
        cache=data.cache if data.states("cache") else _cache_policy(data, loader),
    )


def _access(data: Dataset) -> Access:
    """The order on the store unless the file says: WebDataset and its kin stream whole shards."""
    sharded = data.layout is Layout.SHARDS
    usual = Access.SEQUENTIAL if sharded else Access.RANDOM
    return data.access if data.states("access") else usual


def _cache_policy(data: Dataset, loader: LoaderKind) -> CachePolicy:
    """What stays in memory unless the file says; nothing is read of what actors make."""
    if loader is LoaderKind.ACTORS:
        return CachePolicy.PRELOADED
    return CachePolicy.SCAN if _access(data) is Access.SEQUENTIAL else CachePolicy.RANDOM


@cached()
def pipeline_of(
    stated: InputPipeline, data: Dataset, gpu: Gpu | None, model: Model | None, mark: float | None
) -> InputPipeline:
    """Return the input pipeline with defaults for what is left out.

    `mark` is the CoreMark of a vCPU that CPU times are scaled from.
    """
    pins, transport = _pins(stated, gpu), transport_of(stated)
    applied = {default.field: default.value for default in _applied(stated, data, model)}
    defaults_of: dict[str, Any] = {
        "pin_memory": pins,
        "overlap_copies": pins,
        "transport": transport,
        "output_bytes_per_sample": _output_bytes(stated, data, model)[0],
        **applied,
    }
    left_out = {key: value for key, value in defaults_of.items() if not stated.states(key)}
    return replace(stated, in_step=_in_step(stated, data), coremark_per_vcpu=mark, **left_out)


def _pins(stated: InputPipeline, gpu: Gpu | None) -> bool:
    if stated.states("pin_memory"):
        return stated.pin_memory
    separate = gpu is not None and not gpu.unified_memory
    return separate and stated.loader is LoaderKind.DALI


def transport_of(stated: InputPipeline) -> Transport:
    """How batches travel: threads hand them over in place, processes through shared memory."""
    if stated.states("transport"):
        return stated.transport
    pytorch = stated.loader is LoaderKind.PYTORCH
    return Transport.SHARED_MEMORY if pytorch else Transport.IN_PROCESS


def _applied(stated: InputPipeline, data: Dataset, model: Model | None) -> Iterator[Default]:
    """Yield the defaults of keys left out; threads need none of them."""
    if stated.loader is not LoaderKind.PYTORCH or stated.workers == 0:
        return
    if not stated.states("worker_start"):
        yield defaults.WORKER_START
    if not stated.states("worker_memory"):
        yield defaults.WORKER_MEMORY
    transport = transport_of(stated)
    if transport is Transport.IN_PROCESS:
        return
    if not stated.states("receive_per_batch"):
        # A pipe carries all tensors of a batch at once.
        others = stated.tensors_per_batch - defaults.TENSORS
        more = 0 if transport is Transport.PIPE else others
        what = f"{stated.tensors_per_batch} tensors instead of {defaults.TENSORS}"
        yield defaults.RECEIVE_PER_BATCH.with_more(more * defaults.PER_TENSOR, what)
    if not stated.states("receive_per_sample"):
        yield _receiving(stated, transport).for_sample(_output_bytes(stated, data, model)[0])


def _receiving(stated: InputPipeline, transport: Transport) -> Default:
    """What taking over a sample costs: through a pipe, copied to pinned memory, or only mapped."""
    if transport is Transport.PIPE:
        return defaults.RECEIVE_PIPED
    return defaults.RECEIVE_PINNED if stated.pin_memory else defaults.RECEIVE_PER_SAMPLE


def _output_bytes(given: InputPipeline, data: Dataset, model: Model | None) -> tuple[Bytes, str]:
    if given.states("output_bytes_per_sample"):
        return given.output_bytes_per_sample, ""
    if given.where is Preparation.DEVICE:
        return data.bytes_per_sample, "as on the store, for the device to decode"
    if model is not None and model.input_bytes > 0.0:
        return model.input_bytes, f"what {model.name} takes"
    return data.bytes_per_sample, "as on the store"


@cached()
def input_notes(given: InputPipeline, data: Dataset, model: Model | None) -> tuple[Assumption, ...]:
    """Return the defaults of [data] and [input] that a prediction rests on."""
    return tuple(_input_notes(given, data, model))


def _input_notes(given: InputPipeline, data: Dataset, model: Model | None) -> Iterator[Assumption]:
    """Yield the defaults of [data] and [input] that a prediction rests on."""
    if not data.states("access") and data.layout is Layout.SHARDS:
        yield Assumption(
            what="the order in which shards are read (data.access not given)",
            value=Access.SEQUENTIAL.value,
            source=defaults.OWN_CHOICE,
        )
    for default in _applied(given, data, model):
        yield default.note
    output, why = _output_bytes(given, data, model)
    if why:
        yield Assumption(
            what=f"a finished sample in memory, {why} (input.output_bytes_per_sample not given)",
            value=show(output, BYTE),
            source=defaults.OWN_CHOICE,
            bears_on=frozenset({Part.INPUT, Part.COPY, Part.HOST_RAM}),
        )
    if not data.states("cache") and given.loader is LoaderKind.ACTORS:
        what = "bytes that actors read from the store (data.cache not given)"
        yield Assumption(what=what, value="none", source=defaults.OWN_CHOICE)
    elif not data.states("cache") and _access(data) is Access.SEQUENTIAL:
        yield Assumption(
            what="what stays in the page cache under front-to-back reads (data.cache not given)",
            value=CachePolicy.SCAN.value,
            source=defaults.OWN_CHOICE,
        )


def _in_step(given: InputPipeline, data: Dataset) -> bool:
    """Return whether the file says that samples are equal: no spread given leaves that open."""
    stated = data.states("size_spread") or given.states("cost_spread")
    return stated and not (data.size_spread.varies or given.cost_spread.varies)
