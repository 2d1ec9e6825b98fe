"""Long runs: interruptions, restarts, checkpoints, and jobs that share machines."""

from __future__ import annotations

from dataclasses import field
from enum import StrEnum
from typing import Annotated

from simulator.records import dataclass
from simulator.schema.fields import (
    DERIVED,
    REQUIRED,
    Choice,
    CountField,
    CountOrZeroField,
    FractionField,
    MoneyField,
    Number,
    NumberOrZeroField,
    RateOrZeroField,
    Section,
    TextField,
    TimeField,
    TimeOrZeroField,
)
from simulator.units import PerSecond, Seconds

VariationField = Annotated[float, Number(low=1.0, high=20.0)]
DrawsField = Annotated[int, Number(low=100, high=100_000, whole=True)]
SpreadField = Annotated[float, Number(high=20.0)]
FactorField = Annotated[float, Number(low=1.0, high=1e4)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Lemons:
    """A few machines that fail far more often than the others.

    The mean rate over all machines stays `Failures.per_machine`.
    """

    share: FractionField
    """Share of the machines."""
    factor: FactorField
    """Failure rate of one of them over that of the others; the mean over all machines stays the
    same."""
    excluded: bool = False
    """Whether one that has failed is replaced permanently."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spares:
    """Spare machines, which replace failed ones.

    A failed machine returns once a technician has repaired it. A job that lacks a machine waits, or
    continues with fewer (`Failures.least_machines`).
    """

    count: CountOrZeroField
    """Number of spare machines."""
    repair: TimeField
    """Mean time to repair a machine, such as 2 d."""
    technicians: CountField | None = None
    """Number of simultaneous repairs; no limit by default."""
    variation: SpreadField = 1.0
    """Standard deviation of the time of a repair over its mean: 1 is exponential, 0 constant, all
    others lognormal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Restart:
    """Time between a failure and the first new step, by part.

    `detection`: until a person or a watchdog notices it; `replacement`: until all machines are
    available; `start`: until all ranks have started; `load`: until they have read the last
    checkpoint.
    """

    detection: Seconds
    replacement: Seconds
    start: Seconds
    load: Seconds

    @property
    def total(self) -> Seconds:
        """Total time of a restart [s]."""
        return self.detection + self.replacement + self.start + self.load


@dataclass(frozen=True, slots=True, kw_only=True)
class Failures:
    """Rates of interruptions of a run.

    `per_machine` counts failures of one machine, `per_job` failures of the job as a whole
    (software, network), `planned` stops that are known beforehand and lose no work. `doubt` is the
    uncertainty of the rates: the standard deviation of their logarithm among clusters of the same
    kind. A job continues with as few as `least_machines` while others are missing; None: it needs
    all.
    """

    per_machine: PerSecond
    per_job: PerSecond
    restart: Restart
    doubt: float
    planned: PerSecond = 0.0
    lemons: Lemons | None = None
    spares: Spares | None = None
    least_machines: int | None = None


class Target(StrEnum):
    """First target of a checkpoint; it is copied to the store in any case."""

    STORE = "store"
    LOCAL = "local"
    PEER = "peer"


@dataclass(frozen=True, slots=True, kw_only=True)
class Near:
    """A copy of a checkpoint that is nearer than the store.

    It can be loaded `durable` after its writing began, and loading takes `load`.
    `outlives_machine`: it survives the loss of a machine, as a copy in the memory of a neighbour
    does.
    """

    durable: Seconds
    load: Seconds
    outlives_machine: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Saving:
    """Times of writing a checkpoint.

    Training waits for `blocking`; the checkpoint can be loaded `durable` after its writing began
    (the same time if training waits for all of it). `interval` is the work between two checkpoints
    (infinite: none is written). `near` is a nearer copy, which survives some failures.
    """

    interval: Seconds
    blocking: Seconds
    durable: Seconds
    near: Near | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoints(Section):
    """Checkpoints of a run; values that are None are computed from model, store and rates."""

    interval: TimeField | None = None
    """Training between two checkpoints; by default from train.checkpoint_every_steps. Without
    either, plan simulate writes none, and plan goodput takes the best interval."""
    to: Annotated[Target, Choice(Target)] = Target.STORE
    """First target of a checkpoint: the store, the machine's own drives (local), or the memory of a
    neighbouring machine (peer); it is then copied to the store in the background."""
    asynchronous: bool = False
    """Whether training waits only for the copy to host RAM, not for the store."""
    blocking: TimeOrZeroField | None = None
    """Time that training waits for each checkpoint; from the model and its store by default."""
    durable: TimeOrZeroField | None = None
    """Time from its beginning until it can be loaded; from the model and its store by default."""
    load: TimeOrZeroField | None = None
    """Time to read it at a restart; by default through the same store, at the share of its read
    rate that a published restart reached."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms(Section):
    """Limits of a long run, and the number of its simulations."""

    deadline: TimeField | None = None
    """Latest end of the run; the probability of meeting it is run.deadline_chance."""
    budget: MoneyField | None = None
    """Highest cost of the run; the probability of meeting it is run.budget_chance."""
    draws: DrawsField = 1000
    """Number of simulated runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitTable:
    """Time until a machine can be rented to replace a failed one."""

    mean: TimeField
    """Mean time, such as 1.6 h."""
    variation: SpreadField = 3.0
    """Standard deviation of that time over its mean, 0 for a constant time; gaps in 20 recorded
    traces of spot machines have 3 (skypilot-org/spot-traces, 2022-10 to 2023-08)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ComponentsTable:
    """Failure rates of parts that stop the job; their sum is the rate of machines."""

    gpu: RateOrZeroField = 0.0
    """One accelerator, without its memory, such as 0.0002 /d."""
    memory: RateOrZeroField = 0.0
    """The memory of one accelerator."""
    nic: RateOrZeroField = 0.0
    """One network card, with its cable."""
    node: RateOrZeroField = 0.0
    """The rest of one machine: processors, RAM, drives, power."""
    store: RateOrZeroField = 0.0
    """The store, for the job as a whole."""
    software: RateOrZeroField = 0.0
    """Software, for the job as a whole."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FailuresSection(Section):
    """Failures of the run, and the times of a restart."""

    like: TextField | None = None
    """A published cluster whose rates are used where none are given, such as rsc-1."""
    per_machine: RateOrZeroField | None = None
    """Failures of one machine, such as 0.0065 /d."""
    per_job: RateOrZeroField | None = None
    """Failures of the job as a whole (software, network), such as 0.09 /h."""
    components: ComponentsTable | None = None
    """Failures of parts, instead of per_machine and per_job."""
    planned: RateOrZeroField | None = None
    """Stops that are known beforehand and lose no work."""
    doubt: NumberOrZeroField | None = None
    """Standard deviation of the logarithm of the rates: 0 if they are certain."""
    detection: TimeOrZeroField | None = None
    """Time from a failure until it is noticed."""
    replacement: TimeOrZeroField | None = None
    """Time until another machine is available."""
    start: TimeOrZeroField | None = None
    """Time until all ranks have started."""
    lemons: Lemons | None = None
    """Machines that fail more often; by default all have the same rate."""
    spares: Spares | None = None
    """Spare machines; by default a failed machine is replaced after `replacement`."""
    wait: WaitTable | None = None
    """Time to rent another machine when there is no spare; 0 by default."""
    least_machines: CountField | None = None
    """Smallest number of machines with which the job continues while others are missing; by default
    it waits for all."""
    source: TextField | None = None
    """Source of these numbers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outages(Section):
    """Spot capacity: when all machines of the job are available, and outages.

    `up` are periods in which all spot machines of a job are available, `down` the outage after
    each. Pairs are drawn with equal probability, or follow each other `in_order` as in a recorded
    trace, which keeps good and bad days together [s]. The pairs are divided evenly among `zones`; a
    simulated run stays in one zone, and the next run uses the next zone. For generated periods,
    `others` are those of zones with the same means.
    """

    trace: TextField | None = None
    """A CSV file of recorded availability to replay: columns hours and available (1 or 0)."""
    mean_up: TimeField | None = None
    """Mean time with all machines available."""
    mean_down: TimeField | None = None
    """Mean length of an outage."""
    variation: VariationField = 2.0
    """Standard deviation of these times over their mean; 1 is exponential, traces: 1.5 to 4.5."""
    notice: TimeOrZeroField = 0.0
    """Time between the warning and the loss of machines."""
    fallback: bool = False
    """Whether the job continues on on-demand machines during an outage, and returns to spot
    machines as soon as they are available, each time with a restart; by default it waits."""
    source: TextField = field(default="", metadata=REQUIRED)
    """Source of these numbers."""

    up: tuple[Seconds, ...] = field(default=(), metadata=DERIVED)
    down: tuple[Seconds, ...] = field(default=(), metadata=DERIVED)
    in_order: bool = field(default=False, metadata=DERIVED)
    zones: int = field(default=1, metadata=DERIVED)
    others: Outages | None = field(default=None, metadata=DERIVED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Interruptions:
    """Interruptions of a scenario by kind; `notes` are the assumptions made about them."""

    failures: Failures | None = None
    outages: Outages | None = None
    terms: Terms = field(default_factory=Terms)
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LongRun:
    """A run that takes `work` without interruptions, on `machines` that must all be available.

    Checkpoints are not part of `work`; `work_doubt` is the standard deviation of its logarithm.
    Without `failures` and `outages` there are no interruptions. `rates_with_fewer` are the speeds
    without one machine, two and so on, over the speed with all; if empty, the job waits for all.
    """

    work: Seconds
    work_doubt: float = 0.0
    machines: int
    saving: Saving
    failures: Failures | None = None
    outages: Outages | None = None
    rates_with_fewer: tuple[float, ...] = ()


class Order(StrEnum):
    """Order of waiting jobs: first come, first served, or most urgent first; no preemption."""

    FIFO = "fifo"
    PRIORITY = "priority"


@dataclass(frozen=True, slots=True, kw_only=True)
class PooledJob:
    """A job that arrives `count` times and uses `machines` each time.

    It first arrives at `start`, then `every` so often: regularly, or at `random` with that mean.
    Among waiting jobs the one with the lowest `priority` is the most urgent. `takes` are equally
    likely times of one run [s].
    """

    name: str
    machines: int
    takes: tuple[Seconds, ...]
    count: int = 1
    start: Seconds = 0.0
    every: Seconds = 0.0
    random: bool = False
    priority: int = 0
