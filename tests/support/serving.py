"""A service with a forward pass made for a test, so that its answer follows from arithmetic."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from simulator.physics.forward_pass import Iteration
from simulator.schema.provenance import Source
from simulator.schema.serving import (
    Admission,
    Autoscaling,
    Batching,
    Engine,
    MemoryBase,
    Routing,
    Serving,
)
from simulator.serving.engine import Counts, Replica
from simulator.serving.fleet import Fleet
from simulator.serving.fleet import run as run_fleet
from simulator.serving.load import Requests
from simulator.serving.scheduler import NOTHING, Reuse

PLENTY = 10**9
"""Blocks that never run out."""


@dataclass(frozen=True, slots=True)
class MadePass:
    """An iteration takes `fixed`, and so much for each token of a prompt, sequence and context.

    For `carried` of that a link carries what each token exchanges.
    """

    fixed: float = 0.0
    prompt_token: float = 0.0
    sequence: float = 0.0
    context: float = 0.0
    weights_bytes: float = 0.0
    kv_bytes_per_token: float = 1.0
    activation_bytes_per_token: float = 0.0
    carried: float = 0.0

    def link_seconds(self, prompts: float, answers: float) -> dict[str, float]:
        """Time in which a link of its own carries what so many tokens exchange [s]."""
        return {"nvlink": (prompts + answers) * self.carried} if self.carried else {}

    def seconds(self, work: Iteration) -> float:
        """Time of one iteration [s]."""
        return (
            self.fixed
            + self.prompt_token * work.prefill_tokens
            + self.sequence * work.decoding
            + self.context * work.context_tokens
        )

    def decode_seconds(self, decoding: int, context_tokens: float, iterations: int) -> float:
        """Time of iterations of decoding in a row [s]."""
        contexts = iterations * context_tokens + decoding * iterations * (iterations - 1) / 2
        return iterations * (self.fixed + self.sequence * decoding) + self.context * contexts


def engine(batching: Batching = Batching.MIXED, admission: Admission = Admission.PROMPT) -> Engine:
    """An engine with these rules."""
    return Engine(
        name="made",
        version="1",
        batching=batching,
        admission=admission,
        fraction_of=MemoryBase.TOTAL,
        activations_inside=True,
        graphs_inside=True,
        source=Source(reference="made for a test", date="undated"),
    )


def settings(
    sequences: int = PLENTY,
    tokens: int = PLENTY,
    batching: Batching = Batching.MIXED,
    admission: Admission = Admission.PROMPT,
    *,
    chunked: bool = True,
) -> Serving:
    """Settings that bound nothing but what is given."""
    return Serving(
        rules=engine(batching, admission),
        max_sequences=sequences,
        max_batched_tokens=tokens,
        chunked_prefill=chunked,
    )


def run(requests: Requests, work: MadePass, serving: Serving, blocks: int = PLENTY) -> Counts:
    """All requests on one replica."""
    return run_fleet(fleet(requests, work, serving, 1, blocks=blocks), requests)


def fleet(  # noqa: PLR0913 - what a test may want different
    requests: Requests,
    work: MadePass,
    serving: Serving,
    replicas: int,
    routing: Routing = Routing.ROUND_ROBIN,
    *,
    blocks: int = PLENTY,
    reuse: Reuse = NOTHING,
    scaling: Autoscaling | None = None,
) -> Fleet:
    """Equal replicas behind a router."""

    def make() -> Replica:
        return Replica(serving, blocks, work, requests, reuse)

    return Fleet(make, replicas, routing, scaling=scaling)


def stays(requests: Requests) -> np.ndarray:
    """Time of each request in the system [s]."""
    return np.asarray(requests.last) - np.asarray(requests.arrivals)


def poisson(rate: float, outputs: np.ndarray, seed: int = 1) -> Requests:
    """Requests of a Poisson process with prompts of one token."""
    gaps = np.random.default_rng(seed).exponential(1.0 / rate, len(outputs))
    return Requests([1] * len(outputs), outputs.astype(int).tolist(), np.cumsum(gaps).tolist())
