"""Defaults of keys that a scenario leaves out, each with its source.

The defaults of ``[data]`` and ``[input]`` are filled in here. Each default in use is listed among
the assumptions of the prediction.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

from simulator import units
from simulator.memo import cached
from simulator.records import dataclass
from simulator.schema.accelerators import Gpu
from simulator.schema.convnets import ConvNet
from simulator.schema.data_loading import (
    Access,
    CachePolicy,
    CpuWork,
    Dataset,
    InputPipeline,
    Layout,
    LoaderKind,
    Preparation,
    Transport,
)
from simulator.schema.models import Model
from simulator.schema.provenance import Assumption, Part, Source
from simulator.schema.transformers import Transformer
from simulator.units import BYTE, Bytes, show

_MEASURED_LOADER: Final = "own measurement, torch 2.13.0 DataLoader, 2-core machine"


@dataclass(frozen=True, slots=True, kw_only=True)
class Default:
    """The default of a key that is left out.

    If it grows with the size of a sample, `sample` is the size at which it was measured, and
    `share` the scenario's size over that. `extra` is added [SI]. `bears_on` is the part of a
    prediction that depends on it.
    """

    key: str
    what: str
    text: str
    unit: units.Unit
    source: Source
    bears_on: Part
    sample: str = ""
    share: float = 1.0
    extra: float = 0.0

    @property
    def value(self) -> float:
        """Default value in SI units."""
        return units.parse(self.text, self.unit) * self.share + self.extra

    def for_sample(self, size: units.Bytes) -> Default:
        """Return the default for samples of `size` bytes."""
        if not self.sample:
            return self
        return replace(self, share=size / units.parse(self.sample, units.BYTE))

    def with_more(self, extra: float, what: str) -> Default:
        """Return the default plus `extra` [SI], for work `what` outside of the measurement."""
        if extra == 0.0:
            return self
        return replace(self, what=f"{self.what}; {what}", extra=extra)

    @property
    def field(self) -> str:
        """Name of the key within its section, which the domain types share."""
        return self.key.partition(".")[2]

    @property
    def note(self) -> Assumption:
        """The default as an assumption for the user."""
        value = self.text if self.extra == 0.0 else units.show(self.value, self.unit)
        if self.sample:
            value = f"{units.show(self.value, self.unit)} ({self.text} for {self.sample})"
        return Assumption(
            what=f"{self.what} ({self.key} not given)",
            value=value,
            source=self.source,
            bears_on=frozenset({self.bears_on}),
        )


WORKER_START: Final = Default(
    key="input.worker_start",
    what="time to start one worker process, one after another",
    text="40 ms",
    unit=units.SECOND,
    bears_on=Part.START,
    source=Source(
        reference=f"{_MEASURED_LOADER}: first batch 150-210 ms after the start of an epoch with 4 "
        "forked workers and 20 ms a batch, against 26-29 ms with persistent workers; spawn and "
        "forkserver, and large datasets, take longer",
        date="2026-11",
    ),
)
_RECEIVE: Final = Source(
    reference=f"{_MEASURED_LOADER}: the main process takes a ready batch of 8, 32 or 64 images in "
    "2.3, 3.3 or 4.3 ms; 3 x 224 x 224 in fp32 each; a small machine, so rather an upper estimate",
    date="2026-11",
)
RECEIVE_PER_BATCH: Final = Default(
    key="input.receive_per_batch",
    what="CPU time of the main process (or pin thread) to take a batch from shared memory",
    text="2.05 ms",
    unit=units.SECOND,
    bears_on=Part.INPUT,
    source=_RECEIVE,
)
RECEIVE_PER_SAMPLE: Final = Default(
    key="input.receive_per_sample",
    what="CPU time of that process (or thread) for each sample, in proportion to its size",
    text="0.036 ms",
    unit=units.SECOND,
    bears_on=Part.INPUT,
    sample="602.112 kB",
    source=_RECEIVE,
)
RECEIVE_PINNED: Final = Default(
    key="input.receive_per_sample",
    what="CPU time of the pin thread to copy a sample out of shared memory, in proportion to its "
    "size",
    text="0.212 ms",
    unit=units.SECOND,
    bears_on=Part.INPUT,
    sample="602.112 kB",
    source=Source(
        reference="own measurement, benchmarks/handover, torch 2.13.0 DataLoader of one worker, "
        "2-core machine: 64 MiB are copied to memory in use, and freed, in 23.7 ms",
        date="2026-11-21",
    ),
)
PER_TENSOR: Final = 0.2e-3
"""Time to receive one more tensor of a batch [s]: a file handle requested from the worker. Own
measurement, benchmarks/handover, torch 2.13.0 DataLoader of one worker, 2-core machine, 2026-11-21:
23.7 ms for 114 tensors, 2.7 for 9, 1.0 for one, all of 64 MiB together."""
TENSORS: Final = 2
"""Tensors of the batches that `RECEIVE_PER_BATCH` was measured with: images and labels."""
RECEIVE_PIPED: Final = Default(
    key="input.receive_per_sample",
    what="CPU time of the main process to unpickle a sample that came through a pipe, in "
    "proportion to its size",
    text="0.6 ms",
    unit=units.SECOND,
    bears_on=Part.INPUT,
    sample="562.5 kB",
    source=Source(
        reference="ternaus/imread_benchmark@f869db8, output/*_dataloader_results.json: with 8 "
        "workers and lists of numpy images the main process takes 1,420 to 2,540 images/s, "
        "depending on the platform, median 1,640; that a decoded ImageNet image is 500 x 375 in "
        "RGB is a guess",
        date="undated",
        verified=False,
    ),
)
WORKER_MEMORY: Final = Default(
    key="input.worker_memory",
    what="memory a forked worker has to itself",
    text="74 MB",
    unit=units.BYTE,
    bears_on=Part.HOST_RAM,
    source=Source(
        reference="own measurement (benchmarks/real_loader): what a forked worker adds that "
        "decodes JPEGs in batches of 8, torch 2.13.0 CPU; idle 11 MB, spawned 145 MB, CUDA build "
        "293 MB",
        date="2026-11-21",
    ),
)
LORA_RANK: Final = 16
"""Default rank of adapters, as in most examples of PEFT and torchtune."""
HOST_THREADS: Final = 1.0
"""Threads that a training process keeps busy while its device works: the one that launches kernels
and waits for the device in a loop (CUDA Runtime API, cudaDeviceScheduleAuto)."""
BUCKET_SIZE: Final = Default(
    key="train.bucket_size",
    what="size of a gradient bucket",
    text="25 MiB",
    unit=units.BYTE,
    bears_on=Part.EXCHANGE,
    source=Source(
        reference="torch 2.15.0, DistributedDataParallel: bucket_cap_mb, 1 MiB for the first "
        "bucket and 25 MiB for the others",
        date="2026-11",
    ),
)
CHECKPOINT_PROCESS_RATE: Final = Default(
    key="train.checkpoint_process_rate",
    what="fastest that one process serialises its part of a checkpoint",
    text="0.6 GB/s",
    unit=units.BYTE_PER_SECOND,
    bears_on=Part.CHECKPOINT,
    source=Source(
        reference="pytorch/torchsnapshot@df45917d12b1 benchmarks/ddp: torch.save writes 20 GB from "
        "rank 0 of a p4d.24xlarge in 32 s to local NVMe and 38 s to FSx for Lustre; less 1.6 s for "
        "the copy over PCIe, 0.66 and 0.55 GB/s",
        date="undated",
    ),
)
CHECKPOINT_STREAM_RATE: Final = Default(
    key="train.checkpoint_process_rate",
    what="fastest that one process writes its part of a checkpoint to an object store",
    text="0.18 GB/s",
    unit=units.BYTE_PER_SECOND,
    bears_on=Part.CHECKPOINT,
    source=Source(
        reference="the median of eight published writers: fsspec 0.066 (GCS) and 0.095 (S3), "
        "Dataflux 0.32, multi-storage-client 0.078, minio-py 0.1 and 0.43, s3torchconnector 0.93, "
        "s3dlio 1.0 (GoogleCloudPlatform/gcs-connector-for-pytorch@269884eb, NVIDIA "
        "multi-storage-client documentation of 2026-07-02, mlcommons/storage of 2026-03-18)",
        date="2026-11-27",
        verified=False,
    ),
)
OWN_CHOICE: Final = Source(reference="default of plan, not given in the scenario", date="undated")


@cached()
def dataset_of(data: Dataset, loader: LoaderKind) -> Dataset:
    """Return the dataset with defaults for keys that are left out."""
    return replace(
        data,
        access=_access(data),
        cache=data.cache if data.states("cache") else _cache_policy(data, loader),
    )


def _access(data: Dataset) -> Access:
    """Return the order of reads: as stated, else sequential for shards as in WebDataset."""
    sharded = data.layout is Layout.SHARDS
    usual = Access.SEQUENTIAL if sharded else Access.RANDOM
    return data.access if data.states("access") else usual


def _cache_policy(data: Dataset, loader: LoaderKind) -> CachePolicy:
    """Return the default cache policy; actors make their data and read nothing."""
    if loader is LoaderKind.ACTORS:
        return CachePolicy.PRELOADED
    return CachePolicy.SCAN if _access(data) is Access.SEQUENTIAL else CachePolicy.RANDOM


@cached()
def pipeline_of(
    stated: InputPipeline, data: Dataset, gpu: Gpu | None, model: Model | None, mark: float | None
) -> InputPipeline:
    """Return the input pipeline with defaults for keys that are left out.

    `mark` is the CoreMark of a vCPU of the machine on which the CPU times were measured. A copy
    that PyTorch does not wait for (`non_blocking`) is queued on the compute stream: it overlaps
    with compute only if the program has a stream of its own for copies [1]_, as DALI and
    prefetchers do.

    References
    ----------
    .. [1] meta-pytorch/torchrec, pull request 3485, 2025-10: without a side stream the transfer
       runs on the main stream
    """
    pins, transport = _pins(stated, gpu), transport_of(stated)
    applied = {default.field: default.value for default in _applied(stated, data, model)}
    defaults_of: dict[str, Any] = {
        "pin_memory": pins,
        "cpu_work": _cpu_work(model),
        "overlap_copies": pins and stated.loader is not LoaderKind.PYTORCH,
        "transport": transport,
        "output_bytes_per_sample": _output_bytes(stated, data, model)[0],
        **applied,
    }
    left_out = {key: value for key, value in defaults_of.items() if not stated.states(key)}
    return replace(stated, in_step=_in_step(stated, data), coremark_per_vcpu=mark, **left_out)


def _cpu_work(model: Model | None) -> CpuWork:
    images = isinstance(model, ConvNet) or (isinstance(model, Transformer) and not model.tokens)
    return CpuWork.IMAGES if images else CpuWork.GENERAL


def _pins(stated: InputPipeline, gpu: Gpu | None) -> bool:
    if stated.states("pin_memory"):
        return stated.pin_memory
    separate = gpu is not None and not gpu.unified_memory
    return separate and stated.loader is LoaderKind.DALI


def transport_of(stated: InputPipeline) -> Transport:
    """Return how batches reach the main process: as stated, else by shared memory for PyTorch."""
    if stated.states("transport"):
        return stated.transport
    pytorch = stated.loader is LoaderKind.PYTORCH
    return Transport.SHARED_MEMORY if pytorch else Transport.IN_PROCESS


def _applied(stated: InputPipeline, data: Dataset, model: Model | None) -> Iterator[Default]:
    """Yield the defaults of keys that are left out; only worker processes need them."""
    if stated.loader is not LoaderKind.PYTORCH or stated.workers == 0:
        return
    if not stated.states("worker_start"):
        yield WORKER_START
    if not stated.states("worker_memory"):
        yield WORKER_MEMORY
    transport = transport_of(stated)
    if transport is Transport.IN_PROCESS:
        return
    if not stated.states("receive_per_batch"):
        # A pipe carries all tensors of a batch at once.
        others = stated.tensors_per_batch - TENSORS
        more = 0 if transport is Transport.PIPE else others
        what = f"{stated.tensors_per_batch} tensors instead of {TENSORS}"
        yield RECEIVE_PER_BATCH.with_more(more * PER_TENSOR, what)
    if not stated.states("receive_per_sample"):
        yield _receiving(stated, transport).for_sample(_output_bytes(stated, data, model)[0])


def _receiving(stated: InputPipeline, transport: Transport) -> Default:
    """Return the cost of receiving a sample: through a pipe, copied to pinned memory, or mapped."""
    if transport is Transport.PIPE:
        return RECEIVE_PIPED
    return RECEIVE_PINNED if stated.pin_memory else RECEIVE_PER_SAMPLE


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
            source=OWN_CHOICE,
        )
    for default in _applied(given, data, model):
        yield default.note
    output, why = _output_bytes(given, data, model)
    if why:
        yield Assumption(
            what=f"a finished sample in memory, {why} (input.output_bytes_per_sample not given)",
            value=show(output, BYTE),
            source=OWN_CHOICE,
            bears_on=frozenset({Part.INPUT, Part.COPY, Part.HOST_RAM}),
        )
    if not data.states("cache") and given.loader is LoaderKind.ACTORS:
        what = "bytes that actors read from the store (data.cache not given)"
        yield Assumption(what=what, value="none", source=OWN_CHOICE)
    elif not data.states("cache") and _access(data) is Access.SEQUENTIAL:
        yield Assumption(
            what="what stays in the page cache under front-to-back reads (data.cache not given)",
            value=CachePolicy.SCAN.value,
            source=OWN_CHOICE,
        )


def _in_step(given: InputPipeline, data: Dataset) -> bool:
    """Return whether the file states that all samples are equal."""
    stated = data.states("size_spread") or given.states("cost_spread")
    return stated and not (data.size_spread.varies or given.cost_spread.varies)
