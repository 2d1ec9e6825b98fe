"""A rank's loader at work: assignment, prefetch credits, delivery in order, one pin-memory thread.

The rules are those of torch.utils.data.DataLoader (torch 2.13, `dataloader.py` and
`_utils/worker.py`): whole batches go to workers round robin, one new batch is asked for when one
is returned, batches are returned in order, and one thread receives them all. Loaders with
threads instead of processes are one worker with several threads (`Loader.policy`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator
from itertools import cycle
from typing import Generic, TypeAlias, TypeVar

from simpy import Environment, Event

from simulator.engine.batches import Supply
from simulator.engine.clock import Signal
from simulator.schema.workload.loader import Assignment, LoaderPolicy

Steps: TypeAlias = Generator[Event, object, None]
T = TypeVar("T")


class Mailbox(Generic[T]):
    """An unbounded queue; readers are served in the order they came."""

    def __init__(self, env: Environment) -> None:
        self._env = env
        self._items: deque[T] = deque()
        self._readers: deque[Event] = deque()

    def __len__(self) -> int:
        return len(self._items)

    def put(self, item: T) -> None:
        """Add an item, or hand it to the reader that waits longest."""
        if self._readers:
            self._readers.popleft().succeed(item)
        else:
            self._items.append(item)

    def get(self) -> Generator[Event, T, T]:
        """Wait for the oldest item and take it."""
        if self._items:
            return self._items.popleft()
        waiting = Signal(self._env)
        self._readers.append(waiting)
        return (yield waiting)


class RankLoader:
    """Makes one rank's batches of one epoch.

    Parameters
    ----------
    env : Environment
        The clock.
    policy : LoaderPolicy
        The loader's rules.
    supply : Supply
        The epoch's batches.
    read : callable
        Steps of a thread that reads a batch's samples ahead: ``read(worker, batch)``; used only
        by a policy that reads ahead.
    make : callable
        Steps a worker goes through for a batch, reading included unless that is done ahead:
        ``make(worker, batch)``.
    receive : callable
        Steps of taking a finished batch over: ``receive(batch)``.
    send : callable or None
        Steps of sending a batch that a worker has made elsewhere, while the worker goes on.
    pin_memory_thread : bool
        A thread of its own receives (pinning does); else the trainer's thread.
    waited : callable, optional
        Told (worker, since when, batch) of a worker that is asked for a batch after having waited.
    """

    def __init__(  # noqa: PLR0913 - the parts of a loader
        self,
        env: Environment,
        policy: LoaderPolicy,
        supply: Supply,
        read: Callable[[int, int], Steps],
        make: Callable[[int, int], Steps],
        *,
        receive: Callable[[int], Steps],
        send: Callable[[int, int], Steps] | None = None,
        pin_memory_thread: bool,
        waited: Callable[[int, float, int], None] | None = None,
    ) -> None:
        self._env = env
        self._policy = policy
        self._supply = supply
        self._read = read
        self._make = make
        self._receive = receive
        self._send = send
        shared: Mailbox[int] = Mailbox(env)
        one_for_all = policy.assignment is Assignment.SHARED_QUEUE
        self._queues = [shared if one_for_all else Mailbox(env) for _ in range(policy.producers)]
        self._held = [0] * policy.producers
        self._turn = cycle(range(policy.producers))
        self._finished: Mailbox[tuple[int, int]] = Mailbox(env)
        self._received: Mailbox[int] = Mailbox(env)
        self._stash: set[int] = set()
        self._pin_memory_thread = pin_memory_thread
        self._waited = waited
        self.issued = 0

    @property
    def ready(self) -> int:
        """Finished batches that wait to be taken."""
        return len(self._finished) + len(self._received) + len(self._stash)

    def start(self) -> None:
        """Start workers and pin-memory thread, and ask for the first batches."""
        for worker in range(self._policy.producers):
            self._env.process(self._work(worker))
        if self._pin_memory_thread and self._policy.producers:
            self._env.process(self._keep_receiving())
        for _ in range(self._policy.credits if self._policy.producers else 0):
            self._issue()

    def next_batch(self, wanted: int) -> Generator[Event, object, int]:
        """Wait for the next batch and take it; without workers, make it here and now.

        Parameters
        ----------
        wanted : int
            Number of the batch whose turn it is; any finished one will do out of order.
        """
        if not self._policy.producers:
            self.issued = wanted + 1
            yield from self._make(0, wanted)
            yield from self._receive(wanted)
            return wanted
        while not (wanted in self._stash or (self._stash and not self._policy.in_order)):
            yield from self._take_one()
        batch = wanted if self._policy.in_order else self._stash.pop()
        self._stash.discard(batch)
        self._issue()
        return batch

    def _take_one(self) -> Steps:
        if self._pin_memory_thread:
            self._stash.add((yield from self._received.get()))
            return
        batch, worker = yield from self._finished.get()
        self._held[worker] -= 1
        yield from self._receive(batch)
        self._stash.add(batch)

    def _keep_receiving(self) -> Steps:
        while True:
            batch, worker = yield from self._finished.get()
            self._held[worker] -= 1
            yield from self._receive(batch)
            self._received.put(batch)

    def _work(self, worker: int) -> Steps:
        read = self._queues[worker]
        if self._policy.reads_ahead:
            read = Mailbox(self._env)
            self._env.process(self._keep_reading(worker, read))
        while True:
            since = self._env.now
            batch = yield from read.get()
            if self._waited is not None:
                self._waited(worker, since, batch)
            yield from self._make(worker, batch)
            if self._send is None:
                self._finished.put((batch, worker))
            else:
                self._env.process(self._deliver(worker, batch, self._send))

    def _keep_reading(self, worker: int, read: Mailbox[int]) -> Steps:
        while True:
            batch = yield from self._queues[worker].get()
            yield from self._read(worker, batch)
            read.put(batch)

    def _deliver(self, worker: int, batch: int, send: Callable[[int, int], Steps]) -> Steps:
        yield from send(worker, batch)
        self._finished.put((batch, worker))

    def _issue(self) -> None:
        if not self._supply.has(self.issued):
            return
        worker = self._next_worker()
        self._held[worker] += 1
        self._queues[worker].put(self.issued)
        self.issued += 1

    def _next_worker(self) -> int:
        worker = next(self._turn)
        if self._policy.assignment is not Assignment.LEAST_LOADED:
            return worker
        most = self._policy.credits // self._policy.producers
        for _ in range(self._policy.producers):
            if self._held[worker] < most:
                break
            worker = next(self._turn)
        return worker
