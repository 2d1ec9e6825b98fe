"""The types of a prediction: timing, memory, cost and the long run of a job."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from enum import IntEnum
from typing import Final

from simulator.physics.footprint import HostRam, MemoryFit, Verdict
from simulator.pipeline.checkpoints import CheckpointTimes
from simulator.pipeline.stages.base import Phase, StageDemands
from simulator.pipeline.stages.input import hit_ratio
from simulator.records import dataclass
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
"""Categories of the time of a long run, by name."""
QUANTILES: Final = (0.1, 0.5, 0.9, 0.99)


class Cause(IntEnum):
    """Cause of the end of an attempt before the end of the run.

    `RETURNED`: a machine that was away joins again; `MOVED`: from on-demand machines to spot ones.
    """

    MACHINE = 0
    JOB = 1
    PLANNED = 2
    CAPACITY = 3
    RETURNED = 4
    MOVED = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Intervals:
    """Work between two checkpoints [s]: the interval used, and the optimal one by each method."""

    used: Seconds
    young: Seconds
    daly: Seconds
    simulated: Seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """Forecast of a long run with interruptions, from simulated runs.

    `name` is that of the scenario, `seed` that of the random numbers. `plain` is the time without
    interruptions and checkpoints [s]. `finish` [s], `bill` [$] and `stores` (the part of the bill
    for stores) are quantiles by probability; a bill is None if no price is known, and `unpriced`
    names what it lacks. `parts` are the shares of the total time by category, which add up to 1,
    and `between` is the mean time between interruptions [s]. Shares, bills and `between` exclude
    simulated runs that never end; `unending` is their share. `in_time` and `in_budget` are the
    probabilities of meeting deadline and budget. `prices` describe the prices used, with region and
    date. `write_doubt` is the standard deviation of the logarithm of the time to write a
    checkpoint. `ways` compares ways to buy the machines. `finish_range` is the 80% interval of
    quantiles of `finish` over zones whose outages have the same means, if only the means are known
    [s].
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
        """Share of the time spent on useful work (ETTR)."""
        return self.parts[USEFUL]


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """A way to buy the machines of a long run, and the forecast of the run with it.

    `fallback`: spot machines, with on-demand machines during outages. `outlook` is None if the
    availability of such machines is unknown, and its bill is None if their price is; `missing` says
    which. `cheapest` is the share of the simulated runs in which this way has the lowest bill; None
    if no other way has a bill.
    """

    purchase: Purchase
    fallback: bool = False
    outlook: Outlook | None = None
    missing: str = ""
    cheapest: float | None = None


STARVED = 0.05
"""Share of the step in which a device waits for data from which data loading is the bottleneck."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Distribution:
    """Distribution of the step time over steady-state steps [s]."""

    mean: Seconds
    p50: Seconds
    p95: Seconds
    p99: Seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class StepSplit:
    """Mean step as a sum of exposed times on the timeline of a rank [s].

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
    """Utilization of a resource: `mean` over its units (0 to 1) and `total` of all units.

    `busiest` is the utilization of the busiest unit.
    """

    mean: float
    total: float
    units: int
    busiest: float = 0.0


