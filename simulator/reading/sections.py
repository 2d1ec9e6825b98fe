"""The sections of a scenario file, one table each.

The text under a field is its documentation: in messages, in ``plan schema``, in editors. Fields
left out are None where the default depends on other sections; `to_scenario` decides there. Axes and
expressions of [sweep] and [goal] have the grammar of docs/search.md.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated

from simulator.schema.cost import DURING_THE_RUN, EnergyPlan, Ownership, StorePlan
from simulator.schema.data_loading import Dataset, InputPipeline, Remote
from simulator.schema.fields import (
    ByteOrZeroField,
    FlopOrZeroField,
    FractionField,
    Number,
    NumberField,
    PositiveShareField,
    Section,
    TextField,
    TimeField,
)
from simulator.schema.goal import Axes, GoalSection
from simulator.schema.long_run import Checkpoints, FailuresSection, Outages, Terms
from simulator.schema.machines import Hardware
from simulator.schema.scenario import CostPlan, Memory
from simulator.schema.software import (
    Software,
    SpeedField,
)
from simulator.schema.training import ONE_DEVICE, Parallelism, Train


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
    sweep: Axes | None = None
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
    energy: EnergyPlan | None = None
    """Where the electricity comes from; energy and emissions of the run are reported with it."""
    spot: Outages | None = None
    """When spot machines can be had, where cost.purchase buys them."""
