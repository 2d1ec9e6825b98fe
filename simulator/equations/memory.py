"""Device memory of a training job: weights, gradients, optimizer state, activations, buffers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from simulator.units import BYTE, Real, parse

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
_SMALL_BLOCK: Final = parse("1 MiB", BYTE)
_SMALL_SEGMENT: Final = parse("2 MiB", BYTE)
_MIDDLE_BLOCK: Final = parse("10 MiB", BYTE)
_MIDDLE_SEGMENT: Final = parse("20 MiB", BYTE)


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


def layer_activation_bytes(tokens: Real, hidden: Real, ffn: Real, element_bytes: Real) -> Real:
    """What a transformer layer keeps for its backward pass, attention scores apart.

    Parameters
    ----------
    tokens : float or array
        Sequence length times samples [1].
    hidden : float or array
        Width of the model [1].
    ffn : float or array
        Width of the feed-forward part [1].
    element_bytes : float or array
        Size of an activation [B].

    Returns
    -------
    float or array
        Bytes kept per layer [B].

    Notes
    -----
    Eight tensors of the model's width (inputs of two norms, of QKV, of the projection and of the
    MLP; Q, K, V), two of the feed-forward width, two dropout masks of a byte:
    ``tokens * (element_bytes * (8 hidden + 2 ffn) + 2 hidden)``. With 16 bits and ffn = 4 hidden
    these are the 34 sbh of [1]_, section 4.1.

    References
    ----------
    .. [1] Korthikanti et al., "Reducing Activation Recomputation in Large Transformer Models",
       2022, https://arxiv.org/abs/2205.05198

    Examples
    --------
    >>> layer_activation_bytes(512, 1024, 4096, 2.0) / (512 * 1024)
    34.0
    """
    return tokens * (element_bytes * (8.0 * hidden + 2.0 * ffn) + 2.0 * hidden)


def score_activation_bytes(samples: Real, sequence: Real, heads: Real, element_bytes: Real) -> Real:
    """What unfused attention keeps of its scores for the backward pass, per layer.

    Parameters
    ----------
    samples : float or array
        Samples in the batch [1].
    sequence : float or array
        Sequence length [1].
    heads : float or array
        Attention heads [1].
    element_bytes : float or array
        Size of an activation [B].

    Returns
    -------
    float or array
        Bytes kept per layer [B].

    Notes
    -----
    Softmax output and dropout output, and a mask of a byte: ``heads * sequence**2 * samples *
    (2 element_bytes + 1)``, the 5 a s / h of [1]_. Selective recomputation and fused attention
    keep none of it.

    References
    ----------
    .. [1] Korthikanti et al., "Reducing Activation Recomputation in Large Transformer Models",
       2022, section 4.1, https://arxiv.org/abs/2205.05198

    Examples
    --------
    BERT-large, 16 heads, 512 tokens: 5 * 16 * 512 / 1024 = 40 times s b h.

    >>> score_activation_bytes(1, 512, 16, 2.0) / (512 * 1024)
    40.0
    """
    return heads * sequence**2 * samples * (2.0 * element_bytes + 1.0)


def fused_attention_bytes(samples: Real, sequence: Real, heads: Real) -> Real:
    """What fused attention keeps beside its inputs and output, per layer.

    Parameters
    ----------
    samples : float or array
        Samples in the batch [1].
    sequence : float or array
        Sequence length [1].
    heads : float or array
        Attention heads [1].

    Returns
    -------
    float or array
        Bytes kept per layer [B].

    Notes
    -----
    One fp32 log-sum-exp per head and token: ``4 heads * sequence * samples``.

    References
    ----------
    .. [1] Dao, "FlashAttention-2: Faster Attention with Better Parallelism and Work
       Partitioning", 2023, https://arxiv.org/abs/2307.08691

    Examples
    --------
    >>> fused_attention_bytes(2, 512, 16)
    65536.0
    """
    return FULL_PRECISION * heads * sequence * samples


def checkpointed_bytes(layers: Real, layer_input: Real, one_layer: Real) -> Real:
    """Activations with full recomputation.

    Parameters
    ----------
    layers : float or array
        Layers [1].
    layer_input : float or array
        Bytes of one layer's input [B].
    one_layer : float or array
        Bytes that a layer keeps without recomputation [B].

    Returns
    -------
    float or array
        Bytes kept at the worst moment [B].

    Notes
    -----
    Every layer keeps its input and the one at work keeps everything:
    ``layers * layer_input + one_layer``.

    References
    ----------
    .. [1] Chen et al., "Training Deep Nets with Sublinear Memory Cost", 2016,
       https://arxiv.org/abs/1604.06174

    Examples
    --------
    >>> checkpointed_bytes(24, 1e6, 40e6)
    64000000.0
    """
    return layers * layer_input + one_layer


def logits_bytes(tokens: Real, vocabulary: Real, element_bytes: Real) -> Real:
    """What the output layer and its loss keep.

    Parameters
    ----------
    tokens : float or array
        Tokens that are scored [1].
    vocabulary : float or array
        Words to choose from [1].
    element_bytes : float or array
        Size of an activation [B].

    Returns
    -------
    float or array
        Bytes kept [B].

    Notes
    -----
    Logits in fp32 for the loss, and where the model is narrower the narrow copy as well:
    ``tokens * vocabulary * (4 + element_bytes)`` if ``element_bytes < 4``, else 4 alone.

    References
    ----------
    .. [1] stas00/ml-engineering@744d01e training/performance/README.md, 2026-08 (4 sbv in fp32, 6
       with the 16-bit copy), https://github.com/stas00/ml-engineering

    Examples
    --------
    >>> float(logits_bytes(1000, 50000, 2.0)), float(logits_bytes(1000, 50000, 4.0))
    (300000000.0, 200000000.0)
    """
    narrow = np.where(np.asarray(element_bytes) < FULL_PRECISION, element_bytes, 0.0)[()]
    kept: Real = tokens * vocabulary * (FULL_PRECISION + narrow)
    return kept


def bucket_copy_bytes(gradients: Real, ranks: Real) -> Real:
    """Second copy of the gradients that data-parallel buckets hold.

    Parameters
    ----------
    gradients : float or array
        Size of all gradients [B].
    ranks : float or array
        Data-parallel ranks [1].

    Returns
    -------
    float or array
        Size of the buckets [B].

    Notes
    -----
    ``gradients`` where ``ranks > 1``, else 0: the buckets together hold every gradient once more,
    unless the gradients are views of them.

    References
    ----------
    .. [1] pytorch/pytorch pull request 41954 (RoBERTa: 8,250 MB with copies, 7,183 MB with
       views), 2020, https://github.com/pytorch/pytorch/pull/41954

    Examples
    --------
    >>> float(bucket_copy_bytes(1e9, 8)), float(bucket_copy_bytes(1e9, 1))
    (1000000000.0, 0.0)
    """
    copy: Real = np.where(np.asarray(ranks) > 1.0, gradients, 0.0)[()]
    return copy


def segment_bytes(size: Real) -> Real:
    """Device memory the PyTorch allocator takes for one tensor in an empty pool.

    Parameters
    ----------
    size : float or array
        Size of the tensor [B].

    Returns
    -------
    float or array
        Size of the segment [B].

    Notes
    -----
    Up to 1 MiB from a segment of 2 MiB, below 10 MiB from one of 20 MiB, larger ones in a segment
    of their own, ``ceil(size / 2 MiB) * 2 MiB``. Later tensors share the rest of a segment.

    References
    ----------
    .. [1] pytorch/pytorch c10/core/AllocatorConfig.h, versions 2.13 and 2.15,
       https://github.com/pytorch/pytorch

    Examples
    --------
    1 kB, 5 MB and 11 MiB, in MiB:

    >>> [float(segment_bytes(size)) / 2**20 for size in (1e3, 5e6, 11 * 2**20)]
    [2.0, 20.0, 12.0]
    """
    own = np.ceil(size / _SMALL_SEGMENT) * _SMALL_SEGMENT
    middle = np.where(np.asarray(size) < _MIDDLE_BLOCK, _MIDDLE_SEGMENT, own)
    segment: Real = np.where(np.asarray(size) <= _SMALL_BLOCK, _SMALL_SEGMENT, middle)[()]
    return segment


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
