"""The sections of a scenario file, one table each.

The text under a field is its documentation: in messages, in ``plan schema``, in editors. Fields
left out are None where the default depends on other sections; `to_scenario` decides there. Axes and
expressions of [sweep] and [goal] have the grammar of docs/search.md.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated

from simulator.schema.cost import DURING_THE_RUN, EnergySection, Ownership, StorePlan
from simulator.schema.data_loading import Dataset, InputPipeline, Remote
from simulator.schema.fields import (
    ByteOrZeroField,
    Choice,
    CountField,
    CountOrZeroField,
    FlopOrZeroField,
    FractionField,
    MoneyField,
    Number,
    NumberField,
    Percent,
    PositiveShareField,
    RateField,
    Section,
    TextField,
    TimeField,
    TimeOrZeroField,
)
from simulator.schema.goal import Sampling
from simulator.schema.long_run import Checkpoints, FailuresSection, SpotSection, Terms
from simulator.schema.machines import Hardware
from simulator.schema.scenario import CostPlan, Memory
from simulator.schema.software import (
    Software,
    SpeedField,
)
from simulator.schema.training import ONE_DEVICE, Parallelism, Train

NodesField = Annotated[int, Number(low=1.0, high=1e6, whole=True)]
MarginField = Annotated[float, Percent(high=0.9)]


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepSection:
    """What plan sweep varies."""

    sample: Annotated[Sampling, Choice(Sampling)] = Sampling.GRID
    """Every combination (grid), or points drawn evenly (latin-hypercube, sobol)."""
    points: CountField | None = None
    """How many points are drawn; required unless every combination is taken."""
    seed: CountOrZeroField = 0
    """Seed of the drawn points."""
    where: TextField | None = None
    """What a candidate must meet, such as fits.gpu != 'no' and cost.usd_to_train < 500."""
    over: dict[str, object] = field(default_factory=dict)
    """Axes: dotted keys with a range, a list or a pattern, such as "input.workers" = "1..16"."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpotTable:
    """Machines bought as spot capacity, which may be taken away."""

    interruptions: RateField
    """How often a machine is taken away, such as 0.05 /h."""
    restart: TimeOrZeroField
    """Billed time from an interruption to the first step after it, such as 5 min."""
    source: TextField
    """Who says so."""
    date: TextField
    """When it was said."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GoalSection:
    """What plan recommend looks for."""

    maximize: TextField | None = None
    """A metric to make large, such as cost.samples_per_usd, or an expression over metrics."""
    minimize: TextField | None = None
    """A metric to make small, such as total_time_s, or an expression over metrics."""
    deadline: TimeField | None = None
    """Most time the whole job may take, such as 12 h."""
    budget: MoneyField | None = None
    """Most the whole job may cost, such as $500."""
    clouds: list[TextField] = field(default_factory=list)
    """Clouds to choose from; all by default."""
    regions: list[TextField] = field(default_factory=list)
    """Regions to choose from; all by default."""
    gpus: list[TextField] = field(default_factory=list)
    """Accelerators to choose from, by name or pattern; all by default."""
    nodes: NodesField | None = None
    """Most machines that train."""
    requires: list[TextField] = field(default_factory=list)
    """What the accelerator must be capable of, such as cuda or bf16."""
    porting: list[TextField] = field(default_factory=list)
    """Software of accelerators that the program would be ported to, such as rocm or neuron; by
    default only accelerators are looked at that it runs on as it is."""
    ram_margin: MarginField = 0.0
    """Share of each machine's RAM that must stay free, such as 10%."""
    gpu_memory_margin: MarginField = 0.0
    """Share of each accelerator's memory that must stay free, such as 5%."""
    where: TextField | None = None
    """What a configuration must meet besides, such as utilization.gpu.mean > 0.9."""
    pins: dict[str, object] = field(default_factory=dict)
    """Keys kept at a value at any cost; the price of each is shown."""
    search: dict[str, object] = field(default_factory=dict)
    """Axes instead of the usual ones, as in sweep.over."""
    spot: SpotTable | None = None
    """Also consider spot capacity; only on-demand machines by default."""
    alternatives: dict[str, object] = field(default_factory=dict)
    """Other ways to run the job where its processors hold it up, by name: tables of dotted keys,
    such as "input.where" = "device" and "input.device_time" = "0.2 ms"."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GoalFile:
    """A goal in a file of its own."""

    goal: GoalSection
    """What plan recommend looks for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationSection(Section):
    """How much faster resources are than described, as fitted to measurements; above 1: faster."""

    overlay: TextField | None = None
    """A file that plan calibrate wrote, relative to this one; --set wins over what it says."""
    compute: SpeedField = 1.0
    """Device arithmetic; measured step times stay as they are."""
    device_memory: SpeedField = 1.0
    """Bandwidth of device memory."""
    cpu: SpeedField = 1.0
    """Work on the host's cores."""
    storage: SpeedField = 1.0
    """Stores: rates and operations, and as much less latency."""
    network: SpeedField = 1.0
    """Network cards."""
    collective: SpeedField = 1.0
    """Exchange between the devices of a job."""
    straggling: SpeedField = 1.0
    """Ranks that are late by chance; above 1: less late."""


