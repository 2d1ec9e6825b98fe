"""The sections of a file that describes a service: ``mode = "serve"``.

The text under a field is its documentation: in messages, in editors.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated

from simulator.reading.sections import StepTimeTable
from simulator.schema.accelerators import Precision, PrecisionField
from simulator.schema.cost import EnergyPlan, Ownership, PurchaseField
from simulator.schema.fields import (
    ByteField,
    ByteOrZeroField,
    Choice,
    CountField,
    CountOrZeroField,
    Number,
    NumberField,
    NumberOrZeroField,
    PositiveShareField,
    RateField,
    Section,
    TextField,
    TimeField,
    TimeOrZeroField,
)
from simulator.schema.scenario import CostPlan
from simulator.schema.serving import Admission, Batching, Lengths, MemoryBase, Serving, Slo
from simulator.schema.software import ServiceFactors
from simulator.schema.training import DegreeField, ServiceMode

ShareOrZeroField = Annotated[float, Number(low=0.0, high=1.0)]


class Arrivals(StrEnum):
    """Arrivals of requests."""

    CLOSED = "closed"
    POISSON = "poisson"
    GAMMA = "gamma"
    EVEN = "even"
    DAILY = "daily"
    CAMERAS = "cameras"
    AT_ONCE = "at-once"
    TRACE = "trace"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceHardware:
    """The machines of a service."""

    machine: TextField
    """Name of a machine's profile, such as node/hgx-h100-80gb or instance/aws/g6.xlarge."""
    count: CountField = 1
    """How many equal machines."""
    gpu: TextField | None = None
    """What if it had this accelerator instead of each of its own, such as gpu/l4."""
    gpus: CountField | None = None
    """Accelerators used on each machine; all of them by default."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceModel:
    """The model that is served."""

    name: TextField | None = None
    """Name of a model in the library, such as llama-3.1-8b."""
    family: TextField | None = None
    """Family of a model that is not in the library, such as llama or resnet; needs model.shape."""
    shape: dict[str, object] | None = None
    """Figures of the family's shape, such as layers and hidden; see plan models."""
    step_times: list[StepTimeTable] = field(default_factory=list)
    """Times of batches measured on this machine, of a model that answers in one pass."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InputsSection(Section):
    """Store of the requests of a bulk job until they are read."""

    store: TextField
    """Name of a store's profile, such as s3 or fsx-lustre-scratch2."""
    bytes: ByteField
    """What is read for a request: a document, a picture."""
    readers: CountField = 16
    """Requests that each machine reads at a time."""
    answers: ByteOrZeroField | None = None
    """What is written back to the store for an answer, by the same readers: by default the text of
    its tokens, and nothing where a model answers in one pass."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadSection:
    """The requests that reach the service."""

    arrivals: Annotated[Arrivals, Choice(Arrivals)]
    """How they come: closed, poisson, gamma, even, daily, cameras, at-once or trace."""
    rate: RateField | None = None
    """Requests a second, such as 5 /s, of poisson, gamma and even arrivals; at the peak of daily
    ones."""
    users: CountField | None = None
    """Number of people who use it, instead of a rate (with `per_user`), or of the clients of a
    closed loop (with `think`)."""
    per_user: RateField | None = None
    """Requests of each user, such as 20 /day, or 30 /hour at the busiest hour; spread over time as
    the arrivals are, over the whole day where they are daily."""
    cameras: CountField | None = None
    """How many cameras (or other sources) send pictures at equal gaps."""
    frame_rate: RateField | None = None
    """Pictures a second of each camera, such as 10 /s."""
    curve: list[NumberOrZeroField] | None = None
    """The rate of daily arrivals over its peak, evenly spaced over the period and joined by
    straight lines; an office's day by default."""
    period: TimeField | None = None
    """What daily arrivals repeat after: 24 h by default."""
    burstiness: NumberField | None = None
    """Shape of gamma arrivals: 1 is poisson, less is burstier."""
    concurrency: CountField | None = None
    """Clients of a closed loop, each with one request under way."""
    think: TimeOrZeroField = 0.0
    """Time between an answer and the client's next request."""
    trace: TextField | None = None
    """A CSV file with columns arrival_s, prompt_tokens and output_tokens, relative to this one."""
    samples: CountField | None = None
    """Samples of a request to a model that answers in one pass: one picture, or the candidates of a
    ranking; 1 by default."""
    prompt: Lengths | None = None
    """Lengths of prompts."""
    output: Lengths | None = None
    """Lengths of answers."""
    inputs: InputsSection | None = None
    """A store that at-once requests are read from while others are answered; by default they are
    there."""
    request_bytes: ByteOrZeroField | None = None
    """What a client sends for a request, over the machine's network: a picture, a prompt; four
    bytes for each token by default, or what a model takes in that answers in one pass."""
    answer_bytes: ByteOrZeroField | None = None
    """What it gets back: by default 300 bytes for each token, streamed, or 1 kB."""
    requests: CountField | None = None
    """How many are simulated, first and last counted; by default as many as a steady state needs,
    ten for each client of a closed loop, one period of daily arrivals and all of a trace."""
    shared_prefix: CountOrZeroField = 0
    """Tokens that all prompts begin with, kept in the engine's cache."""
    prefix_hit_rate: ShareOrZeroField = 0.0
    """Share of the other tokens of prompts that are found in the engine's cache, as engines report
    it: turns of a conversation, documents asked about again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceGoal:
    """Choices of plan recommend, which finds the cheapest machines within the limits."""

    machines: list[TextField] = field(default_factory=list)
    """Machines by name or pattern, such as instance/aws/g6*; that of the service by default."""
    tensor: list[DegreeField] = field(default_factory=lambda: [1, 2, 4, 8])
    """Accelerators of a replica; those larger than a machine are passed over."""
    weights: list[PrecisionField] = field(default_factory=list)
    """Number formats of the weights; that of the service by default."""
    purchase: list[PurchaseField] = field(default_factory=list)
    """Ways to buy the machines, such as on-demand and owned; that of the service by default."""
    prefill: list[CountOrZeroField] = field(default_factory=list)
    """Replicas of each machine that compute prompts alone, such as [0, 1, 2]; as many as the
    service has by default."""
    deadline: TimeField | None = None
    """Time within which all requests of a bulk job are answered, such as 8 h; the limit of
    slo.end_to_end by default."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceFile:
    """One service: machines, a model, an engine, the requests, their limits."""

    mode: Annotated[ServiceMode, Choice(ServiceMode)]
    """What the file describes: serve."""
    hardware: ServiceHardware
    """The machines."""
    model: ServiceModel
    """The model."""
    load: LoadSection
    """The requests."""
    name: TextField | None = None
    """Short name of the service; the file's name by default."""
    title: TextField | None = None
    """One line that says what it asks."""
    extends: TextField | None = None
    """Another service, by file (relative to this one) or shipped name, that this one changes."""
    serving: Serving | None = None
    """The engine and its settings."""
    calibration: ServiceFactors | None = None
    """What plan calibrate found of the service; by default it is as other services are."""
    slo: Slo | None = None
    """What requests must keep; nothing by default."""
    cost: CostPlan | None = None
    """How the bill is counted."""
    owned: Ownership | None = None
    """What machines cost that are bought, with cost.purchase = "owned"."""
    energy: EnergyPlan | None = None
    """Where the electricity comes from; with it, plan tells what answers emit."""
    goal: ServiceGoal | None = None
    """What plan recommend chooses among; a single prediction ignores it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineDeviceTable:
    """Defaults on accelerators of at least so much memory."""

    memory: ByteOrZeroField
    """From this memory on; the last entry that applies counts."""
    max_batched_tokens: CountField
    """Most tokens of an iteration."""
    max_sequences: CountField
    """Most requests at once."""
    memory_fraction: PositiveShareField | None = None
    """Replaces the version's."""
    excepted: TextField | None = None
    """Part of an accelerator's name to which the entry doesn't apply."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineVersionTable:
    """Defaults of a version and those after it."""

    since: TextField
    """The first version they hold for."""
    memory_fraction: PositiveShareField
    """Share of the memory that the engine takes."""
    graphs_inside: bool
    """Whether graphs lie within that share."""
    graph_memory: ByteOrZeroField
    """What graphs take."""
    batching: Annotated[Batching, Choice(Batching)] | None = None
    """Replaces the engine's."""
    chunked_prefill: bool | None = None
    """Replaces the engine's."""
    released: TextField | None = None
    """When, as year and month; the version of a run that states its date alone."""
    note: TextField
    """Where this stands."""
    device: list[EngineDeviceTable]
    """By memory, least first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineFile:
    """A file of data/serving: the rules of an engine and the defaults of its versions."""

    name: TextField
    """Of the engine."""
    batching: Annotated[Batching, Choice(Batching)]
    """What an iteration holds."""
    admission: Annotated[Admission, Choice(Admission)]
    """What must fit before a request starts."""
    chunked_prefill: bool
    """Whether prompts may be cut."""
    cores: bool = False
    """Whether it runs on the cores of machines without accelerators, too."""
    groups_share_limits: bool = False
    """Whether limits of tokens and requests are those of all attention groups together."""
    fraction_of: Annotated[MemoryBase, Choice(MemoryBase)]
    """What the memory fraction is a fraction of."""
    activations_inside: bool
    """Whether activations lie within the fraction."""
    block_tokens: CountField
    """Tokens of a block."""
    narrow_cache: PrecisionField = Precision.BF16
    """Number format of keys and values where weights have 8 bit or fewer and nothing is said."""
    source: TextField
    """Who says so."""
    date: TextField
    """When."""
    verified: bool = True
    """Whether all of it was read there."""
    newest: TextField
    """The newest version whose rules were looked at."""
    version: list[EngineVersionTable]
    """Oldest first."""
