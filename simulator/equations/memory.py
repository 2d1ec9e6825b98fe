"""Memory of a training job on devices and in host RAM, whole or sharded over devices."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from simulator.units import (
    Bytes,
    Real,
    at_least,
    at_most,
    where,
)

FULL_PRECISION: Final = 4.0
"""Bytes of an fp32 element [B]."""
STATE_ELEMENTS: Final[Mapping[str, float]] = {
    "none": 0.0,
    "sgd": 0.0,
    "momentum": 1.0,
    "adam": 2.0,
    "adam-8bit": 2.0,
    "adafactor": 0.0,
}
"""Elements an optimizer keeps per parameter, by name."""
_QUANTISED_ELEMENT: Final = 1.0
HALF_PRECISION: Final = 2.0
"""Bytes of a 16-bit element [B]."""
_OFFLOADED_STATE: Final = 16.0
"""Bytes of a parameter in the host: fp32 gradient, weight and two moments [B]."""
_OFFLOADED_GRADIENTS: Final = 4.0
_HOST_BUFFERS: Final = 1.5


def tensor_bytes(elements: Real, element_bytes: Bytes | Real) -> Bytes | Real:
    """Return the size of a tensor.

    ``elements * element_bytes``.

    Source: Rajbhandari et al., "ZeRO: Memory Optimizations Toward Training Trillion Parameter
    Models", 2020, section 3.1, https://arxiv.org/abs/1910.02054

    330 million parameters in fp32 are the 1.32 GB of the published BERT-large table:

    >>> tensor_bytes(330e6, 4.0)
    1320000000.0
    """
    return elements * element_bytes


def state_bytes(optimizer: str, element_bytes: Bytes | Real) -> Bytes | Real:
    """Return the optimizer state per parameter.

    ``STATE_ELEMENTS[optimizer] * element_bytes``: momentum keeps one element, Adam two, 8-bit Adam
    two of one byte. Adafactor's factored second moment is a row and a column per matrix: nothing
    compared with the rest, as measured (BERT-large on a V100, 2,654 MiB less than AdamW,
    that is 8.3 of its 8 bytes), though its documentation says 4. `optimizer` is a key of
    `STATE_ELEMENTS`; `element_bytes` is 4 with fp32 weights and 2 where all is 16 bits wide.

    Source: Kingma, Ba, "Adam: A Method for Stochastic Optimization", 2015,
    https://arxiv.org/abs/1412.6980
    Source: Dettmers et al., "8-bit Optimizers via Block-wise Quantization", 2022,
    https://arxiv.org/abs/2110.02861
    Source: huggingface/transformers@0016acf docs/source/en/perf_train_gpu_one.mdx, 2022.

    >>> state_bytes("adam", 4.0), state_bytes("adam-8bit", 4.0), state_bytes("momentum", 4.0)
    (8.0, 2.0, 4.0)
    """
    width = _QUANTISED_ELEMENT if optimizer == "adam-8bit" else element_bytes
    return STATE_ELEMENTS[optimizer] * width


def fragmentation_bytes(activations: Bytes | Real, share: Real) -> Bytes | Real:
    """Return the memory that the allocator holds but cannot use.

    ``activations * share``. Only short-lived tensors of changing size fragment; states are laid out
    once.

    Source: Guo et al., "GMLake: Efficient and Transparent GPU Memory Defragmentation for
    Large-scale DNN Training with Virtual Memory Stitching", 2024, https://arxiv.org/abs/2401.08156
    (15% on average over eight language models, at most 33%).

    >>> fragmentation_bytes(8e9, 0.25)
    2000000000.0
    """
    return activations * share


def checkpoint_share(  # noqa: PLR0913 - two kinds of state, each with its holders
    *,
    weights: Bytes | Real,
    weight_holders: Real,
    moments: Bytes | Real,
    moment_holders: Real,
    devices: Real,
    copies: Real,
) -> Bytes | Real:
    """Return the bytes that some devices write of a checkpoint that is written once.

    ``copies * (weights * min(weight_holders, devices) / weight_holders + moments *
    min(moment_holders, devices) / moment_holders)``. `weight_holders` and `moment_holders` are the
    devices that hold different parts of weights and of optimizer state, `devices` those whose share
    is returned, `copies` the jobs that write a checkpoint each.

    Source: Rajbhandari et al., "ZeRO: Memory Optimizations Toward Training Trillion Parameter
    Models", 2020, section 5, https://arxiv.org/abs/1910.02054.

    >>> float(checkpoint_share(
    ...     weights=4e9, weight_holders=1.0, moments=8e9, moment_holders=8.0, devices=1.0,
    ...     copies=1.0))
    5000000000.0
    """
    of_weights = weights * np.minimum(weight_holders, devices) / weight_holders
    of_moments = moments * np.minimum(moment_holders, devices) / moment_holders
    return copies * (of_weights + of_moments)


def kept_activations(  # noqa: PLR0913 - the parts of what is kept
    *,
    batches: Real,
    layers: Real,
    per_layer: Bytes | Real,
    ends: Bytes | Real,
    never_together: Bytes | Real = 0.0,
    of_loss: Bytes | Real = 0.0,
) -> Bytes | Real:
    """Return the activations that a stage keeps for its backward passes.

    ``batches * (layers * per_layer + ends) - never_together + of_loss``. `ends` is what embedding
    and head keep of a micro-batch, `never_together` the part that is gone when the rest is at its
    fullest, `of_loss` the scores that the loss keeps.

    Source: Korthikanti et al., "Reducing Activation Recomputation in Large Transformer Models",
    2022, sections 4 and 5, https://arxiv.org/abs/2205.05198.

    >>> kept_activations(batches=2.0, layers=12.0, per_layer=1e9, ends=5e8)
    25000000000.0
    """
    return batches * (layers * per_layer + ends) - never_together + of_loss


def batches_in_flight(prefetch: Real, workers: Real) -> Real:
    """Return the most batches of one rank in host memory at once.

    ``prefetch * workers + 1``: those asked for and not yet taken, and the one in use. `prefetch` is
    per worker.

    Source: PyTorch 2.13, torch/utils/data/dataloader.py (`_tasks_outstanding` stays at or below
    prefetch_factor * num_workers), https://github.com/pytorch/pytorch

    >>> batches_in_flight(2, 4), batches_in_flight(2, 0)
    (9, 1)
    """
    return prefetch * workers + 1


def in_flight_bytes(batches: Real, batch_bytes: Bytes | Real, ranks: Real) -> Bytes | Real:
    """Return the host memory (/dev/shm with shared memory) of all batches in flight on a machine.

    ``batches * batch_bytes * ranks``.

    Source: PyTorch documentation, multiprocessing best practices (tensors of a worker pass through
    shared memory), https://pytorch.org/docs/stable/notes/multiprocessing.html

    9 batches of 38.5 MB on each of 8 ranks:

    >>> round(in_flight_bytes(9, 38.5e6, 8) / 1e9, 3)
    2.772
    """
    return batches * batch_bytes * ranks


def pinned_block_bytes(size: Bytes | Real) -> Bytes | Real:
    """Return the page-locked memory that one tensor takes.

    ``2**ceil(log2(size))``: the caching host allocator rounds up to a power of two and keeps the
    block.

    Source: PyTorch 2.15, ATen/core/CachingHostAllocator.h, https://github.com/pytorch/pytorch
    (sgl-project/sglang issue 36562: 20.4 GiB became 32 GiB).

    20.4 GiB, in GiB:

    >>> float(pinned_block_bytes(20.4 * 2**30)) / 2**30
    32.0
    """
    block: Real = np.where(
        np.asarray(size) > 0.0, 2.0 ** np.ceil(np.log2(np.maximum(size, 1.0))), 0.0
    )[()]
    return block


def workers_bytes(ranks: Real, workers: Real, worker_memory: Bytes | Real) -> Bytes | Real:
    """Return the private memory of all data-loader workers of a machine.

    ``ranks * workers * worker_memory``. A forked worker shares pages that are not written; counting
    references writes, so Python objects of the data set become private over time. `worker_memory`
    counts pages that a worker does not share.

    Source: ppwwyyxx/RAM-multiprocess-dataloader@795868a, 2023 (COCO as Python dicts: 9-14 MB become
    1.8 GB a worker; as one numpy buffer 4 MB),
    https://github.com/ppwwyyxx/RAM-multiprocess-dataloader

    >>> workers_bytes(8, 12, 40e6)
    3840000000.0
    """
    return ranks * workers * worker_memory


def rule_of_thumb(
    gpu_memory: Bytes | Real, operating_system: Bytes | Real, application: Bytes | Real
) -> Bytes | Real:
    """Return the host RAM that a common rule of thumb recommends.

    ``gpu_memory + operating_system + application``; with less, paging is likely. The memory meant
    is that of the devices (the source once says system memory). `gpu_memory` is that of all GPUs of
    the machine.

    Source: "A Hitchhiker's Guide to ML Training Infrastructure", SEI Blog, Carnegie Mellon
    University, 2022.

    Two GPUs of 40 GB, 2 GB and 3 GB of other memory:

    >>> rule_of_thumb(2 * 40e9, 2e9, 3e9)
    85000000000.0
    """
    return gpu_memory + operating_system + application


def memory_left(capacity: Bytes | Real, used: Bytes | Real) -> Bytes | Real:
    """Return the memory that is left for the page cache.

    ``max(0, capacity - used)``: Linux gives all free memory to the page cache.

    Source: Linux kernel documentation, "Concepts overview", section Page cache,
    https://docs.kernel.org/admin-guide/mm/concepts.html#page-cache

    >>> float(memory_left(64e9, 24e9)), float(memory_left(16e9, 24e9))
    (40000000000.0, 0.0)
    """
    left: Real = np.maximum(0.0, capacity - used)
    return left


def micro_batches_held(
    micro_batches: Real, stage: Real, stages: Real, chunks: Real, all_forward: Real
) -> Real:
    """Return the most micro-batches whose activations a pipeline stage holds at once.

    1F1B starts ``stages - stage`` passes before its first backward pass; with chunks ``(chunks - 1)
    stages + 2 (stages - stage) - 1`` passes of a chunk, so divided by ``chunks``. Never more than
    there are. `stage` counts from 0; `all_forward` is 1 where all forward passes come first
    (GPipe), else 0. The result is in whole stages' activations.

    Source: Narayanan et al., "Efficient Large-Scale Language Model Training on GPU Clusters Using
    Megatron-LM", 2021, section 2.2, https://arxiv.org/abs/2104.04473
    Source: NVIDIA/Megatron-LM megatron/core/pipeline_parallel/schedules.py @d98e8a6, 2026-08.

    First and last of four stages, then the first with two chunks on each device:

    >>> float(micro_batches_held(16, 0, 4, 1, 0)), float(micro_batches_held(16, 3, 4, 1, 0))
    (4.0, 1.0)
    >>> float(micro_batches_held(16, 0, 4, 2, 0))
    5.5
    """
    left = stages - stage
    interleaved = ((chunks - 1.0) * stages + 2.0 * left - 1.0) / chunks
    started = where(chunks > 1.0, interleaved, left)
    held: Real = where(all_forward > 0.0, micro_batches, started)
    return at_most(micro_batches, held)


def never_together(
    gradients: Bytes | Real, activations: Bytes | Real, chunks: Real
) -> Bytes | Real:
    """Return the part of gradients plus activations that never exists at the same time.

    When k chunks have gradients, the activations of k - 1 are gone. The sum is linear in k, so the
    most is ``max(gradients / chunks + activations, gradients + activations / chunks)``, which is
    ``min(gradients, activations) (1 - 1 / chunks)`` less than all of both. Both are of all `chunks`
    of a device, which finish their backward passes one after the other.

    Source: Narayanan et al., "Efficient Large-Scale Language Model Training on GPU Clusters Using
    Megatron-LM", 2021, figure 4, https://arxiv.org/abs/2104.04473

    >>> float(never_together(24e9, 16e9, 2.0)), float(never_together(24e9, 16e9, 1.0))
    (8000000000.0, 0.0)
    """
    return at_most(gradients, activations) * (1.0 - 1.0 / chunks)


def offloaded_bytes(
    parameters: Real, machine: Real, devices: Real, partitioned: Real
) -> Bytes | Real:
    """Return the host memory of one machine for an optimizer that runs there, buffers included.

    ``1.5 parameters 16 machine / devices`` for ZeRO-3. Without sharded parameters ``1.5 parameters
    max(4 machine, 16)`` as documented for one machine; on several the 16 bytes are shared by all
    devices: ``1.5 parameters max(4 machine, 16 machine / devices)``. `machine` and `devices` are
    the devices of a machine and of the job; `partitioned` is 1 where parameters are sharded too
    (ZeRO-3), else 0.

    Source: deepspeedai/DeepSpeed@38327e0 docs/code-docs/source/memory.rst, 2025-02 (estimates with
    a factor of 1.5 for additional buffers).

    Ten billion parameters on one device, then eight billion sharded over one machine of eight:

    >>> float(offloaded_bytes(10e9, 1.0, 1.0, 0.0)), float(offloaded_bytes(8e9, 8.0, 8.0, 1.0))
    (240000000000.0, 192000000000.0)
    """
    part = _OFFLOADED_STATE * machine / devices
    whole = at_least(_OFFLOADED_GRADIENTS * machine, part)
    return _HOST_BUFFERS * parameters * where(partitioned > 0.0, part, whole)


def recomputed_layer_bytes(whole: Bytes | Real, kept: Bytes | Real) -> Bytes | Real:
    """Return the activations that one layer recomputes and holds in its backward pass.

    ``max(whole - kept, 0)``. `whole` is what a layer keeps without recomputation.

    Source: Chen et al., "Training Deep Nets with Sublinear Memory Cost", 2016,
    https://arxiv.org/abs/1604.06174

    >>> float(recomputed_layer_bytes(34e6, 2e6))
    32000000.0
    """
    return at_least(whole - kept, 0.0)
