"""Communication of a sharded model: bytes that a device puts on links, and their times.

Devices are numbered as in Megatron-Core [1]_ and torchtitan [2]_: tensor-parallel ranks are
neighbours, then come context-parallel ranks, replicas and pipeline stages. The members of a group
are thus a fixed `stride` of devices apart, and a group that fits into a machine never leaves it.

A collective over several machines passes each byte on inside of them and sends a machine's part
between them, so that both together are what a ring over all its ranks sends. Inside a machine
collectives take the measured times of NCCL (`collectives`), at a share of its rate and with the
framework's overhead added to each; between machines they are rings and trees at shares of the
network's rate.

Context-parallel ranks exchange keys and values. In a ring [3]_ each rank sends its chunk on to the
next one while attention computes on the last chunk received; the backward pass also sends the
gradients of keys and values around. In an all-gather [4]_ attention begins on the rank's own chunk
while the others arrive; gradients go around a ring in fp32, and back to the rank that owns them.

References
----------
.. [1] NVIDIA/Megatron-LM megatron/core/parallel_state.py, initialize_model_parallel (order
       "tp-cp-ep-dp-pp"), read in megatron-core 0.16.1 on PyPI, 2026-11-27.
.. [2] pytorch/torchtitan torchtitan/distributed/parallel_dims.py and fsdp.py
       (apply_fsdp_to_decoder), read in torchtitan 0.3.0 on PyPI, 2026-11-27.
.. [3] NVIDIA/Megatron-LM megatron/core/transformer/transformer_config.py, cp_comm_type, whose
       default is "p2p" (megatron/core/extensions/transformer_engine.py), read in megatron-core
       0.16.1; Liu et al., "Ring Attention with Blockwise Transformers for Near-Infinite Context",
       https://arxiv.org/abs/2310.01889
.. [4] pytorch torch/distributed/tensor/experimental/_context_parallel/_attention.py
       (_AllGatherRotater and _templated_ring_attention_backward, whose gradients are fp32), read in
       torch 2.11.0 on PyPI, 2026-11-27.
.. [5] Oneflow-Inc/DLPerf reports/GPT/dlperf_gpt_test_report_210512.md @c89430ba, 2021-05.
"""

from __future__ import annotations

from simulator.equations.collectives import distinct_places, ring_wire_bytes, shard_bytes
from simulator.equations.memory import FULL_PRECISION
from simulator.equations.pipeline import slowest_stage
from simulator.physics.collectives import EFFICIENCY, HOP, all_reduce_latency, ring_latency
from simulator.physics.parameters import (
    expert_copies,
    expert_holders,
    keys_and_values,
    layer_parameters,
    learned_parameters,
    learned_table,
    shared_part,
    sharers,
    stage_layers,
    table_parameters,
    tables_held,
    tokens,
)
from simulator.physics.transformer import TransformerStep
from simulator.records import dataclass
from simulator.schema.software import Kernels
from simulator.units import (
    Bytes,
    BytesPerSecond,
    Real,
    Seconds,
    anywhere,
    at_least,
    at_most,
    rounded_up,
    where,
)


