"""One replica of an engine: an event is an iteration, or many of them where nothing changes."""

from __future__ import annotations

import math
from dataclasses import dataclass

from simulator.compute.forward_pass import Iteration
from simulator.scenario.serving import Serving
from simulator.serving.forward import Pass
from simulator.serving.load import Requests
from simulator.serving.scheduler import Batch, Scheduler
from simulator.units import Seconds


@dataclass(slots=True)
class Counts:
    """What a run adds up: times [s], requests times seconds, tokens.

    `held` is blocks of the cache times seconds, `peak` the most blocks at once.
    """

    end: Seconds = 0.0
    busy: Seconds = 0.0
    iterations: int = 0
    running: float = 0.0
    held: float = 0.0
    peak: int = 0
    prefilled: int = 0
    decoded: int = 0
    preemptions: int = 0

    def add(self, other: Counts) -> None:
        """Count another replica's in; the end is the later one's."""
        self.end, self.peak = max(self.end, other.end), max(self.peak, other.peak)
        for name in ("busy", "iterations", "running", "held", "prefilled", "decoded"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.preemptions += other.preemptions


class Replica:
    """Runs all its requests to their end.

    Parameters
    ----------
    serving : Serving
        The engine and its settings.
    blocks : int
        Blocks of its cache.
    work : Pass
        What iterations take.
    requests : Requests
        What it is sent; their times are written there.
    shared_prefix : int
        Tokens at the beginning of all prompts that lie in the cache.
    """

    def __init__(
        self,
        serving: Serving,
        blocks: int,
        work: Pass,
        requests: Requests,
        shared_prefix: int = 0,
    ) -> None:
        self.work, self.requests = work, requests
        self.overhead, self.per_token = serving.request_overhead, serving.prompt_overhead
        self.scheduler = Scheduler(serving, blocks, requests, shared_prefix)
        self.clock: Seconds = 0.0
        self.counts = Counts()
        self._sent = 0

    def run(self) -> Counts:
        """All of it; returns what it adds up to."""
        scheduler, arrivals = self.scheduler, self.requests.arrivals
        while True:
            self._receive()
            if not scheduler.running and not scheduler.waiting:
                if self._sent >= len(arrivals):
                    break
                self.clock = max(self.clock, self._ready())
                continue
            batch = scheduler.compose()
            if batch.work.prefill_tokens:
                self._pass(batch, 1, self.work.seconds(batch.work))
            else:
                self._pass(batch, *self._decode(batch.work))
        self.counts.end = self.clock
        self.counts.preemptions = scheduler.preemptions
        return self.counts

    def _receive(self) -> None:
        """Put what has arrived by now among those that wait."""
        arrivals, clock, waiting = self.requests.arrivals, self.clock, self.scheduler.waiting
        while self._sent < len(arrivals) and self._ready() <= clock:
            waiting.append(self._sent)
            self._sent += 1

    def _ready(self) -> Seconds:
        """When the request that is sent next reaches the scheduler [s]."""
        requests, number = self.requests, self._sent
        beside = self.overhead + self.per_token * requests.prompts[number]
        return requests.arrivals[number] + beside

    def _decode(self, batch: Iteration) -> tuple[int, Seconds]:
        """Iterations of decoding alone that nothing disturbs, and what they take [s]."""
        scheduler, arrivals = self.scheduler, self.requests.arrivals
        many = scheduler.undisturbed()
        until = math.inf
        if self._sent < len(arrivals) and scheduler.is_open:
            until = self._ready() - self.clock
        return iterations_until(self.work, batch, many, until)

    def _pass(self, batch: Batch, iterations: int, time: Seconds) -> None:
        """Let an iteration (or several) pass, and note who started, spoke first and ended."""
        scheduler, requests, counts = self.scheduler, self.requests, self.counts
        began = self.clock
        self.clock = now = began + time
        used = scheduler.used
        counts.busy += time
        counts.iterations += iterations
        counts.running += len(scheduler.running) * time
        counts.held += used * time
        counts.peak = max(counts.peak, used)
        counts.prefilled += batch.work.prefill_tokens
        counts.decoded += batch.work.decoding * iterations
        for request in batch.started:
            if math.isnan(requests.scheduled[request]):
                requests.scheduled[request] = began
        for request in batch.ended:
            if math.isnan(requests.first[request]):
                requests.first[request] = now
        for request in scheduler.complete(batch, iterations):
            requests.last[request] = now
            if requests.clients is not None and len(requests.arrivals) < len(requests):
                requests.arrivals.append(now + requests.think)


def iterations_until(
    work: Pass, batch: Iteration, most: int, until: Seconds
) -> tuple[int, Seconds]:
    """How many of `most` equal iterations begin before `until`, and what they take.

    Iterations grow longer as contexts do, so that their time is convex in their number; a few
    secants find the first that ends at or after `until`.
    """

    def time_of(iterations: int) -> Seconds:
        return work.decode_seconds(batch.decoding, batch.context_tokens, iterations)

    whole = time_of(most)
    if whole < until or most == 1:
        return most, whole
    short, reached = 0, 0.0
    long, passed = most, whole
    while long - short > 1:
        share = (until - reached) / (passed - reached) if passed > reached else 0.0
        middle = min(long - 1, max(short + 1, short + math.ceil(share * (long - short))))
        time = time_of(middle)
        if time < until:
            short, reached = middle, time
        else:
            long, passed = middle, time
    return long, passed
