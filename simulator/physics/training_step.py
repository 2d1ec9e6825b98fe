"""Time of a training step: a micro-batch on a layer and on a stage, gradients, update.

An optimizer on the host works as ZeRO-Offload [1]_ without its delayed update: each device sends
its part of the gradients during every backward pass, the host updates the parameters of all devices
of the machine, and sends parameters back while it updates the next ones. The share of host memory's
bandwidth that the update reaches was fitted to one row; links are those of datasheets.

References
----------
.. [1] Ren et al., "ZeRO-Offload: Democratizing Billion-Scale Model Training", 2021,
       https://arxiv.org/abs/2101.06840
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Final

import numpy as np

from simulator.equations.memory import FULL_PRECISION
from simulator.equations.pipeline import pipeline_bubble, slowest_stage
from simulator.equations.step import host_update_bytes, late_copies, waited_exchange
from simulator.physics.communication import (
    GradientReduction,
    activation_bytes,
    all_gather_time,
    all_reduce_time,
    all_to_all_time,
    embedding_gathers,
    gather_channels,
    gathered_table,
    gradient_reductions,
    ring_time,
    send_time,
    tensor_all_reduce_times,
    tensor_reduces,
    tie_time,
)
from simulator.physics.kernels import (
    NOTHING,
    Array,
    KernelTimes,
    PassTerms,
    PassTimes,
    cast_bytes,
    device_terms,
    embedding_time,
    fused_attention_time,
    layer_launches,
    layer_overlapped_with_launches,
    loss_time,
    memory_kernels_time,
    overlapped_with_launches,
    product_times,
    reached_bandwidth,
    routing_time,
    score_traffic_time,
    start_times,
    update_time,
    with_repeated_launches,
)
from simulator.physics.parameters import (
    adapter_products,
    attention_products,
    expert_copies,
    expert_holders,
    expert_products,
    head_product,
    keys_and_values,
    layer_parameters,
    learned_parameters,
    learned_table,
    mlp_products,
    score_products,
    sharers,
    stage_layers,
    tables_held,
    tokens,
    updated_parameters,
)
from simulator.physics.transformer import TransformerStep
from simulator.records import dataclass
from simulator.schema.models import Product
from simulator.schema.software import Kernels
from simulator.terms import Term, product_of, stated, sum_of, term
from simulator.units import (
    Bytes,
    BytesPerSecond,
    Real,
    Seconds,
    anywhere,
    at_least,
    plain,
    where,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class GatherTimes:
    """Times of parameter all-gathers and gradient reduce-scatters of a layer or a table [s].

    `gather` is for the forward pass, `again` for the backward pass. `tax` is the share of a
    collective's time by which it slows down the compute that it overlaps with.
    """

    gather: Seconds | Real = 0.0
    again: Seconds | Real = 0.0
    scatter: Seconds | Real = 0.0
    tax: Real = 0.0

    @property
    def total(self) -> Seconds | Real:
        """Time of all collectives of a micro-batch [s]."""
        return self.gather + self.again + self.scatter

    def times(self, number: Real) -> GatherTimes:
        """Return the times of `number` such parts."""
        return replace(
            self,
            gather=number * self.gather,
            again=number * self.again,
            scatter=number * self.scatter,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerPass:
    """Times of a micro-batch on one layer, averaged over layers, and of the head's product [s].

    `device` is the device's work; `computing` includes kernel launches, `waiting` exposed
    communication too. `exchanged` is all communication, exposed or hidden, except for `gathers`.
    """

    device: PassTerms
    computing: PassTerms
    waiting: PassTimes
    exchanged: Seconds | Real
    gathers: GatherTimes
    head: PassTimes


def layer_pass(step: TransformerStep, kernels: Kernels) -> LayerPass:
    """Return the times of a micro-batch on one layer; arrays for arrays of candidates."""
    products, scores, head = _layer_products(step, kernels)
    routed = bool(anywhere(step.shape.experts > 0))
    if routed:
        products = products + expert_kernels_time(step, kernels)
    parts = KernelTimes(
        products=products,
        attention=_attention_time(step, kernels, scores),
        passes=memory_kernels_time(step, kernels),
        starts=start_times(step, kernels),
        host=layer_launches(step, kernels),
    )
    held, _ = learned_parameters(step)
    accumulated = held * kernels.update.accumulated / reached_bandwidth(step, kernels)
    recomputation = step.work.recomputation
    device = device_terms(parts, kernels.product.throttle, recomputation, accumulated)
    host = with_repeated_launches(parts.host, recomputation)
    routing = routing_time(step, kernels) if routed else 0.0
    exposed, exchanged = _layer_exchange(step, kernels, parts.attention, routed=routed)

    def on_both(forward: Term | Real, backward: Term | Real) -> PassTerms:
        return PassTerms(
            layer_overlapped_with_launches(step, kernels, forward, host.forward, routing),
            layer_overlapped_with_launches(step, kernels, backward, host.backward, routing),
        )

    waiting = device.seconds + exposed
    return LayerPass(
        device=device,
        computing=on_both(device.forward, device.backward),
        waiting=on_both(waiting.forward, waiting.backward).seconds,
        exchanged=exchanged.forward + exchanged.backward,
        gathers=gather_times(step, kernels),
        head=head,
    )


def _layer_products(
    step: TransformerStep, kernels: Kernels
) -> tuple[PassTimes, PassTimes, PassTimes]:
    """Return the times of the products of a layer, of unfused attention, and of the head [s]."""
    linear = attention_products(step) + mlp_products(step)
    if anywhere(step.shape.experts > 0):
        linear += expert_products(step, kernels)
    linear = [*(_maybe_frozen(product, step) for product in linear), *adapter_products(step)]
    scores: list[Product] = score_products(step) if anywhere(step.work.fused_attention < 1) else []
    products = [*linear, *scores, _maybe_frozen(head_product(step, kernels), step)]
    forward, backward = product_times(products, step, kernels)
    first, last = len(linear), len(linear) + len(scores)

    def together(start: int, end: int) -> PassTimes:
        return PassTimes(_sum(forward[start:end], step), _sum(backward[start:end], step))

    return together(0, first), together(first, last), together(last, last + 1)


def _maybe_frozen(product: Product, step: TransformerStep) -> Product:
    return product._replace(learned=step.work.learned)


def _sum(times: Array, step: TransformerStep) -> Real:
    total = times.sum(axis=0)
    plainly = total.size == 1 and not isinstance(step.layout.micro_batch, np.ndarray)
    return float(total[0]) if plainly else total


def _attention_time(step: TransformerStep, kernels: Kernels, scores: PassTimes) -> PassTimes:
    fused = fused_attention_time(step, kernels)
    if not anywhere(step.work.fused_attention < 1):
        return fused
    plain, is_fused = scores + score_traffic_time(step, kernels), step.work.fused_attention > 0
    return PassTimes(
        where(is_fused, fused.forward, plain.forward),
        where(is_fused, fused.backward, plain.backward),
    )


def _layer_exchange(
    step: TransformerStep, kernels: Kernels, attention: PassTimes, *, routed: bool
) -> tuple[PassTimes, PassTimes]:
    """Return the communication times of a layer in each pass: exposed, and total [s]."""
    layout, shape = step.layout, step.shape
    local, between = tensor_all_reduce_times(
        tokens(step) * shape.hidden * step.work.element, step, kernels
    )
    # products overlap in chunks with transfers inside a machine only
    shown = local * (1.0 - layout.async_tensor * kernels.exchange.hidden_tensor) + between
    forward, backward = tensor_reduces(step)
    number = PassTimes(forward, backward)
    seen, whole = number.times(shown), number.times(local + between)
    if anywhere(layout.context > 1):
        seen_context, context = context_exchange_times(step, kernels, attention)
        seen, whole = seen + seen_context, whole + context
    if not routed:
        return seen, whole
    sent = expert_exchange_time(step, kernels)
    left = sent * (1.0 - layout.overlapped_experts * kernels.exchange.hidden_experts)
    divided = divided_experts_time(step, kernels)
    left, sent = left + divided, sent + divided
    return seen + PassTimes(left, left), whole + PassTimes(sent, sent)


def context_exchange_times(
    step: TransformerStep, kernels: Kernels, attention: PassTimes
) -> tuple[PassTimes, PassTimes]:
    """Return the times to exchange keys and values of a layer: exposed, and total [s].

    Attention over one of as many chunks as there are ranks hides an all-gather, attention over all
    chunks but one hides a ring. Attention that the backward pass repeats exchanges again.
    """
    ranks, own = step.layout.context, keys_and_values(step)
    gathers, several = step.layout.gathered_context > 0, where(ranks > 1, 1.0, 0.0)
    first, others = 1.0 / ranks, (ranks - 1.0) / ranks
    ring = PassTimes(
        ring_time(own, ranks - 1.0, step, kernels), ring_time(2.0 * own, ranks - 1.0, step, kernels)
    )
    gather = all_gather_time(ranks * own, ranks, step, kernels)
    back = ring_time(own / step.work.element * FULL_PRECISION, ranks, step, kernels)
    exposed = PassTimes(
        where(
            gathers,
            at_least(gather - first * attention.forward, 0.0),
            at_least(ring.forward - others * attention.forward, 0.0),
        ),
        where(
            gathers,
            at_least(gather - first * attention.backward, 0.0)
            + at_least(back - others * attention.backward, 0.0),
            at_least(ring.backward - others * attention.backward, 0.0),
        ),
    )
    whole = PassTimes(
        where(gathers, gather, ring.forward), where(gathers, gather + back, ring.backward)
    )
    repeated = step.work.recomputation.layers * step.work.recomputation.attention
    return (
        PassTimes(exposed.forward, exposed.backward + repeated * exposed.forward).times(several),
        PassTimes(whole.forward, whole.backward + repeated * whole.forward).times(several),
    )


def gather_times(step: TransformerStep, kernels: Kernels) -> GatherTimes:
    """Return the times of the collectives of a layer with sharded parameters."""
    layout = step.layout
    if not anywhere(layout.sharded > 0):
        return GatherTimes()
    sharded = where(layout.sharded > 0, 1.0, 0.0)
    ranks = sharers(step)
    gather = sharded * _gather_time(
        step, kernels, ranks, layer_parameters(step), step.work.gather_bytes
    )
    learned = learned_parameters(step)
    return GatherTimes(
        gather=gather,
        again=gather * layout.again,
        scatter=sharded * _gather_time(step, kernels, ranks, learned, step.work.gradient_bytes),
        tax=sharded
        * kernels.exchange.tax
        * gather_channels(_shared_bytes(step), ranks, step, kernels),
    )


def table_gather_times(step: TransformerStep, kernels: Kernels) -> tuple[GatherTimes, GatherTimes]:
    """Return the times of the collectives of a sharded embedding table, and of a sharded head."""
    layout = step.layout
    if not anywhere(layout.sharded > 0):
        return GatherTimes(), GatherTimes()
    sharded, ranks = where(layout.sharded > 0, 1.0, 0.0), sharers(step)
    gather = sharded * all_gather_time(gathered_table(step), ranks, step, kernels)
    size = learned_table(step) * step.work.gradient_bytes
    scatter = sharded * step.work.learned * all_gather_time(size, ranks, step, kernels)
    head = GatherTimes(gather=gather, scatter=scatter)
    return replace(head, again=gather * (embedding_gathers(step) - 1.0)), head


def _shared_bytes(step: TransformerStep) -> Bytes | Real:
    _, shared = layer_parameters(step)
    return shared * step.work.gather_bytes


def _gather_time(
    step: TransformerStep,
    kernels: Kernels,
    ranks: Real,
    parameters: tuple[Real, Real],
    width: Bytes | Real,
) -> Seconds | Real:
    """Return the time to gather a layer's parameters, or to scatter their gradients [s].

    `parameters` are all and those without experts; experts are gathered over ranks that have the
    same ones, the others over all `ranks`. `width` is the size of an element [B].
    """
    held, shared = parameters
    of_all = all_gather_time(shared * width, ranks, step, kernels)
    if not anywhere(step.shape.experts):
        return of_all
    size, copies = (held - shared) * width, expert_copies(step)
    of_experts = all_gather_time(size, copies, step, kernels, stride=expert_holders(step))
    return of_all + where(step.shape.experts > 0, of_experts, 0.0)


def expert_kernels_time(step: TransformerStep, kernels: Kernels) -> PassTimes:
    """Return the times of token permutation, activation and casts of experts [s].

    They are averaged over layers. Devices that divide an expert each sort the tokens of all of
    them, and permute their own: half of the traffic each.
    """
    shape, sent, size = step.shape, tokens(step) / step.layout.tensor, step.work.element
    rows = sent * shape.top_k
    fused = where(step.work.fused_experts > 0, kernels.expert.fused, 1.0)
    eager = where(step.work.eager_activation > 0, kernels.expert.eager, 1.0) * fused
    cast = cast_bytes(step, kernels) * fused
    inside, shared = rows * shape.expert_ffn * eager, sent * shape.shared_ffn
    at_expert = rows * step.layout.expert_tensor
    passed = 0.5 * (rows + at_expert) * shape.hidden * size
    moved = passed * 8.0 + (inside + shared) * 3.0 * size
    moved = moved + cast * (at_expert * shape.hidden + rows * shape.expert_ffn)
    back = passed * 10.0 + (inside + shared) * 5.0 * size
    back = back + cast * (at_expert * shape.hidden + 2.0 * rows * shape.expert_ffn)
    factor = where(shape.gated > 0, kernels.kernel.gated, kernels.kernel.plain) / reached_bandwidth(
        step, kernels
    )
    return PassTimes(moved, back).times(factor * shape.routed)


def expert_exchange_time(step: TransformerStep, kernels: Kernels) -> Seconds | Real:
    """Return the time of expert dispatch and combine in one pass, averaged over layers [s]."""
    rows, width = tokens(step) / step.layout.tensor, step.work.element * step.shape.hidden
    both: Real = 2.0 * all_to_all_time(rows, width, step, kernels) * step.shape.routed
    return both


def divided_experts_time(step: TransformerStep, kernels: Kernels) -> Seconds | Real:
    """Return the time to gather tokens over the devices of an expert and to scatter results [s].

    It is that of one pass, averaged over layers.
    """
    divided, rows = step.layout.expert_tensor, tokens(step) / step.layout.tensor
    size = divided * rows * step.shape.top_k * step.work.element * step.shape.hidden
    both = 2.0 * all_gather_time(size, divided, step, kernels, stride=1.0)
    return both * step.shape.routed


_ROUNDING: Final = 1e-9
"""Share of the exchange below which a rest is not hidden exchange but rounding."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StagePass:
    """Times of a micro-batch on one stage: compute, exposed and hidden communication [s].

    Launch time counts as compute if the host is slower than the device. `ends_forward` and
    `ends_backward` are the parts of `forward` and `backward` for embedding, head and loss; the rest
    is that of its `layers`.
    """

    layers: Real
    ends_forward: Seconds | Real
    ends_backward: Seconds | Real
    forward: Seconds | Real
    backward: Seconds | Real
    exposed: Seconds | Real
    hidden: Seconds | Real

    @property
    def length(self) -> Seconds | Real:
        """Time of a micro-batch on the stage, without the pipeline's sends [s]."""
        return self.forward + self.backward + self.exposed


