"""Device memory of a training job: weights, gradients, optimizer state, activations, buffers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from simulator.units import Real

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


def tensor_bytes(elements: Real, element_bytes: Real) -> Real:
    """Size of a tensor: weights, gradients, an input batch.

    Parameters
    ----------
    elements : float or array
        How many [1].
    element_bytes : float or array
        Size of each [B].

    Returns
    -------
    float or array
        Size [B].

    Notes
    -----
    ``elements * element_bytes``.

    References
    ----------
    .. [1] Rajbhandari et al., "ZeRO: Memory Optimizations Toward Training Trillion Parameter
       Models", 2020, section 3.1, https://arxiv.org/abs/1910.02054

    Examples
    --------
    330 million parameters in fp32 are the 1.32 GB of the published BERT-large table:

    >>> tensor_bytes(330e6, 4.0)
    1320000000.0
    """
    return elements * element_bytes


def state_bytes(optimizer: str, element_bytes: Real) -> Real:
    """Optimizer state per parameter.

    Parameters
    ----------
    optimizer : str
        A key of `STATE_ELEMENTS` [1].
    element_bytes : float or array
        Size of a state element [B]: 4 beside fp32 weights, 2 where all is 16 bits wide. An 8-bit
        optimizer ignores it.

    Returns
    -------
    float or array
        State per parameter [B].

    Notes
    -----
    ``STATE_ELEMENTS[optimizer] * element_bytes``: momentum keeps one element, Adam two, 8-bit Adam
    two of one byte. Adafactor's factored second
    moment is a row and a column per matrix: nothing beside the rest, and that is what is measured
    (BERT-large on a V100, 2,654 MiB less than AdamW, that is 8.3 of its 8 bytes), though its
    documentation says 4.

    References
    ----------
    .. [1] Kingma, Ba, "Adam: A Method for Stochastic Optimization", 2015,
       https://arxiv.org/abs/1412.6980
    .. [2] Dettmers et al., "8-bit Optimizers via Block-wise Quantization", 2022,
       https://arxiv.org/abs/2110.02861
    .. [3] huggingface/transformers@0016acf docs/source/en/perf_train_gpu_one.mdx, 2022.

    Examples
    --------
    >>> state_bytes("adam", 4.0), state_bytes("adam-8bit", 4.0), state_bytes("momentum", 4.0)
    (8.0, 2.0, 4.0)
    """
    width = _QUANTISED_ELEMENT if optimizer == "adam-8bit" else element_bytes
    return STATE_ELEMENTS[optimizer] * width


def fragmentation_bytes(activations: Real, share: Real) -> Real:
    """Memory the allocator holds but cannot use.

    Parameters
    ----------
    activations : float or array
        Bytes of short-lived tensors of changing size [B]; states are laid out once.
    share : float or array
        Waste as a part of them [1].

    Returns
    -------
    float or array
        Waste [B].

    Notes
    -----
    ``activations * share``.

    References
    ----------
    .. [1] Guo et al., "GMLake: Efficient and Transparent GPU Memory Defragmentation for
       Large-scale DNN Training with Virtual Memory Stitching", 2024,
       https://arxiv.org/abs/2401.08156 (15% on average over eight language models, at most 33%).

    Examples
    --------
    >>> fragmentation_bytes(8e9, 0.25)
    2000000000.0
    """
    return activations * share


def checkpoint_share(  # noqa: PLR0913 - two kinds of state, each with its holders
    *,
    weights: Real,
    weight_holders: Real,
    moments: Real,
    moment_holders: Real,
    devices: Real,
    copies: Real,
) -> Real:
    """What some devices write of a checkpoint that is written once.

    Parameters
    ----------
    weights : float or array
        Weights of the whole model [B].
    weight_holders : float or array
        Devices that hold different parts of them [1].
    moments : float or array
        Optimizer state of the whole model [B].
    moment_holders : float or array
        Devices that hold different parts of it [1].
    devices : float or array
        Devices whose share is asked for [1].
    copies : float or array
        Jobs that write one each [1].

    Returns
    -------
    float or array
        Bytes written [B].

    Notes
    -----
    ``copies * (weights * min(weight_holders, devices) / weight_holders + moments *
    min(moment_holders, devices) / moment_holders)``.

    References
    ----------
    .. [1] Rajbhandari et al., "ZeRO: Memory Optimizations Toward Training Trillion Parameter
       Models", 2020, section 5, https://arxiv.org/abs/1910.02054.

    Examples
    --------
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
    per_layer: Real,
    ends: Real,
    never_together: Real = 0.0,
    of_loss: Real = 0.0,
) -> Real:
    """Activations that a stage keeps for its backward passes.

    Parameters
    ----------
    batches : float or array
        Micro-batches whose activations are kept at a time [1].
    layers : float or array
        Layers of the stage [1].
    per_layer : float or array
        What a layer keeps of a micro-batch [B].
    ends : float or array
        What embedding and head keep of one [B].
    never_together : float or array
        Part of it that is gone when the rest of the memory is at its fullest [B].
    of_loss : float or array
        Scores that the loss keeps [B].

    Returns
    -------
    float or array
        Size [B].

    Notes
    -----
    ``batches * (layers * per_layer + ends) - never_together + of_loss``.

    References
    ----------
    .. [1] Korthikanti et al., "Reducing Activation Recomputation in Large Transformer Models",
       2022, sections 4 and 5, https://arxiv.org/abs/2205.05198.

    Examples
    --------
    >>> kept_activations(batches=2.0, layers=12.0, per_layer=1e9, ends=5e8)
    25000000000.0
    """
    return batches * (layers * per_layer + ends) - never_together + of_loss
