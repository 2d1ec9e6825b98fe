"""A service: a language model behind a serving engine, the load on it, and its SLO."""

from __future__ import annotations

import math
from dataclasses import field
from enum import StrEnum
from typing import Annotated, Final

from simulator.records import dataclass
from simulator.schema.accelerators import Precision, PrecisionField
from simulator.schema.cost import EnergyPlan, Ownership
from simulator.schema.fields import (
    DEPENDS,
    DERIVED,
    ByteOrZeroField,
    Choice,
    CountField,
    CountOrZeroField,
    Number,
    NumberField,
    NumberOrZeroField,
    PositiveShareField,
    Section,
    TextField,
    TimeField,
    TimeOrZeroField,
)
from simulator.schema.machines import Cluster, Group
from simulator.schema.models import Model
from simulator.schema.provenance import Assumption, Source
from simulator.schema.scenario import CostPlan, Scenario
from simulator.schema.software import ProductFigures, ServiceFactors, ServingFigures
from simulator.schema.training import DegreeField
from simulator.units import Bytes, PerSecond, Seconds

BatchedField = Annotated[int, Number(low=64.0, high=1e6, whole=True)]


class Batching(StrEnum):
    """Content of an iteration: prompts and decoding together, or prompts alone while any wait."""

    MIXED = "mixed"
    PREFILL_FIRST = "prefill-first"


class Admission(StrEnum):
    """Number of tokens for which the cache must have room before a request starts.

    `PROMPT`: those of its prompt. `ESTIMATE`: its prompt, its answer and a part of the tokens that
    running requests have yet to write. `WHOLE`: prompts and answers of all running requests, so
    that none is ever preempted.
    """

    PROMPT = "prompt"
    ESTIMATE = "estimate"
    WHOLE = "whole"


class MemoryBase(StrEnum):
    """Memory to which the engine's memory fraction refers."""

    TOTAL = "total"
    FREE = "free"


class Routing(StrEnum):
    """Replica to which a router sends a request: in turn, at random, or the least loaded."""

    ROUND_ROBIN = "round-robin"
    RANDOM = "random"
    LEAST = "least-outstanding"


