"""A transformer's training step on one device: shape, layout, number formats and rates.

Each field is a number, or an array over candidates. Switches are 0 or 1, so that candidates may
differ in them.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import Final

import numpy as np

from simulator.equations.memory import FULL_PRECISION, state_bytes
from simulator.errors import NotModelled
from simulator.memo import cached
from simulator.physics.collectives import InMachine, Protocols, in_machine
from simulator.records import dataclass
from simulator.schema.accelerators import Gpu, Precision
from simulator.schema.calibration import Calibration
from simulator.schema.convnets import ConvNet
from simulator.schema.machines import Cluster, Collective, Host
from simulator.schema.models import Model
from simulator.schema.scenario import Job, Scenario
from simulator.schema.software import CudaGraphs, Kernels
from simulator.schema.training import (
    ContextExchange,
    Partition,
    Recompute,
    Schedule,
    Sharding,
    Targets,
    Train,
)
from simulator.schema.transformers import Transformer
from simulator.units import Bytes, BytesPerSecond, FlopsPerSecond, Real, in_common, where


@dataclass(frozen=True, kw_only=True)
class Shape:
    """Shape of a transformer: layers, widths, vocabulary.

    `layers` includes those of multi-token prediction. `head_width` is the head dimension of queries
    and keys, `value_width` that of values. Latent attention (`latent`) has two ranks and a
    `rope_width`. `dense_share` is the share of layers with a dense MLP. Logits are computed
    `scored` times, for a `scored_share` of the positions. `attention_share` is the share of full
    attention that sliding windows leave. `filled` is the mean share of the sequence that is not
    padding. `tied` is 1 if embedding and head share one table.
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
    """Degrees of parallelism, batch sizes, and switches for sharding and overlap.

    `domain` is the number of devices in a machine. `replicas` is the number of copies of the model,
    `micro_batch` their batch size per pass, `micro_batches` the number of passes in a step.
    `sharded`: parameters are gathered layer by layer, and with `again` once more for the backward
    pass. `sharded_optimizer`: each replica updates a part of the parameters. Both are over at most
    `shard_group` ranks. `offloaded`: optimizer state is on the host. `all_forward`: all forward
    passes precede the first backward pass. `by_compute`: layers are assigned to stages by compute
    time. `scattered_sums`: a replica that updates a part of the parameters receives only that part
    of the gradients. `gathered_context`: keys and values are gathered over context-parallel ranks
    rather than sent around a ring. Each expert is divided over
    `expert_tensor` devices. `imbalance` is the load of the busiest expert rank over the mean
    load.
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
    gathered_context: Real = 0.0
    sharded: Real = 0.0
    again: Real = 0.0
    sharded_optimizer: Real = 0.0
    shard_group: Real = np.inf
    offloaded: Real = 0.0
    all_forward: Real = 0.0
    by_compute: Real = 0.0
    expert_tensor: Real = 1.0
    scattered_sums: Real = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Recomputation:
    """Shares of the forward pass that the backward pass repeats, in a share of the `layers`.

    The shares are those of matrix `products`, `attention`, memory-bound kernels (`passes`), tensor-
    parallel communication (`exchange`) and kernel `launches`.
    """

    products: Real = 0.0
    attention: Real = 0.0
    passes: Real = 0.0
    exchange: Real = 0.0
    launches: Real = 0.0
    layers: Real = 1.0


NO_RECOMPUTATION: Final = Recomputation()
"""Everything is kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """Number formats, recomputation, kernels and adapters of a training job.

    `element` is the size of a stored value [B]. `low` is 1 if linear layers compute below 16 bit,
    with operands of `width` bytes. `optimizer_bytes` is the fp32 optimizer state per weight.
    `wide_gradients` is 1 if gradients are accumulated in fp32. `fused_softmax`: scale, mask and
    softmax of unfused attention are one kernel. `waits`: the host waits for the token counts of
    experts. `eager_activation`: the activation function of experts is several kernels.

    `learned` is 0 if the model's own parameters are frozen, with `frozen_bytes` each; then LoRA
    adapters of `rank` are trained: on queries and values, and on the projections with `adapted_*`.
    `joined`: a fused projection has one adapter. `widened`: frozen weights are stored in lower
    precision than they are computed in, and each pass moves `widening_bytes` per weight to convert
    them.
    """

    element: Bytes | Real = 2.0
    low: Real = 0.0
    width: Bytes | Real = 2.0
    gradient_bytes: Bytes | Real = 2.0
    gather_bytes: Bytes | Real = 2.0
    optimizer_bytes: Bytes | Real = 8.0
    wide_gradients: Real = 0.0
    recomputation: Recomputation = NO_RECOMPUTATION
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
    widening_bytes: Bytes | Real = 0.0


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
    """Datasheet of a device: peak in 16 bit, and at the precision of linear layers.

    `units` is the number of multiprocessors, `link` the rate to the other devices of the machine,
    with the protocols of each collective in `reduce`, `gather`, `scatter` and `all_to_all`.
    `network` is the rate of the machine's network for all its devices in use; `shared_card` is 1 if
    they have one network card. `host_link` is the
    rate to the host if all devices copy at once, `host_memory` that of the host's memory.
    """

    peak16: FlopsPerSecond | Real
    peak: FlopsPerSecond | Real
    bandwidth: BytesPerSecond | Real
    link: BytesPerSecond | Real
    units: Real
    network: BytesPerSecond | Real
    shared_card: Real = 0.0
    host_link: BytesPerSecond | Real = np.inf
    host_memory: BytesPerSecond | Real = np.inf
    reduce: InMachine = _FREE
    gather: InMachine = _FREE
    scatter: InMachine = _FREE
    all_to_all: InMachine = _FREE


