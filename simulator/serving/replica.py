"""A replica of a service: the time of its forward passes, and the pool of its KV cache."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Final, Protocol

from simulator.equations.serving import pool_blocks, room_in_free, room_in_total
from simulator.physics.forward_pass import Iteration
from simulator.schema.serving import MemoryBase, Serving, Speculation
from simulator.units import Bytes, Seconds


class Pass(Protocol):
    """Knows how long a forward pass takes and what it keeps in the memory of each device."""

    @property
    def weights_bytes(self) -> Bytes:
        """Weights on one device [B]."""

    @property
    def kv_bytes_per_token(self) -> Bytes:
        """Keys and values of one token on one device [B]."""

    @property
    def activation_bytes_per_token(self) -> Bytes:
        """Activations of one token of an iteration on one device [B]."""

    def seconds(self, work: Iteration) -> Seconds:
        """Return the time of one iteration [s]."""

    def decode_seconds(self, decoding: int, context_tokens: float, iterations: int) -> Seconds:
        """Return the time of consecutive iterations that decode one token of each sequence [s]."""

    def link_seconds(self, prompts: float, answers: float) -> Mapping[str, Seconds]:
        """Return the busy time of each link of a device for a number of tokens [s].

        Parameters
        ----------
        prompts : float
            Tokens of prompts.
        answers : float
            Sequences that decode, added up over iterations.
        """


@dataclass(frozen=True, slots=True)
class _OfAnother:
    """A forward pass that keeps of each token what a plain one does."""

    plain: Pass

    @property
    def kv_bytes_per_token(self) -> Bytes:
        """Keys and values of one token on one device [B]."""
        return self.plain.kv_bytes_per_token

    @property
    def activation_bytes_per_token(self) -> Bytes:
        """Activations of one token of an iteration on one device [B]."""
        return self.plain.activation_bytes_per_token


@dataclass(frozen=True, slots=True)
class ScaledPass(_OfAnother):
    """A forward pass that takes `factor` times as long and keeps the same."""

    factor: float

    def link_seconds(self, prompts: float, answers: float) -> Mapping[str, Seconds]:
        """Return the busy time of each link of a device for a number of tokens [s]."""
        return self.plain.link_seconds(prompts, answers)

    @property
    def weights_bytes(self) -> Bytes:
        """Weights on one device [B]."""
        return self.plain.weights_bytes

    def seconds(self, work: Iteration) -> Seconds:
        """Return the time of one iteration [s]."""
        return self.factor * self.plain.seconds(work)

    def decode_seconds(self, decoding: int, context_tokens: float, iterations: int) -> Seconds:
        """Return the time of consecutive iterations that decode one token of each sequence [s]."""
        return self.factor * self.plain.decode_seconds(decoding, context_tokens, iterations)


@dataclass(frozen=True, slots=True)
class SpeculativePass(_OfAnother):
    """A forward pass that checks guessed tokens of each sequence, made before it one by one.

    Keys and values of a sequence are read once for all its guesses.
    """

    speculation: Speculation

    @property
    def weights_bytes(self) -> Bytes:
        """Weights on one device, those of the guesser included [B]."""
        return self.plain.weights_bytes * (1.0 + self.speculation.draft)

    def seconds(self, work: Iteration) -> Seconds:
        """Return the time of one iteration [s]."""
        if not work.decoding:
            return self.plain.seconds(work)
        drafts, draft = self.speculation.drafts, self.speculation.draft
        alone = Iteration(decoding=work.decoding, context_tokens=work.context_tokens)
        checked = work._replace(decoding=work.decoding * (drafts + 1))
        return self.plain.seconds(checked) + drafts * draft * self.plain.seconds(alone)

    def decode_seconds(self, decoding: int, context_tokens: float, iterations: int) -> Seconds:
        """Return the time of consecutive iterations of several tokens per sequence [s]."""
        drafts, draft = self.speculation.drafts, self.speculation.draft

        def passes(rows: int) -> Seconds:
            # Contexts grow by the tokens that are accepted, not by the rows that are computed: as
            # their time is linear, what the first context differs by makes up for it.
            grown = (self.speculation.accepted * decoding - rows) * (iterations - 1) / 2.0
            return self.plain.decode_seconds(rows, context_tokens + grown, iterations)

        return passes(decoding * (drafts + 1)) + drafts * draft * passes(decoding)

    def link_seconds(self, prompts: float, answers: float) -> Mapping[str, Seconds]:
        """Return the busy time of each link of a device for verified and drafted tokens [s]."""
        drafts, draft = self.speculation.drafts, self.speculation.draft
        return self.plain.link_seconds(prompts, answers * (1.0 + drafts * (1.0 + draft)))


UNLIMITED_BLOCKS: Final = sys.maxsize
"""Blocks for requests that keep nothing in a cache, where the rest fits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """The memory of one device while it serves, and the blocks of its cache."""

    items: Mapping[str, Bytes]
    capacity: Bytes
    blocks: int
    block: int

    @property
    def tokens(self) -> int:
        """Tokens the cache holds."""
        return self.blocks * self.block

    @property
    def total(self) -> Bytes:
        """Bytes that are taken with the cache full [B]."""
        return sum(self.items.values())


