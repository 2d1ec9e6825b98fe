"""The dataset and the input pipeline of one rank.

The three loaders differ in data, not in code: the number of workers of a rank, the threads per
batch, the number of outstanding batches, whether order is preserved and whether batches are
prefetched across epochs. `InputPipeline.policy` returns these rules.
"""

from __future__ import annotations

from dataclasses import field
from enum import StrEnum
from typing import Annotated

from simulator.records import dataclass
from simulator.schema.fields import (
    CONSTANT,
    DEPENDS,
    DERIVED,
    REQUIRED,
    ByteField,
    ByteOrZeroField,
    ByteRateField,
    Choice,
    CountField,
    CountOrZeroField,
    FractionField,
    Number,
    NumberField,
    NumberOrZeroField,
    PriceOrZeroField,
    Section,
    Spread,
    TextField,
    TimeField,
    TimeOrZeroField,
)
from simulator.units import Bytes, PerSecond, Seconds, at_least


class Layout(StrEnum):
    """Arrangement of samples on the store.

    One file per sample, many samples per shard, or a flat array of tokens read in windows.
    """

    FILES = "files"
    SHARDS = "shards"
    TOKENS = "tokens"


class Access(StrEnum):
    """Order of reads on the store: shuffled sample by sample, or sequential within a shard."""

    RANDOM = "random"
    SEQUENTIAL = "sequential"


class CachePolicy(StrEnum):
    """The part of the data that stays in memory until it is read again.

    ``random``: random replacement, which approximates the Linux page cache under shuffled reads;
    ``lru``; ``ideal``: data once cached stays; ``scan``: sequential reads under an LRU-like cache,
    nothing survives unless all data fits; ``none``: no caching; ``preloaded``: the data is in
    memory before the run starts.
    """

    RANDOM = "random"
    LRU = "lru"
    IDEAL = "ideal"
    SCAN = "scan"
    NONE = "none"
    PRELOADED = "preloaded"


class Placement(StrEnum):
    """Location of samples while the job runs.

    ``stream``: on their store, read as needed; ``stage``: copied to the machine's own drives first;
    ``preload``: read into RAM first.
    """

    STREAM = "stream"
    STAGE = "stage"
    PRELOAD = "preload"


@dataclass(frozen=True, slots=True, kw_only=True)
class Dataset(Section):
    """The samples of one epoch, and their arrangement on the store."""

    samples: Annotated[float, Number(low=1.0, whole=True)]
    """Samples in one epoch, over all machines."""
    bytes_per_sample: ByteField
    """Mean size of a sample on the store, such as 114 kB."""
    name: TextField = field(default="data", metadata=DEPENDS)
    """Name of the dataset, for reports."""
    size_spread: Spread = CONSTANT
    """Variation of sizes; by default all are equal, while workers drift apart; constant: in
    step."""
    layout: Annotated[Layout, Choice(Layout)] = Layout.FILES
    """One file per sample, shards of many samples, or a flat array of tokens."""
    access: Annotated[Access, Choice(Access)] = field(default=Access.RANDOM, metadata=DEPENDS)
    """Order of reads: sample by sample (random), or front to back (sequential), as readers of
    shards do; sequential by default for shards, random otherwise."""
    shard_size: ByteField | None = None
    """Size of one shard; required for shards."""
    cache: Annotated[CachePolicy, Choice(CachePolicy)] = field(
        default=CachePolicy.RANDOM, metadata=DEPENDS
    )
    """Data that stays in memory between epochs; random replacement by default, scan if
    sequential."""
    read_time: TimeField | None = None
    """Measured time for one reader to fetch one sample, instead of the store's latency."""
    readers: Annotated[float, Number(low=1.0, whole=True)] = 1.0
    """Number of concurrent requests of one worker."""
    client: TextField = "unknown"
    """Library or mount that reads an object store, such as boto3, fsspec, mountpoint, goofys, crt,
    gcsfs or rust; unknown by default, which spans them."""
    request_cpu: TimeOrZeroField | None = None
    """CPU time of one request to an object store, instead of the client's."""
    core_rate: ByteRateField | None = None
    """Bytes per second that one busy core receives from an object store, instead of the
    client's."""
    placement: Annotated[Placement, Choice(Placement)] = Placement.STREAM
    """Read as needed, or first copied to the machine's own drives (stage) or into RAM (preload)."""
    window: ByteField | None = None
    """Part of each sample that is needed, such as a crop; all of it by default."""
    chunk_size: ByteField | None = None
    """Samples are read in whole chunks of this size; the window's size by default."""

    @property
    def total_bytes(self) -> Bytes:
        """Size of the whole dataset on the store [B]."""
        return self.samples * self.bytes_per_sample