NO_DEVICE: Final = Device(peak16=0.0, peak=0.0, bandwidth=0.0, link=0.0, units=1.0, network=0.0)
"""Stands where only memory is asked about, which no rate decides."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TransformerStep:
    """One training step of a transformer on one device."""

    shape: Shape
    layout: Layout
    work: Work
    device: Device = NO_DEVICE


NARROW: Final = (Precision.FP8, Precision.FP4)
SIXTEEN: Final = (Precision.BF16, Precision.FP16)
FULL: Final = (Precision.TF32, Precision.FP32)
"""Values are stored in 32 bit. Nothing was fitted to them: shares are those of 16 bit."""
_HALF_WIDTH: Final = Precision.BF16.bytes_per_element
_LOW_WIDTH: Final = 1.0
"""Bytes of a value that a product below 16 bit reads; 4-bit ones are as wide with their scales."""
_SOFTMAX_GROUP: Final = 4.0
_SOFTMAX_LONGEST: Final = 2048.0
"""Megatron's kernel for scale, mask and softmax takes whole groups of matrices and rows so long:
NVIDIA/Megatron-LM megatron/model/fused_softmax.py."""
_SMALL_MODULES: Final = 0.2
"""Part of a layer's passes over memory that recomputing its small modules repeats."""
_EVERY_SECOND: Final = 0.5
_SCALES: Final = 0.127 / 8.0
"""Bytes of scales for a weight in 4 bit, themselves in 8 bit: 0.127 bit a parameter (Dettmers
et al., "QLoRA", section 3, https://arxiv.org/abs/2305.14314)."""


UNPACKING_BYTES: Final = 11.2
"""Memory traffic that takes the time in which eager code converts a 4-bit weight to 16 bit [B]: an
A100-80GB, whose kernels reach 80% of 2,039 GB/s, converts 145 G weights/s (120 to 175), five times
as slow as its bytes; in QLoRA against LoRA, by GPTQ's kernels (QwenLM/Qwen README.md @2df8e8ac,
2023-12) and bitsandbytes. A compiled model does it at the rate of the memory."""


def of_tokens(model: Model | None) -> bool:
    """Return whether a model is a transformer over tokens (decoder or encoder)."""
    return isinstance(model, Transformer) and model.embedding.tokens > 0


def is_classifier(model: Model | None) -> bool:
    """Return whether an image model ends in a classification head."""
    is_known = isinstance(model, ConvNet | Transformer) and not of_tokens(model)
    return is_known and learning_head(model) > 0.0


def learning_head(model: Model | None) -> float:
    """Return the number of parameters of the model's head; 0 if the model does not state it."""
    return model.head_parameters if isinstance(model, ConvNet | Transformer) else 0.0


def has_kernels(scenario: Scenario) -> bool:
    """Return whether kernels were fitted for the scenario's model, software and precision."""
    job = scenario.job
    kernels = job.software.kernels
    is_known = of_tokens(job.model) and kernels is not None and kernels.of_layers
    return is_known and job.train.precision in (*NARROW, *SIXTEEN, *FULL)


