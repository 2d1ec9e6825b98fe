"""The sections of a scenario file, one table each.

The text under a field is its documentation: in messages, in ``plan schema``, in editors. Fields
left out are None where the default depends on other sections; `to_scenario` decides there. Axes and
expressions of [sweep] and [goal] have the grammar of docs/search.md.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated

from simulator.schema.cost import DURING_THE_RUN, EnergySection, Ownership, StorePlan
from simulator.schema.data_loading import (
    CostBasis,
    Dataset,
    LoaderKind,
    Preparation,
    Straggler,
    Transport,
)
from simulator.schema.fields import (
    CONSTANT,
    ByteField,
    ByteOrZeroField,
    ByteRateField,
    Choice,
    CountField,
    CountOrZeroField,
    FlopOrZeroField,
    FractionField,
    MoneyField,
    Number,
    NumberField,
    NumberOrZeroField,
    OperationsField,
    Percent,
    PositiveShareField,
    PriceOrZeroField,
    RateField,
    Section,
    Spread,
    TextField,
    TimeField,
    TimeOrZeroField,
)
from simulator.schema.goal import Sampling
from simulator.schema.long_run import Checkpoints, FailuresSection, SpotSection, Terms
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
    """Keys kept at a value whatever it costs; the price of each is shown."""
    search: dict[str, object] = field(default_factory=dict)
    """Axes in place of the usual ones, as in sweep.over."""
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


ImbalanceField = Annotated[float, Number(low=1.0, high=1e3)]


HelpersField = Annotated[int, Number(low=1.0, high=1e4, whole=True)]
RemoteWorkersField = Annotated[int, Number(low=1.0, high=4096.0, whole=True)]


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteSection(Section):
    """Machines that only make batches and hand them over the network."""

    machine: TextField
    """Name of a machine's profile, such as instance/aws/c5.18xlarge."""
    count: HelpersField = 1
    """How many equal machines."""
    name: TextField = "data"
    """What the group is called in reports, as in the resource data.cpu."""
    storage: TextField | None = None
    """Store these machines read; that of the trainers by default, unless it is their own drives."""
    workers: RemoteWorkersField | None = None
    """Workers on each of these machines; one for each of its vCPUs by default."""
    shares_batches: bool | None = None
    """Whether all workers of a machine make each batch together; true by default for tf.data."""
    queue: CountField | None = None
    """Finished batches that may wait for each process that trains; 2 by default."""
    speed: NumberField | None = None
    """Speed of one of their vCPUs beside one that trains, such as 1.2; as their CoreMarks say."""
    smt_worth: FractionField | None = None
    """What a second hardware thread adds to a busy core there, as a fraction of a core."""
    contention: NumberOrZeroField | None = None
    """How much longer work takes there with all cores busy than with one, less 1."""
    send_per_batch: TimeOrZeroField = 0.0
    """CPU time of a remote worker to serialise and send a batch."""
    send_per_sample: TimeOrZeroField = 0.0
    """CPU time of a remote worker to serialise and send, for each sample."""
    price: PriceOrZeroField | None = None
    """Price of one of these machines, such as $3.06/h; the profile's by default."""


# Far beyond any fitted factor, near enough to catch a per cent written for a share.


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
WorkersField = Annotated[int, Number(high=4096.0, whole=True)]
PrefetchField = Annotated[int, Number(low=1.0, high=4096.0, whole=True)]
BatchField = Annotated[int, Number(low=1.0, high=1e8, whole=True)]
ShapeField = Annotated[int, Number(low=1.0, high=1e7, whole=True)]
MachinesField = Annotated[int, Number(low=1.0, high=1e6, whole=True)]