class LoaderKind(StrEnum):
    """The loader whose rules the input pipeline follows.

    ``actors`` make batches (of experience, say) and put them into one bounded queue.
    """

    PYTORCH = "pytorch"
    TF_DATA = "tf.data"
    DALI = "dali"
    ACTORS = "actors"


class Transport(StrEnum):
    """Transfer of a finished batch to the main process.

    ``shared-memory``: tensors in shared memory, only handles are sent; ``pipe``: pickled through a
    64 KiB pipe and unpickled by the pin-memory thread; ``in-process``: threads, nothing is moved.
    """

    SHARED_MEMORY = "shared-memory"
    PIPE = "pipe"
    IN_PROCESS = "in-process"


class Preparation(StrEnum):
    """Place of decoding and augmentation: the CPU, the device, or before the run."""

    CPU = "cpu"
    DEVICE = "device"
    BEFOREHAND = "beforehand"


class CpuWork(StrEnum):
    """Kind of the CPU work on samples.

    It decides what a second hardware thread adds to a core, and how much busy cores slow each
    other, on machines where neither was measured.
    """

    IMAGES = "images"
    COMPRESSION = "compression"
    VIDEO = "video"
    AUDIO = "audio"
    COPY = "copy"
    GENERAL = "general"


class CostBasis(StrEnum):
    """Conditions under which a stated CPU time was measured.

    ``core``: one thread alone on a physical core; ``vcpu``: one hardware thread while all hardware
    threads are busy.
    """

    CORE = "core"
    VCPU = "vcpu"


@dataclass(frozen=True, slots=True, kw_only=True)
class Straggler:
    """Slow batches: every n-th batch, those of one worker, or those of one rank.

    Exactly one of `worker`, `every` and `rank` is given.
    """

    factor: NumberField
    """Time over that of other batches."""
    worker: CountOrZeroField | None = None
    """Index of the slow worker within a rank, from 0."""
    every: CountField | None = None
    """Every batch whose number is a multiple of this is slow, beginning with batch 0."""
    rank: CountOrZeroField | None = None
    """Index of the process on its machine all of whose workers are slow, from 0."""

    def hits(self, rank: int, worker: int, batch: int) -> bool:
        """Return True if this batch is slow."""
        if self.every is not None:
            return batch % self.every == 0
        return self.worker == worker if self.rank is None else self.rank == rank


class Assignment(StrEnum):
    """Assignment of the next batch to a worker.

    ``round-robin``: the workers in turn, regardless of load; ``least-loaded``: the next worker in
    turn that has room; ``shared-queue``: the next free worker takes it.
    """

    ROUND_ROBIN = "round-robin"
    LEAST_LOADED = "least-loaded"
    SHARED_QUEUE = "shared-queue"


@dataclass(frozen=True, slots=True, kw_only=True)
class LoaderPolicy:
    """The rules of a loader, as the engine needs them.

    `producers` workers make whole batches, each with `threads` threads; with 0 workers the training
    process makes them itself. At most `credits` batches are requested and not yet consumed. With
    `in_order`, delivery waits for the oldest batch. `crosses_epochs`: workers start the next
    epoch's batches before an epoch ends. `reads_ahead`: a worker reads the next batch while it
    processes one.
    """

    producers: int
    threads: float
    credits: int
    assignment: Assignment
    in_order: bool
    crosses_epochs: bool
    restarts: bool
    reads_ahead: bool = False