def kernels_of(scenario: Scenario) -> Kernels:
    """Return the fitted kernels of a scenario.

    Raises
    ------
    NotModelled
        If no kernels were fitted.
    """
    kernels = scenario.job.software.kernels
    if kernels is None or not kernels.of_layers:
        msg = f"{scenario.name}: nothing is known of the kernels of its software on its device"
        raise NotModelled(msg)
    return kernels


def describe_memory(scenario: Scenario) -> TransformerStep:
    """Return the training step of one device for its memory, without the device's rates.

    A model that is not a transformer is described as `WHOLE`. All samples have the maximum sequence
    length, as memory must suffice for it.
    """
    job = scenario.job
    if not isinstance(job.model, Transformer) or job.train.head_only:
        return TransformerStep(shape=WHOLE, layout=_layout(scenario), work=_common_work(job))
    shape = shape_of(job.model)
    if isinstance(shape.filled, np.ndarray) or shape.filled != 1.0:
        shape = replace(shape, filled=1.0)
    work = work_of(job, job.model)
    return TransformerStep(shape=shape, layout=_layout(scenario), work=work)


@cached(most=16)
def transformer_step(scenario: Scenario) -> TransformerStep:
    """Return the shape, layout, work and device of a job's training step.

    Raises
    ------
    NotModelled
        If the model is not a transformer, or the machine has no accelerator.
    """
    job, gpu = scenario.job, scenario.cluster.trainers.host.gpu
    model = job.model
    if not isinstance(model, Transformer) or gpu is None:
        msg = f"{scenario.name}: only transformers on accelerators can be spread over devices"
        raise NotModelled(msg)
    return TransformerStep(
        shape=shape_of(model),
        layout=_layout(scenario),
        work=work_of(job, model),
        device=_device(scenario.cluster, scenario.calibration, job.train.precision, gpu),
    )


@cached(most=64)
def shape_of(model: Transformer) -> Shape:
    """Return the shape of a model."""
    head = model.head_width or model.hidden / model.heads
    latent, experts = model.latent, model.experts
    return Shape(
        layers=float(model.depth),
        hidden=float(model.hidden),
        heads=float(model.heads),
        kv_heads=float(model.kv_heads),
        ffn=float(model.ffn),
        head_width=head,
        value_width=head if latent is None else float(latent.value_dim),
        vocabulary=float(model.head.features),
        sequence=float(model.sequence),
        gated=float(model.gated),
        bias=float(model.bias),
        dropout=float(model.dropout),
        rotary=float(model.gated or model.rotary),
        tied=float(model.head.tied),
        causal=float(model.causal),
        latent=0.0 if latent is None else 1.0,
        query_rank=0.0 if latent is None else float(latent.query_rank),
        kv_rank=0.0 if latent is None else float(latent.kv_rank),
        rope_width=0.0 if latent is None else float(latent.rope_dim),
        experts=0.0 if experts is None else float(experts.experts),
        top_k=0.0 if experts is None else float(experts.top_k),
        expert_ffn=0.0 if experts is None else float(experts.ffn),
        shared_ffn=0.0 if experts is None else float(experts.shared_ffn),
        dense_share=1.0 if experts is None else experts.dense_layers / model.depth,
        scored=1.0 + model.further_tokens,
        attention_share=model.attention_share,
        scored_share=model.scored / model.sequence,
        filled=model.filled,
    )