@dataclass(frozen=True, slots=True, kw_only=True)
class HardwareSection(Section):
    """The machine the job runs on, and what-if changes to it."""

    machine: TextField
    """Name of a machine's profile, such as node/dgx-a100-80gb or instance/aws/p4d.24xlarge."""
    count: MachinesField = 1
    """How many equal machines."""
    gpu: TextField | None = None
    """What if it had this accelerator in place of each of its own, such as gpu/h100-sxm5-80gb; all
    else of the machine stays, but its price is not known then."""
    gpus: CountOrZeroField | None = None
    """Accelerators used on each machine; all of them by default."""
    emulated: CountField | None = None
    """In place of its accelerators, so many processes on each machine that only wait for
    model.step_times, as storage benchmarks do; nothing is copied to them."""
    storage: TextField | None = None
    """Name of a store's profile, such as storage/ebs-gp3; the machine's own drives by default."""
    cache: TextField | None = None
    """Drives in front of the store that keep what was read once: local, or a store's profile."""
    ram: ByteField | None = None
    """What if the machine had this much RAM."""
    vcpus: NumberField | None = None
    """What if it had this many hardware threads; cores change in proportion unless given."""
    cores: NumberField | None = None
    """What if it had this many physical cores."""
    smt_worth: FractionField | None = None
    """What a second hardware thread adds to a busy core, as a fraction of a core."""
    contention: NumberOrZeroField | None = None
    """How much longer work takes with all cores busy than with one, less 1; 0: no longer."""
    memory_bandwidth: ByteRateField | None = None
    """What if its host memory had this bandwidth."""
    storage_bandwidth: ByteRateField | None = None
    """What if the store read at this rate, as achieved."""
    storage_latency: TimeOrZeroField | None = None
    """What if this time passed before the first byte of a read."""
    storage_operations: OperationsField | None = None
    """What if the store answered this many small random reads a second."""
    storage_capacity: ByteField | None = None
    """Size of the store: rent, and credits for bursts, go with it where they do by capacity."""
    storage_prefixes: CountField = 1
    """Prefixes that objects lie under, each with the store's limit of requests for itself."""
    storage_request_rate: ByteRateField | None = None
    """What if one reader of the store could go no faster than this."""
    network_bandwidth: ByteRateField | None = None
    """What if each machine's network attachment carried this rate, one way."""
    pcie_bandwidth: ByteRateField | None = None
    """What if an accelerator alone reached its host at this rate, one way, over its link and the
    uplink of its switch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InputSection(Section):
    """The input pipeline of one process that trains, and what its work costs."""

    loader: Annotated[LoaderKind, Choice(LoaderKind)] = LoaderKind.PYTORCH
    """Whose rules the pipeline follows."""
    workers: WorkersField = 0
    """Worker processes (pytorch), threads (tf.data, dali) or actors of each training process."""
    prefetch: PrefetchField | None = None
    """Batches ahead: per worker (pytorch), or in all (the queue, for actors); 2 by default."""
    pin_memory: bool | None = None
    """Whether batches go through page-locked memory; false by default, true for dali."""
    in_order: bool = True
    """Whether batches are delivered in the order they were asked for."""
    persistent_workers: bool = False
    """Whether workers live on from epoch to epoch."""
    drop_last: bool = False
    """Whether an incomplete last batch is dropped."""
    overlap_copies: bool | None = None
    """Whether copies to the device run beside compute; as pin_memory by default."""
    transport: Annotated[Transport, Choice(Transport)] | None = None
    """How a batch reaches the main process; shared-memory for pytorch, else in-process."""
    tensors_per_batch: CountField = 2
    """Tensors of a finished batch; worker processes hand over each by itself."""
    receive_per_batch: TimeOrZeroField | None = None
    """CPU time of the thread that takes a finished batch, once a batch."""
    receive_per_sample: TimeOrZeroField | None = None
    """CPU time of the thread that takes a finished batch, for each sample in it."""
    worker_start: TimeOrZeroField | None = None
    """Time to start one worker; workers are started one after another."""
    epoch_start: TimeOrZeroField = 0.0
    """Time at the start of each epoch before its first batch is asked for, to set up its order."""
    worker_memory: ByteOrZeroField | None = None
    """Memory that one worker has to itself, beside its batches."""
    straggler: list[Straggler] = field(default_factory=list)
    """Batches or workers that take longer."""
    decode: TimeOrZeroField = 0.0
    """CPU time to decode one sample, such as 1.5 ms."""
    augment: TimeOrZeroField = 0.0
    """CPU time to augment one sample."""
    collate: TimeOrZeroField = 0.0
    """CPU time per sample to put a batch together and hand it over."""
    per_batch: TimeOrZeroField = 0.0
    """CPU time of one batch beside the work on its samples."""
    output_bytes_per_sample: ByteOrZeroField | None = None
    """Bytes of a finished sample in memory; by default what the model takes."""
    cost_spread: Spread = CONSTANT
    """How the CPU time of samples varies; by default and constant as with size_spread."""
    cost_basis: Annotated[CostBasis, Choice(CostBasis)] = CostBasis.CORE
    """What the CPU times were measured on: an idle core, or a vCPU of a busy machine."""
    measured_on: TextField | None = None
    """Profile of the machine the CPU times were measured on; this machine by default."""
    where: Annotated[Preparation, Choice(Preparation)] = Preparation.CPU
    """Where samples are decoded and augmented: cpu, device, or beforehand (once, and stored)."""
    device_time: TimeField | None = None
    """Time the device takes to prepare one sample; required where it does."""
    device_memory: ByteOrZeroField | None = None
    """Device memory that preparing takes."""
    prepared_bytes_per_sample: ByteField | None = None
    """Bytes of a sample as prepared beforehand and stored; required where it is."""
    socket: CountOrZeroField | None = None
    """Socket in whose memory batches lie; by default that of each device."""


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
    """Tokens per sample, in place of what the library's model takes."""
    filled: PositiveShareField | None = None
    """Mean share of those tokens that is computed, in place of what the library's model says: below
    1 where batches are as long as their longest sample only, or padding is left out."""
    scored_share: FractionField | None = None
    """Share of an encoder's tokens whose scores are computed, in place of what the library's model
    says: those that are masked in pre-training, next to none in fine-tuning."""
    image: ShapeField | None = None
    """Height and width of an image, in place of what the library's model takes."""
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
    step_times: list[StepTimeTable] = field(default_factory=list)
    """Your own measurements, at one batch size or several; they win over everything else."""
    step_time: TimeField | None = None
    """The same at one batch size, such as 120 ms; in place of step_times."""
    step_time_batch: BatchField | None = None
    """The batch size that step_time was measured at; by default train.batch_size of the files, and
    where step_time is an option, that of the job."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScenarioFile:
    """One question to plan: a machine, the data, the input pipeline, a model, how it is trained."""

    hardware: HardwareSection
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
    input: InputSection = field(default_factory=InputSection)
    """The input pipeline."""
    model: ModelSection | None = None
    """The model; none for a job that only prepares data."""
    software: Software = field(default_factory=Software)
    """The software the job runs on."""
    cost: CostPlan = field(default_factory=CostPlan)
    """How the bill is counted."""
    memory: Memory = field(default_factory=Memory)
    """What host RAM holds beside the job itself."""
    remote: RemoteSection | None = None
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
    """Where the electricity comes from; energy and emissions of the run are told with it."""
    spot: SpotSection | None = None
    """When spot machines can be had, where cost.purchase buys them."""
