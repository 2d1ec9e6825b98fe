"""The sections of a scenario on a long run: [failures], [checkpoint] and [spot]."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated

from simulator.schema.fields import (
    Choice,
    CountField,
    CountOrZeroField,
    FractionField,
    MoneyField,
    Number,
    NumberOrZeroField,
    RateField,
    RateOrZeroField,
    Section,
    TextField,
    TimeField,
    TimeOrZeroField,
)
from simulator.schema.long_run import Target

VariationField = Annotated[float, Number(low=1.0, high=20.0)]
DrawsField = Annotated[int, Number(low=100, high=100_000, whole=True)]
SpreadField = Annotated[float, Number(high=20.0)]
FactorField = Annotated[float, Number(low=1.0, high=1e4)]


@dataclass(frozen=True, slots=True, kw_only=True)
class LemonsTable:
    """A few machines that fail far more often than the others."""

    share: FractionField
    """Share of the machines."""
    factor: FactorField
    """How many times as often one of them fails; the rate of all together stays."""
    excluded: bool = False
    """Whether one that has failed is replaced for good."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SparesTable:
    """Machines that stand by for failed ones."""

    count: CountOrZeroField
    """How many."""
    repair: TimeField
    """Mean time to repair a machine, such as 2 d."""
    technicians: CountField | None = None
    """How many repairs go on at once; as many as needed by default."""
    variation: SpreadField = 1.0
    """Standard deviation of the time of a repair over its mean; 0: always the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitTable:
    """How long no other machine can be had in place of a failed one."""

    mean: TimeField
    """Mean time, such as 1.6 h."""
    variation: SpreadField = 3.0
    """Standard deviation of that time over its mean, 0 where it is always the same; gaps in 20
    recorded traces of spot machines have 3 (skypilot-org/spot-traces, 2022-10 to 2023-08)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ComponentsTable:
    """How often parts fail that stop the job: what they add up to stands for whole machines."""

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
    """How often the run is interrupted, and what a restart takes."""

    like: TextField | None = None
    """A published cluster whose rates are taken where none are given, such as rsc-1."""
    per_machine: RateOrZeroField | None = None
    """Failures of one machine, such as 0.0065 /d."""
    per_job: RateOrZeroField | None = None
    """Failures of the job as a whole (software, network), such as 0.09 /h."""
    components: ComponentsTable | None = None
    """Failures of parts, in place of per_machine and per_job."""
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
    lemons: LemonsTable | None = None
    """Machines that fail more often; all are alike by default."""
    spares: SparesTable | None = None
    """Machines that stand by; a failed machine is replaced in `replacement` by default."""
    wait: WaitTable | None = None
    """How long it takes to rent another machine, where none stands by; not at all by default."""
    least_machines: CountField | None = None
    """The job goes on with as few machines while others are away; it waits for all by default."""
    source: TextField | None = None
    """Who says so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointSection(Section):
    """How checkpoints of a long run are written and read."""

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
class RunSection(Section):
    """What is asked of a long run."""

    deadline: TimeField | None = None
    """When it is to have ended; its chance is run.deadline_chance."""
    budget: MoneyField | None = None
    """What it may cost; its chance is run.budget_chance."""
    draws: DrawsField = 1000
    """How many lives of the run are drawn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpotSection(Section):
    """Spot capacity: spells in which all machines of the job can be had, and in which not."""

    trace: TextField | None = None
    """A CSV file with recorded spells: columns hours and available (1 or 0); replayed."""
    mean_up: TimeField | None = None
    """Mean length of a spell with machines."""
    mean_down: TimeField | None = None
    """Mean length of a spell without."""
    variation: VariationField = 2.0
    """Standard deviation of spells over their mean; 1 is exponential, traces have 1.5 to 4.5."""
    notice: TimeOrZeroField = 0.0
    """Warning before machines go."""
    fallback: bool = False
    """While no spot machine can be had the job goes on with machines bought on demand, and back to
    spot machines as soon as they are there, each time with a restart; it waits by default."""
    source: TextField
    """Who says so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedCluster:
    """An entry of data/failures.toml.

    `machines` are those of the jobs that its rates were counted in, where what stops a job as a
    whole is in the rate of its machines.
    """

    name: TextField
    devices: CountField
    machines: CountField | None = None
    per_machine: RateField
    per_job: RateOrZeroField
    planned: RateOrZeroField = 0.0
    doubt: NumberOrZeroField
    start: TimeOrZeroField
    source: TextField
    date: TextField

    @property
    def job_size(self) -> int | None:
        """Accelerators of those jobs; None where what stops a job has a rate of its own."""
        return None if self.machines is None else self.machines * self.devices


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedClusters:
    """The file data/failures.toml."""

    cluster: list[PublishedCluster] = field(default_factory=list)
