"""Device and host memory of a model that is spread over devices: what a rank holds at a time."""

from __future__ import annotations

from typing import Final

from simulator.units import Real, at_least, at_most, where

HALF_PRECISION: Final = 2.0
"""Bytes of a 16-bit element [B]."""
_OFFLOADED_STATE: Final = 16.0
"""Bytes of a parameter in the host: fp32 gradient, weight and two moments [B]."""
_OFFLOADED_GRADIENTS: Final = 4.0
_HOST_BUFFERS: Final = 1.5


def micro_batches_held(
    micro_batches: Real, stage: Real, stages: Real, chunks: Real, all_forward: Real
) -> Real:
    """Micro-batches whose activations a stage of a pipeline holds at its fullest.

    Parameters
    ----------
    micro_batches : float or array
        Micro-batches of a step [1].
    stage : float or array
        Place in the pipeline, the first is 0 [1].
    stages : float or array
        Stages [1].
    chunks : float or array
        Chunks of layers on each device [1].
    all_forward : float or array
        1 where all forward passes come first (GPipe), else 0 [1].

    Returns
    -------
    float or array
        Whole stages' worth of micro-batches [1].

    Notes
    -----
    1F1B starts ``stages - stage`` passes before its first backward pass; with chunks
    ``(chunks - 1) stages + 2 (stages - stage) - 1`` passes of a chunk, so divided by ``chunks``.
    Never more than there are.

    References
    ----------
    .. [1] Narayanan et al., "Efficient Large-Scale Language Model Training on GPU Clusters Using
       Megatron-LM", 2021, section 2.2, https://arxiv.org/abs/2104.04473
    .. [2] NVIDIA/Megatron-LM megatron/core/pipeline_parallel/schedules.py @d98e8a6, 2026-08.

    Examples
    --------
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


def never_together(gradients: Real, activations: Real, chunks: Real) -> Real:
    """What of a device's gradients and activations does not exist at the same time.

    Parameters
    ----------
    gradients : float or array
        Gradients of all chunks of layers on a device, once there [B].
    activations : float or array
        Activations of all chunks [B].
    chunks : float or array
        Chunks that finish their backward passes one after the other [1].

    Returns
    -------
    float or array
        What to take off the sum of both [B].

    Notes
    -----
    When k chunks have gradients, the activations of k - 1 are gone. The sum is linear in k, so the
    most is ``max(gradients / chunks + activations, gradients + activations / chunks)``, which is
    ``min(gradients, activations) (1 - 1 / chunks)`` less than all of both.

    References
    ----------
    .. [1] Narayanan et al., "Efficient Large-Scale Language Model Training on GPU Clusters Using
       Megatron-LM", 2021, figure 4, https://arxiv.org/abs/2104.04473

    Examples
    --------
    >>> float(never_together(24e9, 16e9, 2.0)), float(never_together(24e9, 16e9, 1.0))
    (8000000000.0, 0.0)
    """
    return at_most(gradients, activations) * (1.0 - 1.0 / chunks)


def offloaded_bytes(parameters: Real, machine: Real, devices: Real, partitioned: Real) -> Real:
    """Host memory of one machine for an optimizer that runs there.

    Parameters
    ----------
    parameters : float or array
        Parameters of the model [1].
    machine : float or array
        Devices of a machine [1].
    devices : float or array
        Devices of the job [1].
    partitioned : float or array
        1 where parameters are sharded too (ZeRO-3), else 0 (ZeRO-1 and 2) [1].

    Returns
    -------
    float or array
        Needed on each machine, buffers included [B].

    Notes
    -----
    ``1.5 parameters 16 machine / devices`` for ZeRO-3. Without sharded parameters
    ``1.5 parameters max(4 machine, 16)`` as documented for one machine; on several the 16 bytes
    are shared by all devices: ``1.5 parameters max(4 machine, 16 machine / devices)``.

    References
    ----------
    .. [1] deepspeedai/DeepSpeed@38327e0 docs/code-docs/source/memory.rst, 2025-02 (estimates with
       a factor of 1.5 for additional buffers).

    Examples
    --------
    Ten billion parameters on one device, then eight billion sharded over one machine of eight:

    >>> float(offloaded_bytes(10e9, 1.0, 1.0, 0.0)), float(offloaded_bytes(8e9, 8.0, 8.0, 1.0))
    (240000000000.0, 192000000000.0)
    """
    part = _OFFLOADED_STATE * machine / devices
    whole = at_least(_OFFLOADED_GRADIENTS * machine, part)
    return _HOST_BUFFERS * parameters * where(partitioned > 0.0, part, whole)


def recomputed_layer_bytes(whole: Real, kept: Real) -> Real:
    """What a layer computes again in its backward pass, and holds meanwhile.

    Parameters
    ----------
    whole : float or array
        What a layer keeps where nothing is recomputed [B].
    kept : float or array
        What it keeps [B].

    Returns
    -------
    float or array
        Bytes that exist for one layer at a time [B].

    Notes
    -----
    ``max(whole - kept, 0)``.

    References
    ----------
    .. [1] Chen et al., "Training Deep Nets with Sublinear Memory Cost", 2016,
       https://arxiv.org/abs/1604.06174

    Examples
    --------
    >>> float(recomputed_layer_bytes(34e6, 2e6))
    32000000.0
    """
    return at_least(whole - kept, 0.0)
