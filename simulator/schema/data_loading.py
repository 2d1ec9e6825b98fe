"""The dataset and the input pipeline of one rank.

The three loaders differ in data, not in code: the number of workers of a rank, the threads that
serve one batch, the batches that may be outstanding, whether order is kept and whether anything is
prefetched across an epoch boundary. `Loader.policy` states those rules.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated

from simulator.schema.fields import (
    CONSTANT,
    DEPENDS,
    ByteField,
    Choice,
    CountField,
    CountOrZeroField,
    Number,
    NumberField,
    Section,
    Spread,
    TextField,
    TimeField,
)
from simulator.uncertainty.provenance import Source
from simulator.units import Bytes, PerSecond, Seconds, at_least


class Layout(StrEnum):
    """One file a sample, many samples a shard, or a flat array of tokens read in windows."""

    FILES = "files"
    SHARDS = "shards"
    TOKENS = "tokens"


class Access(StrEnum):
    """The order on the store: shuffled sample by sample, or front to back within a shard."""

    RANDOM = "random"
    SEQUENTIAL = "sequential"


class CachePolicy(StrEnum):
    """What stays in memory when the data is read again.

    ``random``: random replacement, which fits the Linux page cache under shuffled reads;
    ``lru``; ``ideal``: what is in stays in; ``scan``: front-to-back reads under an LRU-like
    cache, nothing survives unless all fits; ``none``: caching off; ``preloaded``: the data is
    in memory before the run starts.
    """

    RANDOM = "random"
    LRU = "lru"
    IDEAL = "ideal"
    SCAN = "scan"
    NONE = "none"
    PRELOADED = "preloaded"


class Placement(StrEnum):
    """Where samples are while the job runs.

    ``stream``: on their store, read as needed; ``stage``: copied to the machine's own drives
    first; ``preload``: read into RAM first.
    """

    STREAM = "stream"
    STAGE = "stage"
    PRELOAD = "preload"


@dataclass(frozen=True, slots=True, kw_only=True)
class Dataset(Section):
    """The samples of one epoch, and how they lie on the store."""

    samples: Annotated[float, Number(low=1.0, whole=True)]
    """Samples in one epoch, over all machines."""
    bytes_per_sample: ByteField
    """Mean size of a sample on the store, such as 114 kB."""
    name: TextField = field(default="data", metadata=DEPENDS)
    """Name of the dataset, for people."""
    size_spread: Spread = CONSTANT
    """How sizes vary; by default all are equal, while workers drift apart; constant: in step."""
    layout: Annotated[Layout, Choice(Layout)] = Layout.FILES
    """One file a sample, shards of many samples, or a flat array of tokens."""
    access: Annotated[Access, Choice(Access)] = field(default=Access.RANDOM, metadata=DEPENDS)
    """Each sample where it lies (random), or front to back (sequential), as readers of shards do;
    sequential by default for shards, random otherwise."""
    shard_size: ByteField | None = None
    """Size of one shard; required for shards."""
    cache: Annotated[CachePolicy, Choice(CachePolicy)] = field(
        default=CachePolicy.RANDOM, metadata=DEPENDS
    )
    """What stays in memory between epochs; random replacement by default, scan if sequential."""
    read_time: TimeField | None = None
    """Measured time for one reader to fetch one sample, instead of the store's latency."""
    readers: Annotated[float, Number(low=1.0, whole=True)] = 1.0
    """Requests that one worker keeps open."""
    placement: Annotated[Placement, Choice(Placement)] = Placement.STREAM
    """Read as needed, or first copied to the machine's own drives (stage) or into RAM (preload)."""
    window: ByteField | None = None
    """Part of each sample that is needed, such as a crop; all of it by default."""
    chunk_size: ByteField | None = None
    """Samples are read in whole chunks of this size; the window's by default."""

    @property
    def total_bytes(self) -> Bytes:
        """Size of the whole dataset on the store [B]."""
        return self.samples * self.bytes_per_sample