@dataclass(frozen=True, slots=True)
class SentBytes:
    """Bytes that a device sends inside its machine and out of it."""

    inside: Bytes | Real = 0.0
    outside: Bytes | Real = 0.0

    def __add__(self, other: SentBytes) -> SentBytes:
        """Return the sums of both."""
        return SentBytes(self.inside + other.inside, self.outside + other.outside)

    def times(self, factor: Real) -> SentBytes:
        """Return the bytes, multiplied by `factor`."""
        return SentBytes(self.inside * factor, self.outside * factor)

    @property
    def whole(self) -> Bytes | Real:
        """Bytes sent inside the machine and out of it [B]."""
        return self.inside + self.outside

    @property
    def outward(self) -> Real:
        """Share of the bytes that leaves the machine, 0 to 1."""
        return where(self.whole > 0.0, self.outside / at_least(self.whole, 1e-300), 0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """Bytes that a device of the stage with most layers sends, per micro-batch and per step.

    `tensor`, `context` (keys, values and their gradients), `experts` and `parameters` (all-gathers
    of sharded parameters and reduce-scatters of their gradients) are those of one of its `layers`;
    `tables` are all-gathers and reduce-scatters of sharded embedding tables, of the first stage in
    a pipeline; `sends` are the activations between stages, for all its chunks. `gradients` are sent
    once a step: gradient reductions, and gathers of updated parameters.
    """

    layers: Real
    tensor: SentBytes
    context: SentBytes
    experts: SentBytes
    parameters: SentBytes
    tables: SentBytes
    sends: SentBytes
    gradients: SentBytes

    @property
    def micro_batch(self) -> SentBytes:
        """Bytes sent for one micro-batch."""
        layer = self.tensor + self.context + self.experts + self.parameters
        return layer.times(self.layers) + self.tables + self.sends


def traffic(step: TransformerStep) -> Traffic:
    """Return the bytes that a device sends in a training step, by kind of communication."""
    layers = slowest_stage(*stage_layers(step), step.layout.pipeline)
    return Traffic(
        layers=layers,
        tensor=_tensor_traffic(step),
        context=_context_traffic(step),
        experts=_expert_traffic(step) if anywhere(step.shape.experts > 0) else SentBytes(),
        parameters=_parameter_traffic(step),
        tables=_table_traffic(step),
        sends=_send_traffic(step),
        gradients=_gradient_traffic(step, layers),
    )


def tensor_reduces(step: TransformerStep) -> tuple[Real, Real]:
    """Return the number of all-reduces of a layer in the forward and in the backward pass.

    With sequence parallelism a reduce-scatter and an all-gather replace each, which move as many
    bytes, and another all-gather is needed in the backward pass. An MoE layer reduces once, after
    attention.
    """
    forward = where(step.shape.experts > 0, 1.0 + step.shape.dense_share, 2.0)
    gathered = where(step.layout.sequence_parallel > 0, _GATHERED_AGAIN, 0.0)
    again = step.work.recomputation.layers * step.work.recomputation.exchange
    return forward, forward * (1.0 + gathered + again)


_GATHERED_AGAIN = 0.5
"""Part of an all-reduce that sequence parallelism repeats in the backward pass: a gather."""


def all_reduce_bytes(size: Bytes | Real, ranks: Real, domain: Real) -> SentBytes:
    """Return the bytes that each rank sends in a hierarchical all-reduce over neighbouring ranks.

    `domain` is the number of ranks on a machine.
    """
    local = at_most(ranks, domain)
    machines = rounded_up(ranks / domain)
    return SentBytes(ring_wire_bytes(size, local), ring_wire_bytes(size, machines) / local)


def all_gather_bytes(
    size: Bytes | Real, ranks: Real, step: TransformerStep, *, stride: Real | None = None
) -> SentBytes:
    """Return the bytes that each rank sends in an all-gather or reduce-scatter of `size` bytes.

    Parameters are those of `placed`.
    """
    local, machines = placed(ranks, step, stride=stride)
    sent = SentBytes(shard_bytes(size, local), shard_bytes(size, machines) / local)
    return sent.times(where(ranks > 1, 1.0, 0.0))


def placed(ranks: Real, step: TransformerStep, *, stride: Real | None = None) -> tuple[Real, Real]:
    """Return the ranks of a group on one machine, and the number of machines that it spans.

    Neighbours in the group are `stride` devices apart, by default those of one tensor-parallel
    group: then the group has the same part of the model, for other tokens.
    """
    domain, apart = step.layout.domain, step.layout.tensor if stride is None else stride
    on_machine = at_most(at_least(domain / apart, 1.0), ranks)
    local = where((ranks - 1.0) * apart < domain, ranks, on_machine)
    return local, ranks / local


def _tensor_traffic(step: TransformerStep) -> SentBytes:
    forward, backward = tensor_reduces(step)
    size = tokens(step) * step.shape.hidden * step.work.element
    once = all_reduce_bytes(size, step.layout.tensor, step.layout.domain)
    return once.times(forward + backward)


def _context_traffic(step: TransformerStep) -> SentBytes:
    """Return the bytes of keys, values and their gradients that a layer exchanges in both passes.

    Attention that the backward pass repeats receives keys and values once more.
    """
    if not anywhere(step.layout.context > 1):
        return SentBytes()
    own, ranks = keys_and_values(step), step.layout.context
    again = step.work.recomputation.layers * step.work.recomputation.attention
    chunks = (ranks - 1.0) * own
    ring = _ring_bytes(chunks * (3.0 + again), step)
    gathered = all_gather_bytes(ranks * own, ranks, step).times(2.0 + again)
    back = _ring_bytes(ranks * _key_gradients(step), step)
    gathers = step.layout.gathered_context > 0
    inside = where(gathers, gathered.inside + back.inside, ring.inside)
    outside = where(gathers, gathered.outside + back.outside, ring.outside)
    return SentBytes(inside, outside).times(where(ranks > 1, 1.0, 0.0))


def _ring_bytes(sent: Bytes | Real, step: TransformerStep) -> SentBytes:
    """Return the bytes that each context-parallel rank sends to the next one, averaged over ranks.

    On each of several machines only the last of its ranks sends to another machine.
    """
    local, machines = placed(step.layout.context, step)
    leaves = where(machines > 1, 1.0 / local, 0.0)
    return SentBytes(sent * (1.0 - leaves), sent * leaves)


def _key_gradients(step: TransformerStep) -> Bytes | Real:
    return keys_and_values(step) / step.work.element * FULL_PRECISION


def _expert_traffic(step: TransformerStep) -> SentBytes:
    """Return the bytes of expert dispatch and combine in both passes, averaged over layers.

    Devices that divide an expert gather the dispatched tokens, and scatter the sums of the results.
    """
    size = tokens(step) / step.layout.tensor * step.work.element * step.shape.hidden
    sent = all_to_all_bytes(size, step).times(where(step.layout.expert > 1, 1.0, 0.0))
    divided = step.layout.expert_tensor
    gathered = all_gather_bytes(divided * size * step.shape.top_k, divided, step, stride=1.0)
    return (sent + gathered).times(4.0 * step.shape.routed)


def all_to_all_bytes(size: Bytes | Real, step: TransformerStep) -> SentBytes:
    """Return the bytes that a device sends in an all-to-all of `size` bytes of tokens.

    Each token goes to `top_k` experts: as one copy for each expert, or with deduplication as one
    for each rank inside the machine and for each other machine.
    """
    ranks, choices, once = step.layout.expert, step.shape.top_k, step.layout.deduplicated > 0
    local, machines = placed(ranks, step, stride=step.layout.expert_tensor)
    near = where(once, distinct_places(ranks, choices), choices) * (1.0 - 1.0 / local)
    far = where(once, distinct_places(machines, choices), choices) * (1.0 - 1.0 / machines)
    return SentBytes(size * near / machines, size * far)


def _parameter_traffic(step: TransformerStep) -> SentBytes:
    """Return the bytes of parameter all-gathers and gradient reduce-scatters of one layer."""
    layout = step.layout
    if not anywhere(layout.sharded > 0):
        return SentBytes()
    held, shared = layer_parameters(step)
    learned, of_all = learned_parameters(step)
    gathered, scattered = step.work.gather_bytes * (1.0 + layout.again), step.work.gradient_bytes
    sent = all_gather_bytes(shared * gathered + of_all * scattered, sharers(step), step)
    if anywhere(step.shape.experts > 0):
        size = (held - shared) * gathered + (learned - of_all) * scattered
        expert_bytes = all_gather_bytes(
            size, expert_copies(step), step, stride=expert_holders(step)
        )
        sent = sent + expert_bytes.times(where(step.shape.experts > 0, 1.0, 0.0))
    return sent.times(where(layout.sharded > 0, 1.0, 0.0))


def _table_traffic(step: TransformerStep) -> SentBytes:
    """Return the bytes of all-gathers and reduce-scatters of the tables of the first stage."""
    if not anywhere(step.layout.sharded > 0):
        return SentBytes()
    head = tables_held(step) - 1.0
    size = gathered_table(step) * (embedding_gathers(step) + head)
    size = size + learned_table(step) * step.work.gradient_bytes * (1.0 + head)
    sent = all_gather_bytes(size, sharers(step), step)
    return sent.times(where(step.layout.sharded > 0, 1.0, 0.0))


def gathered_table(step: TransformerStep) -> Bytes | Real:
    """Return the size of an embedding table as gathered: in 16 bit or more [B]."""
    return table_parameters(step) * at_least(step.work.gather_bytes, step.work.element)


def embedding_gathers(step: TransformerStep) -> Real:
    """Return how often a micro-batch gathers a sharded embedding table [2]_.

    The backward pass gathers it again as it does layers. A head is gathered once, since its
    backward pass follows its forward pass, and so is a table that is embedding and head.
    """
    both = (step.layout.pipeline == 1) & (step.shape.tied > 0)
    return where(both, 1.0, 1.0 + step.layout.again)


def _send_traffic(step: TransformerStep) -> SentBytes:
    """Return the bytes of activations and gradients sent between stages, for all chunks."""
    layout = step.layout
    part = sent_part(activation_bytes(step), step)
    stage = layout.tensor * layout.context * layout.replicas
    several = layout.devices > layout.domain
    leaves = where(several, at_most(stage / layout.domain, 1.0), 0.0)
    gathered = where(layout.scattered_sends > 0, part * (layout.tensor - 1.0), 0.0)
    sent = SentBytes(part * (1.0 - leaves) + gathered, part * leaves)
    return sent.times(2.0 * layout.chunks * where(layout.pipeline > 1, 1.0, 0.0))


def activation_bytes(step: TransformerStep) -> Bytes | Real:
    """Return the size of the activations that a stage sends on for a micro-batch [B]."""
    along = where(step.layout.sequence_parallel > 0, step.layout.tensor, 1.0)
    return tokens(step) * step.shape.hidden * step.work.element / along


def sent_part(size: Bytes | Real, step: TransformerStep) -> Bytes | Real:
    """Return the part of a send that one device of a tensor-parallel group does [B]."""
    return size / where(step.layout.scattered_sends > 0, step.layout.tensor, 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class GradientReduction:
    """A reduction of gradients, once a step, over ranks that have copies of the same parameters.

    `there` are the bytes of the gradients, `back` those of the updated parameters. Neighbours among
    the `ranks` are `stride` devices apart. `scattered` is 1 if each rank receives a part of the sum
    (reduce-scatter), 0 if all receive the whole sum (all-reduce). `gathered` is 1 if each rank
    updates a part and all-gathers the parameters. `share` is 0 if the layout has no such reduction,
    else 1.
    """

    there: Bytes | Real
    back: Bytes | Real
    ranks: Real
    stride: Real
    scattered: Real
    gathered: Real
    share: Real

    @property
    def passed(self) -> Bytes | Real:
        """Buffer bytes over all gathers and scatters; an all-reduce counts as two of them [B]."""
        summed = self.there * (2.0 - self.scattered)
        return summed + self.back * self.gathered


def gradient_reductions(step: TransformerStep, layers: Real) -> tuple[GradientReduction, ...]:
    """Return the gradient reductions of a stage: within groups, of experts, between groups.

    The reduction of a tied embedding is separate (`tied_bytes`).
    """
    layout, tables = step.layout, learned_table(step) * tables_held(step)
    held, shared = learned_parameters(step)
    whole = where(layout.sharded > 0, 0.0, 1.0)
    of_all, of_experts = shared * layers + tables, (held - shared) * layers
    reductions = [_gradient_reduction(step, of_all, sharers(step), layout.tensor, whole)]
    if anywhere(step.shape.experts > 0):
        routed = where(step.shape.experts > 0, whole, 0.0)
        reductions.append(
            _gradient_reduction(step, of_experts, expert_copies(step), expert_holders(step), routed)
        )
    group = at_most(layout.replicas, layout.shard_group)
    shard_bytes_held = shared_part(step, of_all, of_experts) * step.work.gradient_bytes
    between = GradientReduction(
        there=shard_bytes_held,
        back=shard_bytes_held,
        ranks=layout.replicas / group,
        stride=layout.tensor * layout.context * group,
        scattered=0.0,
        gathered=0.0,
        share=1.0,
    )
    return (*reductions, between)


def _gradient_reduction(
    step: TransformerStep, parameters: Real, ranks: Real, stride: Real, share: Real
) -> GradientReduction:
    parts = step.layout.sharded_optimizer
    return GradientReduction(
        there=parameters * step.work.gradient_bytes,
        back=parameters * step.work.gather_bytes,
        ranks=ranks,
        stride=stride,
        scattered=parts * step.layout.scattered_sums,
        gathered=parts,
        share=share,
    )


def tied_bytes(step: TransformerStep) -> Bytes | Real:
    """Return the gradient bytes of a tied embedding that first and last stage exchange [B].

    It is 0 for a model with two tables, and where embedding and head are on one stage.
    """
    tied = where(step.layout.pipeline > 1, step.shape.tied, 0.0)
    return 2.0 * learned_table(step) * step.work.gradient_bytes * tied


def between_ends(step: TransformerStep) -> Real:
    """Return the distance between a device of the first stage and its peer of the last one."""
    layout = step.layout
    stages = at_least(layout.pipeline - 1.0, 1.0)
    return layout.tensor * layout.context * layout.replicas * stages


def _gradient_traffic(step: TransformerStep, layers: Real) -> SentBytes:
    """Return the bytes of gradient reductions and of all-gathers of updated parameters."""
    sent = all_gather_bytes(tied_bytes(step), 2.0, step, stride=between_ends(step))
    for reduction in gradient_reductions(step, layers):
        passed = all_gather_bytes(reduction.passed, reduction.ranks, step, stride=reduction.stride)
        sent = sent + passed.times(reduction.share)
    return sent


def machine_all_reduce_time(
    size: Bytes | Real, ranks: Real, step: TransformerStep, kernels: Kernels
) -> Seconds | Real:
    """Return the time of an all-reduce inside a machine, framework overhead included [s].

    With sequence parallelism it is a reduce-scatter and an all-gather.
    """
    part, share = kernels.exchange.latency, kernels.exchange.link
    shard, whole = shard_bytes(size, ranks), ring_wire_bytes(size, ranks)
    scattered = step.device.scatter.over(ranks).time(shard, share) + part
    gathered = step.device.gather.over(ranks).time(shard, share) + part
    summed = step.device.reduce.over(ranks).time(whole, share) + part
    time = where(step.layout.sequence_parallel > 0, scattered + gathered, summed)
    return where(ranks > 1, time, 0.0)


def tensor_all_reduce_times(
    size: Bytes | Real, step: TransformerStep, kernels: Kernels
) -> tuple[Seconds | Real, Seconds | Real]:
    """Return the times of a tensor-parallel all-reduce inside machines and between them [s].

    Between machines all network cards take part; the two phases run one after the other. Devices
    with one card reach no more of its rate than collectives of data parallelism do: 16- and 32-way
    tensor parallelism over one card of 100 Gb/s for eight V100 reached 0.33 and 0.40 of it [5]_,
    16-way over four cards for eight A100 about 0.7 of theirs (measured set `llm_training`).
    """
    machines = rounded_up(step.layout.tensor / step.layout.domain)
    local = machine_all_reduce_time(
        size, at_most(step.layout.tensor, step.layout.domain), step, kernels
    )
    moved = 2.0 * (machines - 1.0) / machines * size
    far = kernels.exchange.network_latency
    latency = 2.0 * ring_latency(machines, machines, far, far)
    alone = step.device.shared_card > 0
    reached = where(alone, kernels.exchange.network_gradients, kernels.exchange.network)
    between = moved / (step.device.network * reached) + latency
    return local, where(machines > 1, between, 0.0)


def all_gather_time(  # noqa: PLR0913 - the group, and what it does
    size: Bytes | Real,
    ranks: Real,
    step: TransformerStep,
    kernels: Kernels,
    *,
    stride: Real | None = None,
    messages: Real = 1.0,
) -> Seconds | Real:
    """Return the time of an all-gather or reduce-scatter over data-parallel ranks [s].

    The `size` bytes are sent in `messages`, each with the latency of the whole group. `ranks` and
    `stride` are those of `placed`.
    """
    _, machines = placed(ranks, step, stride=stride)
    far = kernels.exchange.network_latency + ring_latency(
        ranks, machines, HOP, kernels.exchange.ring
    )
    near = kernels.exchange.latency + step.device.gather.over(ranks).large_latency
    bytes_pass = _slowest_link_time(size, ranks, step, kernels, stride)
    latency = messages * where(machines > 1, far, near)
    return where(ranks > 1, bytes_pass + latency, 0.0)


def all_reduce_time(  # noqa: PLR0913 - the group, and what it does
    size: Bytes | Real,
    ranks: Real,
    step: TransformerStep,
    kernels: Kernels,
    *,
    stride: Real | None = None,
    messages: Real = 1.0,
) -> Seconds | Real:
    """Return the time of an all-reduce over data-parallel ranks, by ring or tree [s].

    Parameters are those of `all_gather_time`.
    """
    _, machines = placed(ranks, step, stride=stride)
    steps = all_reduce_latency(ranks, machines, HOP, kernels.exchange.ring)
    far = 2.0 * kernels.exchange.network_latency + steps
    near = kernels.exchange.latency + step.device.reduce.over(ranks).large_latency
    bytes_pass = 2.0 * _slowest_link_time(size, ranks, step, kernels, stride)
    latency = messages * where(machines > 1, far, near)
    return where(ranks > 1, bytes_pass + latency, 0.0)


def _slowest_link_time(
    size: Bytes | Real, ranks: Real, step: TransformerStep, kernels: Kernels, stride: Real | None
) -> Seconds | Real:
    return at_least(*_link_and_network_times(size, ranks, step, kernels, stride))


def _link_and_network_times(
    size: Bytes | Real, ranks: Real, step: TransformerStep, kernels: Kernels, stride: Real | None
) -> tuple[Seconds | Real, Seconds | Real]:
    """Return the times that the bytes of an all-gather take on links and on the network [s].

    The groups of a machine share its network; a group with some of its devices reaches only a part
    of its network cards.
    """
    local, _ = placed(ranks, step, stride=stride)
    moved = all_gather_bytes(size, ranks, step, stride=stride)
    partly = (local > 1) & (local < step.layout.domain)
    reached = kernels.exchange.network_gradients * where(partly, kernels.exchange.part, 1.0)
    network = moved.outside / (_own_network(step) * reached)
    rate = step.device.gather.over(local).large_rate * kernels.exchange.link
    return moved.inside / rate, network


def gather_channels(
    size: Bytes | Real, ranks: Real, step: TransformerStep, kernels: Kernels
) -> Real:
    """Return the number of channels of an all-gather, relative to those that saturate the links.

    It is at most 1. Each channel occupies a multiprocessor, and there are no more channels than the
    network can feed, so that their busy time is that on a network as fast as the links.
    """
    _, network = _link_and_network_times(size, ranks, step, kernels, None)
    longer = network * (1.0 - at_most(step.device.network / step.device.link, 1.0))
    whole = all_gather_time(size, ranks, step, kernels)
    return where(whole > 0.0, at_most(1.0, 1.0 - longer / where(whole > 0.0, whole, 1.0)), 1.0)


def send_time(size: Bytes | Real, step: TransformerStep, kernels: Kernels) -> Seconds | Real:
    """Return the time to send `size` bytes to the next stage [s].

    Each device sends through its own part of the machine's network.
    """
    layout, link = step.layout, step.device.link * EFFICIENCY * kernels.exchange.link
    scattered, part = layout.scattered_sends > 0, sent_part(size, step)
    crosses = layout.devices > layout.domain
    network = part / (_own_network(step) * kernels.exchange.network_sends)
    gathered = where(scattered, size / link, 0.0)
    time = where(crosses, network + gathered, part / link) + kernels.exchange.network_latency
    return where(layout.pipeline > 1, time, 0.0)


def ring_time(
    size: Bytes | Real, hops: Real, step: TransformerStep, kernels: Kernels
) -> Seconds | Real:
    """Return the time in which each context-parallel rank sends `hops` times to the next one [s].

    A send has `size` bytes. Where the ring spans machines, the sends between them are the slowest.
    """
    _, machines = placed(step.layout.context, step)
    return hops * _hop_time(size, machines, step, kernels)


def tie_time(step: TransformerStep, kernels: Kernels) -> Seconds | Real:
    """Return the time to add up the gradients of a tied embedding of first and last stage [s].

    Both send a half to each other, and the sum of the other half back.
    """
    _, machines = placed(2.0, step, stride=between_ends(step))
    size = 0.25 * tied_bytes(step)
    return where(size > 0.0, 2.0 * _hop_time(size, machines, step, kernels), 0.0)


def _hop_time(
    size: Bytes | Real, machines: Real, step: TransformerStep, kernels: Kernels
) -> Seconds | Real:
    """Return the time to send `size` bytes to a peer, on another machine if there are several [s].

    Each device sends through its own part of its machine's network.
    """
    link = step.device.link * EFFICIENCY * kernels.exchange.link
    network = _own_network(step) * kernels.exchange.network_sends
    near = size / link + kernels.exchange.latency
    return where(machines > 1, size / network + kernels.exchange.network_latency, near)


def all_to_all_time(
    rows: Real, width: Bytes | Real, step: TransformerStep, kernels: Kernels
) -> Seconds | Real:
    """Return the time of an all-to-all that sends tokens to the ranks of their experts [s].

    Parameters
    ----------
    rows : float or array
        Tokens that a device sends, each to `top_k` experts: one copy for each expert, or with
        deduplication one for each rank inside the machine and for each other machine.
    width : float or array
        Size of a token [B].
    """
    sent = all_to_all_bytes(rows * width, step)
    local, _ = placed(step.layout.expert, step, stride=step.layout.expert_tensor)
    rate = step.device.all_to_all.over(local).large_rate * kernels.exchange.link
    link = sent.inside / rate
    network = sent.outside / (_own_network(step) * kernels.exchange.network_experts)
    return where(step.layout.expert > 1, link + network + kernels.exchange.network_latency, 0.0)


def _own_network(step: TransformerStep) -> BytesPerSecond | Real:
    return step.device.network / step.layout.domain
