"""What one device of a spread model computes and sends: numbers, or arrays of candidates.

Switches are 0 or 1, so that candidates may differ in them.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from functools import cached_property, wraps
from typing import Any, Final, TypeVar

import numpy as np

from simulator.physics.collectives import InMachine, Protocols
from simulator.units import Bytes, BytesPerSecond, FlopsPerSecond, Real, where

Answer = TypeVar("Answer")


@dataclass(frozen=True, kw_only=True)
class Shape:
    """The model: `layers` with those that predict further tokens, widths, vocabulary.

    `head_width` is that of queries and keys, `value_width` that of values. `latent` attention has
    the ranks and `rope_width`. `dense_share` is that of layers with a plain MLP, `scored` how many
    sets of scores are computed, for a `scored_share` of the positions, `attention_share` what
    windows leave of full attention. `filled` is the mean share of the positions that is computed.
    `tied`: one table of tokens serves embedding and head.
    """

    layers: Real
    hidden: Real
    heads: Real
    kv_heads: Real
    ffn: Real
    head_width: Real
    value_width: Real
    vocabulary: Real
    sequence: Real
    gated: Real
    bias: Real
    dropout: Real
    rotary: Real
    tied: Real = 1.0
    causal: Real = 1.0
    latent: Real = 0.0
    query_rank: Real = 0.0
    kv_rank: Real = 0.0
    rope_width: Real = 0.0
    experts: Real = 0.0
    top_k: Real = 0.0
    expert_ffn: Real = 0.0
    shared_ffn: Real = 0.0
    dense_share: Real = 1.0
    scored: Real = 1.0
    attention_share: Real = 1.0
    scored_share: Real = 1.0
    filled: Real = 1.0

    @cached_property
    def routed(self) -> Real:
        """Share of layers with experts."""
        return where(self.experts > 0, 1.0 - self.dense_share, 0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Degrees of parallelism, batches, and what is split or overlapped.

    `domain` is how many devices one machine joins. `replicas` are copies of the model,
    `micro_batch` the samples of one of their passes, `micro_batches` those of a step. `sharded`:
    parameters are gathered layer by layer, and `again` for the backward pass;
    `sharded_optimizer`: each replica updates its part; either over at most `shard_group` ranks.
    `offloaded`: optimizer state is on the host. `all_forward`: no backward pass before all
    micro-batches are through. `by_compute`: stages are dealt layers by what they compute.
    `scattered_sums`: where each replica updates its part, it gets the sum of that part alone.
    `imbalance` is the load of the busiest expert rank over the mean one.
    """

    devices: Real
    domain: Real
    tensor: Real
    pipeline: Real
    chunks: Real
    context: Real
    expert: Real
    replicas: Real
    micro_batch: Real
    micro_batches: Real
    sequence_parallel: Real = 0.0
    async_tensor: Real = 0.0
    scattered_sends: Real = 0.0
    async_sends: Real = 0.0
    overlapped_gradients: Real = 0.0
    overlapped_experts: Real = 0.0
    deduplicated: Real = 0.0
    padded_experts: Real = 0.0
    imbalance: Real = 1.0
    unbalanced_context: Real = 0.0
    sharded: Real = 0.0
    again: Real = 0.0
    sharded_optimizer: Real = 0.0
    shard_group: Real = np.inf
    offloaded: Real = 0.0
    all_forward: Real = 0.0
    by_compute: Real = 0.0
    scattered_sums: Real = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Redone:
    """Shares of a forward pass that the backward pass repeats, in a share of the `layers`.

    Of `products`, `attention`, `passes` over memory, `exchange` and `launches`.
    """

    products: Real = 0.0
    attention: Real = 0.0
    passes: Real = 0.0
    exchange: Real = 0.0
    launches: Real = 0.0
    layers: Real = 1.0