@dataclass(frozen=True, slots=True, kw_only=True)
class Autoscaling(Section):
    """Replicas that follow the load, as with Kubernetes' horizontal autoscaler.

    Their number is that at which each has `target` outstanding requests, in whole machines of
    `together` replicas.
    """

    least: CountField = 1
    """Smallest number of replicas."""
    most: CountField = field(default=1, metadata=DEPENDS)
    """Largest number of replicas; by default as many as fit on the machines' accelerators."""
    target: NumberField
    """Outstanding requests that each replica should have."""
    interval: TimeField = 15.0
    """Time between two measurements of the load."""
    delay: TimeOrZeroField = 300.0
    """Time from the start of a replica to its first request: the machine boots, weights load."""
    hold: TimeOrZeroField = 300.0
    """A replica stops when no measurement during this time required it."""
    together: int = field(default=1, metadata=DERIVED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Speculation(Section):
    """Speculative decoding: an iteration verifies several guessed tokens per sequence."""

    drafts: CountField
    """Guessed tokens of each sequence in an iteration."""
    accepted: NumberField = field(default=1.0, metadata=DEPENDS)
    """Mean number of tokens of a sequence per iteration, as engines report it: 1 to drafts + 1."""
    acceptance: PositiveShareField | None = None
    """Instead of it: probability that a guess is right if those before it are."""
    draft: NumberOrZeroField = field(default=0.0, metadata=DEPENDS)
    """Time of a guess over that of an iteration without speculation, and likewise its weights: 0
    for guesses from the text itself, 0.03 by default."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dynamic:
    """Batches of a model that answers in one pass, as Triton's dynamic batcher forms them.

    A free device takes the largest size that the queue fills, among the `preferred` sizes and the
    maximum. If it fills none, the device waits until it does or until the oldest request has waited
    `delay` [s], and then takes all requests. With an infinite delay batches are always full: static
    batching.
    """

    delay: Seconds = 0.0
    preferred: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """Prompts that an engine delays while it decodes, to compute several at once.

    TensorRT-LLM calls the options batch_wait.
    """

    iterations: CountField
    """Maximum number of iterations (batch_wait_timeout_iters)."""
    share: PositiveShareField = 1.0
    """Share of an iteration that ends the wait when filled (batch_wait_max_tokens_ratio)."""
    prompts: CountField | None = None
    """Number of waiting prompts that ends the wait, such as one for each attention group
    (enable_balance of attention_dp_config, whose timeout_iters are the iterations)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prefill(Section):
    """Replicas that compute prompts and send the KV cache to the others, which decode."""

    replicas: CountOrZeroField
    """Number of replicas; 0: the others compute prompts too."""
    tensor: DegreeField = field(default=1, metadata=DEPENDS)
    """Accelerators of each replica; by default as many as of the others."""
    max_batched_tokens: BatchedField = field(default=8192, metadata=DEPENDS)
    """Most tokens of their iterations; by default as of the others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reserve:
    """Share of the tokens yet to be written for which `Admission.ESTIMATE` reserves room.

    It falls from `start` to `least` over `steps` iterations of decoding since the last preemption.
    No answer counts with more than `longest` tokens.
    """

    start: float = 0.7
    least: float = 0.098
    steps: int = 600
    longest: int = 4096

    def share(self, steps: int) -> float:
        """Return the share after `steps` iterations [1]."""
        fallen = (self.start - self.least) * steps / self.steps
        return max(self.least, self.start - fallen)


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """The rules of a version of a serving engine.

    `activations_inside` and `graphs_inside` state whether activations and recorded graphs use the
    memory that the memory fraction grants, in addition to weights and cache, or memory outside of
    it.
    """

    name: str
    version: str
    batching: Batching
    admission: Admission
    fraction_of: MemoryBase
    activations_inside: bool
    graphs_inside: bool
    source: Source
    reserve: Reserve = field(default_factory=Reserve)


ANY_ENGINE: Final = Engine(
    name="",
    version="",
    batching=Batching.MIXED,
    admission=Admission.PROMPT,
    fraction_of=MemoryBase.TOTAL,
    activations_inside=True,
    graphs_inside=True,
    source=Source(reference="", date="undated"),
)
"""Rules used before the engine of the settings is looked up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Serving(Section):
    """The serving engine and its settings; by default the engine's own defaults.

    `rules` are those of the engine's version. Each token of a prompt takes `prompt_overhead` before
    it reaches the scheduler (tokenizing), in addition to `request_overhead`, and a token reaches
    the client `reply_lag` iterations after it was computed. With `dynamic` the model answers in one
    pass: the tokens of a prompt are samples, and an answer is one token; each request first takes
    one of the `host_threads` of its replica for `host_time`.
    """

    engine: TextField = "vllm"
    """Engine: vllm, sglang or tensorrt-llm; triton for models that answer in one pass."""
    version: TextField | None = None
    """Version of the engine, such as 0.19; the newest known by default."""
    tensor: DegreeField = 1
    """Accelerators of one machine that share each layer of a replica."""
    replicas: CountField = field(default=1, metadata=DEPENDS)
    """Equal engines behind a router; by default as many as fit on the accelerators."""
    router: Annotated[Routing, Choice(Routing)] = Routing.ROUND_ROBIN
    """Replica to which a request goes: round-robin (usual), random or least-outstanding (usual with
    triton)."""
    autoscaling: Autoscaling | None = None
    """Replicas that follow the load; by default all of them always run."""
    speculation: Speculation | None = None
    """Speculative decoding; none by default."""
    prefill: Prefill | None = None
    """Replicas that compute prompts alone, on accelerators of their own; none by default."""
    expert_parallel: bool = False
    """Whether each accelerator holds whole experts instead of a part of each expert."""
    attention_groups: DegreeField = 1
    """Equal groups of a replica's accelerators with separate requests (data-parallel attention:
    SGLang's enable_dp_attention, TensorRT-LLM's enable_attention_dp, vLLM's data_parallel_size with
    expert parallelism). Layers after attention are spread over all accelerators."""
    held_prompts: Held | None = None
    """Prompts that wait during decoding, to be computed several at once; none by default."""
    poll_interval: CountField = 1
    """Iterations between two checks for new requests during decoding (SGLang's
    scheduler_recv_interval)."""
    weights: PrecisionField = Precision.BF16
    """Number format of the weights and of matrix products with them."""
    cache: PrecisionField = field(default=Precision.BF16, metadata=DEPENDS)
    """Number format of the KV cache; by default the engine's choice for these weights: bf16, and
    fp8 with tensorrt-llm if weights have 8 bit or fewer."""
    max_batched_tokens: BatchedField = field(default=8192, metadata=DEPENDS)
    """Most tokens of an iteration (SGLang's chunked_prefill_size); of each of its attention groups
    where the engine counts so (vllm, tensorrt-llm)."""
    max_sequences: CountField = field(default=256, metadata=DEPENDS)
    """Most requests that run at once on a replica, or on each of its attention groups."""
    block_tokens: CountField = field(default=16, metadata=DEPENDS)
    """Tokens of a block of the cache."""
    memory_fraction: PositiveShareField = field(default=0.9, metadata=DEPENDS)
    """Share of an accelerator's memory for the engine, as its own option defines it."""
    graph_memory: ByteOrZeroField = field(default=0.0, metadata=DEPENDS)
    """Memory of recorded CUDA graphs on each accelerator."""
    chunked_prefill: bool = field(default=True, metadata=DEPENDS)
    """Whether a prompt may be split over iterations when one is full."""
    request_overhead: TimeOrZeroField = field(default=0.0, metadata=DEPENDS)
    """Time of a request in addition to its iterations: network, tokenizing."""
    max_batch: CountField | None = None
    """Most samples of a batch (triton)."""
    queue_delay: TimeOrZeroField | None = None
    """Longest time that a request waits for others before a batch starts (triton); 0 s by
    default."""
    preferred_batches: tuple[CountField, ...] | None = None
    """Preferred batch sizes, used if there are enough requests (triton)."""
    static_batches: bool | None = None
    """Whether a batch starts only when it is full (triton)."""
    host_time: TimeOrZeroField = field(default=0.0, metadata=DEPENDS)
    """Time of a host thread for each request before its batch, to decode an image (triton)."""
    rules: Engine = field(default=ANY_ENGINE, metadata=DERIVED)
    prompt_overhead: Seconds = field(default=0.0, metadata=DERIVED)
    reply_lag: float = field(default=0.0, metadata=DERIVED)
    dynamic: Dynamic | None = field(default=None, metadata=DERIVED)
    host_threads: float = field(default=1.0, metadata=DERIVED)

    @property
    def devices(self) -> int:
        """Number of accelerators of all replicas."""
        before = self.prefill
        prompts = 0 if before is None else before.replicas * before.tensor
        return prompts + self.replicas * self.tensor


class LengthDistribution(StrEnum):
    """Family of a distribution of lengths."""

    CONSTANT = "constant"
    UNIFORM = "uniform"
    LOGNORMAL = "lognormal"
    EXPONENTIAL = "exponential"


@dataclass(frozen=True, slots=True, kw_only=True)
class Lengths:
    """Lengths of prompts or answers."""

    tokens: NumberField
    """Mean length; with uniform lengths, the largest."""
    spread: Annotated[LengthDistribution, Choice(LengthDistribution)] = LengthDistribution.CONSTANT
    """Distribution: constant, uniform, lognormal or exponential."""
    ratio: PositiveShareField = 1.0
    """Shortest over longest of uniform lengths; InferenceX uses 0.8."""
    deviation: NumberOrZeroField = 1.0
    """Standard deviation over the mean of lognormal lengths."""
    most: CountField | None = None
    """Largest length, such as the limit of an answer's tokens; longer ones are cut to it, without
    effect on the stated mean."""

    @property
    def mean(self) -> float:
        """Mean length [tokens]."""
        if self.spread is LengthDistribution.UNIFORM:
            return 0.5 * (int(self.ratio * self.tokens) + self.tokens)
        return self.tokens

    @property
    def variation(self) -> float:
        """Standard deviation over the mean, before lengths are cut to `most`."""
        if self.spread is LengthDistribution.LOGNORMAL:
            return self.deviation
        if self.spread is LengthDistribution.UNIFORM:
            return (self.tokens - int(self.ratio * self.tokens)) / (math.sqrt(12.0) * self.mean)
        # Exponential: whole tokens, of a geometric distribution.
        share = 1.0 - 1.0 / max(1.0, self.tokens)
        return math.sqrt(share) if self.spread is LengthDistribution.EXPONENTIAL else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ClosedLoop:
    """`concurrency` clients that each send their next request `think` after the last answer.

    All clients send their first request at the start, and the run ends with the last answer, as in
    benchmarks.
    """

    concurrency: int
    think: Seconds = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenLoop:
    """Requests that arrive at `rate`, independent of earlier requests.

    Times between arrivals follow a Gamma distribution of shape `burstiness`: 1 is a Poisson
    process, less is burstier, infinite is evenly spaced. `rate` infinite: all arrive at the start.
    With `sources` each source sends evenly spaced requests, starting at a random time.
    """

    rate: PerSecond
    burstiness: float = 1.0
    sources: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RateCurve:
    """Poisson arrivals at a rate that rises and falls, as over a day.

    The rate is `rate` at its peak. It is interpolated linearly between `shares` of the peak, evenly
    spaced over `period` [s], and is periodic.
    """

    rate: PerSecond
    shares: tuple[float, ...]
    period: Seconds

    @property
    def mean(self) -> PerSecond:
        """Mean rate [/s]."""
        return self.rate * sum(self.shares) / len(self.shares)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Trace:
    """Recorded requests in the order of their arrivals [s], with their lengths [tokens]."""

    arrivals: tuple[Seconds, ...]
    prompts: tuple[int, ...]
    outputs: tuple[int, ...]
    origin: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """Network traffic between clients and a service, per token of a prompt and of an answer [B].

    For a model that answers in one pass it is per sample and per request.
    """

    prompt_token: Bytes = 0.0
    token: Bytes = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """The requests that reach a service.

    `requests` is the number of simulated requests; None: enough for a steady state (`OpenLoop`),
    ten per client (`ClosedLoop`), one period (`RateCurve`), all (`Trace`). The first
    `shared_prefix` tokens of every prompt are equal, and cached if the engine caches prefixes; of
    the other tokens the share `prefix_hit_rate` is cached. `users` is the number of people, if the
    load is stated as such. `traffic` is the network traffic of requests and answers.
    """

    arrivals: ClosedLoop | OpenLoop | RateCurve | Trace
    prompt: Lengths
    output: Lengths
    requests: int | None = None
    users: int | None = None
    shared_prefix: int = 0
    prefix_hit_rate: float = 0.0
    traffic: Traffic = Traffic()

    @property
    def is_bulk(self) -> bool:
        """True if all requests arrive at the start."""
        return isinstance(self.arrivals, OpenLoop) and math.isinf(self.arrivals.rate)


@dataclass(frozen=True, slots=True, kw_only=True)
class Slo:
    """SLO: limits on latency, and the share of requests that must meet them."""

    first_token: TimeField | None = None
    """Time to the first token, at most."""
    per_token: TimeField | None = None
    """Time of each further token on average over an answer, at most."""
    end_to_end: TimeField | None = None
    """Time to the last token, at most."""
    share: PositiveShareField = 0.99
    """Share of the requests that must meet all limits."""

    @property
    def limits(self) -> dict[str, Seconds]:
        """The limits that are given, by the name of their latency [s]."""
        given = {
            "first_token": self.first_token,
            "per_token": self.per_token,
            "end_to_end": self.end_to_end,
        }
        return {name: limit for name, limit in given.items() if limit is not None}


@dataclass(frozen=True, slots=True, kw_only=True)
class OnePass:
    """A model that answers in one forward pass, as a job that infers batch after batch."""

    job: Scenario


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """All inputs of a prediction of serving.

    `group` are the machines. `products` and `figures` are the fitted efficiencies of matrix
    products and of the engine on their accelerators or cores. `owned` are the costs of owned
    machines, `energy` describes their electricity. `log_sd` is the standard deviation of the
    logarithm of the forward pass, `overhead_log_sd` that of the time of a request in addition to
    its iterations. `factors` are those already included in `products`, `figures` and settings.
    `notes` are assumptions, `cautions` the assumptions that a reader must not miss. A model that
    does not generate tokens has `one_pass` instead of products and figures. `reading` is the job
    that reads the contents of requests from a store; None: requests contain them. `deadline` is the
    time until which a goal requires all answers of a bulk job [s].
    """

    name: str
    group: Group
    model: Model
    products: ProductFigures | None
    figures: ServingFigures | None
    serving: Serving
    load: Load
    slo: Slo = Slo()
    title: str = ""
    cost: CostPlan = field(default_factory=CostPlan)
    owned: Ownership | None = None
    energy: EnergyPlan | None = None
    log_sd: float = 0.0
    overhead_log_sd: float = 0.0
    factors: ServiceFactors = field(default_factory=ServiceFactors)
    notes: tuple[Assumption, ...] = ()
    cautions: tuple[str, ...] = ()
    one_pass: OnePass | None = None
    reading: Scenario | None = None
    deadline: Seconds | None = None

    @property
    def cluster(self) -> Cluster:
        """A cluster with the machines as its only group."""
        return Cluster(groups=(self.group,))

    @property
    def memory(self) -> Bytes:
        """Memory of one device: an accelerator, or a machine without any [B]."""
        host = self.group.host
        return host.ram if host.gpu is None else host.gpu.memory