def pool_of(serving: Serving, memory: Bytes, work: Pass) -> Pool:
    """Return the memory pool of a device with the cache that fits.

    Parameters
    ----------
    serving : Serving
        Its memory fraction and what that is a fraction of.
    memory : float
        Memory of the device [B].
    work : Pass
        What weights, activations and tokens take.
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
    """Sequences that each take one token an iteration, counted together.

    All contexts grow by one with each of their common iterations, `steps` so far: a sequence is
    kept as its context less `steps` at its beginning, and what all hold follows without asking
    each of them.

    `number` is how many there are.

    Parameters
    ----------
    block : int
        Tokens of a block.
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
        """Add a sequence that attends to `context` tokens next and needs `left` more."""
        start = context - self.steps
        self._starts[request] = start
        self._ends[request] = self.steps + left
        self._until += self.steps + left
        heappush(self._heap, (self.steps + left, request))
        self._count(start, 1)

    def leave(self, request: int) -> int:
        """Remove a sequence before its end; return its missing tokens."""
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
        """Tokens that the next iteration attends to, over all sequences."""
        return self._total + self.number * self.steps

    @property
    def left(self) -> int:
        """Iterations until the first of them ends."""
        heap, ends = self._heap, self._ends
        # A sequence that left early, or came back since, stands here with its old end.
        while ends.get(heap[0][1]) != heap[0][0]:
            heappop(heap)
        return heap[0][0] - self.steps

    @property
    def tokens_left(self) -> int:
        """Tokens that all of them have yet to write."""
        return self._until - self.number * self.steps

    def blocks(self, ahead: int = 0) -> int:
        """Return the blocks needed for the iteration after `ahead` others."""
        if not ahead and self._needed is not None:
            return self._needed
        whole, part = divmod(self.steps + ahead, self.block)
        remainders = self._remainders
        # Of a sequence that began with `remainder` tokens beyond whole blocks there are now
        # remainder + part beyond them: one more block, two where that is more than a block, and
        # none where nothing is left over.
        two = sum(remainders[self.block - part + 1 :])
        none = 0 if part else remainders[0]
        needed = self._whole + self.number * (whole + 1) + two - none
        if not ahead:
            self._needed = needed
        return needed

    def iterations_within(self, blocks: int, most: int) -> int:
        """Return the next iterations, at most `most`, that fit into a number of blocks."""
        need = (self.context + self.number * most) / self.block + self.number
        if need <= blocks or self.blocks(most - 1) <= blocks:
            return most
        fits, fails = 0, most
        while fails - fits > 1:
            middle = (fits + fails) // 2
            fits, fails = (middle, fails) if self.blocks(middle - 1) <= blocks else (fits, middle)
        return fits

    def advance(self, iterations: int) -> list[int]:
        """Advance by a number of iterations (at most `left`); return the sequences that end."""
        self.steps += iterations
        self._needed = None
        done = []
        heap, ends, steps = self._heap, self._ends, self.steps
        while heap and heap[0][0] <= steps:
            end, request = heappop(heap)
            # One that left early, or came back since, stands here with its old end, too.
            if ends.get(request) == end:
                self.leave(request)
                done.append(request)
        return done
