"""Interruptions of a run of days or months, restarts, and jobs that share machines."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated

from simulator.schema.fields import (
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

    The rate of all machines together stays what `Failures.per_machine` says.
    """

    share: FractionField
    """Share of the machines."""
    factor: FactorField
    """How many times as often one of them fails; the rate of all together stays."""
    excluded: bool = False
    """Whether one that has failed is replaced for good."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spares:
    """Machines that stand by for failed ones.

    A failed machine is back once a technician has had time for it. A job that lacks a machine
    waits, or goes on with fewer (`Failures.least_machines`).
    """

    count: CountOrZeroField
    """How many."""
    repair: TimeField
    """Mean time to repair a machine, such as 2 d."""
    technicians: CountField | None = None
    """How many repairs go on at once; as many as needed by default."""
    variation: SpreadField = 1.0
    """Standard deviation of the time of a repair over its mean: 1 is exponential, 0 always the same
    time, all others lognormal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Restart:
    """Time between a failure and the first new step, by part.

    `detection` until a person or a watchdog has noticed, `replacement` until all machines are
    there, `start` until all ranks have started, `load` until they have read the last checkpoint.
    """

    detection: Seconds
    replacement: Seconds
    start: Seconds
    load: Seconds

    @property
    def total(self) -> Seconds:
        """All of it [s]."""
        return self.detection + self.replacement + self.start + self.load


@dataclass(frozen=True, slots=True, kw_only=True)
class Failures:
    """Rates of interruptions of a run.

    `per_machine` counts failures of one machine, `per_job` those of the job as a whole (software,
    network), `planned` stops that are known beforehand and lose no work. `doubt` is the standard
    deviation of the logarithm of the rates: how far another cluster of the same kind may be off.
    A job goes on with as few as `least_machines` while others are away; None: with all only.
    """

    per_machine: PerSecond
    per_job: PerSecond
    restart: Restart
    doubt: float
    planned: PerSecond = 0.0
    lemons: Lemons | None = None
    spares: Spares | None = None
    least_machines: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Outages:
    """Times in which all spot machines of a job can be had, each with the time after it without.

    Pairs are drawn, each as likely, or follow each other `in_order` as in a recorded trace, which
    keeps good and bad days together [s]. `notice` is what passes between the word that machines go
    and their going. Where `fallback`, the job goes on with machines bought on demand while no spot
    machines can be had, and back to those as soon as they are there; it waits else. The pairs
    belong to `zones`, to each as many; a simulated run stays in one, and the next life is in the
    next. Where the times are generated, `others` are those of zones with the same means.
    """

    up: tuple[Seconds, ...]
    down: tuple[Seconds, ...]
    notice: Seconds
    in_order: bool = False
    fallback: bool = False
    zones: int = 1
    others: Outages | None = None


class Target(StrEnum):
    """First target of a checkpoint; the store gets it in any case."""

    STORE = "store"
    LOCAL = "local"
    PEER = "peer"


