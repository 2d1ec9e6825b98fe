"""The data loader of a rank: batch assignment, prefetch, delivery order, pin-memory thread.

A loader that uses threads is one worker with several threads (`InputPipeline.policy`).

Workers of equal batches start an epoch together, and would stay in step: all would read, work and
write at the same time, unlike real ones. So their *phases* are spread: with W workers the j-th
batch of the second wave (batches W to 2 W - 1) takes 1/2 + (j + 1/2) / W times as long as any
other. From then on the workers are a W-th of a batch's time apart. Samples stay equal, and so does
the work of a wave, as the mean of the factors is 1: no bound moves, and the first batches are not
delayed. Where the times of all tasks are fixed, phases do not affect the mean step, which is the
largest mean of any cycle [1]_; where tasks slow each other, they decide which of them coincide.

There equal batches may *lock in*: phases that attract each other are kept, and which ones
is a matter of rounding. A real run passes through many. So an epoch whose device waits for data and
that is slower than all its bounds is simulated again with batches that differ a little (`JITTER`).

References
----------
.. [1] F. Baccelli, G. Cohen, G. J. Olsder, J.-P. Quadrat, "Synchronization and Linearity", Wiley,
   1992, section 3.7, https://www.rocq.inria.fr/metalau/cohen/documents/BCOQ-book.pdf
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Sequence
from itertools import cycle
from typing import Final, Generic, TypeAlias, TypeVar

import numpy as np
from simpy import Environment, Event

from simulator.engine.sharing import Signal
from simulator.schema.data_loading import Assignment, LoaderPolicy, Straggler
from simulator.schema.fields import Shape, Spread

MIN_WAVES: Final = 4
"""Minimum of waves of workers in an epoch for them to drift apart."""


class Supply:
    """Batches 0, 1, ... of one epoch; `limit` may be lowered while the epoch runs.

    Parameters
    ----------
    batches : int
        Batches of the epoch for each rank.
    last_share : float
        Size of the last batch as a share of a full one.
    stragglers : sequence of Straggler
        Workers or batches that take longer.
    producers : int
        Number of workers whose phases are spread; with 0 all workers stay in step.
    """

    def __init__(
        self,
        batches: int,
        last_share: float = 1.0,
        stragglers: Sequence[Straggler] = (),
        producers: int = 0,
    ) -> None:
        self.limit = batches
        self.producers = producers if producers > 1 and batches >= MIN_WAVES * producers else 0
        self._last_share = last_share
        self._stragglers = tuple(stragglers)

    def has(self, batch: int) -> bool:
        """Return True if the epoch has a batch of this number."""
        return batch < self.limit

    def share(self, batch: int) -> float:
        """Return the size of a batch as a share of a full batch."""
        return self._last_share if batch == self.limit - 1 else 1.0

    def phase(self, batch: int) -> float:
        """Return the factor on the work of a batch that spreads the phases of workers.

        It differs from 1 for the second wave of batches only.
        """
        place = batch - self.producers
        return 0.5 + (place + 0.5) / self.producers if 0 <= place < self.producers else 1.0

    def slowness(self, rank: int, worker: int, batch: int) -> float:
        """Return the factor by which stragglers lengthen the time of a worker for a batch.

        The bytes and requests of the batch stay the same.
        """
        factor = 1.0
        for straggler in self._stragglers:
            factor *= straggler.factor if straggler.hits(rank, worker, batch) else 1.0
        return factor


DRAWN_AT_ONCE: Final = 64
"""Batches that are drawn at once."""

JITTER: Final = 0.03
"""Deviation of the work of a batch, relative to its mean, that lets phases drift: a guess.

