"""Types of the step program: resources, demands, stages, slots, and the demand table."""

from __future__ import annotations

from dataclasses import KW_ONLY, replace
from enum import StrEnum
from typing import Final, Protocol

from simulator.records import dataclass
from simulator.schema.calibration import Calibration
from simulator.schema.scenario import Scenario
from simulator.terms import Term, quotient_of
from simulator.units import BytesPerSecond, Real, Seconds


class Resource(StrEnum):
    """A resource that can be busy; its value is the name in utilization and bottleneck."""

    GPU = "gpu"
    CPU = "cpu"
    STORAGE = "storage"
    NETWORK = "network"
    PCIE = "pcie"
    NVLINK = "nvlink"
    HOST_MEMORY = "host_memory"


class Path(StrEnum):
    """Path of a demand through the machine; `topology` maps it to a route over units."""

    STORE_TO_HOST = "store-to-host"
    CACHE_TO_HOST = "cache-to-host"
    HOST_TO_STORE = "host-to-store"
    HOST_TO_TRAINER = "host-to-trainer"
    HOST_TO_DEVICE = "host-to-device"
    DEVICE_TO_HOST = "device-to-host"
    DEVICE_TO_DEVICE = "device-to-device"
    MACHINE_TO_MACHINE = "machine-to-machine"
    EXCHANGE = "exchange"
    CORES = "cores"
    MEMORY = "memory"
    COMPUTE = "compute"


OF_A_RANK: Final = frozenset(
    {Path.HOST_TO_DEVICE, Path.DEVICE_TO_HOST, Path.DEVICE_TO_DEVICE, Path.EXCHANGE}
)
"""Ways that differ from rank to rank."""


class Phase(StrEnum):
    """State of the page cache at the start of an epoch: empty, or as the last epoch left it."""

    COLD = "cold"
    WARM = "warm"


class Actor(StrEnum):
    """Thread or stream that executes a stage, one demand after another."""

    WORKER = "worker"
    SENDER = "sender"
    PIN_MEMORY = "pin memory"
    MAIN_THREAD = "main thread"
    COPY_ENGINE = "copy engine"
    RESULT_ENGINE = "result engine"
    COMPUTE_STREAM = "compute stream"
    COMMUNICATION_STREAM = "communication stream"
    WRITER = "writer"


PRODUCERS = frozenset({Actor.WORKER, Actor.SENDER})
"""Actors that make batches; groups of machines may share their work."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """Demand of one batch of one rank on one resource.

    `amount` is in the resource's own unit: bytes for storage, links and memory, core-seconds (of an
    unshared core of this machine) for the CPU, busy seconds for a device's streams. `operations`
    counts requests where the resource also limits those. `ceiling` is the highest rate of this flow
    (None: that of the path); `latency` is an idle wait before it. `threads` is the number of
    threads that share a CPU demand, `sharers` the number of machines that use the store for it at
    the same time (None: all its clients), `outward` the share of communicated bytes that leaves the
    machine. `term` is the equation of the amount (of the latency, for an idle wait) with its
    inputs; `delay` is the equation of the latency of other demands.

    Stages create demands with `asking` and `passing`, which take amounts from their terms.
    """

    resource: Resource
    path: Path
    amount: Real
    operations: Real = 0.0
    ceiling: BytesPerSecond | Real | None = None
    latency: Seconds | Real = 0.0
    threads: float = 1.0
    sharers: Real | None = None
    outward: Real = 0.0
    term: Term | None = None
    delay: Term | None = None


def asking(  # noqa: PLR0913 - the parts of a demand
    amount: Term,
    resource: Resource,
    path: Path,
    *,
    operations: Real = 0.0,
    ceiling: BytesPerSecond | Real | None = None,
    latency: Term | Seconds | Real = 0.0,
    threads: float = 1.0,
    sharers: Real | None = None,
    outward: Real = 0.0,
) -> Demand:
    """Return a demand on a resource with the amount of a term; fields are those of `Demand`."""
    return Demand(
        resource=resource,
        path=path,
        amount=amount.value,
        operations=operations,
        ceiling=ceiling,
        latency=latency.value if isinstance(latency, Term) else latency,
        threads=threads,
        sharers=sharers,
        outward=outward,
        term=amount,
        delay=latency if isinstance(latency, Term) else None,
    )


def passing(seconds: Term, resource: Resource) -> Demand:
    """Return the demand of an idle wait [s], which counts for `resource`."""
    return Demand(
        resource=resource,
        path=Path.MEMORY,
        amount=0.0 * seconds.value,
        latency=seconds.value,
        term=seconds,
    )


class Stage(Protocol):
    """Interface of a stage of the step program."""

    @property
    def name(self) -> str:
        """Name of the stage in tables."""

    def demands(self, scenario: Scenario, phase: Phase) -> tuple[Demand, ...]:
        """Return the demands of one batch of one rank, in order."""


class Per(StrEnum):
    """Frequency of a slot.

    ``batch``: for every batch of a rank (every micro-batch with gradient accumulation). ``step``:
    after the last batch of a step. ``bucket``: once a step, in parts: the slot handles a bucket of
    gradients as soon as the previous slot has filled it, concurrently with the rest of that slot.
    ``checkpoint``: at a checkpoint, while training waits.
    """

    BATCH = "batch"
    BUCKET = "bucket"
    STEP = "step"
    CHECKPOINT = "checkpoint"


class Entry(StrEnum):
    """Entries of a step's ledger: the arguments of `equations.step.step_time`."""

    DATA_STALL = "data_stall"
    H2D = "h2d"
    COMPUTE = "compute"
    COMMUNICATION = "communication"
    BUBBLE = "bubble"
    CHECKPOINT = "checkpoint"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Slot:
    """A stage's place in the step program.

    `stream` executes the stage, `per` is its frequency. Time that a device spends on it, or waits
    for it, counts for `entry` of the step's ledger. `shown` is its name in a timeline (empty: the
    stage's name).

    `forward_only`: part of inference and evaluation, too. `reads`: a loader that reads ahead
    executes it on a separate thread. `by_sample`: a worker executes it sample by sample,
    alternating with the other slots of this kind. `after_late`: time that ranks have waited for a
    late batch is deducted from this wait.
    """

    stage: Stage
    stream: Actor
    per: Per
    entry: Entry
    _: KW_ONLY
    shown: str = ""
    forward_only: bool = False
    reads: bool = False
    by_sample: bool = False
    after_late: bool = False

    @property
    def name(self) -> str:
        """Name of the stage in tables."""
        return self.stage.name

    @property
    def label(self) -> str:
        """Name of the stage in a timeline."""
        return self.shown or self.name

    @property
    def beside_compute(self) -> bool:
        """True if the slot runs concurrently with the compute of its batch."""
        return self.stream is Actor.COMMUNICATION_STREAM and self.per is not Per.BUCKET

    @property
    def once_a_step(self) -> bool:
        """True if the slot runs once for all accumulated batches of a step."""
        return self.per in {Per.BUCKET, Per.STEP}


