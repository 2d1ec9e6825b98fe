"""Equations of serving: what a cache holds, what a prompt attends to, what tokens cost."""

from __future__ import annotations

import math

from simulator.units import MILLION, Bytes, PerSecond, Usd, UsdPerSecond


def blocks_of(tokens: int, block: int) -> int:
    """Blocks that hold so many tokens of one sequence [1]: its last one is rarely full.

    Examples
    --------
    >>> blocks_of(17, 16)
    2
    """
    return -(-tokens // block)


def pool_blocks(room: Bytes, per_token: Bytes, block: int) -> int:
    """Whole blocks of `block` tokens that fit into the room left for keys and values [1].

    Examples
    --------
    >>> pool_blocks(1000.0, 10.0, 16)
    6
    """
    return max(0, math.floor(room / (per_token * block)))


def room_in_total(
    memory: Bytes, fraction: float, weights: Bytes, activations: Bytes, graphs: Bytes
) -> Bytes:
    """Room for keys and values where an engine takes a fraction of all memory [B].

    vLLM takes weights, the activations of its largest iteration and graphs off that fraction;
    SGLang's ``mem_fraction_static`` holds weights and cache alone (pass 0 for the others).
    """
    return memory * fraction - weights - activations - graphs


def room_in_free(
    memory: Bytes, fraction: float, weights: Bytes, activations: Bytes, graphs: Bytes
) -> Bytes:
    """Room for keys and values where an engine takes a fraction of what is free [B].

    TensorRT-LLM's ``free_gpu_memory_fraction`` is of what weights and buffers leave.
    """
    return fraction * (memory - weights - activations - graphs)


def causal_pairs(tokens: int, before: int) -> float:
    """Query-key pairs of `tokens` of a prompt after `before` others [1].

    Each attends to all before it and to itself.

    Examples
    --------
    >>> causal_pairs(2, 10)
    23.0
    """
    return tokens * before + 0.5 * tokens * (tokens + 1)


def per_million_tokens(price: UsdPerSecond, rate: PerSecond) -> Usd:
    """What a million tokens cost at `rate` tokens a second on machines of that price [$]."""
    return MILLION * price / rate


def little(rate: PerSecond, time: float) -> float:
    """Requests that are somewhere on average, by their rate and the time they stay [1]."""
    return rate * time