def _layout(scenario: Scenario) -> Layout:
    job, degrees = scenario.job, scenario.job.parallelism
    machine = scenario.cluster.trainers.gpus_per_host
    gathered = degrees.sharding in (Sharding.GRADIENTS, Sharding.PARAMETERS)
    again = degrees.reshard
    if again is None:
        again = degrees.sharding is Sharding.PARAMETERS and in_common(degrees.pipeline) == 1
    group = np.inf if degrees.shard_group is None else 1.0 * degrees.shard_group
    shares = where(group > 1.0, 1.0, 0.0)
    return Layout(
        devices=1.0 * scenario.devices,
        domain=float(machine),
        tensor=1.0 * degrees.tensor,
        pipeline=1.0 * degrees.pipeline,
        chunks=1.0 * degrees.interleave,
        context=1.0 * degrees.context,
        expert=float(degrees.expert),
        expert_tensor=float(degrees.expert_tensor),
        replicas=1.0 * scenario.ranks,
        micro_batch=job.train.batch_size,
        micro_batches=job.train.accumulation,
        sequence_parallel=float(degrees.sequence),
        async_tensor=float(degrees.async_tensor),
        scattered_sends=float(degrees.scattered_sends),
        async_sends=float(degrees.async_sends),
        overlapped_gradients=float(job.train.overlap_communication),
        overlapped_experts=float(degrees.overlap_experts),
        deduplicated=float(degrees.deduplicated_dispatch),
        padded_experts=float(degrees.padded_experts),
        imbalance=degrees.expert_imbalance,
        unbalanced_context=float(not degrees.balanced_context),
        gathered_context=float(degrees.context_exchange is ContextExchange.ALL_GATHER),
        sharded=gathered * shares,
        again=float(again),
        sharded_optimizer=(degrees.sharding is Sharding.OPTIMIZER) * shares,
        shard_group=where(shares > 0, group, np.inf),
        offloaded=float(degrees.offload_optimizer),
        all_forward=float(degrees.schedule is Schedule.ALL_FORWARD),
        by_compute=float(degrees.partition is Partition.COMPUTE),
        scattered_sums=float(degrees.reduce_scatter),
    )


def gradient_precision(job: Job) -> Precision:
    """Return the precision in which gradients are exchanged."""
    given = job.train.gradient_precision
    full = job.train.mixed_precision or job.train.precision in FULL
    return given or (Precision.FP32 if full else Precision.BF16)


def accumulation_precision(job: Job) -> Precision:
    """Return the precision in which gradients of micro-batches are accumulated."""
    return job.train.accumulation_precision or gradient_precision(job)


def _common_work(job: Job) -> Work:
    """Return the number formats of a job, which do not depend on its model."""
    train, gathered = job.train, job.parallelism.gather_precision
    element = FULL_PRECISION if train.precision in FULL else _HALF_WIDTH
    low = train.precision in NARROW
    work = Work(
        element=element,
        low=float(low),
        width=_LOW_WIDTH if low else element,
        gradient_bytes=gradient_precision(job).bytes_per_element,
        gather_bytes=_gathered_in(train, element, gathered),
        optimizer_bytes=state_bytes(train.optimizer, FULL_PRECISION),
        wide_gradients=float(accumulation_precision(job) is Precision.FP32),
    )
    return _learning(work, train)


def _gathered_in(train: Train, element: Bytes, stated: Precision | None) -> Bytes:
    """Return the size of an element of gathered parameters [B].

    Frozen parameters are gathered in their storage format.
    """
    if stated is not None:
        return max(stated.bytes_per_element, 1.0)
    if train.adapters is None or train.frozen_precision is None:
        return element
    return stored_width(train.frozen_precision)


def _learning(work: Work, train: Train) -> Work:
    """Return the work with trainable adapters and the storage format of frozen weights."""
    adapters, stored, element = train.adapters, train.frozen_precision, work.element
    width = element if stored is None else stored_width(stored)
    if adapters is None:
        return replace(work, learned=0.0, frozen_bytes=width) if train.head_only else work
    order = list(Targets).index(adapters.targets)
    return replace(
        work,
        learned=0.0,
        rank=adapters.rank,
        adapted_keys=float(order >= list(Targets).index(Targets.QUERIES_KEYS_VALUES)),
        adapted_output=float(order >= list(Targets).index(Targets.ATTENTION)),
        adapted_mlp=float(adapters.targets is Targets.LINEAR),
        joined=float(adapters.joined),
        frozen_bytes=width,
        widened=where(width < (_LOW_WIDTH if train.precision in NARROW else element), 1.0, 0.0),
    )


def stored_width(precision: Precision) -> Bytes:
    """Return the size of a frozen weight as stored, quantization scales included [B]."""
    scales = _SCALES if precision is Precision.FP4 else 0.0
    return precision.bytes_per_element + scales


