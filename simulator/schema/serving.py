"""A service: a language model behind a serving engine, the requests that reach it, its limits."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated, Final

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
    """Content of an iteration: everything that is ready, or prompts alone while any wait."""

    MIXED = "mixed"
    PREFILL_FIRST = "prefill-first"


class Admission(StrEnum):
    """For how many tokens the cache must have room before a request starts.

    `PROMPT`: those of its prompt. `ESTIMATE`: its prompt, its answer and a part of what running
    requests have yet to write. `WHOLE`: prompts and answers of all that run, so that none is ever
    preempted.
    """

    PROMPT = "prompt"
    ESTIMATE = "estimate"
    WHOLE = "whole"


class MemoryBase(StrEnum):
    """Memory that the engine's memory fraction is a fraction of."""

    TOTAL = "total"
    FREE = "free"


class Routing(StrEnum):
    """To which replica a router sends a request: in turn, by chance, or to whom has the fewest."""

    ROUND_ROBIN = "round-robin"
    RANDOM = "random"
    LEAST = "least-outstanding"


@dataclass(frozen=True, slots=True, kw_only=True)
class Autoscaling(Section):
    """Replicas that come and go with the load, as Kubernetes' horizontal autoscaler has them.

    As many are wanted as bring the requests under way to `target` each, in whole machines of
    `together` replicas.
    """

    least: CountField = 1
    """Fewest replicas."""
    most: CountField = field(default=1, metadata=DEPENDS)
    """Most replicas; as many as the machines have accelerators for by default."""
    target: NumberField
    """Requests under way that each replica should have."""
    interval: TimeField = 15.0
    """Time from one look at the load to the next."""
    delay: TimeOrZeroField = 300.0
    """Time from the start of a replica to its first request: the machine boots, weights load."""
    hold: TimeOrZeroField = 300.0
    """A replica goes when for so long none of the looks wanted as many."""
    together: int = field(default=1, metadata=DERIVED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Speculation(Section):
    """Speculative decoding: an iteration checks guessed tokens of each sequence all at once."""

    drafts: CountField
    """Guessed tokens of each sequence in an iteration."""
    accepted: NumberField = field(default=1.0, metadata=DEPENDS)
    """Tokens that an iteration leaves on average, as engines report it: 1 to drafts + 1."""
    acceptance: PositiveShareField | None = None
    """Instead of it: how often a guess is right, if those before it are."""
    draft: NumberOrZeroField = field(default=0.0, metadata=DEPENDS)
    """Time of a guess over that of an iteration without, and so of weights: 0 for guesses from the
    text itself, 0.03 by default."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dynamic:
    """Batches of a model that answers in one pass, as Triton's dynamic batcher forms them.

    A free device takes the largest of the `preferred` sizes and the maximum that the queue fills;
    where it fills none it waits until it does, or until the oldest request has waited `delay` [s],
    and then takes what there is. With an infinite delay batches are always full: static batching.
    """

    delay: Seconds = 0.0
    preferred: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """Prompts that an engine keeps back while answers are written, to compute several at once.

    TensorRT-LLM calls the options batch_wait.
    """

    iterations: CountField
    """For how many iterations at most (batch_wait_timeout_iters)."""
    share: PositiveShareField = 1.0
    """They go as soon as they fill this share of an iteration (batch_wait_max_tokens_ratio)."""
    prompts: CountField | None = None
    """They go as soon as this number waits, such as one for each attention group (enable_balance of
    attention_dp_config, whose timeout_iters are the iterations)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prefill(Section):
    """Replicas that compute prompts and send keys and values to the others, which decode."""

    replicas: CountOrZeroField
    """How many; 0: none, and the others compute prompts too."""
    tensor: DegreeField = field(default=1, metadata=DEPENDS)
    """Accelerators of each; as many as of the others by default."""
    max_batched_tokens: BatchedField = field(default=8192, metadata=DEPENDS)
    """Most tokens of their iterations; as of the others by default."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reserve:
    """The share of tokens yet to be written that `Admission.ESTIMATE` keeps room for.

    It falls from `start` to `least` over `steps` iterations of decoding since the last preemption,
    and no answer counts with more than `longest` tokens.
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
    """The rules of a serving engine, as its version has them.

    `activations_inside` and `graphs_inside` say whether these lie within the memory that the
    fraction grants, in addition to weights and cache, or outside of it.
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
"""Rules of settings whose engine was not looked up yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Serving(Section):
    """The serving engine and its settings; what is left out is the engine's own default.

    `rules` are those of the engine's version. In addition to `request_overhead`, each token of a
    prompt takes `prompt_overhead` before it reaches the scheduler (tokenising), and a token reaches
    the client `reply_lag` iterations after it was computed. With `dynamic` the model answers in one
    pass: a prompt is samples, a token of it one, and an answer one token; each request first takes
    one of the `host_threads` of its replica for `host_time`.
    """

    engine: TextField = "vllm"
    """Whose rules hold: vllm, sglang or tensorrt-llm; triton for models that answer in one pass."""
    version: TextField | None = None
    """Its version, such as 0.19; the newest known by default."""
    tensor: DegreeField = 1
    """Accelerators of one machine that share each layer of a replica."""
    replicas: CountField = field(default=1, metadata=DEPENDS)
    """Equal engines behind a router; as many as there are accelerators for by default."""
    router: Annotated[Routing, Choice(Routing)] = Routing.ROUND_ROBIN
    """To which replica a request goes: round-robin (usual), random or least-outstanding (usual with
    triton)."""
    autoscaling: Autoscaling | None = None
    """Replicas that come and go with the load; always all of them by default."""
    speculation: Speculation | None = None
    """Speculative decoding; none by default."""
    prefill: Prefill | None = None
    """Replicas that compute prompts alone, on accelerators of their own; none by default."""
    expert_parallel: bool = False
    """Whether accelerators hold whole experts, not a part of each."""
    attention_groups: DegreeField = 1
    """Equal groups of a replica's accelerators that hold requests of their own (data-parallel
    attention: SGLang's enable_dp_attention, TensorRT-LLM's enable_attention_dp, vLLM's
    data_parallel_size with expert parallelism). Layers after attention are spread over all."""
    held_prompts: Held | None = None
    """Prompts that wait while answers are written, to be computed several at once; none by
    default."""
    poll_interval: CountField = 1
    """Iterations between two looks at new requests while answers are written (SGLang's
    scheduler_recv_interval)."""
    weights: PrecisionField = Precision.BF16
    """Number format of the weights and of the products with them."""
    cache: PrecisionField = field(default=Precision.BF16, metadata=DEPENDS)
    """Number format of keys and values; the engine's choice for these weights by default: bf16,
    and fp8 with tensorrt-llm where weights have 8 bit or fewer."""
    max_batched_tokens: BatchedField = field(default=8192, metadata=DEPENDS)
    """Most tokens of an iteration (SGLang's chunked_prefill_size); of each of its attention groups
    where the engine counts so (vllm, tensorrt-llm)."""
    max_sequences: CountField = field(default=256, metadata=DEPENDS)
    """Most requests that run at once on a replica, or on each of its attention groups."""
    block_tokens: CountField = field(default=16, metadata=DEPENDS)
    """Tokens of a block of the cache."""
    memory_fraction: PositiveShareField = field(default=0.9, metadata=DEPENDS)
    """Share of an accelerator's memory that the engine takes, as its own option counts it."""
    graph_memory: ByteOrZeroField = field(default=0.0, metadata=DEPENDS)
    """Memory of recorded graphs on each accelerator."""
    chunked_prefill: bool = field(default=True, metadata=DEPENDS)
    """Whether prompts may be cut where an iteration is full."""
    request_overhead: TimeOrZeroField = field(default=0.0, metadata=DEPENDS)
    """Time of a request in addition to its iterations: network, tokenising."""
    max_batch: CountField | None = None
    """Most samples of a batch (triton)."""
    queue_delay: TimeOrZeroField | None = None
    """For how long a request waits for others at most before a batch goes (triton); 0 s by
    default."""
    preferred_batches: tuple[CountField, ...] | None = None
    """Sizes that batches should have where there are enough requests (triton)."""
    static_batches: bool | None = None
    """Whether batches go only when they are full (triton)."""
    host_time: TimeOrZeroField = field(default=0.0, metadata=DEPENDS)
    """Time of a host thread for each request before its batch, to decode an image (triton)."""
    rules: Engine = field(default=ANY_ENGINE, metadata=DERIVED)
    prompt_overhead: Seconds = field(default=0.0, metadata=DERIVED)
    reply_lag: float = field(default=0.0, metadata=DERIVED)
    dynamic: Dynamic | None = field(default=None, metadata=DERIVED)
    host_threads: float = field(default=1.0, metadata=DERIVED)

    @property
    def devices(self) -> int:
        """Accelerators of all replicas."""
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
    """Their mean; with uniform lengths, the largest."""
    spread: Annotated[LengthDistribution, Choice(LengthDistribution)] = LengthDistribution.CONSTANT
    """How they vary: constant, uniform, lognormal or exponential."""
    ratio: PositiveShareField = 1.0
    """Shortest over longest, of uniform lengths, all of which are equally likely; InferenceX draws
    them with 0.8."""
    deviation: NumberOrZeroField = 1.0
    """Standard deviation over the mean, of lognormal lengths."""
    most: CountField | None = None
    """The longest, such as the limit of an answer's tokens; longer ones are cut to it, which the
    mean ignores."""

    @property
    def mean(self) -> float:
        """The mean [tokens]."""
        if self.spread is LengthDistribution.UNIFORM:
            return 0.5 * (int(self.ratio * self.tokens) + self.tokens)
        return self.tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class ClosedLoop:
    """`concurrency` clients that each send their next request `think` after the last answer.

    All send their first one at the start, and the run ends with the last answer, as benchmarks do.
    """

    concurrency: int
    think: Seconds = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenLoop:
    """Requests that arrive at `rate`, independent of those before them.

    Gaps follow a Gamma distribution of shape `burstiness`: 1 is a Poisson process, less is
    burstier, infinite is evenly spaced. `rate` infinite: all arrive at the start. With `sources`
    each of these sends evenly spaced requests, and begins at a moment of its own.
    """

    rate: PerSecond
    burstiness: float = 1.0
    sources: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RateCurve:
    """Poisson arrivals at a rate that rises and falls, as over a day.

    It is `rate` at its peak, and goes along straight lines through `shares` of that, evenly spaced
    over `period` [s], whose end is like its beginning.
    """

    rate: PerSecond
    shares: tuple[float, ...]
    period: Seconds

    @property
    def mean(self) -> PerSecond:
        """The mean rate [/s]."""
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
    """Bytes between clients and a service, for each token of a prompt and of an answer [B].

    Of a model that answers in one pass for each sample, and for each request.
    """

    prompt_token: Bytes = 0.0
    token: Bytes = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """The requests that reach a service.

    `requests` is how many are simulated; None: as many as a steady state needs (`OpenLoop`), ten
    for each client (`ClosedLoop`), those of one period (`RateCurve`), all (`Trace`). The first
    `shared_prefix` tokens of every prompt are equal, and lie in the engine's cache where it keeps
    prefixes; of the others `prefix_hit_rate` are found there. `users` is how many people that is,
    where the load is stated so. `traffic` is what requests and answers take on the network.
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
        """True if all requests are there from the start."""
        return isinstance(self.arrivals, OpenLoop) and math.isinf(self.arrivals.rate)


@dataclass(frozen=True, slots=True, kw_only=True)
class Slo:
    """Limits of requests, and the share of requests that must keep them."""

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
    """Everything a prediction of serving needs.

    `group` are the machines. `products` and `figures` say what products and the engine reach on
    their accelerators or cores. `owned` says what machines cost that are bought, `energy` where
    their electricity comes from. `log_sd` is the standard deviation of the logarithm of the forward
    pass, `overhead_log_sd` that of the time of a request in addition to its iterations. `factors`
    are those that `products`, `figures` and settings hold already. `notes` are assumptions,
    `cautions` those of them that a reader must not miss. A model that does not write token after
    token has `one_pass` instead of products and figures. `reading` is the job that reads what
    requests hold from a store; None: they are there. `deadline` is by when a goal has all requests
    of a bulk job answered [s].
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
        """Its machines as the only group of a cluster."""
        return Cluster(groups=(self.group,))

    @property
    def memory(self) -> Bytes:
        """Memory of one device: of an accelerator, or of a machine without any [B]."""
        host = self.group.host
        return host.ram if host.gpu is None else host.gpu.memory
