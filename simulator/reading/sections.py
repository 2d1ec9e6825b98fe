"""The sections of a scenario file, one table each.

The text under a field is its documentation: in messages, in ``plan schema``, in editors. Fields
left out are None where the default depends on other sections; `to_scenario` decides there. Axes and
expressions of [sweep] and [goal] have the grammar of docs/search.md.
"""

from __future__ import annotations

from dataclasses import field
from typing import Annotated

from simulator.records import dataclass
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
    """A goal in a separate file."""

    goal: GoalSection
    """Objective and limits of plan recommend."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationSection(Section):
    """Factors on the speed of resources, fitted to measurements; above 1: faster than described."""

    overlay: TextField | None = None
    """A file that plan calibrate wrote, relative to this one; --set overrides its values."""
    compute: SpeedField = 1.0
    """Device arithmetic; measured step times do not change."""
    device_memory: SpeedField = 1.0
    """Bandwidth of device memory."""
    cpu: SpeedField = 1.0
    """Work on the host's cores."""
    storage: SpeedField = 1.0
    """Stores: a factor on rates and operations, and a divisor of latency."""
    client: SpeedField = 1.0
    """Client of an object store: a divisor of the time of a request, a factor on the rate of a
    reader."""
    network: SpeedField = 1.0
    """Network cards."""
    collective: SpeedField = 1.0
    """Communication between the devices of a job."""
    straggling: SpeedField = 1.0
    """Random delays of ranks; above 1: shorter."""
    checkpoint: SpeedField = 1.0
    """Writing of checkpoints; stated times of them do not change."""


# Far beyond any run ever reported, near enough to catch a slip of the keyboard.
BatchField = Annotated[int, Number(low=1.0, high=1e8, whole=True)]
ShapeField = Annotated[int, Number(low=1.0, high=1e7, whole=True)]


@dataclass(frozen=True, slots=True, kw_only=True)
class StepTimeTable:
    """A measured step of the model."""

    batch_size: BatchField
    """Samples per device."""
    time: TimeField
    """Time of forward, backward and optimizer on the device, without waiting for data."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSection(Section):
    """The model: a name from the library, its figures, or measured steps."""

    name: TextField | None = None
    """Name of a model in the library, such as resnet50."""
    family: TextField | None = None
    """Family of a model that is not in the library, such as gpt or llama; needs model.shape."""
    shape: dict[str, object] | None = None
    """Figures of the family's shape, such as layers and hidden; see plan models."""
    sequence: ShapeField | None = None
    """Tokens per sample, instead of the number in the library's model."""
    filled: PositiveShareField | None = None
    """Mean share of those tokens that is computed, instead of that of the library's model: below 1
    if batches are only as long as their longest sample, or without padding."""
    scored_share: FractionField | None = None
    """Share of an encoder's tokens with logits, instead of that of the library's model: the masked
    ones in pre-training, almost 0 in fine-tuning."""
    image: ShapeField | None = None
    """Height and width of an image, instead of those of the library's model."""
    parameters: NumberField | None = None
    """Trainable parameters, such as 25.6e6."""
    forward_flops_per_sample: FlopOrZeroField | None = None
    """Operations of the forward pass, such as 8.2 GFLOP (a multiply-add counts as two)."""
    memory_traffic_per_sample: ByteOrZeroField | None = None
    """Bytes the forward pass moves to and from device memory."""
    activation_bytes_per_sample: ByteOrZeroField | None = None
    """Bytes kept for the backward pass."""
    input_bytes_per_sample: ByteOrZeroField | None = None
    """Size of a sample as copied to the device."""
    output_bytes_per_sample: ByteOrZeroField | None = None
    """Size of results copied back to the host."""
    step_times: tuple[StepTimeTable, ...] = ()
    """Your own measurements, at one batch size or several; they take precedence over everything
    else."""
    step_time: TimeField | None = None
    """Time of a step at one batch size, such as 120 ms; instead of step_times."""
    step_time_batch: BatchField | None = None
    """Batch size at which step_time was measured; by default train.batch_size of the files, and if
    step_time is an option, that of the job."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScenarioFile:
    """A job: a machine, the data, the input pipeline, a model, and its training."""

    hardware: Hardware
    """The machine the job runs on."""
    data: Dataset
    """The samples of one epoch."""
    train: Train
    """Training settings."""
    name: TextField | None = None
    """Short name of the scenario; the file's name by default."""
    title: TextField | None = None
    """One line on the purpose of the scenario."""
    extends: TextField | None = None
    """Another scenario, by file (relative to this one) or shipped name, that this one changes."""
    input: InputPipeline = field(default_factory=InputPipeline)
    """The input pipeline."""
    model: ModelSection | None = None
    """The model; none for a job that only prepares data."""
    software: Software = field(default_factory=Software)
    """The software the job runs on."""
    cost: CostPlan = field(default_factory=CostPlan)
    """Rules of the bill."""
    memory: Memory = field(default_factory=Memory)
    """Host RAM used in addition to the job itself."""
    remote: Remote | None = None
    """Machines that only make batches; none by default."""
    parallelism: Parallelism = ONE_DEVICE
    """Degrees of parallelism of the model; by default each device holds all of it."""
    calibration: CalibrationSection = field(default_factory=CalibrationSection)
    """Factors on the speed of resources; by default as described."""
    sweep: Axes | None = None
    """Axes of plan sweep; a single prediction ignores them."""
    goal: GoalSection | None = None
    """Objective of plan recommend; a single prediction ignores it."""
    run: Terms | None = None
    """Deadline and budget of a long run."""
    failures: FailuresSection | None = None
    """Failures of a long run; none by default."""
    checkpoint: Checkpoints | None = None
    """Checkpoints of a long run."""
    owned: Ownership | None = None
    """Costs of owned machines; with it, plan compares buying with renting."""
    store: StorePlan = DURING_THE_RUN
    """Use and location of the store that holds data and checkpoints, for its price."""
    energy: EnergyPlan | None = None
    """Source of the electricity; with it, plan reports energy and emissions of the run."""
    spot: Outages | None = None
    """Availability of spot machines, if cost.purchase is spot."""