It is that of 45 samples of which each deviates by 20%, the spread that is assumed elsewhere."""

GAMMA_SUMS: Final = frozenset({Shape.GAMMA, Shape.EXPONENTIAL})
"""Shapes whose sum over samples is a gamma distribution: one draw per batch suffices."""


class Draws:
    """Random amounts of work of batches, relative to the mean; each averages one draw per sample.

    The amount depends on the number of the batch alone: a job on more cores, with other workers or
    a faster store draws the same batches, so chance cancels in a comparison.

    Parameters
    ----------
    spread : Spread
        Distribution of one sample's amount.
    samples : int
        Samples of a batch.
    generator : numpy.random.Generator
        Source of randomness, used for these draws only.
    """

    def __init__(self, spread: Spread, samples: int, generator: np.random.Generator) -> None:
        self._spread = spread
        self._samples = samples
        self._generator = generator
        self._drawn: list[float] = []

    def of(self, batch: int) -> float:
        """Return the amount of work of a batch relative to the mean batch."""
        if not self._spread.varies:
            return 1.0
        while batch >= len(self._drawn):
            self._drawn += self._more()
        return self._drawn[batch]

    def _more(self) -> list[float]:
        if self._spread.shape in GAMMA_SUMS:
            shape = self._samples * self._spread.deviation**-2.0
            drawn: list[float] = (self._generator.gamma(shape, 1.0, DRAWN_AT_ONCE) / shape).tolist()
            return drawn
        each = self._sample(DRAWN_AT_ONCE * self._samples).reshape(DRAWN_AT_ONCE, self._samples)
        means: list[float] = (each.sum(axis=1) / self._samples).tolist()
        return means

    def _sample(self, count: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        deviation = self._spread.deviation
        if self._spread.shape is Shape.UNIFORM:
            half = deviation * np.sqrt(3.0)
            return np.maximum(self._generator.uniform(1.0 - half, 1.0 + half, count), 0.0)
        sigma = np.sqrt(np.log1p(deviation**2))
        return self._generator.lognormal(-(sigma**2) / 2.0, sigma, count)


Steps: TypeAlias = Generator[Event, object, None]
T = TypeVar("T")


class Mailbox(Generic[T]):
    """An unbounded FIFO queue; waiting readers are served in order of arrival."""

    def __init__(self, env: Environment) -> None:
        self._env = env
        self._items: deque[T] = deque()
        self._readers: deque[Event] = deque()

    def __len__(self) -> int:
        return len(self._items)

    def put(self, item: T) -> None:
        """Add an item, or pass it to the reader that has waited longest."""
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
    """Prepares the batches of one rank in one epoch.

    Parameters
    ----------
    env : Environment
        The clock.
    policy : LoaderPolicy
        The loader's rules.
    supply : Supply
        The epoch's batches.
    read : callable
        ``read(worker, batch)`` yields the steps of a thread that reads samples ahead; used only
        by a policy that reads ahead.
    make : callable
        ``make(worker, batch)`` yields the steps of a worker for a batch, reading included unless
        it is done ahead.
    receive : callable
        ``receive(batch)`` yields the steps that receive a finished batch.
    send : callable or None
        Steps that send a batch from a helper while its worker goes on.
    pin_memory_thread : bool
        True if the pin-memory thread receives batches; else the main thread does.
    waited : callable, optional
        Called with (worker, start, batch) when an idle worker is asked for a batch.
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
        """Number of finished batches that the main thread has not taken yet."""
        return len(self._finished) + len(self._received) + len(self._stash)

    def start(self) -> None:
        """Start the workers and the pin-memory thread, and request the first batches."""
        for worker in range(self._policy.producers):
            self._env.process(self._work(worker))
        if self._pin_memory_thread and self._policy.producers:
            self._env.process(self._keep_receiving())
        for _ in range(self._policy.credits if self._policy.producers else 0):
            self._issue()

    def next_batch(self, wanted: int) -> Generator[Event, object, int]:
        """Wait for the next batch and return its number; without workers, prepare it now.

        Parameters
        ----------
        wanted : int
            Number of the next batch in order; without ordered delivery any finished batch is taken.
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
