"""The [data] and [input] sections as dataset, loader and preprocessing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from simulator.reading.convert import defaults
from simulator.reading.convert.defaults import Default
from simulator.reading.convert.groups import yardstick
from simulator.reading.convert.hardware import said_in
from simulator.reading.resolved import Draft
from simulator.reading.sections import InputSection, SpreadTable
from simulator.schema.workload.dataset import Access, CachePolicy, Dataset, Layout
from simulator.schema.workload.distribution import CONSTANT, Shape, Spread
from simulator.schema.workload.loader import (
    Loader,
    LoaderKind,
    Preparation,
    Preprocessing,
    Straggler,
    Transport,
)
from simulator.schema.workload.models import Model
from simulator.uncertainty.provenance import Assumption, Part
from simulator.units import BYTE, Bytes, Seconds, show

_PREFETCH = 2


def dataset_of(draft: Draft) -> Dataset:
    """The samples on the store."""
    data = draft.data
    return Dataset(
        name=data.name or "data",
        samples=float(data.samples),
        bytes_per_sample=data.bytes_per_sample,
        size_spread=spread_of(data.size_spread),
        layout=data.layout,
        access=_access(draft),
        shard_size=data.shard_size,
        cache_policy=data.cache or _cache_policy(draft),
        read_time=data.read_time,
        readers=float(data.readers),
        placement=data.placement,
        window=data.window,
        chunk_size=data.chunk_size,
        sources=said_in(
            draft.document,
            "data",
            samples="samples",
            bytes_per_sample="bytes_per_sample",
            shard_size="shard_size",
            read_time="read_time",
            window="window",
            chunk_size="chunk_size",
        ),
    )


def _access(draft: Draft) -> Access:
    """The order on the store unless the file says: WebDataset and its kin stream whole shards."""
    sharded = draft.data.layout is Layout.SHARDS
    return draft.data.access or (Access.SEQUENTIAL if sharded else Access.RANDOM)


def _cache_policy(draft: Draft) -> CachePolicy:
    """What stays in memory unless the file says; nothing is read of what actors make."""
    if draft.loader is LoaderKind.ACTORS:
        return CachePolicy.PRELOADED
    scans = _access(draft) is Access.SEQUENTIAL
    return CachePolicy.SCAN if scans else CachePolicy.RANDOM


def loader_of(draft: Draft, model: Model | None) -> Loader:
    """The settings of the input pipeline, with figures for what is left out."""
    given, applied = draft.input, tuple(_applied(draft, model))
    worker_start, worker_memory, per_batch, per_sample = _loader_figures(given, applied)
    pins = _pins(draft)
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
        stragglers=tuple(
            Straggler(factor=slow.factor, worker=slow.worker, every=slow.every, rank=slow.rank)
            for slow in given.straggler
        ),
        in_step=_in_step(draft),
        sources=said_in(
            draft.document,
            "input",
            receive_per_batch="receive_per_batch",
            receive_per_sample="receive_per_sample",
            worker_start="worker_start",
            epoch_start="epoch_start",
            worker_memory="worker_memory",
        )
        | {default.field: default.source for default in applied},
    )


def _pins(draft: Draft) -> bool:
    if draft.input.pin_memory is not None:
        return draft.input.pin_memory
    separate = draft.gpu is not None and not draft.gpu.unified_memory
    return separate and draft.loader is LoaderKind.DALI


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


def _applied(draft: Draft, model: Model | None) -> Iterator[Default]:
    """The figures that stand in for keys left out; threads need none of them."""
    given = draft.input
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
        what = f"{given.tensors_per_batch} tensors in place of {defaults.TENSORS}"
        yield defaults.RECEIVE_PER_BATCH.with_more(more * defaults.PER_TENSOR, what)
    if given.receive_per_sample is None:
        yield _receiving(given, transport).for_sample(_output_bytes(draft, model)[0])


def _receiving(given: InputSection, transport: Transport) -> Default:
    """What taking over a sample costs: through a pipe, copied to pinned memory, or only mapped."""
    if transport is Transport.PIPE:
        return defaults.RECEIVE_PIPED
    return defaults.RECEIVE_PINNED if given.pin_memory else defaults.RECEIVE_PER_SAMPLE


def preprocessing_of(draft: Draft, model: Model | None) -> Preprocessing:
    """What the processors do to a sample, and how big it comes out."""
    given = draft.input
    output, _ = _output_bytes(draft, model)
    return Preprocessing(
        decode=given.decode,
        augment=given.augment,
        collate=given.collate,
        per_batch=given.per_batch,
        output_bytes=output,
        cost_spread=spread_of(given.cost_spread),
        basis=given.cost_basis,
        coremark_per_vcpu=yardstick(draft),
        where=given.where,
        device_time=given.device_time or 0.0,
        device_memory=given.device_memory or 0.0,
        prepared_bytes=given.prepared_bytes_per_sample or 0.0,
        sources=said_in(
            draft.document,
            "input",
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


def _output_bytes(draft: Draft, model: Model | None) -> tuple[Bytes, str]:
    if draft.input.output_bytes_per_sample is not None:
        return draft.input.output_bytes_per_sample, ""
    if draft.input.where is Preparation.DEVICE:
        return draft.data.bytes_per_sample, "as on the store, for the device to decode"
    if model is not None and model.input_bytes > 0.0:
        return model.input_bytes, f"what {model.name} takes"
    return draft.data.bytes_per_sample, "as on the store"


def input_notes(draft: Draft, model: Model | None) -> Iterator[Assumption]:
    """The defaults of [data] and [input] that a prediction rests on."""
    if draft.data.access is None and draft.data.layout is Layout.SHARDS:
        yield Assumption(
            what="the order in which shards are read (data.access not given)",
            value=Access.SEQUENTIAL.value,
            source=defaults.OWN_CHOICE,
        )
    for default in _applied(draft, model):
        yield default.note
    output, why = _output_bytes(draft, model)
    if why:
        yield Assumption(
            what=f"a finished sample in memory, {why} (input.output_bytes_per_sample not given)",
            value=show(output, BYTE),
            source=defaults.OWN_CHOICE,
            bears_on=frozenset({Part.INPUT, Part.COPY, Part.HOST_RAM}),
        )
    if draft.data.cache is None and draft.loader is LoaderKind.ACTORS:
        what = "bytes that actors read from the store (data.cache not given)"
        yield Assumption(what=what, value="none", source=defaults.OWN_CHOICE)
    elif draft.data.cache is None and _access(draft) is Access.SEQUENTIAL:
        yield Assumption(
            what="what stays in the page cache under front-to-back reads (data.cache not given)",
            value=CachePolicy.SCAN.value,
            source=defaults.OWN_CHOICE,
        )


def _in_step(draft: Draft) -> bool:
    """Whether the file says that samples are equal: no spread given leaves that open."""
    tables = (draft.data.size_spread, draft.input.cost_spread)
    spreads = [spread_of(table) for table in tables if table is not None]
    return bool(spreads) and not any(spread.varies for spread in spreads)


def spread_of(table: SpreadTable | None) -> Spread:
    """A distribution as the file gives it; constant where it gives none."""
    if table is None:
        return CONSTANT
    implied = 1.0 if table.shape is Shape.EXPONENTIAL else 0.0
    deviation = implied if table.relative_deviation is None else table.relative_deviation
    return Spread(shape=table.shape, relative_deviation=deviation)
