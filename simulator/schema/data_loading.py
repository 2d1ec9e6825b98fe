"""The dataset and the input pipeline of one rank.

The three loaders differ in data, not in code: the number of workers of a rank, the threads that
serve one batch, the batches that may be outstanding, whether order is kept and whether anything is
prefetched across an epoch boundary. `InputPipeline.policy` states those rules.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated

from simulator.schema.fields import (
    CONSTANT,
    DEPENDS,
    DERIVED,
    REQUIRED,
    ByteField,
    ByteOrZeroField,
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


HelpersField = Annotated[int, Number(low=1.0, high=1e4, whole=True)]
# Far beyond any run ever reported, near enough to catch a slip of the keyboard.
RemoteWorkersField = Annotated[int, Number(low=1.0, high=4096.0, whole=True)]
WorkersField = Annotated[int, Number(high=4096.0, whole=True)]
PrefetchField = Annotated[int, Number(low=1.0, high=4096.0, whole=True)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Remote(Section):
    """Machines that only make batches and hand them over the network, in any order.

    Each worker makes whole batches alone, or all of a machine together make one batch of each rank
    at a time (`shares_batches`, as a tf.data service does).
    """

    machine: TextField = field(default="", metadata=REQUIRED)
    """Name of a machine's profile, such as instance/aws/c5.18xlarge."""
    count: HelpersField = 1
    """How many equal machines."""
    name: TextField = "data"
    """What the group is called in reports, as in the resource data.cpu."""
    storage: TextField | None = None
    """Store these machines read; that of the trainers by default, unless it is their own drives."""
    workers: RemoteWorkersField = field(default=1, metadata=DEPENDS)
    """Workers on each of these machines; one for each of its vCPUs by default."""
    shares_batches: bool = field(default=False, metadata=DEPENDS)
    """Whether all workers of a machine make each batch together; true by default for tf.data."""
    queue: CountField = field(default=2, metadata=DEPENDS)
    """Finished batches that may wait for each process that trains; 2 by default."""
    speed: NumberField | None = None
    """Speed of one of their vCPUs relative to one that trains, such as 1.2; by their CoreMarks."""
    smt_worth: FractionField | None = None
    """What a second hardware thread adds to a busy core there, as a fraction of a core."""
    contention: NumberOrZeroField | None = None
    """How much longer work takes there with all cores busy than with one, less 1."""
    send_per_batch: TimeOrZeroField = 0.0
    """CPU time of a remote worker to serialise and send a batch."""
    send_per_sample: TimeOrZeroField = 0.0
    """CPU time of a remote worker to serialise and send, for each sample."""
    price: PriceOrZeroField | None = None
    """Price of one of these machines, such as $3.06/h; the profile's by default."""

    def producers(self, ranks: int) -> int:
        """Workers that one machine has for each rank."""
        return 1 if self.shares_batches else -(-self.workers // ranks)

    def threads(self, ranks: int) -> float:
        """Threads that make one batch: less than one where ranks take turns at a worker."""
        return self.workers / (ranks * self.producers(ranks))


@dataclass(frozen=True, slots=True, kw_only=True)
class InputPipeline(Section):
    """The input pipeline of one process that trains, and what its work costs."""

    loader: Annotated[LoaderKind, Choice(LoaderKind)] = LoaderKind.PYTORCH
    """Whose rules the pipeline follows."""
    workers: WorkersField = 0
    """Worker processes (pytorch), threads (tf.data, dali) or actors of each training process."""
    prefetch: PrefetchField = field(default=2, metadata=DEPENDS)
    """Batches ahead: per worker (pytorch), or in all (the queue, for actors); 2 by default."""
    pin_memory: bool = field(default=False, metadata=DEPENDS)
    """Whether batches go through page-locked memory; false by default, true for dali."""
    in_order: bool = True
    """Whether batches are delivered in the order they were asked for."""
    persistent_workers: bool = False
    """Whether workers live on from epoch to epoch."""
    drop_last: bool = False
    """Whether an incomplete last batch is dropped."""
    overlap_copies: bool = field(default=True, metadata=DEPENDS)
    """Whether copies to the device overlap compute; as pin_memory by default."""
    transport: Annotated[Transport, Choice(Transport)] = field(
        default=Transport.SHARED_MEMORY, metadata=DEPENDS
    )
    """How a batch reaches the main process; shared-memory for pytorch, else in-process."""
    tensors_per_batch: CountField = 2
    """Tensors of a finished batch; worker processes hand over each by itself."""
    receive_per_batch: TimeOrZeroField = field(default=0.0, metadata=DEPENDS)
    """CPU time of the thread that takes a finished batch, once a batch."""
    receive_per_sample: TimeOrZeroField = field(default=0.0, metadata=DEPENDS)
    """CPU time of the thread that takes a finished batch, for each sample in it."""
    worker_start: TimeOrZeroField = field(default=0.0, metadata=DEPENDS)
    """Time to start one worker; workers are started one after another."""
    epoch_start: TimeOrZeroField = 0.0
    """Time at the start of each epoch before its first batch is asked for, to set up its order."""
    worker_memory: ByteOrZeroField = field(default=0.0, metadata=DEPENDS)
    """Memory of one worker other than its batches."""
    straggler: tuple[Straggler, ...] = ()
    """Batches or workers that take longer."""
    decode: TimeOrZeroField = 0.0
    """CPU time to decode one sample, such as 1.5 ms."""
    augment: TimeOrZeroField = 0.0
    """CPU time to augment one sample."""
    collate: TimeOrZeroField = 0.0
    """CPU time per sample to put a batch together and hand it over."""
    per_batch: TimeOrZeroField = 0.0
    """CPU time of one batch in addition to the work on its samples."""
    output_bytes_per_sample: ByteOrZeroField = field(default=0.0, metadata=DEPENDS)
    """Bytes of a finished sample in memory; by default what the model takes."""
    cost_spread: Spread = CONSTANT
    """How the CPU time of samples varies; by default and constant as with size_spread."""
    cost_basis: Annotated[CostBasis, Choice(CostBasis)] = CostBasis.CORE
    """What the CPU times were measured on: an idle core, or a vCPU of a busy machine."""
    measured_on: TextField | None = None
    """Profile of the machine the CPU times were measured on; this machine by default."""
    where: Annotated[Preparation, Choice(Preparation)] = Preparation.CPU
    """Where samples are decoded and augmented: cpu, device, or beforehand (once, and stored)."""
    device_time: TimeField = field(default=0.0, metadata=DEPENDS)
    """Time the device takes to prepare one sample; required where it does."""
    device_memory: ByteOrZeroField = field(default=0.0, metadata=DEPENDS)
    """Device memory that preparing takes."""
    prepared_bytes_per_sample: ByteField = field(default=0.0, metadata=DEPENDS)
    """Bytes of a sample as prepared beforehand and stored; required where it is."""
    socket: CountOrZeroField | None = None
    """Socket in whose memory batches lie; by default that of each device."""
    in_step: bool = field(default=False, metadata=DERIVED)
    """Equal batches keep workers in step, as they begin together; else they come to be spread
    evenly over a batch's time, as real ones drift apart."""
    coremark_per_vcpu: PerSecond | None = field(default=None, metadata=DERIVED)
    """CoreMark of a vCPU of the machine the CPU times were measured on; None: nothing is scaled."""

    @property
    def per_sample(self) -> Seconds:
        """CPU time of one sample, all parts [s]."""
        return self.decode + self.augment + self.collate

    @property
    def copies_beside_compute(self) -> bool:
        """True if batches are copied to the device while it computes, from pinned memory."""
        return self.pin_memory and self.overlap_copies

    @property
    def policy(self) -> LoaderPolicy:
        """The rules this loader follows."""
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