def embedding_and_head(
    step: TransformerStep, kernels: Kernels, head: PassTimes
) -> tuple[PassTimes, PassTimes, PassTimes]:
    """Return the times of embedding, head and loss on the first, a middle and the last stage.

    A single stage has both ends; `head` is the time of the head's matrix product.
    """
    alone = where(step.layout.pipeline == 1, 1.0, 0.0)
    lost = loss_time(step, kernels)
    head = (head + PassTimes(lost, lost)).times(step.shape.scored)
    looked_up, factor = embedding_time(step, kernels), kernels.launch.factor
    half = 0.5 * kernels.launch.head * factor
    device = PassTimes(looked_up, step.work.learned * looked_up) + head.times(alone)
    host = PassTimes(kernels.launch.embedding * factor + half * alone, half * alone)
    ends = ((device, host), (NOTHING, NOTHING), (head, PassTimes(half, half)))
    first, middle, last = (_with_launches(kernels, device, host) for device, host in ends)
    return first, middle, last


def _with_launches(kernels: Kernels, device: PassTimes, host: PassTimes) -> PassTimes:
    return PassTimes(
        overlapped_with_launches(kernels, device.forward, host.forward).value,
        overlapped_with_launches(kernels, device.backward, host.backward).value,
    )


def stage_pass(
    step: TransformerStep,
    layer: LayerPass,
    layers: Real,
    ends: PassTimes,
    tables: tuple[GatherTimes, GatherTimes],
) -> StagePass:
    """Return the times of a micro-batch on a stage with `layers` layers.

    `layer` has the times of one layer, `ends` those of the stage's embedding, head and loss, and
    `tables` the collectives of its sharded embedding and head.
    """
    gathers = layer.gathers
    computing = layer.computing.seconds.times(layers) + ends
    waiting = layer.waiting.times(layers) + ends
    whole = _with_gathers(gathers, tables, layers, waiting, step.layout.overlapped_gradients)
    exposed = whole.forward + whole.backward - computing.forward - computing.backward
    exchanged = layers * (layer.exchanged + gathers.total) + tables[0].total + tables[1].total
    hidden = exchanged - exposed
    return StagePass(
        layers=layers,
        ends_forward=ends.forward,
        ends_backward=ends.backward,
        forward=computing.forward,
        backward=computing.backward,
        exposed=exposed,
        hidden=where(hidden > _ROUNDING * exchanged, hidden, 0.0),
    )


