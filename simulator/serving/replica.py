"""Memory of a replica: the pool of its KV cache, and the decoding sequences in it."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from heapq import heappop, heappush
from typing import Final

from simulator.equations.serving import pool_blocks, room_in_free, room_in_total
from simulator.physics.forward_pass import Pass
from simulator.records import dataclass
from simulator.schema.serving import MemoryBase, Serving
from simulator.units import Bytes

UNLIMITED_BLOCKS: Final = sys.maxsize
"""Blocks for requests that keep nothing in a cache, where the rest fits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """Memory of one device while it serves, and the blocks of its KV cache."""

    items: Mapping[str, Bytes]
    capacity: Bytes
    blocks: int
    block: int

    @property
    def tokens(self) -> int:
        """Capacity of the KV cache [tokens]."""
        return self.blocks * self.block

    @property
    def total(self) -> Bytes:
        """Memory in use with a full KV cache [B]."""
        return sum(self.items.values())


def pool_of(serving: Serving, memory: Bytes, work: Pass) -> Pool:
    """Return the memory pool of a device with the largest KV cache that fits.

    Parameters
    ----------
    serving : Serving
        Settings of the engine, with its memory fraction.
    memory : float
        Memory of the device [B].
    work : Pass
        Forward pass, with the size of weights, activations and KV cache.
    """
    engine = serving.rules
    activations = work.activation_bytes_per_token * serving.max_batched_tokens
    graphs = serving.graph_memory
    room = room_in_free if engine.fraction_of is MemoryBase.FREE else room_in_total
    left = room(
        memory,
        serving.memory_fraction,
        work.weights_bytes,
        activations if engine.activations_inside else 0.0,
        graphs if engine.graphs_inside else 0.0,
    )
    if work.kv_bytes_per_token:
        blocks = int(pool_blocks(left, work.kv_bytes_per_token, serving.block_tokens))
    else:
        blocks = UNLIMITED_BLOCKS if left > 0.0 else 0
    cache = blocks * serving.block_tokens * work.kv_bytes_per_token
    items = {
        "weights": work.weights_bytes,
        "activations": activations,
        "graphs": graphs,
        "cache": cache,
    }
    return Pool(items=items, capacity=memory, blocks=blocks, block=serving.block_tokens)


class Decoding:
    """Decoding sequences, which each take one token per iteration, tracked together.

    All contexts grow by one in each common iteration (`steps` so far). A sequence is stored as its
    context less `steps` when it joined, so that totals over all sequences need no loop. `number` is
    the number of sequences.

    Parameters
    ----------
    block : int
        Tokens of a block of the KV cache.
    """

    __slots__ = (
        *("_ends", "_heap", "_needed", "_remainders", "_starts", "_total", "_until", "_whole"),
        *("block", "number", "steps"),
    )

    def __init__(self, block: int) -> None:
        self.block = block
        self.number = 0
        self.steps = 0
        self._starts: dict[int, int] = {}
        self._ends: dict[int, int] = {}
        self._heap: list[tuple[int, int]] = []
        self._total = 0
        self._until = 0
        self._whole = 0
        self._needed: int | None = None
        self._remainders = [0] * block

    def __len__(self) -> int:
        return self.number

    def join(self, request: int, context: int, left: int) -> None:
        """Add a sequence with a context of `context` tokens and `left` tokens to generate."""
        start = context - self.steps
        self._starts[request] = start
        self._ends[request] = self.steps + left
        self._until += self.steps + left
        heappush(self._heap, (self.steps + left, request))
        self._count(start, 1)

    def leave(self, request: int) -> int:
        """Remove a sequence before its end; return its number of missing tokens."""
        self._count(self._starts.pop(request), -1)
        end = self._ends.pop(request)
        self._until -= end
        return end - self.steps

    def _count(self, start: int, sign: int) -> None:
        whole, remainder = divmod(start, self.block)
        self.number += sign
        self._needed = None
        self._total += sign * start
        self._whole += sign * whole
        self._remainders[remainder] += sign

    @property
    def context(self) -> int:
        """Sum of the contexts that the next iteration attends to [tokens]."""
        return self._total + self.number * self.steps

    @property
    def left(self) -> int:
        """Number of iterations until the first sequence ends."""
        heap, ends = self._heap, self._ends
        # The heap still has the old end of a sequence that left early, or joined again.
        while ends.get(heap[0][1]) != heap[0][0]:
            heappop(heap)
        return heap[0][0] - self.steps

    @property
    def tokens_left(self) -> int:
        """Number of tokens that all sequences have yet to generate."""
        return self._until - self.number * self.steps

    def blocks(self, ahead: int = 0) -> int:
        """Return the number of cache blocks needed for the iteration after `ahead` others."""
        if not ahead and self._needed is not None:
            return self._needed
        whole, part = divmod(self.steps + ahead, self.block)
        remainders = self._remainders
        # A sequence that began with `remainder` tokens beyond whole blocks now has
        # remainder + part beyond them: one more block, two if that exceeds a block, and none if
        # it is 0.
        two = sum(remainders[self.block - part + 1 :])
        none = 0 if part else remainders[0]
        needed = self._whole + self.number * (whole + 1) + two - none
        if not ahead:
            self._needed = needed
        return needed

    def iterations_within(self, blocks: int, most: int) -> int:
        """Return the number of next iterations (at most `most`) that fit in `blocks` blocks."""
        need = (self.context + self.number * most) / self.block + self.number
        if need <= blocks or self.blocks(most - 1) <= blocks:
            return most
        fits, fails = 0, most
        while fails - fits > 1:
            middle = (fits + fails) // 2
            fits, fails = (middle, fails) if self.blocks(middle - 1) <= blocks else (fits, middle)
        return fits

    def advance(self, iterations: int) -> list[int]:
        """Advance by `iterations` (at most `left`); return the sequences that end."""
        self.steps += iterations
        self._needed = None
        done = []
        heap, ends, steps = self._heap, self._ends, self.steps
        while heap and heap[0][0] <= steps:
            end, request = heappop(heap)
            # The heap still has the old end of a sequence that left early, or joined again.
            if ends.get(request) == end:
                self.leave(request)
                done.append(request)
        return done
