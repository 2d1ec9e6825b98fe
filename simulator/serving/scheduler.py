"""Scheduling: the contents of the next iteration by the rules of the engine.

Sources of the rules: vllm/v1/core/sched/scheduler.py at 00024d31, SGLang's schedule_policy.py at
00550cd1, TensorRT-LLM's pages on its scheduler and runtime flags; each engine's data file says
which of them it follows.

Requests to one-pass models wait in a `Batcher`, by the rules of Triton's dynamic batcher
(triton-inference-server/server@06151b8b, docs/user_guide/batcher.md): a batch of the largest
preferred size (or the maximum) that the queue fills; else the batcher waits for one of these sizes,
until the oldest request has waited for the delay, and takes all requests of the queue. Requests are
never split, and stay in order.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import deque
from collections.abc import Sequence
from itertools import islice
from typing import Final, NamedTuple

from simulator.equations.serving import blocks_of, causal_pairs
from simulator.physics.forward_pass import Iteration
from simulator.records import dataclass
from simulator.schema.serving import Admission, Batching, Dynamic, Held, Serving
from simulator.serving.load import Requests
from simulator.serving.replica import Decoding
from simulator.units import Seconds

RECHECK = 16
"""Iterations after which an engine that keeps room for answers looks again whether one fits."""


@dataclass(frozen=True, slots=True)
class Reuse:
    """Prompt tokens in the prefix cache: a prefix that all requests share, and a hit rate.

    The `shared_prefix` is stored once. `hit_rate` is the share of the other prompt tokens that is
    found; each request holds its own copy of these.
    """

    shared_prefix: int = 0
    hit_rate: float = 0.0


class Batch(NamedTuple):
    """The next iteration, the requests that start with it, and those whose prefill it completes."""

    work: Iteration
    started: tuple[int, ...]
    ended: tuple[int, ...]


NOTHING: Final = Reuse()
_NONE: Final[Sequence[int]] = ()


class Scheduler:
    """Scheduler of one replica: waiting and running requests, and their cache blocks.

    A request that starts is given blocks for all its current tokens. A preempted request loses its
    blocks and moves to the head of the queue; the tokens that it has generated become part of its
    prompt.

    Parameters
    ----------
    serving : Serving
        The engine and its settings.
    blocks : int
        Number of blocks of the KV cache.
    requests : Requests
        All requests, with their lengths.
    reuse : Reuse
        Prompt tokens that are in the prefix cache.

    Notes
    -----
    Decoding is counted in iterations. With speculative decoding, which generates `pace` tokens
    per iteration, contexts are divided by `pace`, and the cache is counted in blocks of a whole
    number of iterations, each of `unit` blocks of the engine.
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
        """Number of blocks that the next iteration needs for running requests."""
        decoding = self.decoding
        return decoding.blocks() - decoding.number * self.shared + self._held

    @property
    def is_open(self) -> bool:
        """True if an arriving request might start at once, or cause others to start."""
        free = len(self.running) < self.serving.max_sequences
        return free and (not self.waiting or self._waited is not None)

    def join(self, request: int, now: Seconds) -> None:
        """Add a request to the queue at time `now`."""
        self.lacks[request] = self.requests.outputs[request]
        self.waiting.append(request)
        if self.batcher is not None:
            self.batcher.join(self.requests.prompts[request], now)

    def held_until(self, now: Seconds) -> Seconds:
        """Return the time until which requests are held for a larger batch; `now` if not held."""
        return now if self.batcher is None else self.batcher.held_until(now)

    def length(self, request: int) -> int:
        """Return the current number of tokens of a request: prompt and generated ones."""
        requests = self.requests
        return requests.prompts[request] + requests.outputs[request] - self.lacks[request]

    def compose(self) -> Batch:
        """Compose the next iteration, with admission and preemption of requests."""
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
        """Return the number of decode-only iterations until the running requests may change."""
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
        """Complete one or several iterations; return the requests that have ended."""
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
        """Update the number of iterations for which prompts have been held back.

        It is None if they may start. This is TensorRT-LLM's `batch_wait_timeout_iters` and
        `batch_wait_max_tokens_ratio`.
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
        """Return the number of iterations that generate `tokens` tokens."""
        return tokens if self.pace == 1.0 else math.ceil(tokens / self.pace)

    def _whole(self, request: int) -> int:
        """Return the number of blocks of a request with its complete answer."""
        requests = self.requests
        tokens = requests.prompts[request] + requests.outputs[request]
        return blocks_of(self._steps(tokens), self.block) - self.shared

    def _own(self, request: int) -> int:
        """Return the current number of blocks of a request."""
        return blocks_of(self._steps(self.length(request)), self.block) - self.shared

    def _make_room(self) -> bool:
        """Preempt the most recently started requests until the others fit in the cache.

        Return True if any was preempted.
        """
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
        """Schedule prefill for the next iteration within a budget of `budget` prompt tokens.

        Return the number of prompt tokens, of query-key pairs and of prompts, and the requests
        whose prefill completes. A prompt gets at most the budget of one attention group.
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
        """Return the number of cached tokens of a request.

        Of a preempted request only the shared prefix is cached.
        """
        prompt, block = self.requests.prompts[request], self.serving.block_tokens
        found = self.prefix
        if self.lacks[request] == self.requests.outputs[request]:
            found += int(self.reuse.hit_rate * (prompt - found)) // block * block
        return min(found, self.length(request) - 1)

    def _may_start(self, left: int, share: int) -> bool:
        """Return whether the first waiting request may start with `left` prompt tokens.

        `left` is the rest of the iteration's budget; `share` is the most that one prompt may use.
        """
        if not self.waiting or len(self.running) >= self.serving.max_sequences:
            return False
        request = self.waiting[0]
        # A prompt that exceeds the budget left by decoding sequences even alone is chunked by any
        # engine here: else it would wait until no request runs.
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
        """Start a request; return the number of its tokens that are already cached."""
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
    """Dynamic batcher: the queue before one device, with the time and size of the next batch.

    Parameters
    ----------
    rules : Dynamic
        Delay and preferred sizes.
    most : int
        Maximum batch size.
    """

    def __init__(self, rules: Dynamic, most: int) -> None:
        self.delay, self.most = rules.delay, most
        self.sizes = sorted({*rules.preferred, most})
        self._queue: deque[tuple[Seconds, int]] = deque()
        self._samples = 0

    def join(self, samples: int, now: Seconds) -> None:
        """Add a request of `samples` samples to the queue at time `now`."""
        self._queue.append((now, samples))
        self._samples += samples

    def held_until(self, now: Seconds) -> Seconds:
        """Return the time until which the queue is held for a larger batch; `now` if not held."""
        if not self._queue or self._samples >= self.sizes[0]:
            return now
        return max(now, self._queue[0][0] + self.delay)

    def take(self) -> int:
        """Remove the next batch from the queue; return the preferred size that limits it."""
        place = bisect_right(self.sizes, self._samples)
        size = self.sizes[place - 1] if place else self.most
        left = size
        while self._queue and self._queue[0][1] <= left:
            taken = self._queue.popleft()[1]
            left -= taken
            self._samples -= taken
        return size