def _with_gathers(
    gathering: GatherTimes,
    tables: tuple[GatherTimes, GatherTimes],
    layers: Real,
    alone: PassTimes,
    overlapped: Real,
) -> PassTimes:
    """Return the passes `alone` with gathers that overlap with them.

    The gathers of the embedding and of the first layer, and the scatters of both, are exposed.
    Without overlap (`overlapped` is 0) all gathers and scatters are exposed, and slow down no
    compute.
    """
    embedding, head = tables
    there = layers * gathering.gather + head.gather
    back = layers * (gathering.again + gathering.scatter) + embedding.again + head.scatter
    forward = _with_exchange(alone.forward, there, gathering.tax, overlapped)
    backward = _with_exchange(alone.backward, back, gathering.tax, overlapped)
    return PassTimes(
        forward + gathering.gather + embedding.gather,
        backward + gathering.scatter + embedding.scatter,
    )


def _with_exchange(
    compute: Seconds | Real, exchange: Seconds | Real, tax: Real, overlapped: Real
) -> Seconds | Real:
    return where(overlapped > 0, at_least(compute + tax * exchange, exchange), compute + exchange)


def slowest_pass(
    which: tuple[Real, Real], first: StagePass, middle: StagePass, last: StagePass
) -> StagePass:
    """Select the first, middle or last stage element-wise.

    `which` has two conditions: the first stage is selected, and the middle one.
    """
    if not any(isinstance(condition, np.ndarray) for condition in which):
        return first if which[0] else middle if which[1] else last
    return StagePass(
        **{
            item.name: where(
                which[0],
                getattr(first, item.name),
                where(which[1], getattr(middle, item.name), getattr(last, item.name)),
            )
            for item in fields(StagePass)
        }
    )


