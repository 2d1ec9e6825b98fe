"""The sections of a file that describes a service: ``mode = "serve"``.

The text under a field is its documentation: in messages, in editors.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated

from simulator.reading.choices import PrecisionField, PurchaseField
from simulator.reading.long_run.bill_sections import EnergySection, OwnedSection
from simulator.reading.sections import CostSection, DegreeField, SpeedField, StepTimeTable
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
from simulator.schema.precision import Precision
from simulator.schema.serving import Admission, Batching, MemoryBase, Routing, Spread

ShareOrZeroField = Annotated[float, Number(low=0.0, high=1.0)]
BatchedField = Annotated[int, Number(low=64.0, high=1e6, whole=True)]


class ServiceMode(StrEnum):
    """What a file that says ``mode`` describes."""

    SERVE = "serve"


class Arrivals(StrEnum):
    """How requests reach a service."""

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
    """What if it had this accelerator in place of each of its own, such as gpu/l4."""
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
class AutoscalingSection(Section):
    """Replicas that come and go with the load, as Kubernetes' horizontal autoscaler has them."""

    least: CountField = 1
    """Fewest replicas."""
    most: CountField | None = None
    """Most replicas; as many as the machines have accelerators for by default."""
    target: NumberField
    """Requests under way that each replica should have."""
    interval: TimeField = 15.0
    """Time from one look at the load to the next."""
    delay: TimeOrZeroField = 300.0
    """Time from the start of a replica to its first request: the machine boots, weights load."""
    hold: TimeOrZeroField = 300.0
    """A replica goes when for so long none of the looks wanted as many."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeculationSection:
    """Speculative decoding: tokens are guessed, and checked all at once."""

    drafts: CountField
    """Guessed tokens of each sequence in an iteration."""
    accepted: NumberField | None = None
    """Tokens that an iteration leaves on average, as engines report it: 1 to drafts + 1."""
    acceptance: PositiveShareField | None = None
    """In its place: how often a guess is right, if those before it are."""
    draft: NumberOrZeroField | None = None
    """Time of a guess over that of an iteration without, and so of weights: 0 for guesses from the
    text itself, 0.03 by default."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldSection:
    """Prompts that an engine keeps back beside answers (TensorRT-LLM's batch_wait options)."""

    iterations: CountField
    """For how many iterations at most (batch_wait_timeout_iters)."""
    share: PositiveShareField = 1.0
    """They go as soon as they fill this share of an iteration (batch_wait_max_tokens_ratio)."""
    prompts: CountField | None = None
    """They go as soon as there are so many, such as one for each attention group (enable_balance of
    attention_dp_config, whose timeout_iters are the iterations)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PrefillSection:
    """Replicas that compute prompts and send keys and values to the others, which decode."""

    replicas: CountOrZeroField
    """How many; 0: none, and the others compute prompts too."""
    tensor: DegreeField | None = None
    """Accelerators of each; as many as of the others by default."""
    max_batched_tokens: BatchedField | None = None
    """Most tokens of their iterations; as of the others by default."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingSection(Section):
    """The serving engine and its settings; what is left out is the engine's own default."""

    engine: TextField = "vllm"
    """Whose rules hold: vllm, sglang or tensorrt-llm; triton for models that answer in one pass."""
    version: TextField | None = None
    """Its version, such as 0.19; the newest known by default."""
    tensor: DegreeField = 1
    """Accelerators of one machine that share each layer of a replica."""
    replicas: CountField | None = None
    """Equal engines behind a router; as many as there are accelerators for by default."""
    router: Annotated[Routing, Choice(Routing)] = Routing.ROUND_ROBIN
    """To which replica a request goes: round-robin (usual), random or least-outstanding (usual with
    triton)."""
    autoscaling: AutoscalingSection | None = None
    """Replicas that come and go with the load; always all of them by default."""
    speculation: SpeculationSection | None = None
    """Speculative decoding; none by default."""
    prefill: PrefillSection | None = None
    """Replicas that compute prompts alone, on accelerators of their own; none by default."""
    expert_parallel: bool = False
    """Whether accelerators hold whole experts, in place of a part of each."""
    attention_groups: DegreeField = 1
    """Equal groups of a replica's accelerators that hold requests of their own (data-parallel
    attention: SGLang's enable_dp_attention, TensorRT-LLM's enable_attention_dp, vLLM's
    data_parallel_size with expert parallelism). Layers after attention are spread over all."""
    held_prompts: HeldSection | None = None
    """Prompts that wait beside answers, to be computed several at once; none by default."""
    poll_interval: CountField = 1
    """Iterations between two looks at new requests while answers are written (SGLang's
    scheduler_recv_interval)."""
    weights: PrecisionField = Precision.BF16
    """Number format of the weights and of the products with them."""
    cache: PrecisionField | None = None
    """Number format of keys and values; that of the engine beside these weights by default: bf16,
    and fp8 with tensorrt-llm where weights have 8 bit or fewer."""
    max_batched_tokens: BatchedField | None = None
    """Most tokens of an iteration (SGLang's chunked_prefill_size); of each of its attention groups
    where the engine counts so (vllm, tensorrt-llm)."""
    max_sequences: CountField | None = None
    """Most requests that run at once on a replica, or on each of its attention groups."""
    block_tokens: CountField | None = None
    """Tokens of a block of the cache."""
    memory_fraction: PositiveShareField | None = None
    """Share of an accelerator's memory that the engine takes, as its own option counts it."""
    graph_memory: ByteOrZeroField | None = None
    """Memory of recorded graphs on each accelerator."""
    chunked_prefill: bool | None = None
    """Whether prompts may be cut where an iteration is full."""
    request_overhead: TimeOrZeroField | None = None
    """Time of a request beside its iterations: network, tokenising."""
    max_batch: CountField | None = None
    """Most samples of a batch (triton)."""
    queue_delay: TimeOrZeroField | None = None
    """For how long a request waits for others at most before a batch goes (triton); 0 s by
    default."""
    preferred_batches: list[CountField] | None = None
    """Sizes that batches should have where there are enough requests (triton)."""
    static_batches: bool | None = None
    """Whether batches go only when they are full (triton)."""
    host_time: TimeOrZeroField | None = None
    """Time of a host thread for each request before its batch, to decode an image (triton)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LengthTable:
    """Lengths of prompts or answers."""

    tokens: NumberField
    """Their mean; with uniform lengths, the largest."""
    spread: Annotated[Spread, Choice(Spread)] = Spread.CONSTANT
    """How they vary: constant, uniform, lognormal or exponential."""
    ratio: PositiveShareField = 1.0
    """Shortest over longest, of uniform lengths; InferenceX draws them with 0.8."""
    deviation: NumberOrZeroField = 1.0
    """Standard deviation over the mean, of lognormal lengths."""
    most: CountField | None = None
    """The longest, such as the limit of an answer's tokens; longer ones are cut to it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InputsSection(Section):
    """Where requests that are all there from the start lie until they are read."""

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
    """How many people use it, in place of a rate (with `per_user`), or of the clients of a closed
    loop (with `think`)."""
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
    prompt: LengthTable | None = None
    """Lengths of prompts."""
    output: LengthTable | None = None
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
class ServiceCalibration:
    """How much faster parts of the service are than those of others; above 1: faster."""

    compute: SpeedField = 1.0
    """Products, and attention of prompts."""
    device_memory: SpeedField = 1.0
    """Reading weights, keys and values."""
    engine: SpeedField = 1.0
    """The engine's own time of an iteration, of its layers and of each sequence."""
    request: SpeedField = 1.0
    """What a request takes beside its iterations."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SloSection:
    """What requests must keep."""

    first_token: TimeField | None = None
    """Time to the first token, at most."""
    per_token: TimeField | None = None
    """Time of each further token on average over an answer, at most."""
    end_to_end: TimeField | None = None
    """Time to the last token, at most."""
    share: PositiveShareField = 0.99
    """Share of the requests that must keep all limits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceGoal:
    """What plan recommend chooses among, for the machines that keep the limits and cost least."""

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
    serving: ServingSection | None = None
    """The engine and its settings."""
    calibration: ServiceCalibration | None = None
    """What plan calibrate found of the service; by default it is as other services are."""
    slo: SloSection | None = None
    """What requests must keep; nothing by default."""
    cost: CostSection | None = None
    """How the bill is counted."""
    owned: OwnedSection | None = None
    """What machines cost that are bought, with cost.purchase = "owned"."""
    energy: EnergySection | None = None
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
    """In place of the version's."""
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
    """In place of the engine's."""
    chunked_prefill: bool | None = None
    """In place of the engine's."""
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
