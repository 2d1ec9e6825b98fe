"""A service: a language model behind a serving engine, the requests that reach it, its limits."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import StrEnum

from simulator.schema.energy import EnergyPlan
from simulator.schema.hardware.cluster import Group
from simulator.schema.owned import Ownership
from simulator.schema.precision import Precision
from simulator.schema.scenario import CostPlan, Scenario
from simulator.schema.workload.kernels import ProductFigures
from simulator.schema.workload.models import Model
from simulator.schema.workload.serving_figures import ServiceFactors, ServingFigures
from simulator.uncertainty.provenance import Assumption, Source
from simulator.units import Bytes, PerSecond, Seconds


class Batching(StrEnum):
    """What one iteration holds: everything that is ready, or prompts alone while any wait."""

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
    """What the engine's memory fraction is a fraction of."""

    TOTAL = "total"
    FREE = "free"


class Routing(StrEnum):
    """To which replica a router sends a request: in turn, by chance, or to whom has the fewest."""

    ROUND_ROBIN = "round-robin"
    RANDOM = "random"
    LEAST = "least-outstanding"


@dataclass(frozen=True, slots=True, kw_only=True)
class Autoscaling:
    """Replicas that come and go with the load.

    Every `interval` as many are wanted as bring the requests under way to `target` each, at least
    `least` and at most `most`, in whole machines of `together`. One that is started takes requests
    after `delay`; fewer are kept when none of the looks of the last `hold` wanted more [s].
    """

    target: float
    least: int
    most: int
    together: int = 1
    interval: Seconds = 15.0
    delay: Seconds = 0.0
    hold: Seconds = 300.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Speculation:
    """Speculative decoding: an iteration checks `drafts` guessed tokens of each sequence.

    It leaves `accepted` tokens on average, 1 to `drafts` + 1. A guess takes `draft` of what an
    iteration without guesses takes, and the guesser's weights so much of the model's.
    """

    drafts: int
    accepted: float
    draft: float = 0.0


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
    """Prompts that an engine keeps back beside sequences that decode, to compute several at once.

    They wait until an iteration would hold `share` of the tokens that it may, or until there are
    so many `prompts`, or for `iterations` since the first of them might have started.
    """

    iterations: int
    share: float = 1.0
    prompts: float = math.inf