_NOTHING: Final = stated(nothing=0.0)
_HALF: Final = 2.0
"""Bytes of a parameter that comes back [B]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostUpdate:
    """Exposed times of an optimizer on the host [s]; 0 if it runs on the device.

    `update` is the time on the host's CPUs, `rate` the achieved rate of its memory traffic [B/s].
    `sending`, `fetching` and `moving` are the equations of the properties below.
    """

    sending: Term = _NOTHING
    update: Seconds | Real = 0.0
    fetching: Term = _NOTHING
    moving: Term = _NOTHING
    rate: BytesPerSecond | Real = np.inf

    @property
    def sent(self) -> Seconds | Real:
        """Exposed time of gradient offload to the host [s]."""
        return self.sending.value

    @property
    def fetched(self) -> Seconds | Real:
        """Exposed time of parameter transfer from the host [s]."""
        return self.fetching.value

    @property
    def moved(self) -> Bytes | Real:
        """Memory traffic of the update on a machine [B]."""
        return self.moving.value

    @property
    def total(self) -> Seconds | Real:
        """Exposed time of the whole host update, once a step [s]."""
        return self.sent + self.update + self.fetched


ON_DEVICE: Final = HostUpdate()
"""Nothing: the device updates its parameters itself."""


def host_update(
    step: TransformerStep, kernels: Kernels, layers: Real, behind: Seconds | Real
) -> HostUpdate:
    """Return the exposed times of gradient offload, host update and parameter fetch.

    Parameters
    ----------
    layers : float or array
        Number of layers of the stage that has most.
    behind : float or array
        Time of the backward pass of a micro-batch, with which gradients are offloaded [s].
    """
    if not anywhere(step.layout.offloaded > 0):
        return ON_DEVICE
    offloaded = where(step.layout.offloaded > 0, 1.0, 0.0)
    held, shared = learned_parameters(step)
    whole = shared * layers + learned_table(step) * tables_held(step)
    updated = offloaded * updated_parameters(step, whole, (held - shared) * layers)
    down = updated * step.work.gradient_bytes / step.device.host_link
    up = updated * _HALF / step.device.host_link
    moving = term(
        host_update_bytes, parameters=updated * step.layout.domain, state=step.work.optimizer_bytes
    )
    rate = step.device.host_memory * kernels.update.host
    update = moving.value / rate
    late = term(late_copies, copies=down, behind=behind, parts=layers)
    return HostUpdate(
        sending=product_of(late=late, micro_batches=step.layout.micro_batches),
        update=update,
        fetching=term(late_copies, copies=up, behind=update, parts=layers),
        moving=moving,
        rate=rate,
    )


_LONGER: Final = 1.1
"""How much longer small kernels are made to see what a step gains by it."""
_SLOWER: Final = 4.5
"""How much slower gathers are made: a tenth of unmeasured ones are slower still."""
_BEHIND: Final = 0.5
"""Share of a stage's last micro-batch, its backward pass, that gradients can hide behind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Passes:
    """A forward and a backward pass, as recorded equations."""

    terms: Mapping[str, Term]

    @property
    def forward(self) -> Seconds | Real:
        """Time of the forward pass [s]."""
        return self.terms["forward"].value

    @property
    def backward(self) -> Seconds | Real:
        """Time of the backward pass [s]."""
        return self.terms["backward"].value


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingStep(Passes):
    """Time of one optimizer step, by part [s].

    `forward`, `backward` and `exchange` (exposed communication) are those of one micro-batch on the
    slowest stage; a step has `micro_batches` of them. `bubble`, `gradients` (exposed gradient
    reduction), `update` and `launches` occur once a step. `hidden` is the communication of a step
    that overlaps with compute; `hidden_gradients` is the part of it that occurs once. `stages` are
    the times of a micro-batch on the first, middle and last stage, sends included. `host` has the
    exposed times of an offloaded optimizer.
    """

    micro_batches: Real
    hidden: Seconds | Real
    hidden_gradients: Seconds | Real
    stages: tuple[Seconds | Real, Seconds | Real, Seconds | Real]
    host: HostUpdate = ON_DEVICE

    @property
    def exchange(self) -> Seconds | Real:
        """Exposed communication of one micro-batch [s]."""
        return self.terms["exchange"].value

    @property
    def bubble(self) -> Seconds | Real:
        """Idle time of the pipeline bubble, once a step [s]."""
        return self.terms["bubble"].value

    @property
    def gradients(self) -> Seconds | Real:
        """Exposed time of gradient reduction, once a step [s]."""
        return self.terms["gradients"].value

    @property
    def update(self) -> Seconds | Real:
        """Time of the optimizer on the device, once a step [s]."""
        return self.terms["update"].value

    @property
    def launches(self) -> Seconds | Real:
        """Time of the kernel launches that occur once a step [s]."""
        return self.terms["launches"].value

    @property
    def total(self) -> Seconds | Real:
        """Time of the whole step [s]."""
        passes = self.micro_batches * (self.forward + self.backward + self.exchange)
        once = self.bubble + self.gradients + self.update + self.launches
        return passes + once + self.host.total

    @property
    def hidden_exchange(self) -> Seconds | Real:
        """Communication of one micro-batch that overlaps with compute [s]."""
        return (self.hidden - self.hidden_gradients) / self.micro_batches


