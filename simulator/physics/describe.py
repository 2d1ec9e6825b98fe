"""From a scenario to what one of its devices computes and sends."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np

from simulator.equations.memory import FULL_PRECISION, state_bytes
from simulator.errors import NotModelled
from simulator.memo import Memo
from simulator.physics.adapters import learned_parameters
from simulator.physics.collectives import in_machine
from simulator.physics.description import (
    WHOLE,
    Description,
    Device,
    Layout,
    Redone,
    Shape,
    Work,
)
from simulator.schema.hardware.gpu import Gpu
from simulator.schema.hardware.host import Host
from simulator.schema.hardware.link import Collective
from simulator.schema.precision import Precision
from simulator.schema.scenario import Job, Scenario
from simulator.schema.workload.kernels import Kernels
from simulator.schema.workload.models import Model
from simulator.schema.workload.models.convnet import ConvNet
from simulator.schema.workload.models.transformer import Transformer
from simulator.schema.workload.parallelism import Partition, Schedule, Sharding
from simulator.schema.workload.software import CudaGraphs
from simulator.schema.workload.train import Recompute, Targets, Train
from simulator.units import Bytes, BytesPerSecond, FlopsPerSecond, Real, in_common, where

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
"""Bytes of scales beside a weight in 4 bit, themselves in 8 bit: 0.127 bit a parameter (Dettmers
et al., "QLoRA", section 3, https://arxiv.org/abs/2305.14314)."""


def of_tokens(model: Model | None) -> bool:
    """Whether a model is a stack of transformer layers over tokens, a decoder or an encoder."""
    return isinstance(model, Transformer) and model.embedding.tokens > 0


def is_classifier(model: Model | None) -> bool:
    """Whether a model of images ends in a layer that gives scores of classes."""
    known = isinstance(model, ConvNet | Transformer) and not of_tokens(model)
    return known and learning_head(model) > 0.0


def learning_head(model: Model | None) -> float:
    """Parameters of the layer that gives scores, where the model says which they are."""
    return model.head_parameters if isinstance(model, ConvNet | Transformer) else 0.0


def covers(scenario: Scenario) -> bool:
    """Whether there are figures for the scenario's model, software, precision and device."""
    job = scenario.job
    found = job.software.kernels
    known = of_tokens(job.model) and found is not None and found.of_layers
    return known and job.train.precision in (*NARROW, *SIXTEEN, *FULL)


def kernels_of(scenario: Scenario) -> Kernels:
    """The fitted figures of a scenario that is covered.

    Raises
    ------
    NotModelled
        If there are none.
    """
    found = scenario.job.software.kernels
    if found is None or not found.of_layers:
        msg = f"{scenario.name}: nothing is known of the kernels of its software on its device"
        raise NotModelled(msg)
    return found


def describe(scenario: Scenario) -> Description:
    """What one device of a job computes and sends in a step.

    Parameters
    ----------
    scenario : Scenario
        Its job trains a transformer over tokens; batch, accumulation and rates may be arrays of
        candidates.

    Returns
    -------
    Description
        Factors of calibration are in the device's rates.

    Raises
    ------
    NotModelled
        If the model is no transformer or there is no accelerator.
    """
    return _described.of((scenario,), lambda: _description(scenario))


def describe_memory(scenario: Scenario) -> Description:
    """What one device of a job holds in a step of training; its rates are left out.

    A model that is no transformer is described as a `WHOLE`. Samples are as long as the longest,
    which memory has to hold.
    """
    job = scenario.job
    if not isinstance(job.model, Transformer) or job.train.head_only:
        return Description(shape=WHOLE, layout=_layout(scenario), work=_common_work(job))
    model, work = job.model, _work(job, job.model)
    shape = _shapes.of((model,), lambda: shape_of(model))
    return Description(shape=_longest(shape), layout=_layout(scenario), work=work)


def _longest(shape: Shape) -> Shape:
    """The same where every position is computed."""
    filled = shape.filled
    whole = not isinstance(filled, np.ndarray) and filled == 1.0
    return shape if whole else replace(shape, filled=1.0)


_described: Final[Memo[Description]] = Memo(16)
"""Of the scenarios asked about last: time, memory and each stage ask in turn."""
_shapes: Final[Memo[Shape]] = Memo(64)
_devices: Final[Memo[Device]] = Memo(64)


def _description(scenario: Scenario) -> Description:
    job, gpu = scenario.job, scenario.cluster.trainers.host.gpu
    model = job.model
    if not isinstance(model, Transformer) or gpu is None:
        msg = f"{scenario.name}: only transformers on accelerators can be spread over devices"
        raise NotModelled(msg)
    return Description(
        shape=_shapes.of((model,), lambda: shape_of(model)),
        layout=_layout(scenario),
        work=_work(job, model),
        device=_devices.of(
            (scenario.cluster, scenario.calibration),
            lambda: _device(scenario, gpu),
            job.train.precision,
        ),
    )


def shape_of(model: Transformer) -> Shape:
    """Widths and shares of a model, as its layers are computed."""
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
    """What gradients are exchanged in."""
    given = job.train.gradient_precision
    full = job.train.mixed or job.train.precision in FULL
    return given or (Precision.FP32 if full else Precision.BF16)


def summed_in(job: Job) -> Precision:
    """What gradients of several micro-batches are added up in."""
    return job.train.accumulation_precision or gradient_precision(job)


def _common_work(job: Job) -> Work:
    """What of the work does not depend on the model's layers: widths of numbers."""
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
        wide_gradients=float(summed_in(job) is Precision.FP32),
    )
    return _learning(work, train)