@dataclass(frozen=True, slots=True, kw_only=True)
class Prefill:
    """Replicas of `tensor` accelerators that compute prompts alone.

    Keys and values go on to the other replicas, which decode.
    """

    replicas: int
    tensor: int
    max_batched_tokens: int


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
        """The share after so many iterations [1]."""
        fallen = (self.start - self.least) * steps / self.steps
        return max(self.least, self.start - fallen)


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """The rules of a serving engine, as its version has them.

    `activations_inside` and `graphs_inside` say whether these lie within the memory that the
    fraction grants, beside weights and cache, or outside of it.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Serving:
    """An engine and its settings on each of `replicas` equal groups of `tensor` accelerators.

    `max_batched_tokens` bounds the tokens of an iteration, `max_sequences` the requests that run
    at once. The cache is dealt in blocks of `block_tokens`. `memory_fraction` is the share of an
    accelerator's memory that the engine takes (see `Engine`), and `graph_memory` what recorded
    graphs take of it. `weights` is the number format of the weights and of products, `cache` that
    of keys and values. With `expert_parallel` each accelerator holds whole experts, else a part of
    each. The accelerators of a replica are `attention_groups` that hold requests of their own; its
    limits are those of all. `request_overhead`, and `prompt_overhead` for each token of the prompt,
    pass before a request reaches the scheduler: network, tokenising. A token reaches the client
    `reply_lag` iterations after it was computed. A router deals requests by `routing`; with
    `autoscaling` there are at most `replicas`. Beside sequences that decode, prompts may be
    `held_prompts`, and an engine looks for new requests every `poll_interval` iterations. With
    `prefill` these replicas only decode, and prompts are computed there.

    With `dynamic` the model answers in one pass: a prompt is samples, a token of it one, and an
    answer one token. Each request first takes one of the `host_threads` of its replica for
    `host_time`: an image is decoded, a text split into tokens.
    """

    engine: Engine
    tensor: int = 1
    replicas: int = 1
    max_batched_tokens: int = 8192
    max_sequences: int = 256
    block_tokens: int = 16
    memory_fraction: float = 0.9
    graph_memory: Bytes = 0.0
    chunked_prefill: bool = True
    expert_parallel: bool = False
    attention_groups: int = 1
    weights: Precision = Precision.BF16
    cache: Precision = Precision.BF16
    request_overhead: Seconds = 0.0
    prompt_overhead: Seconds = 0.0
    reply_lag: float = 0.0
    routing: Routing = Routing.ROUND_ROBIN
    autoscaling: Autoscaling | None = None
    speculation: Speculation | None = None
    held_prompts: Held | None = None
    poll_interval: int = 1
    prefill: Prefill | None = None
    dynamic: Dynamic | None = None
    host_time: Seconds = 0.0
    host_threads: float = 1.0

    @property
    def devices(self) -> int:
        """Accelerators of all replicas."""
        before = self.prefill
        prompts = 0 if before is None else before.replicas * before.tensor
        return prompts + self.replicas * self.tensor


class Spread(StrEnum):
    """Family of a distribution of lengths."""

    CONSTANT = "constant"
    UNIFORM = "uniform"
    LOGNORMAL = "lognormal"
    EXPONENTIAL = "exponential"


@dataclass(frozen=True, slots=True, kw_only=True)
class Lengths:
    """Tokens of prompts or answers.

    `tokens` is the mean, for `UNIFORM` the largest: whole numbers from `ratio * tokens` to
    `tokens` are equally likely, as the client of vLLM's and SGLang's benchmark draws them.
    `deviation` is the standard deviation over the mean, for `LOGNORMAL`. Longer ones than `most`
    are cut to it, which the mean leaves out of account.
    """

    tokens: float
    spread: Spread = Spread.CONSTANT
    ratio: float = 1.0
    deviation: float = 0.0
    most: float = math.inf

    @property
    def mean(self) -> float:
        """The mean [tokens]."""
        if self.spread is Spread.UNIFORM:
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
    """Requests that arrive at `rate` whatever becomes of those before them.

    Gaps follow a Gamma distribution of shape `burstiness`: 1 is a Poisson process, less is
    burstier, infinite is evenly spaced. `rate` infinite: all arrive at the start. With `sources`
    each of so many sends evenly spaced requests, and begins at a moment of its own.
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
    `shared_prefix` tokens of every prompt are alike, and lie in the engine's cache where it keeps
    prefixes; of the others `prefix_hit_rate` are found there. `users` is how many people that is,
    where the load was told so. `traffic` is what requests and answers take on the network.
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
        """Whether all requests are there from the start."""
        return isinstance(self.arrivals, OpenLoop) and math.isinf(self.arrivals.rate)


@dataclass(frozen=True, slots=True, kw_only=True)
class Slo:
    """What a request must keep, and the share of requests that must.

    Time to the first token, time per further token, time to the last one [s]; None: no limit.
    """

    first_token: Seconds | None = None
    per_token: Seconds | None = None
    end_to_end: Seconds | None = None
    share: float = 0.99

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
    their accelerators or cores. `owned` says what machines cost that are bought, `electricity`
    where theirs comes from. `log_sd` is how far the forward pass may be off, `overhead_log_sd` how
    far the time of a request beside its iterations: standard deviations of their logarithms.
    `factors` are those that `products`, `figures` and settings hold already. `notes` are
    assumptions, `cautions` those of them that a reader must not miss. A model that does not write
    token after token has `one_pass` in place of products and figures. `reading` is the job that
    reads what requests hold from a store; None: they are there. `deadline` is by when a goal has
    all requests of a bulk job answered [s].
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
    electricity: EnergyPlan | None = None
    log_sd: float = 0.0
    overhead_log_sd: float = 0.0
    factors: ServiceFactors = field(default_factory=ServiceFactors)
    notes: tuple[Assumption, ...] = ()
    cautions: tuple[str, ...] = ()
    one_pass: OnePass | None = None
    reading: Scenario | None = None
    deadline: Seconds | None = None

    @property
    def memory(self) -> Bytes:
        """Memory of one device: of an accelerator, or of a machine without any [B]."""
        host = self.group.host
        return host.ram if host.gpu is None else host.gpu.memory