HelpersField = Annotated[int, Number(low=1.0, high=1e4, whole=True)]
# Far beyond any run ever reported, near enough to catch a slip of the keyboard.
RemoteWorkersField = Annotated[int, Number(low=1.0, high=4096.0, whole=True)]
WorkersField = Annotated[int, Number(high=4096.0, whole=True)]
PrefetchField = Annotated[int, Number(low=1.0, high=4096.0, whole=True)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Remote(Section):
    """Machines that only make batches and hand them over the network, in any order.

    Each worker makes whole batches alone, or with `shares_batches` all workers of a machine
    together make one batch of each rank at a time, as a tf.data service does.
    """

    machine: TextField = field(default="", metadata=REQUIRED)
    """Name of a machine's profile, such as instance/aws/c5.18xlarge."""
    count: HelpersField = 1
    """Number of equal machines."""
    name: TextField = "data"
    """Name of the group in reports, as in the resource data.cpu."""
    storage: TextField | None = None
    """Store that these machines read; that of the trainers by default, unless it is their own
    drives."""
    workers: RemoteWorkersField = field(default=1, metadata=DEPENDS)
    """Workers on each of these machines; one for each of its vCPUs by default."""
    shares_batches: bool = field(default=False, metadata=DEPENDS)
    """Whether all workers of a machine make each batch together; true by default for tf.data."""
    queue: CountField = field(default=2, metadata=DEPENDS)
    """Finished batches that may wait for each training process; 2 by default."""
    speed: NumberField | None = None
    """Speed of one of their vCPUs relative to a vCPU of the trainers, such as 1.2; by default the
    ratio of their CoreMarks."""
    smt_worth: FractionField | None = None
    """Extra speed of a busy core with a second hardware thread there, as a fraction of a core."""
    contention: NumberOrZeroField | None = None
    """Extra time of work there with all cores busy over that with one, as a fraction."""
    send_per_batch: TimeOrZeroField = 0.0
    """CPU time of a remote worker to serialise and send a batch."""
    send_per_sample: TimeOrZeroField = 0.0
    """CPU time of a remote worker to serialise and send, for each sample."""
    price: PriceOrZeroField | None = None
    """Price of one of these machines, such as $3.06/h; the profile's by default."""

    def producers(self, ranks: int) -> int:
        """Return the number of workers that one machine has for each of `ranks` ranks."""
        return 1 if self.shares_batches else -(-self.workers // ranks)

    def threads(self, ranks: int) -> float:
        """Return the number of threads per batch; below 1 if `ranks` ranks share a worker."""
        return self.workers / (ranks * self.producers(ranks))


@dataclass(frozen=True, slots=True, kw_only=True)
class InputPipeline(Section):
    """The input pipeline of one training process, and the costs of its work."""

    loader: Annotated[LoaderKind, Choice(LoaderKind)] = LoaderKind.PYTORCH
    """Loader whose rules the pipeline follows."""
    workers: WorkersField = 0
    """Worker processes (pytorch), threads (tf.data, dali) or actors of each training process."""
    prefetch: PrefetchField = field(default=2, metadata=DEPENDS)
    """Batches ahead: per worker (pytorch), or in all (the queue, for actors); 2 by default."""
    pin_memory: bool = field(default=False, metadata=DEPENDS)
    """Whether batches go through page-locked memory; false by default, true for dali."""
    in_order: bool = True
    """Whether batches are delivered in the order they were asked for."""
    persistent_workers: bool = False
    """Whether workers continue from epoch to epoch."""
    drop_last: bool = False
    """Whether an incomplete last batch is dropped."""
    overlap_copies: bool = field(default=True, metadata=DEPENDS)
    """Whether copies to the device overlap compute, on a stream of their own: true by default for
    pinned batches of dali, tf.data and actors, false for pytorch, whose copies wait on the compute
    stream unless the program has a prefetcher."""
    transport: Annotated[Transport, Choice(Transport)] = field(
        default=Transport.SHARED_MEMORY, metadata=DEPENDS
    )
    """Transfer of a batch to the main process; shared-memory for pytorch, else in-process."""
    tensors_per_batch: CountField = 2
    """Number of tensors in a finished batch; worker processes hand over each by itself."""
    receive_per_batch: TimeOrZeroField = field(default=0.0, metadata=DEPENDS)
    """CPU time per batch of the thread that receives finished batches."""
    receive_per_sample: TimeOrZeroField = field(default=0.0, metadata=DEPENDS)
    """CPU time per sample of the thread that receives finished batches."""
    worker_start: TimeOrZeroField = field(default=0.0, metadata=DEPENDS)
    """Time to start one worker; workers are started one after another."""
    epoch_start: TimeOrZeroField = 0.0
    """Time at the start of each epoch before its first batch is requested, to set up its order."""
    worker_memory: ByteOrZeroField = field(default=0.0, metadata=DEPENDS)
    """Memory of one worker without its batches."""
    straggler: tuple[Straggler, ...] = ()
    """Batches or workers that take longer."""
    decode: TimeOrZeroField = 0.0
    """CPU time to decode one sample, such as 1.5 ms."""
    augment: TimeOrZeroField = 0.0
    """CPU time to augment one sample."""
    collate: TimeOrZeroField = 0.0
    """CPU time per sample to combine samples into a batch and hand it over."""
    per_batch: TimeOrZeroField = 0.0
    """CPU time of one batch in addition to the work on its samples."""
    output_bytes_per_sample: ByteOrZeroField = field(default=0.0, metadata=DEPENDS)
    """Size of a finished sample in memory; by default the input size of the model."""
    cost_spread: Spread = CONSTANT
    """Variation of the CPU time of samples; default and constant as with size_spread."""
    cost_basis: Annotated[CostBasis, Choice(CostBasis)] = CostBasis.CORE
    """Conditions of the measured CPU times: an idle core, or a vCPU of a busy machine."""
    cpu_work: Annotated[CpuWork, Choice(CpuWork)] = field(default=CpuWork.GENERAL, metadata=DEPENDS)
    """Kind of the CPU work: decoding or changing images, compression, video, audio, copying memory,
    or general, which may be any of these; images by default for a model of images. It decides what
    hyper-threads add and how busy cores slow each other, unless measured (plan probe)."""
    measured_on: TextField | None = None
    """Profile of the machine the CPU times were measured on; this machine by default."""
    where: Annotated[Preparation, Choice(Preparation)] = Preparation.CPU
    """Place of decoding and augmentation: cpu, device, or beforehand (once, and stored)."""
    device_time: TimeField = field(default=0.0, metadata=DEPENDS)
    """Time the device takes to prepare one sample; required with where = "device"."""
    device_memory: ByteOrZeroField = field(default=0.0, metadata=DEPENDS)
    """Device memory used to prepare samples."""
    prepared_bytes_per_sample: ByteField = field(default=0.0, metadata=DEPENDS)
    """Size of a stored prepared sample; required with where = "beforehand"."""
    socket: CountOrZeroField | None = None
    """Socket whose memory holds batches; by default the socket of each device."""
    in_step: bool = field(default=False, metadata=DERIVED)
    """True if workers stay in step because their batches are equal; otherwise their phases are
    spread evenly over the time of a batch, as real workers drift apart."""
    coremark_per_vcpu: PerSecond | None = field(default=None, metadata=DERIVED)
    """CoreMark of a vCPU of the machine on which the CPU times were measured; None: no scaling."""

    @property
    def per_sample(self) -> Seconds:
        """CPU time of one sample, all parts together [s]."""
        return self.decode + self.augment + self.collate

    @property
    def copies_beside_compute(self) -> bool:
        """True if batches are copied to the device while it computes, from pinned memory."""
        return self.pin_memory and self.overlap_copies

    @property
    def copies_block(self) -> bool:
        """True if the main thread waits for each copy, as from pageable memory."""
        return not self.pin_memory

    @property
    def policy(self) -> LoaderPolicy:
        """Rules that this loader follows."""
        if self.loader is LoaderKind.PYTORCH:
            return LoaderPolicy(
                producers=self.workers,
                threads=1.0,
                credits=at_least(1, self.workers * self.prefetch),
                assignment=Assignment.ROUND_ROBIN if self.in_order else Assignment.LEAST_LOADED,
                in_order=self.in_order,
                crosses_epochs=False,
                restarts=not self.persistent_workers,
            )
        if self.loader is LoaderKind.ACTORS:
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