def _gathered_in(train: Train, element: Bytes, stated: Precision | None) -> Bytes:
    """Width that sharded parameters are gathered in: frozen ones as they are stored [B]."""
    if stated is not None:
        return max(stated.bytes_per_element, 1.0)
    if train.adapters is None or train.frozen_precision is None:
        return element
    return stored_width(train.frozen_precision)


def _learning(work: Work, train: Train) -> Work:
    """The same with what learns, and how what is frozen is stored."""
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


def learned_in_all(job: Job) -> float:
    """Parameters of a whole model that learn: all of them, or those of its head or adapters."""
    model = job.model
    if job.train.head_only:
        return learning_head(model)
    if model is None or job.train.adapters is None or not isinstance(model, Transformer):
        return 0.0 if model is None else model.parameters
    one = Layout(
        **dict.fromkeys(("devices", "domain", "tensor", "pipeline", "chunks"), 1.0),
        **dict.fromkeys(("context", "expert", "replicas", "micro_batch", "micro_batches"), 1.0),
    )
    alone = Description(shape=shape_of(model), layout=one, work=_work(job, model))
    held, _ = learned_parameters(alone)
    return float(held * alone.shape.layers)


def stored_width(precision: Precision) -> Bytes:
    """Bytes that a frozen weight of a layer is stored in, with its share of scales [B]."""
    scales = _SCALES if precision is Precision.FP4 else 0.0
    return precision.bytes_per_element + scales


def _work(job: Job, model: Transformer) -> Work:
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
        redone=redone(train, fused_attention=software.fused_attention),
        fused_attention=float(software.fused_attention),
        fused_softmax=where(fits, own, 0.0),
        padded_vocabulary=float(software.padded_vocabulary),
        waits=float(experts is not None and waits),
        eager_activation=float(
            experts is not None and experts.clamped and not software.fused_experts
        ),
        fused_experts=float(software.fused_experts),
    )


def redone(train: Train, *, fused_attention: bool) -> Redone:
    """What the backward pass of a job repeats of its forward pass."""
    full = train.recompute is Recompute.FULL
    operators = train.recompute is Recompute.OPERATORS
    scores = train.recompute is Recompute.SELECTIVE and not fused_attention
    small = _SMALL_MODULES if train.recompute is Recompute.MODULES else 0.0
    return Redone(
        products=1.0 if full else _EVERY_SECOND * operators,
        attention=float(full or scores),
        passes=1.0 if full or operators else small,
        exchange=float(full or operators),
        launches=float(full or operators),
        layers=train.recompute_share,
    )


def _device(scenario: Scenario, gpu: Gpu) -> Device:
    host, precision = scenario.cluster.trainers.host, scenario.job.train.precision
    used, factor = scenario.cluster.trainers.gpus_per_host, scenario.calibration.value
    link = host.peer_link or host.host_link
    return Device(
        peak16=peak_of_values(gpu, precision) * factor("compute"),
        peak=gpu.peak[gpu.fallback.get(precision, precision)] * factor("compute"),
        bandwidth=gpu.memory_bandwidth * factor("device_memory"),
        link=np.inf if link is None else link.peak * factor("collective"),
        units=float(gpu.multiprocessors or 1),
        network=_network(host, used) * factor("collective"),
        host_link=_copy_rate(host, used),
        host_memory=host.memory_bandwidth or np.inf,
        reduce=in_machine(Collective.ALL_REDUCE, host, factor("collective")),
        gather=in_machine(Collective.ALL_GATHER, host, factor("collective")),
        scatter=in_machine(Collective.REDUCE_SCATTER, host, factor("collective")),
        all_to_all=in_machine(Collective.ALL_TO_ALL, host, factor("collective")),
    )


def peak_of_values(gpu: Gpu, precision: Precision) -> FlopsPerSecond:
    """The device's peak in the format that values are stored in: 16 bit below that [FLOP/s]."""
    wide = precision if precision in (*SIXTEEN, *FULL) else Precision.BF16
    return gpu.peak[gpu.fallback.get(wide, wide)]


def _copy_rate(host: Host, used: int) -> BytesPerSecond | Real:
    """Rate of a device to its host while all in use copy [B/s]; switches share their uplink."""
    if host.host_link is None or host.gpu is None or host.gpu.unified_memory:
        return np.inf
    below = [(sum(gpu < used for gpu in each.gpus), each.uplink.rate) for each in host.switches]
    shares = [rate / count for count, rate in below if count]
    return min([host.host_link.rate, *shares])


def _network(host: Host, used: int) -> BytesPerSecond | Real:
    """Rate of the machine's network that the accelerators in use can reach [B/s].

    Where there are as many cards as accelerators, each has its own.
    """
    if host.network is None:
        return np.inf
    own = min(host.network.cards, host.gpu_count)
    return host.network.bandwidth * min(1.0, used / max(1, own))