@dataclass(frozen=True, slots=True, kw_only=True)
class StageDemands:
    """A slot of the step program with the demands of its stage.

    `group` is the name of the machines that execute it; empty for the training machines. `times` is
    the number of executions per batch: below 1 for slots that run once a step with gradient
    accumulation.
    """

    slot: Slot
    demands: tuple[Demand, ...]
    group: str = ""
    times: float = 1.0

    @property
    def stage(self) -> str:
        """Name of the stage in tables."""
        return self.slot.name

    @property
    def compute_time(self) -> float:
        """Busy time of the compute stream [s]; 0 if the stage uses another resource."""
        exclusive = all(demand.path is Path.COMPUTE for demand in self.demands)
        return sum(float(demand.amount) for demand in self.demands) if exclusive else 0.0

    @property
    def actor(self) -> Actor:
        """Thread or stream that executes the stage."""
        return self.slot.stream


def ask(slots: tuple[Slot, ...], scenario: Scenario, phase: Phase) -> tuple[StageDemands, ...]:
    """Return the demand table: the demands of every slot for one batch of one rank."""
    return tuple(
        StageDemands(
            slot=slot,
            demands=tuple(
                calibrated(demand, scenario.calibration)
                for demand in slot.stage.demands(scenario, phase)
            ),
            group=scenario.at,
            times=1.0 / scenario.job.train.accumulation if slot.once_a_step else 1.0,
        )
        for slot in slots
    )


_FACTORS: Final = {
    Path.CORES: "cpu",
    Path.DEVICE_TO_DEVICE: "collective",
    Path.MACHINE_TO_MACHINE: "collective",
}
"""Calibration factors of work by its way: above 1 the work shrinks."""


def calibrated(demand: Demand, calibration: Calibration) -> Demand:
    """Return the demand with work and latency divided by the calibration factor of its path."""
    name = _FACTORS.get(demand.path, "")
    factor = calibration.value(name)
    if factor == 1.0:
        return demand
    return replace(
        demand,
        amount=demand.amount / factor,
        operations=demand.operations / factor,
        latency=demand.latency / factor,
        term=_corrected(demand.term, factor),
        delay=_corrected(demand.delay, factor),
    )


def _corrected(made: Term | None, factor: float) -> Term | None:
    return None if made is None else quotient_of(uncalibrated=made, calibration=factor)
