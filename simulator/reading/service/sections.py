"""The sections of a file that describes a service: ``mode = "serve"``.

The text under a field is its documentation: in messages, in editors.
"""

from __future__ import annotations

from dataclasses import field
from enum import StrEnum
from typing import Annotated

from simulator.reading.sections import StepTimeTable
from simulator.records import dataclass
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
    """Number of equal machines."""
    gpu: TextField | None = None
    """Accelerator that replaces each of the machine's, such as gpu/l4."""
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
    """Size of the input of a request: a document, a picture."""
    readers: CountField = 16
    """Requests that each machine reads concurrently."""
    client: TextField = "unknown"
    """Library or mount that reads an object store, as in data.client of a job."""
    answers: ByteOrZeroField | None = None
    """Size of the answer written back to the store by the same readers; by default the text of its
    tokens, and 0 for a model that answers in one pass."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadSection:
    """The requests that reach the service."""

    arrivals: Annotated[Arrivals, Choice(Arrivals)]
    """Kind of arrivals: closed, poisson, gamma, even, daily, cameras, at-once or trace."""
    rate: RateField | None = None
    """Requests per second, such as 5 /s, of poisson, gamma and even arrivals; at the peak of daily
    ones."""
    users: CountField | None = None
    """Number of users, instead of a rate (with `per_user`), or number of clients of a closed loop
    (with `think`)."""
    per_user: RateField | None = None
    """Requests of each user, such as 20 /day, or 30 /hour at the busiest hour; spread over time
    according to the arrivals, over the whole day if they are daily."""
    cameras: CountField | None = None
    """Number of cameras (or other sources) that send pictures at equal intervals."""
    frame_rate: RateField | None = None
    """Pictures per second of each camera, such as 10 /s."""
    curve: list[NumberOrZeroField] | None = None
    """Rate of daily arrivals over its peak, at evenly spaced times of the period, interpolated
    linearly; by default an office's day."""
    period: TimeField | None = None
    """Period of daily arrivals; 24 h by default."""
    burstiness: NumberField | None = None
    """Shape of gamma arrivals: 1 is poisson, less is burstier."""
    concurrency: CountField | None = None
    """Clients of a closed loop, each with one outstanding request."""
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
    """A store from which at-once requests are read while others are answered; by default requests
    contain their inputs."""
    request_bytes: ByteOrZeroField | None = None
    """Size of a request on the machine's network: a picture, a prompt; four bytes per token by
    default, or the input size of a model that answers in one pass."""
    answer_bytes: ByteOrZeroField | None = None
    """Size of an answer on the network; by default 300 bytes per token, streamed, or 1 kB."""
    requests: CountField | None = None
    """Number of simulated requests, including the first and last; by default enough for a steady
    state, ten per client of a closed loop, one period of daily arrivals and all of a trace."""
    shared_prefix: CountOrZeroField = 0
    """Number of equal first tokens of all prompts, which are in the engine's cache."""
    prefix_hit_rate: ShareOrZeroField = 0.0
    """Share of the other tokens of prompts that are in the engine's cache, as engines report it:
    conversations, documents used again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceGoal:
    """Search space of plan recommend, which finds the cheapest machines within the limits."""

    machines: list[TextField] = field(default_factory=list)
    """Machines by name or pattern, such as instance/aws/g6*; that of the service by default."""
    tensor: list[DegreeField] = field(default_factory=lambda: [1, 2, 4, 8])
    """Accelerators of a replica; numbers above those of a machine are ignored."""
    weights: list[PrecisionField] = field(default_factory=list)
    """Number formats of the weights; that of the service by default."""
    purchase: list[PurchaseField] = field(default_factory=list)
    """Ways to buy the machines, such as on-demand and owned; that of the service by default."""
    prefill: list[CountOrZeroField] = field(default_factory=list)
    """Replicas of each machine that compute prompts alone, such as [0, 1, 2]; by default as in the
    service."""
    deadline: TimeField | None = None
    """Time within which all requests of a bulk job are answered, such as 8 h; the limit of
    slo.end_to_end by default."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceFile:
    """A service: machines, a model, an engine, the requests, their limits."""

    mode: Annotated[ServiceMode, Choice(ServiceMode)]
    """Kind of the file: serve."""
    hardware: ServiceHardware
    """The machines."""
    model: ServiceModel
    """The model."""
    load: LoadSection
    """The requests."""
    name: TextField | None = None
    """Short name of the service; the file's name by default."""
    title: TextField | None = None
    """One line on the purpose of the service."""
    extends: TextField | None = None
    """Another service, by file (relative to this one) or shipped name, that this one changes."""
    serving: Serving | None = None
    """The engine and its settings."""
    calibration: ServiceFactors | None = None
    """Factors that plan calibrate fitted to the service; by default 1, as for other services."""
    slo: Slo | None = None
    """Limits that requests must meet; none by default."""
    cost: CostPlan | None = None
    """Rules of the bill."""
    owned: Ownership | None = None
    """Costs of owned machines, with cost.purchase = "owned"."""
    energy: EnergyPlan | None = None
    """Source of the electricity; with it, plan reports the emissions of answers."""
    goal: ServiceGoal | None = None
    """Search space of plan recommend; a single prediction ignores it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineDeviceTable:
    """Defaults on accelerators with at least this memory."""

    memory: ByteOrZeroField
    """Smallest memory to which they apply; the last entry that applies is used."""
    max_batched_tokens: CountField
    """Most tokens of an iteration."""
    max_sequences: CountField
    """Most requests at once."""
    memory_fraction: PositiveShareField | None = None
    """Replaces the share of the version."""
    excepted: TextField | None = None
    """Part of an accelerator's name to which the entry doesn't apply."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineVersionTable:
    """Defaults from this version on."""

    since: TextField
    """First version to which they apply."""
    memory_fraction: PositiveShareField
    """Share of the memory that the engine takes."""
    graphs_inside: bool
    """Whether recorded graphs are within that share."""
    graph_memory: ByteOrZeroField
    """Memory of recorded graphs."""
    batching: Annotated[Batching, Choice(Batching)] | None = None
    """Replaces that of the engine."""
    chunked_prefill: bool | None = None
    """Replaces that of the engine."""
    released: TextField | None = None
    """Release as year and month, for runs that state only a date."""
    note: TextField
    """Source of the defaults."""
    device: list[EngineDeviceTable]
    """Defaults by memory, smallest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineFile:
    """A file of data/serving: the rules of an engine and the defaults of its versions."""

    name: TextField
    """Name of the engine."""
    batching: Annotated[Batching, Choice(Batching)]
    """Content of an iteration."""
    admission: Annotated[Admission, Choice(Admission)]
    """Tokens that must fit before a request starts."""
    chunked_prefill: bool
    """Whether a prompt may be split over iterations."""
    cores: bool = False
    """Whether it also runs on the cores of machines without accelerators."""
    groups_share_limits: bool = False
    """Whether limits of tokens and requests are for all attention groups together."""
    fraction_of: Annotated[MemoryBase, Choice(MemoryBase)]
    """Memory to which the memory fraction refers."""
    activations_inside: bool
    """Whether activations are within that fraction."""
    block_tokens: CountField
    """Tokens of a block."""
    narrow_cache: PrecisionField = Precision.BF16
    """Default number format of the KV cache if weights have 8 bit or fewer."""
    source: TextField
    """Source of the rules."""
    date: TextField
    """Date of the source."""
    verified: bool = True
    """Whether all of it was read there."""
    newest: TextField
    """Newest version whose rules were examined."""
    version: list[EngineVersionTable]
    """Defaults by version, oldest first."""