PIPELINE: Final = "pipeline"
"""Process name of slices that show concurrent work of all stages of a pipeline-parallel model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Slice:
    """A bar in the timeline: `track` executes `name` from `start` for `length` [s].

    `process` is the rank or machine of the track; `step` is the step that the work belongs to, or
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
    """Utilization of a unit (0 to 1) from `time` until the next sample."""

    unit: str
    time: Seconds
    value: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Counter:
    """A hardware unit with utilization samples; `machine` contains it, `resource` is its kind."""

    unit: str
    machine: str
    resource: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """Timeline of the simulated steps of the last simulated epoch.

    `ends` are the times at which steps ended on all ranks [s]; the steady window is from the end of
    step `first` to the end of step `last`. `shown_as` maps each rank to the simulated rank whose
    timeline represents it, `stands_for` maps a simulated rank to the number of ranks of its machine
    that it represents, and `machines` is the number of identical machines.
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
        """Times of the steps shown [s]."""
        return tuple(b - a for a, b in zip((self.start, *self.ends), self.ends, strict=False))

    @property
    def window(self) -> tuple[Seconds, Seconds]:
        """Start and end of the steady window [s]."""
        times = (self.start, *self.ends)
        return times[self.first], times[self.last]


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """Times of a simulated run.

    `epoch_time` is that of a warm epoch (the last one); `first_epoch_time` starts with cold caches.
    `hidden_communication` is the communication per step that overlaps with compute; exposed
    communication is in `split`. `half_width` is the half-width of the 95% confidence interval of
    the mean step (0 for a deterministic run). `usage` and the bottlenecks are keyed by the names of
    `Resource`, with the name of the group and a dot as prefix for machines that don't train.
    `step_times` are those of the simulated steps of the first epoch; `first_steps` are the times of
    step 1 of the first and of a later epoch on an average rank, without waiting for other ranks.
    `steady_steps` of the simulated ones represent all others: utilization is theirs.
    `bounded`: the simulated steps did not become steady, and the mean step is a lower bound by its
    slowest resource or serial worker. `ledger` is the mean step by entry of the step program; its
    entries add up to `split`. `checkpoints` is the number of checkpoints of the run, `saving` the
    times of one with the run's load of the store; None if it writes none.
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
    steady_steps: int = 0
    step_times: tuple[Seconds, ...] = ()
    first_steps: tuple[Seconds, Seconds] = (0.0, 0.0)
    trace: Trace | None = None
    bounded: bool = False
    checkpoints: float = 0.0
    saving: CheckpointTimes | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CpuNeed:
    """vCPUs that one GPU needs to stay busy, and the number missing over all GPUs.

    `per_sample` is the vCPU time per sample while all vCPUs are busy [s].
    """

    per_gpu: float
    short: float
    per_sample: Seconds = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Costs of the machines; None if a price is unknown. `terms` are the equations.

    `for_machines` is the cost of the run without stores (`Prediction.in_all` includes them).
    `electricity` is that of owned machines: included in all fields but `per_second`.
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

    `power` is the mean over a step, `of_machines` the energy of the whole run; None if the power of
    an accelerator is unknown. `of_building` includes cooling and losses, `emitted` are the
    emissions of the grid [kg], `price` is the electricity cost; None if the scenario does not
    describe them. `missing` names unknown inputs, `terms` are the equations.
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
    """Bill of the stores over the run; 0 if all data are on local drives.

    `rent` is for stored bytes, `provisioned` for provisioned rates, `requests` for requests,
    `egress` for bytes that leave a region; None if a price is unknown. `missing` names unknown
    prices: with any of them `total` is None, and `known` is the sum of the known charges. `notes`
    are about prices that may differ from those paid, `terms` are the equations.
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
    """Prediction of one job: times, memory, cost, energy, bounds and warnings.

    `break_even_epochs` is the number of epochs after which staging or preloading the data has saved
    the time it takes; infinite if never, None if nothing is staged. `one_off` is the time of the
    run outside of its epochs, by name. `interval` is the 80% interval of metrics by name. `outlook`
    is the forecast with interruptions, None if the scenario has none; all other fields are without
    interruptions.
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
        """Cost of machines and stores; None if a price of the machines is unknown.

        Unknown charges of stores are excluded; `storage.missing` names them.
        """
        machines = self.cost.for_machines
        return None if machines is None else machines + self.storage.known

    @property
    def fits(self) -> bool:
        """True if host RAM and GPU memory are or may be sufficient."""
        found = [self.host_ram.verdict]
        if self.memory is not None:
            found.append(self.memory.verdict)
        return Verdict.NO not in found
