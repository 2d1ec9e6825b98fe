"""One replica of an engine, event by event: an iteration, or several decode-only iterations."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass
from heapq import heapreplace
from typing import Final

from simulator.physics.forward_pass import Iteration, Pass
from simulator.schema.serving import Serving
from simulator.serving.load import Requests
from simulator.serving.scheduler import NOTHING, Batch, Reuse, Scheduler
from simulator.units import Seconds


@dataclass(slots=True)
class Counts:
    """Totals of a run: times [s], requests times seconds, tokens.

    `held` is the number of cache blocks in use, integrated over time, `peak` its maximum.
    `provided` is the time that replicas were available, summed over replicas; `prepared` the time
    of host threads for requests before they reach the scheduler.
    """

    end: Seconds = 0.0
    provided: Seconds = 0.0
    busy: Seconds = 0.0
    iterations: int = 0
    running: float = 0.0
    held: float = 0.0
    peak: float = 0.0
    prefilled: int = 0
    decoded: int = 0
    preemptions: int = 0
    prepared: Seconds = 0.0

    def add(self, other: Counts) -> None:
        """Add the counts of another replica; `end` and `peak` become the larger of both."""
        self.end, self.peak = max(self.end, other.end), max(self.peak, other.peak)
        for name in _ADDED:
            setattr(self, name, getattr(self, name) + getattr(other, name))


_ADDED = (
    *("provided", "busy", "iterations", "running", "held", "prefilled", "decoded"),
    *("preemptions", "prepared"),
)

_NOBODY: Final[list[int]] = []
"""The requests that end where none does; never added to."""


class Replica:
    """Serves the requests that are sent to it, event by event.

    `due` is the time of the next event: the end of a forward pass, or the arrival of a request at
    an idle replica; infinity without either. The caller must send all earlier requests before
    calling `proceed`.

    Parameters
    ----------
    serving : Serving
        The engine and its settings.
    blocks : int
        Number of blocks of its KV cache.
    work : Pass
        Forward pass, with the time of iterations.
    requests : Requests
        All requests of the service; times of requests that are sent here are written there.
    reuse : Reuse
        Prompt tokens that are in the prefix cache.
    """

    def __init__(
        self,
        serving: Serving,
        blocks: int,
        work: Pass,
        requests: Requests,
        reuse: Reuse = NOTHING,
    ) -> None:
        self.work, self.requests = work, requests
        self.overhead, self.per_token = serving.request_overhead, serving.prompt_overhead
        self.scheduler = Scheduler(serving, blocks, requests, reuse)
        self.clock: Seconds = 0.0
        self.due: Seconds = math.inf
        self.outstanding = 0
        self.counts = Counts()
        self._inbox: deque[tuple[Seconds, int]] = deque()
        self._batch: Batch | None = None
        self._iterations = 0
        self._kept = True
        self.poll_interval, self._unpolled = serving.poll_interval, 0
        self.host_time = serving.host_time
        self._threads = [0.0] * max(1, round(serving.host_threads))

    def send(self, request: int, now: Seconds) -> None:
        """Receive a request at time `now`; it reaches the scheduler after the host's overheads."""
        ready = self._prepared(now) + self.overhead
        ready += self.per_token * self.requests.prompts[request]
        self.outstanding += 1
        self._inbox.append((ready, request))
        if len(self._inbox) > 1:
            return
        if self._batch is None:
            # The replica is idle, or holds requests for a larger batch.
            self.due = min(self.due, max(self.clock, ready))
        elif self._iterations > 1:
            self._cut(self._batch, ready)

    def _prepared(self, now: Seconds) -> Seconds:
        """Return the time at which host threads have prepared a request that arrives now [s]."""
        if not self.host_time:
            return now
        there = heapreplace(self._threads, max(now, self._threads[0]) + self.host_time)
        self.counts.prepared += self.host_time
        return max(now, there) + self.host_time

    def release(self, now: Seconds) -> bool:
        """Start the held batch, as no more requests arrive; return True if there is one."""
        if self.outstanding and self.due == math.inf:
            self.due, self._kept = max(now, self.clock), False
            return True
        return False

    @property
    def is_between(self) -> bool:
        """True if no forward pass is running."""
        return self._batch is None

    def proceed(self) -> list[int]:
        """Process the next event; return the requests that it completed.

        The end of a pass does not start the next one; that is done by another call, so that
        requests that arrive at the same time are included.
        """
        if self._batch is not None:
            return self._end(self._batch)
        scheduler, inbox = self.scheduler, self._inbox
        self.clock = clock = self.due
        if inbox or self.poll_interval > 1:
            self._receive(inbox, clock)
        if not scheduler.running and not scheduler.waiting:
            self.due = max(clock, inbox[0][0]) if inbox else math.inf
        elif (
            scheduler.batcher is not None
            and self._kept
            and (held := scheduler.batcher.held_until(clock)) > clock
        ):
            self.due = min(held, max(clock, inbox[0][0])) if inbox else held
        else:
            self._begin(scheduler.compose())
        return _NOBODY

    def _receive(self, inbox: deque[tuple[Seconds, int]], clock: Seconds) -> None:
        """Move prepared requests to the queue of the scheduler, if polling is due.

        An engine with a poll interval also polls after each iteration with prompts, as SGLang does
        with `scheduler_recv_interval`.
        """
        if self.scheduler.running and self._unpolled < self.poll_interval:
            return
        self._unpolled = 0
        while inbox and inbox[0][0] <= clock:
            ready, request = inbox.popleft()
            self.scheduler.join(request, ready)

    def _begin(self, batch: Batch) -> None:
        """Start a forward pass, or several decode-only passes up to the next event."""
        work = batch.work
        self._batch, self._iterations, self._kept = batch, 1, True
        if work.prefill_tokens:
            self.due = self.clock + self.work.seconds(work)
            return
        most, until = self.scheduler.undisturbed(), math.inf
        if self.poll_interval > 1:
            most = min(most, self.poll_interval - self._unpolled)
        elif self._inbox and self.scheduler.is_open:
            until = self._inbox[0][0] - self.clock
        self._iterations, time = iterations_until(self.work, work, most, until)
        self.due = self.clock + time

    def _cut(self, batch: Batch, ready: Seconds) -> None:
        """Shorten a series of decode-only passes if a new request may join."""
        if self.poll_interval == 1 and self.scheduler.is_open and ready < self.due:
            found = iterations_until(self.work, batch.work, self._iterations, ready - self.clock)
            self._iterations, time = found
            self.due = self.clock + time

    def _end(self, batch: Batch) -> list[int]:
        """Record requests that were scheduled, got their first token or completed in the pass."""
        scheduler, requests, counts = self.scheduler, self.requests, self.counts
        now, began, iterations = self.due, self.clock, self._iterations
        time, used, work = now - began, scheduler.unit * scheduler.used, batch.work
        self._unpolled += self.poll_interval if work.prefill_tokens else iterations
        counts.busy += time
        counts.iterations += iterations
        counts.running += len(scheduler.running) * time
        counts.held += used * time
        counts.peak = max(counts.peak, used)
        counts.prefilled += work.prefill_tokens
        counts.decoded += work.decoding * iterations
        for request in batch.started:
            if math.isnan(requests.scheduled[request]):
                requests.scheduled[request] = began
        for request in batch.ended:
            if math.isnan(requests.first[request]):
                requests.first[request] = now
        done = scheduler.complete(batch, iterations)
        for request in done:
            requests.last[request] = now
        self.outstanding -= len(done)
        self.clock, self._batch = now, None
        return done


def iterations_until(
    work: Pass, batch: Iteration, most: int, until: Seconds
) -> tuple[int, Seconds]:
    """Return the number of equal iterations that begin before `until`, and their time [s].

    At most `most` iterations. As contexts grow, time is convex in the number of iterations; a few
    secant steps find the first iteration that ends at or after `until`.
    """
    whole = work.decode_seconds(batch.decoding, batch.context_tokens, most)
    if whole < until or most == 1:
        return most, whole
    short, reached = 0, 0.0
    long, passed = most, whole
    while long - short > 1:
        share = (until - reached) / (passed - reached) if passed > reached else 0.0
        middle = min(long - 1, max(short + 1, short + math.ceil(share * (long - short))))
        time = work.decode_seconds(batch.decoding, batch.context_tokens, middle)
        if time < until:
            short, reached = middle, time
        else:
            long, passed = middle, time
    return long, passed
