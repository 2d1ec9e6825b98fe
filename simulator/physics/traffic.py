"""Bytes that the exchange of a spread model puts on links: what a device sends, and where to.

The ways are those of `exchange`, which says how long they take. A collective over several machines
passes each byte on inside of them and sends a machine's part between them, so that both together
are what a ring over all its ranks sends.
"""

from __future__ import annotations

from dataclasses import dataclass

from simulator.equations.collectives import distinct_places, ring_wire_bytes, shard_bytes
from simulator.equations.pipeline import slowest_stage
from simulator.physics.adapters import learned_parameters, learned_table
from simulator.physics.description import Description
from simulator.physics.shapes import (
    between_copies,
    expert_copies,
    layer_parameters,
    shared_part,
    sharers,
    stage_layers,
    tokens,
)
from simulator.units import Bytes, Real, anywhere, at_least, at_most, rounded_up, where


@dataclass(frozen=True, slots=True)
class Moved:
    """Bytes that a device sends: to others of its machine, and out of the machine."""

    inside: Bytes | Real = 0.0
    outside: Bytes | Real = 0.0

    def __add__(self, other: Moved) -> Moved:
        """Both together."""
        return Moved(self.inside + other.inside, self.outside + other.outside)

    def times(self, factor: Real) -> Moved:
        """So many times as much."""
        return Moved(self.inside * factor, self.outside * factor)

    @property
    def whole(self) -> Bytes | Real:
        """All of them [B]."""
        return self.inside + self.outside

    @property
    def outward(self) -> Real:
        """Share of them that leaves the machine, 0 to 1."""
        return where(self.whole > 0.0, self.outside / at_least(self.whole, 1e-300), 0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """What a device of the fullest stage sends for a micro-batch, and once a step.

    `tensor`, `experts` and `parameters` (gathers of sharded ones, and scatters of their gradients)
    are of one of its `layers`, `sends` of all its chunks; `gradients` (there, and parameters back)
    are once a step.
    """

    layers: Real
    tensor: Moved
    experts: Moved
    parameters: Moved
    sends: Moved
    gradients: Moved

    @property
    def micro_batch(self) -> Moved:
        """For one micro-batch."""
        layer = self.tensor + self.experts + self.parameters
        return layer.times(self.layers) + self.sends


def traffic(d: Description) -> Traffic:
    """What a device sends in a training step.

    Parameters
    ----------
    d : Description
        The step; its numbers may be arrays of candidates.
    """
    dealt = stage_layers(d)
    layers = slowest_stage(dealt.first, dealt.middle, dealt.last, d.layout.pipeline)
    return Traffic(
        layers=layers,
        tensor=_of_tensors(d),
        experts=_of_experts(d) if anywhere(d.shape.experts > 0) else Moved(),
        parameters=_of_parameters(d),
        sends=_of_sends(d),
        gradients=_of_gradients(d, layers),
    )


def tensor_reduces(d: Description) -> tuple[Real, Real]:
    """All-reduces of a layer in the forward and in the backward pass of a micro-batch.

    Sequence parallelism scatters and gathers in place of each, which moves as much, and gathers
    once more in the backward pass. A layer of experts reduces once, after attention.
    """
    forward = where(d.shape.experts > 0, 1.0 + d.shape.dense_share, 2.0)
    gathered = where(d.layout.sequence_parallel > 0, _GATHERED_AGAIN, 0.0)
    again = d.work.redone.layers * d.work.redone.exchange
    return forward, forward * (1.0 + gathered + again)


_GATHERED_AGAIN = 0.5
"""Part of an all-reduce that sequence parallelism repeats in the backward pass: a gather."""


def all_reduced(size: Bytes | Real, ranks: Real, domain: Real) -> Moved:
    """An all-reduce over neighbouring ranks: inside each machine, and of the parts between them."""
    local = at_most(ranks, domain)
    machines = rounded_up(ranks / domain)
    return Moved(ring_wire_bytes(size, local), ring_wire_bytes(size, machines) / local)


def passed_round(size: Bytes | Real, ranks: Real, d: Description, *, apart: Real = 1.0) -> Moved:
    """A gather or scatter of `size` bytes in all over replicas that lie `apart`."""
    local, machines = placed(ranks, d, apart=apart)
    sent = Moved(shard_bytes(size, local), shard_bytes(size, machines) / local)
    return sent.times(where(ranks > 1, 1.0, 0.0))


def placed(ranks: Real, d: Description, *, apart: Real = 1.0) -> tuple[Real, Real]:
    """Ranks of a data-parallel group on one machine, and the machines it is spread over."""
    inner = at_most(d.layout.tensor * d.layout.context * apart, d.layout.domain)
    local = at_most(at_least(d.layout.domain / inner, 1.0), ranks)
    return local, ranks / local


def _of_tensors(d: Description) -> Moved:
    forward, backward = tensor_reduces(d)
    size = tokens(d) * d.shape.hidden * d.work.element
    once = all_reduced(size, d.layout.tensor, d.layout.domain)
    return once.times(forward + backward)


def _of_experts(d: Description) -> Moved:
    """Dispatch and combination of tokens, forward and backward, on average over the layers."""
    size = tokens(d) / d.layout.tensor * d.work.element * d.shape.hidden
    return dispatched(size, d).times(4.0 * d.shape.routed * where(d.layout.expert > 1, 1.0, 0.0))


def dispatched(size: Bytes | Real, d: Description) -> Moved:
    """Tokens of `size` bytes to the ranks of their experts.

    Each goes to `top_k` experts: a copy for each, or one for each rank inside the machine and each
    machine beyond it.
    """
    ranks, choices, once = d.layout.expert, d.shape.top_k, d.layout.deduplicated > 0
    local = at_most(ranks, d.layout.domain)
    machines = ranks / local
    near = where(once, distinct_places(ranks, choices), choices) * (1.0 - 1.0 / local)
    far = where(once, distinct_places(machines, choices), choices) * (1.0 - 1.0 / machines)
    return Moved(size * near / machines, size * far)


def _of_parameters(d: Description) -> Moved:
    """Gathers of a layer's sharded parameters, and the scatter of their gradients."""
    layout = d.layout
    if not anywhere(layout.sharded > 0):
        return Moved()
    held, shared = layer_parameters(d)
    learned, of_all = learned_parameters(d)
    ranks = at_most(layout.replicas, layout.shard_group)
    gathered, scattered = d.work.gather_bytes * (1.0 + layout.again), d.work.gradient_bytes
    sent = passed_round(shared * gathered + of_all * scattered, ranks, d)
    if anywhere(d.shape.experts > 0):
        size = (held - shared) * gathered + (learned - of_all) * scattered
        own = passed_round(size, expert_copies(d), d, apart=between_copies(d))
        sent = sent + own.times(where(d.shape.experts > 0, 1.0, 0.0))
    return sent.times(where(layout.sharded > 0, 1.0, 0.0))


def _of_sends(d: Description) -> Moved:
    """An activation to the next stage and a gradient to the one before, for each chunk."""
    layout = d.layout
    part = sent_part(activation_bytes(d), d)
    stage = layout.tensor * layout.context * layout.replicas
    several = layout.devices > layout.domain
    leaves = where(several, at_most(stage / layout.domain, 1.0), 0.0)
    gathered = where(layout.scattered_sends > 0, part * (layout.tensor - 1.0), 0.0)
    sent = Moved(part * (1.0 - leaves) + gathered, part * leaves)
    return sent.times(2.0 * layout.chunks * where(layout.pipeline > 1, 1.0, 0.0))


def activation_bytes(d: Description) -> Bytes | Real:
    """What a micro-batch of a stage hands to the next one [B]."""
    along = where(d.layout.sequence_parallel > 0, d.layout.tensor, 1.0)
    return tokens(d) * d.shape.hidden * d.work.element / along


def sent_part(size: Bytes | Real, d: Description) -> Bytes | Real:
    """A device's part of a send of `size` bytes where those of a tensor group share it [B]."""
    return size / where(d.layout.scattered_sends > 0, d.layout.tensor, 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Summed:
    """Gradients that are added up once a step, over ranks that hold copies of their parameters.

    `there` bytes of gradients are summed, `back` bytes are those of the updated parameters;
    `ranks` lie `apart` replicas. `scattered`: 1 where each rank sums a part, 0 where all ranks get
    the whole sum. `gathered`: 1 where each updates a part and gathers the others' parameters.
    `share`: 1, or 0 where this layout adds up nothing here.
    """

    there: Bytes | Real
    back: Bytes | Real
    ranks: Real
    apart: Real
    scattered: Real
    gathered: Real
    share: Real

    @property
    def passed(self) -> Bytes | Real:
        """Bytes of all gathers and scatters, of which an all-reduce is two [B]."""
        summed = self.there * (2.0 - self.scattered)
        return summed + self.back * self.gathered


def summed(d: Description, layers: Real) -> tuple[Summed, ...]:
    """All sums of gradients of a stage of so many layers: within groups, experts', between groups.

    Copies of the table of tokens are not among them (`tied_bytes`).
    """
    layout, table = d.layout, learned_table(d)
    held, shared = learned_parameters(d)
    whole = where(layout.sharded > 0, 0.0, 1.0)
    of_all, of_experts = shared * layers + table, (held - shared) * layers
    found = [_summed(d, of_all, sharers(d), 1.0, whole)]
    if anywhere(d.shape.experts > 0):
        routed = where(d.shape.experts > 0, whole, 0.0)
        found.append(_summed(d, of_experts, expert_copies(d), between_copies(d), routed))
    group = at_most(layout.replicas, layout.shard_group)
    own = shared_part(d, of_all, of_experts) * d.work.gradient_bytes
    between = Summed(
        there=own,
        back=own,
        ranks=layout.replicas / group,
        apart=group,
        scattered=0.0,
        gathered=0.0,
        share=1.0,
    )
    return (*found, between)


def _summed(d: Description, parameters: Real, ranks: Real, apart: Real, share: Real) -> Summed:
    parts = d.layout.sharded_optimizer
    return Summed(
        there=parameters * d.work.gradient_bytes,
        back=parameters * d.work.gather_bytes,
        ranks=ranks,
        apart=apart,
        scattered=parts * d.layout.scattered_sums,
        gathered=parts,
        share=share,
    )


def tied_bytes(d: Description) -> Bytes | Real:
    """Gradients of the table of tokens to its copy on the last stage and back, where waited for."""
    layout = d.layout
    tied = where((layout.pipeline > 1) & (layout.overlapped_gradients == 0), 1.0, 0.0)
    return 2.0 * learned_table(d) * d.work.gradient_bytes * tied


def _of_gradients(d: Description, layers: Real) -> Moved:
    """Gradients there and parameters (or gradients) back, between the copies of each."""
    sent = passed_round(tied_bytes(d), 2.0, d)
    for one in summed(d, layers):
        passed = passed_round(one.passed, one.ranks, d, apart=one.apart)
        sent = sent + passed.times(one.share)
    return sent