class LoaderKind(StrEnum):
    """Whose rules the input pipeline follows.

    ``actors`` make batches (of experience, say) and put them into one bounded queue.
    """

    PYTORCH = "pytorch"
    TF_DATA = "tf.data"
    DALI = "dali"
    ACTORS = "actors"


class Transport(StrEnum):
    """How a finished batch reaches the main process.

    ``shared-memory``: tensors in shared memory, only handles cross; ``pipe``: pickled through a
    64 KiB pipe and unpickled by the pin-memory thread; ``in-process``: threads, nothing is moved.
    """

    SHARED_MEMORY = "shared-memory"
    PIPE = "pipe"
    IN_PROCESS = "in-process"


class Preparation(StrEnum):
    """Where samples are decoded and augmented: by the CPU, on the device, or before the run."""

    CPU = "cpu"
    DEVICE = "device"
    BEFOREHAND = "beforehand"


class CostBasis(StrEnum):
    """What a stated CPU time was measured on.

    ``core``: one thread alone on a physical core; ``vcpu``: one hardware thread while all
    hardware threads are busy.
    """

    CORE = "core"
    VCPU = "vcpu"


@dataclass(frozen=True, slots=True, kw_only=True)
class Preprocessing:
    """CPU work of turning stored bytes into a batch, per sample unless it says otherwise.

    `collate` includes serialising for the transport. `output_bytes` is what one finished
    sample takes in memory and over PCIe. `coremark_per_vcpu` belongs to the machine the times
    were measured on (None: this machine, so nothing is scaled).

    Where the device prepares, it takes `device_time` a sample from training and `device_memory`,
    and decode and augment stay with the CPU as far as they are stated. Where samples are prepared
    beforehand, that is done once and `prepared_bytes` a sample are stored and read.
    """

    decode: Seconds = 0.0
    augment: Seconds = 0.0
    collate: Seconds = 0.0
    per_batch: Seconds = 0.0
    output_bytes: Bytes = 0.0
    cost_spread: Spread = CONSTANT
    basis: CostBasis = CostBasis.CORE
    coremark_per_vcpu: PerSecond | None = None
    where: Preparation = Preparation.CPU
    device_time: Seconds = 0.0
    device_memory: Bytes = 0.0
    prepared_bytes: Bytes = 0.0
    sources: Mapping[str, Source] = field(default_factory=dict)

    @property
    def per_sample(self) -> Seconds:
        """CPU time of one sample, all parts [s]."""
        return self.decode + self.augment + self.collate


@dataclass(frozen=True, slots=True, kw_only=True)
class Straggler:
    """Some batches, one worker, or the workers of one rank, that take longer.

    Exactly one of `worker`, `every` and `rank` is given.
    """

    factor: NumberField
    """How many times as long."""
    worker: CountOrZeroField | None = None
    """Index of the slow worker within a rank, from 0."""
    every: CountField | None = None
    """Every batch whose number is a multiple of this is slow, beginning with batch 0."""
    rank: CountOrZeroField | None = None
    """Index of the process on its machine all of whose workers are slow, from 0."""

    def hits(self, rank: int, worker: int, batch: int) -> bool:
        """Return True if it concerns this batch."""
        if self.every is not None:
            return batch % self.every == 0
        return self.worker == worker if self.rank is None else self.rank == rank


class Assignment(StrEnum):
    """Who makes the next batch.

    ``round-robin``: the workers in turn, regardless of load; ``least-loaded``: the next worker
    in turn that has room; ``shared-queue``: the next free worker takes it.
    """

    ROUND_ROBIN = "round-robin"
    LEAST_LOADED = "least-loaded"
    SHARED_QUEUE = "shared-queue"