def training_step(step: TransformerStep, kernels: Kernels) -> TrainingStep:
    """Return the time of one optimizer step; arrays for arrays of candidates."""
    layout, layer, dealt = step.layout, layer_pass(step, kernels), stage_layers(step)
    ends = embedding_and_head(step, kernels, layer.head)
    embedding, head = table_gather_times(step, kernels)
    second = head.times(tables_held(step) - 1.0)
    first = stage_pass(step, layer, dealt[0], ends[0], (embedding, second))
    middle = stage_pass(step, layer, dealt[1], ends[1], (GatherTimes(), GatherTimes()))
    last = stage_pass(step, layer, dealt[2], ends[2], (GatherTimes(), head))
    sent = _send_times(step, kernels)
    lengths = (first.length + sent, middle.length + sent, last.length + sent)
    slowest_length = slowest_stage(*lengths, layout.pipeline)
    slowest = slowest_pass(
        (lengths[0] == slowest_length, lengths[1] == slowest_length), first, middle, last
    )
    layers = slowest_stage(*dealt, layout.pipeline)
    held, _ = learned_parameters(step)
    wait, hidden = _gradient_exchange(step, kernels, layers, _BEHIND * middle.length)
    slowness = kernels.slowness
    bubble = term(
        pipeline_bubble,
        first=lengths[0],
        middle=lengths[1],
        last=lengths[2],
        stages=layout.pipeline,
        chunks=layout.chunks,
    )
    forward, backward = layer.computing
    # A pass over a stage: its layers, and embedding, head and loss where it has them.
    forward = sum_of(
        layers=product_of(layer=forward, layers=slowest.layers), ends=slowest.ends_forward
    )
    backward = sum_of(
        layers=product_of(layer=backward, layers=slowest.layers), ends=slowest.ends_backward
    )
    terms = {
        "forward": product_of(stage=forward, slowness=slowness),
        "backward": product_of(stage=backward, slowness=slowness),
        "exchange": term(waited_exchange, exposed=slowest.exposed, sent=sent, slowness=slowness),
        "bubble": product_of(idle=bubble, slowness=slowness),
        "gradients": product_of(wait=wait, slowness=slowness),
        "update": product_of(update=update_time(step, kernels, layers, held), slowness=slowness),
        "launches": product_of(
            launches=kernels.launch.step * kernels.launch.factor, slowness=slowness
        ),
    }
    return TrainingStep(
        micro_batches=layout.micro_batches,
        terms=terms,
        hidden=layout.micro_batches * slowest.hidden + hidden,
        hidden_gradients=hidden,
        stages=(lengths[0] * slowness, lengths[1] * slowness, lengths[2] * slowness),
        host=host_update(step, kernels, layers, slowest.backward),
    )