@dataclass(frozen=True, slots=True, kw_only=True)
class Near:
    """A copy of a checkpoint nearer than the store.

    It can be loaded `durable` after its writing began, which takes `load`; `outlives_machine`:
    also after a machine is gone, as one in the memory of a neighbour.
    """

    durable: Seconds
    load: Seconds
    outlives_machine: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Saving:
    """Times of writing a checkpoint.

    Training waits for `blocking`; the checkpoint can be loaded `durable` after its writing began
    (the same where training waits for all of it). `interval` is the work between two of them
    (infinite: none is written). `near` is a copy that some failures leave.
    """

    interval: Seconds
    blocking: Seconds
    durable: Seconds
    near: Near | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoints(Section):
    """Checkpoints of a long run; None: computed from model, store and rates."""

    interval: TimeField | None = None
    """Training between two checkpoints; that of train.checkpoint_every_steps, or the best one."""
    to: Annotated[Target, Choice(Target)] = Target.STORE
    """Where a checkpoint goes first: the store, the machine's own drives (local), or the memory of
    a neighbouring machine (peer); the store gets it in the background then."""
    asynchronous: bool = False
    """Training waits for the copy to host RAM only, not until the store has it."""
    blocking: TimeOrZeroField | None = None
    """What training waits for each; from the model and its store by default."""
    durable: TimeOrZeroField | None = None
    """From its beginning until it could be loaded; from the model and its store by default."""
    load: TimeOrZeroField | None = None
    """Reading it at a restart; by default through the same store, at the share of its read rate
    that a published restart reached."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms(Section):
    """Limits of a long run, and the number of its simulations."""

    deadline: TimeField | None = None
    """When it is to have ended; its chance is run.deadline_chance."""
    budget: MoneyField | None = None
    """What it may cost; its chance is run.budget_chance."""
    draws: DrawsField = 1000
    """Number of simulated runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitTable:
    """Time until a machine can be rented to replace a failed one."""

    mean: TimeField
    """Mean time, such as 1.6 h."""
    variation: SpreadField = 3.0
    """Standard deviation of that time over its mean, 0 where it is always the same; gaps in 20
    recorded traces of spot machines have 3 (skypilot-org/spot-traces, 2022-10 to 2023-08)."""


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
    """A published cluster whose rates are taken where none are given, such as rsc-1."""
    per_machine: RateOrZeroField | None = None
    """Failures of one machine, such as 0.0065 /d."""
    per_job: RateOrZeroField | None = None
    """Failures of the job as a whole (software, network), such as 0.09 /h."""
    components: ComponentsTable | None = None
    """Failures of parts, instead of per_machine and per_job."""
    planned: RateOrZeroField | None = None
    """Stops that are known beforehand and lose no work."""
    doubt: NumberOrZeroField | None = None
    """Standard deviation of the logarithm of the rates: 0 where they are sure."""
    detection: TimeOrZeroField | None = None
    """From a failure until it is noticed."""
    replacement: TimeOrZeroField | None = None
    """Until another machine is there."""
    start: TimeOrZeroField | None = None
    """Until all ranks have started."""
    lemons: Lemons | None = None
    """Machines that fail more often; all are the same by default."""
    spares: Spares | None = None
    """Machines that stand by; a failed machine is replaced in `replacement` by default."""
    wait: WaitTable | None = None
    """How long it takes to rent another machine, where none stands by; not at all by default."""
    least_machines: CountField | None = None
    """The job goes on with as few machines while others are away; it waits for all by default."""
    source: TextField | None = None
    """Who says so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpotSection(Section):
    """Spot capacity: when all machines of the job are available, and outages."""

    trace: TextField | None = None
    """A CSV file of recorded availability: columns hours and available (1 or 0); replayed."""
    mean_up: TimeField | None = None
    """Mean time with machines."""
    mean_down: TimeField | None = None
    """Mean length of an outage."""
    variation: VariationField = 2.0
    """Standard deviation of these times over their mean; 1 is exponential, traces: 1.5 to 4.5."""
    notice: TimeOrZeroField = 0.0
    """Warning before machines go."""
    fallback: bool = False
    """While no spot machine can be had the job goes on with machines bought on demand, and back to
    spot machines as soon as they are there, each time with a restart; it waits by default."""
    source: TextField
    """Who says so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Interruptions:
    """All that a scenario says about interruptions; `notes` says what was taken for granted."""

    failures: Failures | None = None
    outages: Outages | None = None
    checkpoints: Checkpoints = field(default_factory=Checkpoints)
    terms: Terms = field(default_factory=Terms)
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LongRun:
    """A run that takes `work` if nothing happens, on `machines` that all have to be there.

    Checkpoints are not part of `work`, and `work_doubt` is the standard deviation of its logarithm.
    Without `failures` and `outages` nothing happens. `rates_with_fewer` is how fast it goes on
    without one machine, two and so on, over its rate with all; without those it waits for all.
    """

    work: Seconds
    work_doubt: float = 0.0
    machines: int
    saving: Saving
    failures: Failures | None = None
    outages: Outages | None = None
    rates_with_fewer: tuple[float, ...] = ()


class Order(StrEnum):
    """Who is next: the first come, or the most urgent of those that wait. No job is stopped."""

    FIFO = "fifo"
    PRIORITY = "priority"


@dataclass(frozen=True, slots=True, kw_only=True)
class PooledJob:
    """A job that comes `count` times, each time taking `machines` for a while.

    The first comes at `start`, the others `every` so often: regularly, or at `random`, where that
    is the mean. Of those who wait, the lowest `priority` is the most urgent. `takes` are equally
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
