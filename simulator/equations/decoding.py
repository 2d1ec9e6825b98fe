"""What a serving engine reads and holds for the tokens it generates."""

from __future__ import annotations

import numpy as np

from simulator.units import Bytes, Real, at_least


def touched_experts(experts: Real, top_k: Real, tokens: Real) -> Real:
    """Experts that at least one of some tokens goes to, on average.

    Parameters
    ----------
    experts : float or array
        Experts of a layer [1].
    top_k : float or array
        How many of them a token goes to [1].
    tokens : float or array
        Tokens of an iteration [1].

    Returns
    -------
    float or array
        Experts whose weights are read [1].

    Notes
    -----
    ``experts (1 - (1 - top_k / experts)^tokens)``: tokens choose evenly and independently. A router
    that prefers some experts touches fewer.

    References
    ----------
    .. [1] Feller, "An Introduction to Probability Theory and Its Applications", volume 1, 1968,
           section IV.2 (occupancy).

    Examples
    --------
    64 tokens of 8 experts each reach most of 256:

    >>> round(float(touched_experts(256.0, 8.0, 64.0)))
    222
    """
    share = top_k / experts
    touched: Real = experts * (1.0 - at_least(1.0 - share, 0.0) ** tokens)
    return touched


def kv_token_bytes(layers: Real, heads: Real, width: Real, size: Bytes | Real) -> Bytes | Real:
    """Bytes of the keys and values of one token.

    Parameters
    ----------
    layers : float or array
        Layers that keep them [1].
    heads : float or array
        Heads of keys and values on a device [1].
    width : float or array
        Values of a head's key and of its value together; of a latent cache, its rank and the part
        that turns with the position, with one head [1].
    size : float or array
        Size of a value [B].

    Returns
    -------
    float or array
        Bytes of a token [B].

    Notes
    -----
    ``layers heads width size``.

    References
    ----------
    .. [1] vLLM, vllm/v1/kv_cache_interface.py, `real_page_size_bytes` of a page of one token,
           https://github.com/vllm-project/vllm

    Examples
    --------
    Llama 3 8B has 32 layers of 8 heads with 128 values in a key and in a value, in 16 bit:

    >>> kv_token_bytes(32.0, 8.0, 256.0, 2.0)
    131072.0
    """
    return layers * heads * width * size


def growing_contexts(context: Real, sequences: Real, iterations: Real) -> Real:
    """Context tokens that iterations in a row read, while every sequence grows by one each.

    Parameters
    ----------
    context : float or array
        Tokens of all sequences at the first iteration [1].
    sequences : float or array
        Sequences [1].
    iterations : float or array
        Iterations [1].

    Returns
    -------
    float or array
        Sum over the iterations [1].

    Notes
    -----
    ``iterations context + sequences iterations (iterations - 1) / 2``, an arithmetic series.

    References
    ----------
    .. [1] Graham, Knuth, Patashnik, "Concrete Mathematics", 1994, section 2.1.

    Examples
    --------
    Two sequences of 10 tokens together over three iterations read 10, 12 and 14:

    >>> growing_contexts(10.0, 2.0, 3.0)
    36.0
    """
    return iterations * context + sequences * iterations * (iterations - 1.0) / 2.0


def accepted_tokens(acceptance: Real, drafts: Real) -> Real:
    """Tokens that an iteration of speculative decoding leaves on average.

    Parameters
    ----------
    acceptance : float or array
        Chance that a guessed token is right, given that all before it are [1].
    drafts : float or array
        Guessed tokens of an iteration [1].

    Returns
    -------
    float or array
        Tokens, the one after the last right guess included [1].

    Notes
    -----
    ``1 + p + ... + p**drafts``.

    References
    ----------
    .. [1] Leviathan, Kalman, Matias, "Fast Inference from Transformers via Speculative Decoding",
           2023, equation 1, https://arxiv.org/abs/2211.17192

    Examples
    --------
    >>> round(accepted_tokens(0.8, 3), 3)
    2.952
    >>> accepted_tokens(1.0, 3)
    4.0
    """
    certain = np.asarray(acceptance) >= 1.0
    chance = np.where(certain, 0.0, acceptance)
    found = np.where(certain, drafts + 1.0, (1.0 - chance ** (drafts + 1.0)) / (1.0 - chance))
    return found if found.ndim else float(found)