def _send_times(step: TransformerStep, kernels: Kernels) -> Seconds | Real:
    """Return the exposed time to send an activation and its gradient, for all chunks [s]."""
    layout = step.layout
    seen = where(layout.async_sends > 0, kernels.exchange.unhidden_sends, 1.0)
    return 2.0 * send_time(activation_bytes(step), step, kernels) * layout.chunks * seen


def _gradient_exchange(
    step: TransformerStep, kernels: Kernels, layers: Real, behind: Seconds | Real
) -> tuple[Seconds | Real, Seconds | Real]:
    """Return the exposed and the hidden time of gradient reductions and parameter gathers [s].

    Overlapped reductions are hidden behind the backward pass of one micro-batch (`behind`). First
    and last stage reduce the gradients of a tied embedding.
    """
    whole: Seconds | Real = 0.0
    for reduction in gradient_reductions(step, layers):
        whole = whole + reduction.share * _reduction_time(step, kernels, reduction, layers)
    left = at_least(whole * kernels.exchange.unhidden_gradients, whole - behind)
    overlapped = step.layout.overlapped_gradients > 0
    copies = tie_time(step, kernels)
    seen = where(overlapped, left, whole + copies)
    return seen, whole + copies - seen


def _reduction_time(
    step: TransformerStep, kernels: Kernels, reduction: GradientReduction, messages: Real
) -> Seconds | Real:
    """Return the time of a gradient reduction, in `messages` messages [s].

    If each rank updates a part of the parameters, gradients are reduce-scattered or all-reduced,
    and updated parameters all-gathered.
    """
    whole = all_reduce_time(
        reduction.there, reduction.ranks, step, kernels, stride=reduction.stride, messages=messages
    )
    there = all_gather_time(
        reduction.there, reduction.ranks, step, kernels, stride=reduction.stride, messages=messages
    )
    back = all_gather_time(
        reduction.back, reduction.ranks, step, kernels, stride=reduction.stride, messages=messages
    )
    return where(reduction.scattered > 0, there, whole) + where(reduction.gathered > 0, back, 0.0)