NOT_REDONE: Final = Redone()
"""Everything is kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """How it is computed: bytes of numbers, what is recomputed, which kernels there are.

    `element` is what a stored value takes. `low`: linear layers compute in `width` bytes below
    16 bit. `optimizer_bytes` are those of state in fp32 beside a weight. `redone` is what the
    backward pass of a layer repeats. `fused_softmax`: scale, mask and softmax of unfused attention
    are one kernel. `waits`: the host waits for the counts of tokens that go to
    experts. `eager_activation`: the activation of experts is many kernels. `learned` is 0 where
    the model's own parameters are frozen, in `frozen_bytes` each; adapters of `rank` then learn:
    those of queries and values, and of what is `adapted_*`; `joined`: one for projections that are
    one product. `widened`: frozen weights are stored in
    less than they compute in.
    """

    element: Bytes | Real = 2.0
    low: Real = 0.0
    width: Bytes | Real = 2.0
    gradient_bytes: Bytes | Real = 2.0
    gather_bytes: Bytes | Real = 2.0
    optimizer_bytes: Bytes | Real = 8.0
    wide_gradients: Real = 0.0
    redone: Redone = NOT_REDONE
    fused_attention: Real = 1.0
    fused_softmax: Real = 1.0
    padded_vocabulary: Real = 1.0
    waits: Real = 0.0
    eager_activation: Real = 0.0
    fused_experts: Real = 0.0
    learned: Real = 1.0
    rank: Real = 0.0
    adapted_keys: Real = 0.0
    adapted_output: Real = 0.0
    adapted_mlp: Real = 0.0
    joined: Real = 0.0
    frozen_bytes: Bytes | Real = 2.0
    widened: Real = 0.0


WHOLE: Final = Shape(
    layers=1.0,
    hidden=0.0,
    heads=0.0,
    kv_heads=0.0,
    ffn=0.0,
    head_width=0.0,
    value_width=0.0,
    vocabulary=0.0,
    sequence=0.0,
    gated=0.0,
    bias=0.0,
    dropout=0.0,
    rotary=0.0,
)
"""A model that is known as a whole: one layer, of which nothing is counted from its shape."""


_FREE: Final = InMachine(*(Protocols(0.0, np.inf, 0.0, np.inf) for _ in range(3)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """Datasheet of a device: `peak16` and `peak` at the precision of linear layers.

    `units` compute tiles side by side, `link` is its rate to the others of its machine, `reduce`,
    `gather`, `scatter` and `all_to_all` what collectives with them take, `network` the rate of
    all the machine's devices in use. `host_link` is its rate to the host where all of them
    copy at once, `host_memory` that of the machine's memory.
    """

    peak16: FlopsPerSecond | Real
    peak: FlopsPerSecond | Real
    bandwidth: BytesPerSecond | Real
    link: BytesPerSecond | Real
    units: Real
    network: BytesPerSecond | Real
    host_link: BytesPerSecond | Real = np.inf
    host_memory: BytesPerSecond | Real = np.inf
    reduce: InMachine = _FREE
    gather: InMachine = _FREE
    scatter: InMachine = _FREE
    all_to_all: InMachine = _FREE


NO_DEVICE: Final = Device(peak16=0.0, peak=0.0, bandwidth=0.0, link=0.0, units=1.0, network=0.0)
"""Stands where only memory is asked about, which no rate decides."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Description:
    """One training step as its devices see it."""

    shape: Shape
    layout: Layout
    work: Work
    device: Device = NO_DEVICE
    known: dict[Hashable, Any] = field(default_factory=dict, init=False, repr=False, compare=False)
    """Answers of functions that are asked `once`."""


def once(function: Callable[[Description], Answer]) -> Callable[[Description], Answer]:
    """A function of a description, worked out when first asked: many parts of a step ask alike."""

    @wraps(function)
    def answer(d: Description) -> Answer:
        found: Answer | None = d.known.get(answer)
        if found is None:
            found = d.known[answer] = function(d)
        return found

    return answer