# Far beyond any run ever reported, near enough to catch a slip of the keyboard.
BatchField = Annotated[int, Number(low=1.0, high=1e8, whole=True)]
ShapeField = Annotated[int, Number(low=1.0, high=1e7, whole=True)]


@dataclass(frozen=True, slots=True, kw_only=True)
class StepTimeTable:
    """A measured step of your own."""

    batch_size: BatchField
    """Samples each device took."""
    time: TimeField
    """Forward, backward and optimizer on the device, without waiting for data."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSection(Section):
    """The model: a name from the library, or its figures, or steps you measured."""

    name: TextField | None = None
    """Name of a model in the library, such as resnet50."""
    family: TextField | None = None
    """Family of a model that is not in the library, such as gpt or llama; needs model.shape."""
    shape: dict[str, object] | None = None
    """Figures of the family's shape, such as layers and hidden; see plan models."""
    sequence: ShapeField | None = None
    """Tokens per sample, instead of what the library's model takes."""
    filled: PositiveShareField | None = None
    """Mean share of those tokens that is computed, instead of what the library's model says: below
    1 where batches are as long as their longest sample only, or padding is left out."""
    scored_share: FractionField | None = None
    """Share of an encoder's tokens whose scores are computed, instead of what the library's model
    says: those that are masked in pre-training, next to none in fine-tuning."""
    image: ShapeField | None = None
    """Height and width of an image, instead of what the library's model takes."""
    parameters: NumberField | None = None
    """Trainable parameters, such as 25.6e6."""
    forward_flops_per_sample: FlopOrZeroField | None = None
    """Operations of the forward pass, such as 8.2 GFLOP (a multiply-add counts as two)."""
    memory_traffic_per_sample: ByteOrZeroField | None = None
    """Bytes the forward pass moves to and from device memory."""
    activation_bytes_per_sample: ByteOrZeroField | None = None
    """Bytes kept for the backward pass."""
    input_bytes_per_sample: ByteOrZeroField | None = None
    """Bytes of a sample as the device takes it."""
    output_bytes_per_sample: ByteOrZeroField | None = None
    """Bytes of results copied back to the host."""
    step_times: tuple[StepTimeTable, ...] = ()
    """Your own measurements, at one batch size or several; they win over everything else."""
    step_time: TimeField | None = None
    """The same at one batch size, such as 120 ms; instead of step_times."""
    step_time_batch: BatchField | None = None
    """The batch size that step_time was measured at; by default train.batch_size of the files, and
    where step_time is an option, that of the job."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScenarioFile:
    """One question to plan: a machine, the data, the input pipeline, a model, how it is trained."""

    hardware: Hardware
    """The machine the job runs on."""
    data: Dataset
    """The samples of one epoch."""
    train: Train
    """How the model is trained."""
    name: TextField | None = None
    """Short name of the scenario; the file's name by default."""
    title: TextField | None = None
    """One line that says what the scenario asks."""
    extends: TextField | None = None
    """Another scenario, by file (relative to this one) or shipped name, that this one changes."""
    input: InputPipeline = field(default_factory=InputPipeline)
    """The input pipeline."""
    model: ModelSection | None = None
    """The model; none for a job that only prepares data."""
    software: Software = field(default_factory=Software)
    """The software the job runs on."""
    cost: CostPlan = field(default_factory=CostPlan)
    """How the bill is counted."""
    memory: Memory = field(default_factory=Memory)
    """What host RAM holds in addition to the job itself."""
    remote: Remote | None = None
    """Machines that only make batches; none by default."""
    parallelism: Parallelism = ONE_DEVICE
    """How one model is spread over devices; each holds all of it by default."""
    calibration: CalibrationSection = field(default_factory=CalibrationSection)
    """How much faster resources are than described; as described by default."""
    sweep: SweepSection | None = None
    """What plan sweep varies; a single prediction ignores it."""
    goal: GoalSection | None = None
    """What plan recommend looks for; a single prediction ignores it."""
    run: Terms | None = None
    """What is asked of a long run: deadline, budget."""
    failures: FailuresSection | None = None
    """What interrupts a long run; nothing does by default."""
    checkpoint: Checkpoints | None = None
    """How a long run writes and reads checkpoints."""
    owned: Ownership | None = None
    """What machines cost that are bought; with it, plan compares buying with renting."""
    store: StorePlan = DURING_THE_RUN
    """What is paid for the store that holds data and checkpoints."""
    energy: EnergySection | None = None
    """Where the electricity comes from; energy and emissions of the run are reported with it."""
    spot: SpotSection | None = None
    """When spot machines can be had, where cost.purchase buys them."""
