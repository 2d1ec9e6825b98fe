"""Scheduling: the contents of the next iteration by the rules of the engine.

Sources of the rules: vllm/v1/core/sched/scheduler.py at 00024d31, SGLang's schedule_policy.py at
00550cd1, TensorRT-LLM's pages on its scheduler and runtime flags; each engine's data file says
which of them it follows.

Models that answer in one pass wait in a `Batcher`, by the rules of Triton's dynamic batcher
(triton-inference-server/server@06151b8b, docs/user_guide/batcher.md): the largest preferred size
(or the maximum) that the queue fills; else wait for one of them, until the oldest request has
waited the delay, and take what there is. Requests are never split, and stay in order.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final, NamedTuple

from simulator.equations.serving import blocks_of, causal_pairs
from simulator.physics.forward_pass import Iteration
from simulator.schema.serving import Admission, Batching, Dynamic, Held, Serving
from simulator.serving.load import Requests
from simulator.serving.replica import Decoding
from simulator.units import Seconds

RECHECK = 16
"""Iterations after which an engine that keeps room for answers looks again whether one fits."""


@dataclass(frozen=True, slots=True)
class Reuse:
    """Tokens of a prompt in the prefix cache: those that all share, and of the others.

    Those of `shared_prefix` are held once; a request holds the others it finds, `hit_rate` of
    them, as its own.
    """

    shared_prefix: int = 0
    hit_rate: float = 0.0


class Batch(NamedTuple):
    """The next iteration, the requests that start with it and those whose prompts end in it."""

    work: Iteration
    started: tuple[int, ...]
    ended: tuple[int, ...]


NOTHING: Final = Reuse()
_NONE: Final[Sequence[int]] = ()


class Scheduler:
    """Requests that wait and run on one replica.

    A request that starts is given blocks for all tokens it has so far. One that must give way
    loses its blocks and goes to the head of those that wait; what it has written is then a part
    of its prompt.

    Parameters
    ----------
    serving : Serving
        The engine and its settings.
    blocks : int
        Blocks of the cache.
    requests : Requests
        Their lengths.
    reuse : Reuse
        What of their prompts lies in the cache already.

    Notes
    -----
    Decoding counts in iterations. Where speculation leaves several tokens in one, `pace`, contexts
    are divided by that, and the cache is counted in blocks of a whole number of iterations, each
    `unit` of the engine's.
    """

    def __init__(
        self, serving: Serving, blocks: int, requests: Requests, reuse: Reuse = NOTHING
    ) -> None:
        self.serving, self.requests, self.reuse = serving, requests, reuse
        speculation = serving.speculation
        self.pace = 1.0 if speculation is None else speculation.accepted
        self.rows = 1 if speculation is None else speculation.drafts + 1
        self.block = max(1, round(serving.block_tokens / self.pace))
        self.unit = self.block * self.pace / serving.block_tokens
        self.prefix = reuse.shared_prefix // serving.block_tokens * serving.block_tokens
        self.shared = int(self.prefix / (self.block * self.pace))
        self.blocks = int(blocks / self.unit) - self.shared
        self.waiting: deque[int] = deque()
        self.running: dict[int, int] = {}
        self.decoding = Decoding(self.block)
        self.batcher = (
            None
            if serving.dynamic is None
            else Batcher(serving.dynamic, serving.max_batched_tokens)
        )
        self.lacks: dict[int, int] = {}
        self.mixed = serving.rules.batching is Batching.MIXED
        self.admission = serving.rules.admission
        self.preemptions = 0
        self.reused = 0
        self._started: Sequence[int] = _NONE
        self._cut: dict[int, int] = {}
        self._held = 0
        self._promised = 0
        self._writing = 0
        self._since = 0
        self._waited: int | None = None

    @property
    def used(self) -> int:
        """Blocks that the next iteration needs for what runs now."""
        decoding = self.decoding
        return decoding.blocks() - decoding.number * self.shared + self._held

    @property
    def is_open(self) -> bool:
        """Return whether an arriving request might start at once, or let others start."""
        free = len(self.running) < self.serving.max_sequences
        return free and (not self.waiting or self._waited is not None)

    def join(self, request: int, now: Seconds) -> None:
        """Add a request to the queue."""
        self.lacks[request] = self.requests.outputs[request]
        self.waiting.append(request)
        if self.batcher is not None:
            self.batcher.join(self.requests.prompts[request], now)

    def held_until(self, now: Seconds) -> Seconds:
        """Return the time until which requests are held for a larger batch; `now` if not held."""
        return now if self.batcher is None else self.batcher.held_until(now)

    def length(self, request: int) -> int:
        """Return the tokens of a request so far: its prompt and what is written."""
        requests = self.requests
        return requests.prompts[request] + requests.outputs[request] - self.lacks[request]

    def compose(self) -> Batch:
        """Compose the next iteration; admit and preempt requests."""
        decoding, serving = self.decoding, self.serving
        gave_way = self.used > self.blocks and self._make_room()
        most = serving.max_batched_tokens if self.batcher is None else self.batcher.take()
        budget = most - (self.rows * decoding.number if self.mixed else 0)
        if serving.held_prompts is not None:
            self._hold(serving.held_prompts, budget)
        tokens, pairs, prompts, ended = 0, 0.0, 0, _NONE
        if self._cut or self.waiting:
            admit = not gave_way and self._waited is None
            tokens, pairs, prompts, ended = self._prompts(budget, admit=admit)
        takes_part = decoding.number if self.mixed or not tokens else 0
        context = self.pace * decoding.context if takes_part else 0.0
        work = Iteration(tokens, pairs, len(ended), takes_part, context, prompts)
        started, self._started = self._started, _NONE
        return Batch(work, tuple(started), tuple(ended))

    def undisturbed(self) -> int:
        """Return the decode-only iterations until a request ends, is preempted or might join."""
        decoding = self.decoding
        most = decoding.left
        seated = len(self.running) < self.serving.max_sequences
        if seated and self.waiting and self.admission is Admission.ESTIMATE:
            most = min(most, RECHECK)
        if self._waited is not None and self.serving.held_prompts is not None:
            most = min(most, self.serving.held_prompts.iterations - self._waited)
        room = self.blocks - self._held + decoding.number * self.shared
        return max(1, decoding.iterations_within(room, most))

    def complete(self, batch: Batch, iterations: int) -> list[int]:
        """Complete one or several iterations; return the requests that ended."""
        if self._waited is not None:
            self._waited += iterations
        done = list[int]()
        if batch.work.decoding:
            done = self.decoding.advance(iterations)
        for request in done:
            self._finish(request)
        for request in batch.ended:
            self._held -= self.running[request]
            self._writing -= self.lacks[request]
            self.running[request] = 0
            context = self.length(request) + 1
            self.lacks[request] = lacks = self.lacks[request] - 1
            if lacks:
                self.decoding.join(request, self._steps(context), self._steps(lacks))
            else:
                done.append(request)
                self._finish(request)
        return done

    def _hold(self, rule: Held, budget: int) -> None:
        """Count the iterations for which prompts are held back; None if they may start.

        As TensorRT-LLM does with `batch_wait_timeout_iters` and `batch_wait_max_tokens_ratio`.
        """
        seats = self.serving.max_sequences - len(self.running)
        if not self.waiting or not self.decoding.number or self._cut:
            self._waited = None
            return
        if self._waited is None and (seats <= 0 or not self._fits(self.waiting[0])):
            return
        waited = self._waited or 0
        ready = [self.length(each) for each in islice(self.waiting, max(0, seats))]
        most = self.serving.max_batched_tokens
        full = min(sum(ready), budget) + most - budget >= rule.share * most
        full = full or (rule.prompts is not None and len(ready) >= rule.prompts)
        self._waited = None if full or waited >= rule.iterations else waited

    def _finish(self, request: int) -> None:
        del self.running[request], self.lacks[request]
        if self.admission is Admission.WHOLE:
            self._promised -= self._whole(request)
        if not self.running:
            self._since = self.decoding.steps

    def _steps(self, tokens: int) -> int:
        """Return the iterations that write a number of tokens."""
        return tokens if self.pace == 1.0 else math.ceil(tokens / self.pace)

    def _whole(self, request: int) -> int:
        """Return the blocks of a request with its whole answer."""
        requests = self.requests
        tokens = requests.prompts[request] + requests.outputs[request]
        return blocks_of(self._steps(tokens), self.block) - self.shared

    def _own(self, request: int) -> int:
        """Return the blocks of a request so far."""
        return blocks_of(self._steps(self.length(request)), self.block) - self.shared

    def _make_room(self) -> bool:
        """Preempt the requests that started last until the others fit; whether any had to."""
        before = self.preemptions
        while self.used > self.blocks:
            self._preempt(next(reversed(self.running)))
        return self.preemptions > before

    def _preempt(self, request: int) -> None:
        held = self.running.pop(request)
        if request in self._cut:
            self._held -= held
            self._writing -= self.lacks[request]
            del self._cut[request]
        else:
            left = round(self.pace * self.decoding.leave(request))
            self.lacks[request] = max(1, min(self.lacks[request], left))
        if self.admission is Admission.WHOLE:
            self._promised -= self._whole(request)
        self._since = self.decoding.steps
        self.preemptions += 1
        self.waiting.appendleft(request)

    def _prompts(self, budget: int, *, admit: bool) -> tuple[int, float, int, list[int]]:
        """Return prompt tokens of the next iteration, pairs, prompts, and those that end.

        One prompt has no more of the tokens than its group of accelerators may compute.
        """
        left, pairs, number, ended = budget, 0.0, 0, list[int]()
        share, started = -(-budget // self.serving.attention_groups), list[int]()
        begun = list(self._cut)
        while left > 0:
            if number < len(begun):
                request = begun[number]
                before = self._cut.pop(request)
            elif admit and self._may_start(left, share):
                request = self.waiting.popleft()
                started.append(request)
                before = self._start(request)
            else:
                break
            todo = self.length(request) - before
            now = min(todo, left, share)
            pairs += float(causal_pairs(now, before))
            left -= now
            number += 1
            if now == todo:
                ended.append(request)
            else:
                self._cut[request] = before + now
        self._started = started
        return max(0, budget) - max(0, left), pairs, number, ended

    def _cached(self, request: int) -> int:
        """Return the cached tokens of a request; of a preempted one only the prefix."""
        prompt, block = self.requests.prompts[request], self.serving.block_tokens
        found = self.prefix
        if self.lacks[request] == self.requests.outputs[request]:
            found += int(self.reuse.hit_rate * (prompt - found)) // block * block
        return min(found, self.length(request) - 1)

    def _may_start(self, left: int, share: int) -> bool:
        """Return whether the first request may start with `left` prompt tokens.

        Of these, one prompt has a `share`.
        """
        if not self.waiting or len(self.running) >= self.serving.max_sequences:
            return False
        request = self.waiting[0]
        # A prompt that even alone has no room beside the answers is cut, whatever the engine does
        # with others: it would wait until nothing runs any more.
        if not self.serving.chunked_prefill and self.running:
            todo = self.length(request) - self._cached(request)
            if left < todo <= share:
                return False
        return self._fits(request)

    def _fits(self, request: int) -> bool:
        admission = self.admission
        if admission is Admission.WHOLE:
            return self._promised + self._whole(request) <= self.blocks
        if admission is Admission.PROMPT:
            return self.used + self._own(request) <= self.blocks
        reserve, block = self.serving.rules.reserve, self.block * self.pace
        share = reserve.share(self.decoding.steps - self._since)
        later = share * self.pace * self.decoding.tokens_left + self._writing
        own = self._own(request) * block + min(self.lacks[request], reserve.longest)
        return self.used * block + own + later <= self.blocks * block

    def _start(self, request: int) -> int:
        """Take a request in; returns the tokens of it that are in the cache already."""
        own = self._own(request)
        self.running[request] = own
        self._held += own
        if self.admission is Admission.WHOLE:
            self._promised += self._whole(request)
        self._writing += self.lacks[request]
        found = self._cached(request)
        self.reused += found
        return found


class Batcher:
    """The queue before one device: when a batch goes, and how many samples it has.

    Parameters
    ----------
    rules : Dynamic
        Delay and preferred sizes.
    most : int
        Samples of a batch at most.
    """

    def __init__(self, rules: Dynamic, most: int) -> None:
        self.delay, self.most = rules.delay, most
        self.sizes = sorted({*rules.preferred, most})
        self._queue: deque[tuple[Seconds, int]] = deque()
        self._samples = 0

    def join(self, samples: int, now: Seconds) -> None:
        """Add a request to the queue."""
        self._queue.append((now, samples))
        self._samples += samples

    def held_until(self, now: Seconds) -> Seconds:
        """Return the time until which the queue is held for a larger batch; `now` if not held."""
        if not self._queue or self._samples >= self.sizes[0]:
            return now
        return max(now, self._queue[0][0] + self.delay)

    def take(self) -> int:
        """Take a batch from the queue; return its samples."""
        place = bisect_right(self.sizes, self._samples)
        size = self.sizes[place - 1] if place else self.most
        left = size
        while self._queue and self._queue[0][1] <= left:
            taken = self._queue.popleft()[1]
            left -= taken
            self._samples -= taken
        return size