@dataclass(frozen=True, slots=True, kw_only=True)
class LoaderPolicy:
    """The rules of a loader as the engine needs them.

    `producers` make whole batches, each with `threads` threads; 0 workers: the trainer's own thread
    does it. At most `credits` batches are asked for and not yet taken. `in_order` delivery waits
    for the oldest batch. `crosses_epochs`: workers go on with the next epoch's batches at an
    epoch's end. `reads_ahead`: one batch is read while the one before it is worked on.
    """

    producers: int
    threads: float
    credits: int
    assignment: Assignment
    in_order: bool
    crosses_epochs: bool
    restarts: bool
    reads_ahead: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Remote:
    """Workers on the machines of another group, who hand batches over the network.

    `workers` run on each machine of `group`; each makes whole batches alone, or all of them
    together one batch of each rank at a time (`shares_batches`, as a tf.data service does).
    `queue` finished batches may wait for each rank. Batches come in any order. `send_per_batch`
    and `send_per_sample` are CPU times of serialising on the remote machine.
    """

    group: str
    workers: int
    shares_batches: bool = False
    queue: int = 2
    send_per_batch: Seconds = 0.0
    send_per_sample: Seconds = 0.0

    def producers(self, ranks: int) -> int:
        """Workers that one machine has for each rank."""
        return 1 if self.shares_batches else -(-self.workers // ranks)

    def threads(self, ranks: int) -> float:
        """Threads that make one batch: less than one where ranks take turns at a worker."""
        return self.workers / (ranks * self.producers(ranks))


@dataclass(frozen=True, slots=True, kw_only=True)
class Loader:
    """Settings of the input pipeline of one rank (one process that owns a loader).

    `workers`: processes (PyTorch) or threads (tf.data, DALI). `prefetch`: batches per worker
    (PyTorch) or batches ahead (tf.data, DALI). `receive_per_batch` and `receive_per_sample` are
    CPU times of the one thread that takes finished batches (the pin thread where `pin_memory`,
    else the main thread). `worker_start` passes for each worker in turn when they are started.
    `epoch_start` passes at the start of each epoch before its first batch is asked for; a loader
    of threads that has one restarts each epoch.
    `in_step`: equal batches keep workers in step, as they begin together; else they come
    to be spread evenly over a batch's time, as real ones drift apart.
    `overlap_copies`: the copy to the device overlaps compute (needs pinned memory). Batches
    lie in the memory of `socket` (None: of the socket each device is attached to).
    """

    kind: LoaderKind = LoaderKind.PYTORCH
    workers: int = 0
    prefetch: int = 2
    pin_memory: bool = False
    in_order: bool = True
    persistent_workers: bool = False
    drop_last: bool = False
    overlap_copies: bool = True
    socket: int | None = None
    transport: Transport = Transport.SHARED_MEMORY
    receive_per_batch: Seconds = 0.0
    receive_per_sample: Seconds = 0.0
    worker_start: Seconds = 0.0
    epoch_start: Seconds = 0.0
    worker_memory: Bytes = 0.0
    stragglers: tuple[Straggler, ...] = ()
    in_step: bool = False
    sources: Mapping[str, Source] = field(default_factory=dict)

    @property
    def copies_beside_compute(self) -> bool:
        """True if batches are copied to the device while it computes, from pinned memory."""
        return self.pin_memory and self.overlap_copies

    @property
    def policy(self) -> LoaderPolicy:
        """The rules this loader follows."""
        if self.kind is LoaderKind.PYTORCH:
            return LoaderPolicy(
                producers=self.workers,
                threads=1.0,
                credits=at_least(1, self.workers * self.prefetch),
                assignment=Assignment.ROUND_ROBIN if self.in_order else Assignment.LEAST_LOADED,
                in_order=self.in_order,
                crosses_epochs=False,
                restarts=not self.persistent_workers,
            )
        if self.kind is LoaderKind.ACTORS:
            return LoaderPolicy(
                producers=self.workers,
                threads=1.0,
                credits=at_least(1, self.workers + self.prefetch),
                assignment=Assignment.SHARED_QUEUE,
                in_order=False,
                crosses_epochs=True,
                restarts=False,
            )
        return LoaderPolicy(
            producers=1,
            threads=at_least(1.0, self.workers * 1.0),
            credits=at_least(1, self.prefetch) + 1,
            assignment=Assignment.ROUND_ROBIN,
            in_order=True,
            crosses_epochs=self.epoch_start == 0.0,
            restarts=False,
            reads_ahead=True,
        )
