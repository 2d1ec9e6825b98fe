"""Equations of serving: what a cache holds, what a prompt attends to, what tokens cost."""

from __future__ import annotations

import numpy as np

from simulator.units import MILLION, Bytes, Real, at_least


def blocks_of(tokens: int, block: int) -> int:
    """Blocks of the cache that hold one sequence; its last one is rarely full.

    Parameters
    ----------
    tokens : int or array
        Tokens of the sequence [1].
    block : int or array
        Tokens of a block [1].

    Returns
    -------
    int or array
        Blocks [1].

    Notes
    -----
    ``ceil(tokens / block)``.

    References
    ----------
    .. [1] Kwon et al., "Efficient Memory Management for Large Language Model Serving with
           PagedAttention", 2023, https://arxiv.org/abs/2309.06180

    Examples
    --------
    >>> blocks_of(17, 16)
    2
    """
    return -(-tokens // block)


def pool_blocks(room: Bytes | Real, per_token: Bytes | Real, block: Real) -> Real:
    """Whole blocks that fit into the room left for keys and values.

    Parameters
    ----------
    room : float or array
        What weights and the rest leave [B]; less than nothing where they do not fit.
    per_token : float or array
        Keys and values of a token [B].
    block : float or array
        Tokens of a block [1].

    Returns
    -------
    float or array
        Blocks [1].

    Notes
    -----
    ``floor(max(room, 0) / (per_token block))``.

    References
    ----------
    .. [1] vLLM, vllm/v1/core/kv_cache_utils.py, `get_num_blocks`,
           https://github.com/vllm-project/vllm

    Examples
    --------
    >>> float(pool_blocks(1000.0, 10.0, 16.0))
    6.0
    """
    whole: Real = np.floor(at_least(0.0, room) / (per_token * block))
    return whole


def room_in_total(
    memory: Bytes | Real,
    fraction: Real,
    weights: Bytes | Real,
    activations: Bytes | Real,
    graphs: Bytes | Real,
) -> Bytes | Real:
    """Room for keys and values where an engine takes a fraction of all memory.

    Parameters
    ----------
    memory : float or array
        Memory of the device [B].
    fraction : float or array
        Share of it that the engine takes [1].
    weights : float or array
        Weights on the device [B].
    activations : float or array
        Activations of its largest iteration [B]; 0 where they lie outside of the fraction.
    graphs : float or array
        Recorded graphs [B]; 0 where they lie outside of the fraction.

    Returns
    -------
    float or array
        Room [B]; below 0 where the rest does not fit.

    Notes
    -----
    ``memory fraction - weights - activations - graphs``.

    References
    ----------
    .. [1] vLLM, vllm/v1/worker/gpu_worker.py, `determine_available_memory`,
           https://github.com/vllm-project/vllm

    Examples
    --------
    80 GB at 0.9 with 16 GB of weights and 2 GB of activations:

    >>> room_in_total(80.0, 0.9, 16.0, 2.0, 0.0)
    54.0
    """
    return memory * fraction - weights - activations - graphs


def room_in_free(
    memory: Bytes | Real,
    fraction: Real,
    weights: Bytes | Real,
    activations: Bytes | Real,
    graphs: Bytes | Real,
) -> Bytes | Real:
    """Room for keys and values where an engine takes a fraction of what is free.

    Parameters
    ----------
    memory : float or array
        Memory of the device [B].
    fraction : float or array
        Share of the free memory that the cache takes [1].
    weights : float or array
        Weights on the device [B].
    activations : float or array
        Activations of its largest iteration [B].
    graphs : float or array
        Recorded graphs [B].

    Returns
    -------
    float or array
        Room [B]; below 0 where the rest does not fit.

    Notes
    -----
    ``fraction (memory - weights - activations - graphs)``.

    References
    ----------
    .. [1] TensorRT-LLM, "Useful Runtime Options", `free_gpu_memory_fraction`,
           https://nvidia.github.io/TensorRT-LLM

    Examples
    --------
    >>> room_in_free(80.0, 0.5, 16.0, 3.0, 1.0)
    30.0
    """
    return fraction * (memory - weights - activations - graphs)


def causal_pairs(tokens: Real, before: Real) -> Real:
    """Query-key pairs of a part of a prompt: each token attends to all before it and to itself.

    Parameters
    ----------
    tokens : float or array
        Tokens of the part [1].
    before : float or array
        Tokens of the prompt before it [1].

    Returns
    -------
    float or array
        Pairs [1].

    Notes
    -----
    ``tokens before + tokens (tokens + 1) / 2``, an arithmetic series.

    References
    ----------
    .. [1] Graham, Knuth, Patashnik, "Concrete Mathematics", 1994, section 2.1.

    Examples
    --------
    Two tokens after ten attend to 11 and 12:

    >>> causal_pairs(2, 10)
    23.0
    """
    return tokens * before + 0.5 * tokens * (tokens + 1)


def per_million_tokens(price: Real, rate: Real) -> Real:
    """What a million tokens cost.

    Parameters
    ----------
    price : float or array
        Price of all machines [$/s].
    rate : float or array
        Tokens a second on them [/s].

    Returns
    -------
    float or array
        Price of a million tokens [$].

    Notes
    -----
    ``1e6 price / rate``: machines are paid for whether they compute or wait.

    References
    ----------
    .. [1] "$/M tokens" of InferenceX, https://github.com/SemiAnalysisAI/InferenceX

    Examples
    --------
    A machine of $3.60 an hour that writes 1,000 tokens a second:

    >>> round(per_million_tokens(0.001, 1000.0), 6)
    1.0
    """
    return MILLION * price / rate


def little(rate: Real, time: Real) -> Real:
    """Requests that are somewhere, on average.

    Parameters
    ----------
    rate : float or array
        Requests that come by [/s].
    time : float or array
        How long one stays, on average [s].

    Returns
    -------
    float or array
        Requests [1].

    Notes
    -----
    ``rate time``, whatever the distributions.

    References
    ----------
    .. [1] Little, "A Proof for the Queuing Formula: L = lambda W", 1961,
           https://doi.org/10.1287/opre.9.3.383

    Examples
    --------
    >>> little(8.0, 0.5)
    4.0
    """
    return rate * time