def work_of(job: Job, model: Transformer) -> Work:
    """Return number formats, recomputation and kernels of a job that trains a transformer."""
    train, software, degrees = job.train, job.software, job.parallelism
    many = train.batch_size * model.heads / degrees.tensor
    element = FULL_PRECISION if train.precision in FULL else _HALF_WIDTH
    short = model.sequence <= _SOFTMAX_LONGEST and element == _HALF_WIDTH
    fits = (many % _SOFTMAX_GROUP == 0) & short
    own = 0.0 if software.kernels is None else software.kernels.kernel.softmax
    experts = model.experts
    waits = not degrees.deduplicated_dispatch and software.cuda_graphs is not CudaGraphs.FULL
    return replace(
        _common_work(job),
        recomputation=recomputation(train, fused_attention=software.fused_attention),
        fused_attention=float(software.fused_attention),
        fused_softmax=where(fits, own, 0.0),
        padded_vocabulary=float(software.padded_vocabulary),
        waits=float(experts is not None and waits),
        eager_activation=float(
            experts is not None and experts.clamped and not software.fused_experts
        ),
        fused_experts=float(software.fused_experts),
        widening_bytes=widening_bytes(train, element, compiled=software.compile),
    )


def widening_bytes(train: Train, element: Bytes, *, compiled: bool) -> Bytes:
    """Return the memory traffic of converting a frozen weight to `element` bytes in a pass [B].

    A compiled model, and one byte a weight: the weight as stored is read, as computed is written.
    """
    stored = train.frozen_precision
    if stored is Precision.FP4 and not compiled:
        return UNPACKING_BYTES
    return (element if stored is None else stored_width(stored)) + element


def recomputation(train: Train, *, fused_attention: bool) -> Recomputation:
    """Return the shares of the forward pass that the job's backward pass repeats."""
    full = train.recompute is Recompute.FULL
    operators = train.recompute is Recompute.OPERATORS
    scores = train.recompute is Recompute.SELECTIVE and not fused_attention
    small = _SMALL_MODULES if train.recompute is Recompute.MODULES else 0.0
    return Recomputation(
        products=1.0 if full else _EVERY_SECOND * operators,
        attention=float(full or scores),
        passes=1.0 if full or operators else small,
        exchange=float(full or operators),
        launches=float(full or operators),
        layers=train.recompute_share,
    )


@cached(most=64)
def _device(cluster: Cluster, calibration: Calibration, precision: Precision, gpu: Gpu) -> Device:
    host, used = cluster.trainers.host, cluster.trainers.gpus_per_host
    factor = calibration.value
    link = host.peer_link or host.host_link
    return Device(
        peak16=peak_of_values(gpu, precision) * factor("compute"),
        peak=gpu.peak[gpu.fallback.get(precision, precision)] * factor("compute"),
        bandwidth=gpu.memory_bandwidth * factor("device_memory"),
        link=np.inf if link is None else link.peak * factor("collective"),
        units=float(gpu.multiprocessors or 1),
        network=_network(host, used) * factor("collective"),
        shared_card=float(host.network is not None and host.network.cards == 1 < used),
        host_link=_copy_rate(host, used),
        host_memory=host.memory_bandwidth or np.inf,
        reduce=in_machine(Collective.ALL_REDUCE, host, factor("collective")),
        gather=in_machine(Collective.ALL_GATHER, host, factor("collective")),
        scatter=in_machine(Collective.REDUCE_SCATTER, host, factor("collective")),
        all_to_all=in_machine(Collective.ALL_TO_ALL, host, factor("collective")),
    )


def peak_of_values(gpu: Gpu, precision: Precision) -> FlopsPerSecond:
    """Return the device's peak in a precision [FLOP/s]; of 16 bit if it is narrower.

    A device without bf16 computes values of narrower formats in fp16, or else in fp32.
    """
    narrow = precision.bytes_per_element < _HALF_WIDTH
    tried = (*SIXTEEN, Precision.FP32) if narrow else (precision,)
    formats = (gpu.fallback.get(each, each) for each in tried)
    return next(gpu.peak[each] for each in formats if each in gpu.peak)


def _copy_rate(host: Host, used: int) -> BytesPerSecond | Real:
    """Return a device's rate to its host if all used devices copy at once [B/s].

    Devices below a PCIe switch share its uplink.
    """
    if host.host_link is None or host.gpu is None or host.gpu.unified_memory:
        return np.inf
    below = [(sum(gpu < used for gpu in each.gpus), each.uplink.rate) for each in host.switches]
    shares = [rate / count for count, rate in below if count]
    return min([host.host_link.rate, *shares])


def _network(host: Host, used: int) -> BytesPerSecond | Real:
    """Return the network rate of a machine that its accelerators in use can reach [B/s].

    If there are as many network cards as accelerators, each accelerator uses its own.
    """
    if host.network is None:
        return np.inf
    own = min(host.network.cards, host.gpu_count)
    return host.network.bandwidth * min(1.0, used / max(1, own))
