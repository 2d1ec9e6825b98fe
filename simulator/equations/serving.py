"""Serving of language models: the KV cache, attention pairs, tokens and their price."""

from __future__ import annotations

import numpy as np

from simulator.units import (
    MILLION,
    Bytes,
    PerSecond,
    Real,
    Seconds,
    Usd,
    UsdPerSecond,
    at_least,
)


def blocks_of(tokens: int, block: int) -> int:
    """Return the KV-cache blocks of one sequence, the last rarely full.

    ``ceil(tokens / block)``. `block` is in tokens.

    Source: Kwon et al., "Efficient Memory Management for Large Language Model Serving with
    PagedAttention", 2023, https://arxiv.org/abs/2309.06180

    >>> blocks_of(17, 16)
    2
    """
    return -(-tokens // block)


def pool_blocks(room: Bytes | Real, per_token: Bytes | Real, block: Real) -> Real:
    """Return the whole KV-cache blocks that fit into the room for them.

    ``floor(max(room, 0) / (per_token block))``. `room` may be negative; `block` is in tokens.

    Source: vLLM, vllm/v1/core/kv_cache_utils.py, `get_num_blocks`,
    https://github.com/vllm-project/vllm

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
    """Return the KV-cache room of an engine that takes a fraction of all memory; may be negative.

    ``memory fraction - weights - activations - graphs``. `activations` (of the largest iteration)
    and `graphs` are 0 where the engine does not count them in its fraction.

    Source: vLLM, vllm/v1/worker/gpu_worker.py, `determine_available_memory`,
    https://github.com/vllm-project/vllm

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
    """Return the KV-cache room of an engine that takes a fraction of free memory; may be negative.

    ``fraction (memory - weights - activations - graphs)``. `activations` are those of the largest
    iteration.

    Source: TensorRT-LLM, "Useful Runtime Options", `free_gpu_memory_fraction`,
    https://nvidia.github.io/TensorRT-LLM

    >>> room_in_free(80.0, 0.5, 16.0, 3.0, 1.0)
    30.0
    """
    return fraction * (memory - weights - activations - graphs)


def causal_pairs(tokens: Real, before: Real) -> Real:
    """Return the query-key pairs of a part of a prompt under causal attention.

    ``tokens before + tokens (tokens + 1) / 2``, an arithmetic series. `before` are the tokens of
    the prompt before the part.

    Source: Graham, Knuth, Patashnik, "Concrete Mathematics", 1994, section 2.1.

    Two tokens after ten attend to 11 and 12:

    >>> causal_pairs(2, 10)
    23.0
    """
    return tokens * before + 0.5 * tokens * (tokens + 1)


def per_million_tokens(price: UsdPerSecond | Real, rate: PerSecond | Real) -> Usd | Real:
    """Return the price of a million tokens.

    ``1e6 price / rate``: machines are paid for whether they compute or wait.

    Source: "$/M tokens" of InferenceX, https://github.com/SemiAnalysisAI/InferenceX

    A machine of $3.60 an hour that writes 1,000 tokens a second:

    >>> round(per_million_tokens(0.001, 1000.0), 6)
    1.0
    """
    return MILLION * price / rate


def little(rate: PerSecond | Real, time: Seconds | Real) -> Real:
    """Return the mean number of requests in a system (Little's law).

    ``rate time``, for all distributions. `time` is the mean time that a request stays.

    Source: Little, "A Proof for the Queuing Formula: L = lambda W", 1961,
    https://doi.org/10.1287/opre.9.3.383

    >>> little(8.0, 0.5)
    4.0
    """
    return rate * time


def touched_experts(experts: Real, top_k: Real, tokens: Real) -> Real:
    """Return the expected number of experts that at least one token goes to.

    ``experts (1 - (1 - top_k / experts)^tokens)``: tokens choose evenly and independently. A router
    that prefers some experts touches fewer.

    Source: Feller, "An Introduction to Probability Theory and Its Applications", volume 1, 1968,
    section IV.2 (occupancy).

    64 tokens of 8 experts each reach most of 256:

    >>> round(float(touched_experts(256.0, 8.0, 64.0)))
    222
    """
    share = top_k / experts
    touched: Real = experts * (1.0 - at_least(1.0 - share, 0.0) ** tokens)
    return touched


def kv_token_bytes(layers: Real, heads: Real, width: Real, size: Bytes | Real) -> Bytes | Real:
    """Return the size of the keys and values of one token.

    ``layers heads width size``. `width` is that of a head's key and value together; a latent cache
    has one head, of its rank and the rotated part.

    Source: vLLM, vllm/v1/kv_cache_interface.py, `real_page_size_bytes` of a page of one token,
    https://github.com/vllm-project/vllm

    Llama 3 8B has 32 layers of 8 heads with 128 values in a key and in a value, in 16 bit:

    >>> kv_token_bytes(32.0, 8.0, 256.0, 2.0)
    131072.0
    """
    return layers * heads * width * size


def growing_contexts(context: Real, sequences: Real, iterations: Real) -> Real:
    """Return the context tokens read by iterations in which every sequence grows by one token.

    ``iterations context + sequences iterations (iterations - 1) / 2``, an arithmetic series.
    `context` is that of all sequences at the first iteration.

    Source: Graham, Knuth, Patashnik, "Concrete Mathematics", 1994, section 2.1.

    Two sequences of 10 tokens together over three iterations read 10, 12 and 14:

    >>> growing_contexts(10.0, 2.0, 3.0)
    36.0
    """
    return iterations * context + sequences * iterations * (iterations - 1.0) / 2.0


def accepted_tokens(acceptance: Real, drafts: Real) -> Real:
    """Return the expected tokens of an iteration of speculative decoding.

    ``1 + p + ... + p**drafts``. `acceptance` is the probability that a draft token is right, given
    that those before it are.

    Source: Leviathan, Kalman, Matias, "Fast Inference from Transformers via Speculative Decoding",
    2023, equation 1, https://arxiv.org/abs/2211.17192

    >>> round(accepted_tokens(0.8, 3), 3)
    2.952
    >>> accepted_tokens(1.0, 3)
    4.0
    """
    certain = np.asarray(acceptance) >= 1.0
    chance = np.where(certain, 0.0, acceptance)
    found = np.where(certain, drafts + 1.0, (1.0 - chance ** (drafts + 1.0)) / (1.0 - chance))
    return found if found.ndim else float(found)
