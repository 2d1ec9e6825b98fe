"""What interrupts a run of days or months, and what a restart takes: data types only."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from simulator.units import PerSecond, Seconds, Usd


@dataclass(frozen=True, slots=True, kw_only=True)
class Lemons:
    """A share of the machines fails `factor` times as often as the others.

    The rate of all machines together stays what `Failures.per_machine` says. Where `excluded`, a
    lemon that has failed is replaced by a machine like the others.
    """

    share: float
    factor: float
    excluded: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Spares:
    """Machines beside those of the job that take the place of failed ones.

    A failed machine is back after `repair` in the mean, once one of `technicians` (None: as many as
    needed) has time for it. `variation` is the standard deviation of that time over its mean: 1 is
    exponential, 0 the same time always, all others lognormal. A job that lacks a machine waits, or
    goes on with fewer (`Failures.least_machines`).
    """

    count: int
    repair: Seconds
    technicians: int | None = None
    variation: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Restart:
    """What passes between a failure and the first new step, part by part.

    `detection` until somebody or a watchdog has noticed, `replacement` until all machines are
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
    """How often a run is interrupted.

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
class Spells:
    """Times in which all spot machines of a job can be had, each with the time after it without.

    Pairs are drawn, each as likely, or follow each other `in_order` as in a recorded trace, which
    keeps good and bad days together [s]. `notice` is what passes between the word that machines go
    and their going. Where `fallback`, the job goes on with machines bought on demand while no spot
    machines can be had, and back to those as soon as they are there; it waits else. The pairs
    belong to so many `zones`, to each as many; a life stays in one, and the next life is in the
    next. Where the spells are made up, `others` are those of zones that have the same means.
    """

    up: tuple[Seconds, ...]
    down: tuple[Seconds, ...]
    notice: Seconds
    in_order: bool = False
    fallback: bool = False
    zones: int = 1
    others: Spells | None = None


class Target(StrEnum):
    """Where a checkpoint goes first; to the store it goes in any case."""

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
    """How a checkpoint is written.

    Training waits for `blocking`; the checkpoint can be loaded `durable` after its writing began
    (the same where training waits for all of it). `interval` is the work between two of them
    (infinite: none is written). `near` is a copy that some failures leave.
    """

    interval: Seconds
    blocking: Seconds
    durable: Seconds
    near: Near | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoints:
    """What a scenario says of checkpoints; None: worked out from model, store and rates.

    `interval` is the work between two, `blocking` what training waits for each, `durable` what
    passes from its beginning until it can be loaded, `load` what reading it takes at a restart.
    `to` is where it goes first.
    """

    to: Target = Target.STORE
    interval: Seconds | None = None
    asynchronous: bool = False
    blocking: Seconds | None = None
    durable: Seconds | None = None
    load: Seconds | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What is asked of a long run: `deadline` [s] and `budget` [$], and lives to be drawn."""

    deadline: Seconds | None = None
    budget: Usd | None = None
    draws: int = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Interruptions:
    """All that a scenario says about interruptions; `notes` says what was taken for granted."""

    failures: Failures | None = None
    spells: Spells | None = None
    checkpoints: Checkpoints = field(default_factory=Checkpoints)
    terms: Terms = field(default_factory=Terms)
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LongRun:
    """A run that takes `work` if nothing happens, on `machines` that all have to be there.

    Checkpoints are not part of `work`, and `work_doubt` is the standard deviation of its logarithm.
    Without `failures` and `spells` nothing happens. `rates_with_fewer` is how fast it goes on
    without one machine, two and so on, over its rate with all; without those it waits for all.
    """

    work: Seconds
    work_doubt: float = 0.0
    machines: int
    saving: Saving
    failures: Failures | None = None
    spells: Spells | None = None
    rates_with_fewer: tuple[float, ...] = ()
