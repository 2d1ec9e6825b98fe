"""The [data] and [input] sections as dataset, loader and preprocessing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from simulator.memo import cached
from simulator.reading import defaults
from simulator.reading.defaults import Default
from simulator.reading.sections import InputSection
from simulator.schema.accelerators import Gpu
from simulator.schema.data_loading import (
    Access,
    CachePolicy,
    Dataset,
    Layout,
    Loader,
    LoaderKind,
    Preparation,
    Preprocessing,
    Transport,
)
from simulator.schema.models import Model
from simulator.uncertainty.provenance import Assumption, Part
from simulator.units import BYTE, Bytes, Seconds, show

_PREFETCH = 2


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
def loader_of(given: InputSection, data: Dataset, gpu: Gpu | None, model: Model | None) -> Loader:
    """Return the settings of the input pipeline, with figures for what is left out."""
    applied = tuple(_applied(given, data, model))
    worker_start, worker_memory, per_batch, per_sample = _loader_figures(given, applied)
    pins = _pins(given, gpu)
    return Loader(
        kind=given.loader,
        workers=given.workers,
        prefetch=given.prefetch or _PREFETCH,
        pin_memory=pins,
        in_order=given.in_order,
        persistent_workers=given.persistent_workers,
        drop_last=given.drop_last,
        overlap_copies=pins if given.overlap_copies is None else given.overlap_copies,
        socket=given.socket,
        transport=transport_of(given),
        receive_per_batch=per_batch,
        receive_per_sample=per_sample,
        worker_start=worker_start,
        epoch_start=given.epoch_start,
        worker_memory=worker_memory,
        stragglers=tuple(given.straggler),
        in_step=_in_step(given, data),
        sources={**given.sources, **{default.field: default.source for default in applied}},
    )


def _pins(given: InputSection, gpu: Gpu | None) -> bool:
    if given.pin_memory is not None:
        return given.pin_memory
    separate = gpu is not None and not gpu.unified_memory
    return separate and given.loader is LoaderKind.DALI


def transport_of(given: InputSection) -> Transport:
    """How batches travel: threads hand them over in place, processes through shared memory."""
    if given.transport is not None:
        return given.transport
    pytorch = given.loader is LoaderKind.PYTORCH
    return Transport.SHARED_MEMORY if pytorch else Transport.IN_PROCESS


def _loader_figures(
    given: InputSection, applied: Iterable[Default]
) -> tuple[Seconds, Bytes, Seconds, Seconds]:
    figures = {default.key: default.value for default in applied}
    keys = ("worker_start", "worker_memory", "receive_per_batch", "receive_per_sample")
    values = [getattr(given, key) for key in keys]
    filled = [
        figures.get(f"input.{key}", 0.0) if value is None else value
        for key, value in zip(keys, values, strict=True)
    ]
    return filled[0], filled[1], filled[2], filled[3]


def _applied(given: InputSection, data: Dataset, model: Model | None) -> Iterator[Default]:
    """The figures that stand in for keys left out; threads need none of them."""
    if given.loader is not LoaderKind.PYTORCH or given.workers == 0:
        return
    if given.worker_start is None:
        yield defaults.WORKER_START
    if given.worker_memory is None:
        yield defaults.WORKER_MEMORY
    transport = transport_of(given)
    if transport is Transport.IN_PROCESS:
        return
    if given.receive_per_batch is None:
        # A pipe carries all tensors of a batch at once.
        others = given.tensors_per_batch - defaults.TENSORS
        more = 0 if transport is Transport.PIPE else others
        what = f"{given.tensors_per_batch} tensors instead of {defaults.TENSORS}"
        yield defaults.RECEIVE_PER_BATCH.with_more(more * defaults.PER_TENSOR, what)
    if given.receive_per_sample is None:
        yield _receiving(given, transport).for_sample(_output_bytes(given, data, model)[0])


def _receiving(given: InputSection, transport: Transport) -> Default:
    """What taking over a sample costs: through a pipe, copied to pinned memory, or only mapped."""
    if transport is Transport.PIPE:
        return defaults.RECEIVE_PIPED
    return defaults.RECEIVE_PINNED if given.pin_memory else defaults.RECEIVE_PER_SAMPLE


@cached()
def preprocessing_of(
    given: InputSection, data: Dataset, model: Model | None, reference: float | None
) -> Preprocessing:
    """Return what the processors do to a sample, and how big it comes out.

    `reference` is the CoreMark of a vCPU that CPU times are scaled from.
    """
    output, _ = _output_bytes(given, data, model)
    return Preprocessing(
        decode=given.decode,
        augment=given.augment,
        collate=given.collate,
        per_batch=given.per_batch,
        output_bytes=output,
        cost_spread=given.cost_spread,
        basis=given.cost_basis,
        coremark_per_vcpu=reference,
        where=given.where,
        device_time=given.device_time or 0.0,
        device_memory=given.device_memory or 0.0,
        prepared_bytes=given.prepared_bytes_per_sample or 0.0,
        sources=given.stated(
            decode="decode",
            augment="augment",
            collate="collate",
            per_batch="per_batch",
            output_bytes="output_bytes_per_sample",
            device_time="device_time",
            device_memory="device_memory",
            prepared_bytes="prepared_bytes_per_sample",
        ),
    )


def _output_bytes(given: InputSection, data: Dataset, model: Model | None) -> tuple[Bytes, str]:
    if given.output_bytes_per_sample is not None:
        return given.output_bytes_per_sample, ""
    if given.where is Preparation.DEVICE:
        return data.bytes_per_sample, "as on the store, for the device to decode"
    if model is not None and model.input_bytes > 0.0:
        return model.input_bytes, f"what {model.name} takes"
    return data.bytes_per_sample, "as on the store"


@cached()
def input_notes(given: InputSection, data: Dataset, model: Model | None) -> tuple[Assumption, ...]:
    """Return the defaults of [data] and [input] that a prediction rests on."""
    return tuple(_input_notes(given, data, model))


def _input_notes(given: InputSection, data: Dataset, model: Model | None) -> Iterator[Assumption]:
    """The defaults of [data] and [input] that a prediction rests on."""
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


def _in_step(given: InputSection, data: Dataset) -> bool:
    """Whether the file says that samples are equal: no spread given leaves that open."""
    stated = data.states("size_spread") or given.states("cost_spread")
    return stated and not (data.size_spread.varies or given.cost_spread.varies)