def small_kernels_share(step: TransformerStep, kernels: Kernels) -> Real:
    """Return the elasticity of the step time in the time of norms and activations, 0 to 1.

    Returns
    -------
    float or array
        Relative change of the step time over that of its small kernels.
    """
    fitted = kernels.kernel
    longer = replace(fitted, gated=_LONGER * fitted.gated, plain=_LONGER * fitted.plain)
    share: Real = (_times_as_long(step, kernels, replace(kernels, kernel=longer)) - 1.0) / (
        _LONGER - 1.0
    )
    return share


def network_share(step: TransformerStep, kernels: Kernels) -> Real:
    """Return the elasticity of the step time in the time of gathers between machines, 0 to 1.

    Returns
    -------
    float or array
        Logarithm of the factor on the step time if these gathers take 4.5 times as long, over the
        logarithm of 4.5.
    """
    fitted = kernels.exchange
    slower = replace(fitted, network_gradients=fitted.network_gradients / _SLOWER)
    ratio = _times_as_long(step, kernels, replace(kernels, exchange=slower))
    share: Real = plain(np.log(ratio)) / math.log(_SLOWER)
    return share


def launch_share(step: TransformerStep, kernels: Kernels) -> Real:
    """Return the elasticity of the step time in the launch time of kernels, 0 to 1.

    Returns
    -------
    float or array
        Logarithm to base 2 of the factor on the step time if launches take twice as long.
    """
    slower = replace(kernels.launch, factor=2.0 * kernels.launch.factor)
    share: Real = plain(np.log2(_times_as_long(step, kernels, replace(kernels, launch=slower))))
    return share


def _times_as_long(step: TransformerStep, fitted: Kernels, changed: Kernels) -> Real:
    ratio: Real = training_step(step, changed).total / training_step(step, fitted).total
    return ratio
