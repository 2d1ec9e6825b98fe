"""The types of a prediction: timing, memory, cost and the long run of a job."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Final

from simulator.physics.footprint import HostRam, MemoryFit, Verdict
from simulator.pipeline.stages.base import Phase, StageDemands
from simulator.pipeline.stages.input import hit_ratio
from simulator.schema.cost import Purchase
from simulator.schema.long_run import LongRun, Saving
from simulator.schema.provenance import Assumption
from simulator.schema.scenario import Scenario
from simulator.terms import Term
from simulator.units import Bytes, Joules, PerSecond, Seconds, Usd, UsdPerSecond, Watts

USEFUL: Final = "useful work"
BLOCKED: Final = "checkpoints"
LOST: Final = "lost work"
REPAIR: Final = "waiting for a machine"
FEWER: Final = "fewer machines"
CAPACITY: Final = "waiting for capacity"
LOADING: Final = "load"
DETECTION: Final = "detection"
REPLACEMENT: Final = "replacement"
RESTARTING: Final = (DETECTION, REPLACEMENT, "start", LOADING)
PARTS: Final = (USEFUL, BLOCKED, LOST, *RESTARTING, REPAIR, CAPACITY, FEWER)
"""What the time of a run goes to, by name."""
QUANTILES: Final = (0.1, 0.5, 0.9, 0.99)


class Cause(IntEnum):
    """Why an attempt ends before the run does.

    `RETURNED`: a machine that was away joins again; `MOVED`: from machines on demand to spot ones.
    """

    MACHINE = 0
    JOB = 1
    PLANNED = 2
    CAPACITY = 3
    RETURNED = 4
    MOVED = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Intervals:
    """Work between two checkpoints [s]: what is used, and what would be best by each account."""

    used: Seconds
    young: Seconds
    daly: Seconds
    simulated: Seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """The forecast of a long run.

    `name` is the scenario's and `seed` that of the draws. `plain` is its time without interruptions
    and checkpoints [s]; `finish` and `bill` are quantiles of `QUANTILES` [s, $]; `parts` the share
    of each in the time of all draws together, which add up to 1, and `between` the mean time
    between interruptions [s]. Shares, bills and `between` leave out draws that never end;
    `unending` is their share. `stores` is what of that bill is for stores, at the same chances;
    None where a price is not known, which `unpriced` names: the bill has what is known. `prices`
    say whose prices are in it, where they hold and when they were read.
    `write_doubt` is the standard deviation of the logarithm of what a checkpoint takes. `ways` are
    all ways to buy the machines, held against each other. `finish_range` has the 80% interval of
    some of `finish` over zones whose outages have the same means, where only means are known [s].
    """

    name: str
    seed: int
    run: LongRun
    plain: Seconds
    saving: Saving
    intervals: Intervals | None
    finish: Mapping[float, Seconds]
    bill: Mapping[float, Usd] | None
    parts: Mapping[str, float]
    between: Seconds
    causes: Mapping[Cause, float]
    unending: float
    in_time: float | None = None
    in_budget: float | None = None
    notes: tuple[str, ...] = ()
    stores: Mapping[float, Usd] | None = None
    unpriced: tuple[str, ...] = ()
    prices: tuple[str, ...] = ()
    write_doubt: float = 0.0
    ways: tuple[Way, ...] = ()
    finish_range: Mapping[float, tuple[Seconds, Seconds]] = field(default_factory=dict)

    @property
    def goodput(self) -> float:
        """Share of the time that is work which counts (ETTR)."""
        return self.parts[USEFUL]


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """A way to buy the machines of a long run, and how the run goes with it.

    `fallback`: spot machines, and machines on demand where there are none. `outlook` is None where
    nothing says when such machines can be had, and its bill where their price is not known;
    `missing` says what is. `cheapest` is the share of the draws in which this way has the lowest
    bill of all that have one; None where no other has.
    """

    purchase: Purchase
    fallback: bool = False
    outlook: Outlook | None = None
    missing: str = ""
    cheapest: float | None = None


STARVED = 0.05
"""Share of a step spent waiting for data from which on a device counts as starved: its suppliers
limit the step, not the device."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Distribution:
    """Step times over steady-state steps [s]."""

    mean: Seconds
    p50: Seconds
    p95: Seconds
    p99: Seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class StepSplit:
    """The mean step as a sum of what was exposed on a rank's timeline [s].

    `data_stall`: the device waited for a batch. `other`: it waited for other ranks at the
    barrier, or for the program. `equations.step.step_time` adds them up.
    """

    data_stall: Seconds = 0.0
    h2d: Seconds = 0.0
    compute: Seconds = 0.0
    communication: Seconds = 0.0
    bubble: Seconds = 0.0
    checkpoint: Seconds = 0.0
    other: Seconds = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Utilization of a resource: `mean` 0..1 over its units, `sum` over units (4.0: four busy)."""

    mean: float
    total: float
    units: int
    busiest: float = 0.0


PIPELINE: Final = "pipeline"
"""Process of the slices that show what stages of a partitioned model do at the same time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Slice:
    """One bar of a timeline: `track` did `name` from `start` for `length` [s].

    `process` is the rank or machine that the track belongs to; `step` is the step it was for, or
    `batch` the batch of its rank.
    """

    track: str
    name: str
    start: Seconds
    length: Seconds
    step: int | None = None
    batch: int | None = None
    process: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One value of a counter from `time` on: the utilization (0..1) of a unit."""

    unit: str
    time: Seconds
    value: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Counter:
    """A unit that samples speak of: the `machine` it is part of, the `resource` it counts as."""

    unit: str
    machine: str
    resource: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """The timeline of the simulated steps of the last simulated epoch.

    `ends` are the times at which its steps had ended on all ranks [s]; the steady window begins
    when `first` of them had ended, and is over when `last` had. `shown_as` says for each rank which
    simulated one its lanes are those of, `stands_for` how many of its machine it was simulated
    for, and `machines` how many machines do the same.
    """

    slices: tuple[Slice, ...] = ()
    samples: tuple[Sample, ...] = ()
    start: Seconds = 0.0
    end: Seconds = 0.0
    ends: tuple[Seconds, ...] = ()
    first: int = 0
    last: int = 0
    counters: tuple[Counter, ...] = ()
    shown_as: Mapping[int, int] = field(default_factory=dict)
    stands_for: Mapping[int, float] = field(default_factory=dict)
    machines: int = 1

    @property
    def step_times(self) -> tuple[Seconds, ...]:
        """Lengths of the steps shown [s]."""
        return tuple(b - a for a, b in zip((self.start, *self.ends), self.ends, strict=False))

    @property
    def window(self) -> tuple[Seconds, Seconds]:
        """Start and end of the steady window [s]."""
        times = (self.start, *self.ends)
        return times[self.first], times[self.last]


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """Times of a simulated run.

    `epoch_time` is that of a warm epoch (the last one), `first_epoch_time` starts with cold
    caches. `hidden_communication` is that of a step under compute; what delays it is in `split`.
    `half_width` is the 95% half-width of the mean step (0 for a deterministic run).
    `usage` and the bottlenecks go by the names of `Resource`, led by a group's name and a dot for
    machines that don't train. `step_times` are those of the simulated steps of the first epoch,
    `first_steps` what the average rank itself takes for the first step of the first and of a later
    epoch, waiting for others left out. `bounded`: no steady step was seen in the steps simulated,
    and the mean one is the least that its slowest resource or serial actor needs.
    `ledger` is the mean step slot by slot of the step program: the lines that `split` adds up.
    """

    step_time: Distribution
    first_step: Seconds
    epoch_time: Seconds
    first_epoch_time: Seconds
    total_time: Seconds
    throughput: PerSecond
    split: StepSplit
    usage: Mapping[str, Usage]
    bottleneck: str
    next_bottleneck: str | None
    accelerator_utilization: float | None
    ledger: Mapping[str, Seconds] = field(default_factory=dict)
    hidden_communication: Seconds = 0.0
    half_width: Seconds = 0.0
    simulated_steps: int = 0
    step_times: tuple[Seconds, ...] = ()
    first_steps: tuple[Seconds, Seconds] = (0.0, 0.0)
    trace: Trace | None = None
    bounded: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CpuNeed:
    """vCPUs one GPU needs to stay busy, and how many the machine lacks over all GPUs.

    `per_sample` is the time of one of them that a sample takes, while all are busy.
    """

    per_gpu: float
    short: float
    per_sample: Seconds = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """The bill of the machines; None where no price is known. `terms` are the equations behind it.

    `for_machines` is that of the whole run, without stores (`Prediction.in_all` has them).

    `electricity` is that of owned machines: it is not in `per_second`, but in all other fields.
    """

    per_second: UsdPerSecond | None
    per_step: Usd | None
    samples_per_usd: float | None
    for_machines: Usd | None
    time_to_train: Seconds
    energy_per_step: float | None
    electricity: Usd | None = None
    terms: Mapping[str, Term] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Energy:
    """Power and energy of all billed machines and their building.

    `power` is drawn over a mean step, `of_machines` in the whole run at their plugs; None where
    the power of an accelerator is not known. `of_building` has cooling and losses, `emitted` what
    the grid emitted for it [kg], `price` what it costs; None where the scenario does not say what
    they follow from. `missing` has the figures that are not known, `terms` the equations.
    """

    power: Watts | None = None
    of_machines: Joules | None = None
    of_building: Joules | None = None
    emitted: float | None = None
    price: Usd | None = None
    missing: tuple[str, ...] = ()
    terms: Mapping[str, Term] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageBill:
    """The bill of stores over the run; 0 if all data are on local drives.

    `rent` is for what lies there, `provisioned` for rates held ready, `requests` by kind, `egress`
    for bytes that leave a region; None where a price is not known, which `missing` names: then the
    `total` is None too, and `known` has the charges that are known. `notes` say where prices are
    not those that will be paid, `terms` has the equations.
    """

    total: Usd | None = 0.0
    rent: Usd | None = 0.0
    provisioned: Usd | None = 0.0
    requests: Usd | None = 0.0
    egress: Usd | None = 0.0
    known: Usd = 0.0
    missing: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    terms: Mapping[str, Term] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """Closed-form bounds on total time / steps of the whole run [s]."""

    lower: Seconds
    upper: Seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """Everything `plan` says about one scenario.

    `break_even_epochs` says after how many epochs staging or preloading the data has paid for the
    time it takes; infinite if never, None where nothing is staged. `one_off` is the time of the run
    outside of its epochs, by name. `outlook` is what interruptions make of the run, None where the
    scenario says nothing of them; all other figures are those of the undisturbed run.
    """

    scenario: Scenario
    seed: int | None
    timing: Timing
    steps_per_epoch: int
    total_steps: int
    memory: MemoryFit | None
    host_ram: HostRam
    cpu_need: CpuNeed | None
    cost: Cost
    bounds: Bounds
    demands: tuple[StageDemands, ...] = ()
    page_cache_bytes: Bytes = 0.0
    break_even_epochs: float | None = None
    one_off: Mapping[str, Seconds] = field(default_factory=dict)
    interval: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    assumptions: tuple[Assumption, ...] = ()
    warnings: tuple[str, ...] = ()
    outlook: Outlook | None = None
    energy: Energy = Energy()
    storage: StorageBill = StorageBill()

    @property
    def cache_hit_ratio(self) -> float:
        """Share of reads that hit the page cache in the last epoch [0..1]."""
        last = Phase.WARM if self.scenario.job.train.epochs > 1.0 else Phase.COLD
        return float(hit_ratio(self.scenario, last))

    @property
    def in_all(self) -> Usd | None:
        """The whole bill: machines and stores; None where no price of the machines is known.

        Charges of stores that are not known are not in it; `storage.missing` names them.
        """
        machines = self.cost.for_machines
        return None if machines is None else machines + self.storage.known

    @property
    def fits(self) -> bool:
        """Whether RAM and accelerator memory may be enough."""
        found = [self.host_ram.verdict]
        if self.memory is not None:
            found.append(self.memory.verdict)
        return Verdict.NO not in found
