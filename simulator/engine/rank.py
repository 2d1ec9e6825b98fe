"""One training process: its main thread, its device and its communication stream."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from simpy import Environment, Event

from simulator.engine.barrier import Barrier
from simulator.engine.loader import Mailbox, RankLoader, Steps
from simulator.engine.machine import Task
from simulator.engine.notes import COMMUNICATION, COMPUTE, COPY, COPY_BACK, Note, Noted
from simulator.engine.supply import Supply
from simulator.equations.stragglers import left_to_wait

RUN_AHEAD = 2
"""Batches handed to the device and not finished, the running one included, when the program
does not wait for the device: enough to hide the next batch, as a launch queue of about a
thousand kernels holds one to three steps of a common model."""


T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Work(Generic[T]):
    """What one batch of one rank asks of the machine, ready to be carried out."""

    copy: Sequence[T]
    forward: Sequence[T]
    backward: Sequence[T]
    update: Sequence[T]
    reduce: Sequence[T]
    wait: Sequence[T]
    slowest: Sequence[T]
    program: Sequence[T]
    result: Sequence[T]
    exchange: Sequence[T]
    gather: Sequence[T]
    bubble: Sequence[T]
    bucket_shares: Sequence[float]


@dataclass(slots=True)
class Ledger:
    """Where a rank's device spent its time so far [s]; the parts add up to the time passed."""

    data_stall: float = 0.0
    h2d: float = 0.0
    compute: float = 0.0
    communication: float = 0.0
    bubble: float = 0.0
    other: float = 0.0
    hidden_communication: float = 0.0

    def totals(self) -> tuple[float, ...]:
        """All entries, in the order they are declared."""
        return (
            self.data_stall,
            self.h2d,
            self.compute,
            self.communication,
            self.bubble,
            self.other,
            self.hidden_communication,
        )


@dataclass(slots=True)
class _Item:
    share: float
    step: int
    closes_step: bool
    copied: Event
    done: Event | None


@dataclass(slots=True)
class _Bucket:
    task_share: float
    step: int
    finished: Event | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """How the program drives its device.

    `device_wait` is how long a step waits for the slowest device where all ranks come together [s],
    `stands_for` what the rank counts among those that it waits for.
    """

    accumulation: int
    copies_beside_compute: bool
    waits_each_step: bool
    start_delay: float
    device_wait: float = 0.0
    stands_for: float = 1.0


class Rank:
    """Simulates one rank over one epoch.

    Parameters
    ----------
    env, index : Environment, int
        The clock, and which rank this is.
    loader, supply, work, rules : RankLoader, Supply, Work, Rules
        Where batches come from, which there are, what each costs, how the program runs.
    barriers : pair of Barrier or None
        Where ranks meet before and after each bucket's all-reduce; None with a single rank.
    on_step, note : callable
        Told of the end of each step (rank, step), and of each piece of work for a trace.
    """

    def __init__(  # noqa: PLR0913 - the parts of a rank
        self,
        env: Environment,
        index: int,
        *,
        loader: RankLoader,
        supply: Supply,
        work: Work[Task],
        rules: Rules,
        barriers: tuple[Barrier, Barrier] | None,
        on_step: Callable[[int, int], None],
        note: Note | None,
    ) -> None:
        self._env = env
        self.index = index
        self.loader = loader
        self._supply = supply
        self._work = work
        self._rules = rules
        self._barriers = barriers
        self._on_step = on_step
        self._note = note
        self._device: Mailbox[_Item | None] = Mailbox(env)
        self._copies: Mailbox[_Item] = Mailbox(env)
        self._buckets: Mailbox[_Bucket] = Mailbox(env)
        self._reducing = 0.0
        self._reducing_since: float | None = None
        self._slots = RUN_AHEAD
        self._lag = 0.0
        self._slot_free: Event | None = None
        self.ledger = Ledger()
        self.finished = Event(env)

    def start(self) -> None:
        """Start the main thread, the device and its streams."""
        self._env.process(self._main())
        self._env.process(self._run_device())
        if self._rules.copies_beside_compute:
            self._env.process(self._run_copies())
        if self._barriers is not None:
            self._env.process(self._run_reductions(self._barriers))

    def _main(self) -> Steps:
        if self._rules.start_delay:
            yield self._env.timeout(self._rules.start_delay)
        self.loader.start()
        taken = 0
        while self._supply.has(taken):
            batch = yield from self.loader.next_batch(taken)
            item = self._hand_over(batch, taken)
            taken += 1
            while self._slots == 0:
                self._slot_free = Event(self._env)
                yield self._slot_free
            if not self._rules.copies_beside_compute:
                yield item.copied
            if item.done is not None:
                yield item.done
        self._device.put(None)

    def _hand_over(self, batch: int, taken: int) -> _Item:
        step = taken // self._rules.accumulation
        fills = (taken + 1) % self._rules.accumulation == 0
        closes = fills or not self._supply.has(taken + 1)
        item = _Item(
            share=self._supply.share(batch),
            step=step,
            closes_step=closes,
            copied=Event(self._env),
            done=Event(self._env) if closes and self._rules.waits_each_step else None,
        )
        self._slots -= 1
        if self._rules.copies_beside_compute:
            self._copies.put(item)
        self._device.put(item)
        return item

    def _run_copies(self) -> Steps:
        while True:
            item = yield from self._copies.get()
            started = self._env.now
            for task in self._work.copy:
                yield task(item.share)
            self._tell("h2d", started, item.step, COPY)
            item.copied.succeed()

    def _run_device(self) -> Steps:
        while True:
            started = self._env.now
            item = yield from self._device.get()
            if item is None:
                break
            self.ledger.data_stall += self._env.now - started
            self._tell("waits for data", started, item.step)
            yield from self._copy_in(item)
            yield from self._compute(item)
            yield from self._copy_out(item)
            self._slots += 1
            if self._slot_free is not None and not self._slot_free.triggered:
                self._slot_free.succeed()
            if item.done is not None:
                item.done.succeed()
            if item.closes_step:
                self._on_step(self.index, item.step)
        self.finished.succeed()

    def _copy_in(self, item: _Item) -> Steps:
        started = self._env.now
        if self._rules.copies_beside_compute:
            if not item.copied.processed:
                yield item.copied
        else:
            for task in self._work.copy:
                yield task(item.share)
            self._tell("h2d", started, item.step, COPY)
            item.copied.succeed()
        self.ledger.h2d += self._env.now - started
        self._tell("waits for copy", started, item.step)

    def _compute(self, item: _Item) -> Steps:
        yield from self._run("forward", self._work.forward, item.share, item.step)
        if not item.closes_step or self._barriers is None:
            yield from self._run("backward", self._work.backward, item.share, item.step)
        else:
            yield from self._backward_with_reductions(item)
        yield from self._communicate("exchange", self._work.exchange, item.share, item.step)
        if item.closes_step:
            yield from self._wait_for_devices(item.step)
            started = self._env.now
            self.ledger.bubble += yield from self._let_pass(self._work.bubble, 1.0)
            self._tell("bubble", started, item.step)
            yield from self._communicate("gather", self._work.gather, 1.0, item.step)
            yield from self._run("optimizer", self._work.update, 1.0, item.step)
            yield from self._stand_idle("waits for program", self._work.program, item.step)

    def _communicate(self, name: str, tasks: Sequence[Task], share: float, step: int) -> Steps:
        """Communicate while the device waits."""
        started = self._env.now
        self.ledger.communication += yield from self._let_pass(tasks, share)
        self._tell(name, started, step, COMMUNICATION)
        self._tell(f"waits for {name}", started, step)

    def _stand_idle(self, name: str, tasks: Sequence[Task], step: int) -> Steps:
        started = self._env.now
        self.ledger.other += yield from self._let_pass(tasks, 1.0)
        self._tell(name, started, step)

    def _wait_for_devices(self, step: int) -> Steps:
        """Wait for the slowest device, as far as waiting for late batches has not done so."""
        if self._rules.device_wait > 0.0:
            started = self._env.now
            left = left_to_wait(self._rules.device_wait, self._lag) / self._rules.device_wait
            self.ledger.other += yield from self._let_pass(self._work.slowest, float(left))
            self._tell("waits for slowest device", started, step)
        self._lag = 0.0

    def _let_pass(self, tasks: Sequence[Task], share: float) -> Generator[Event, object, float]:
        """Carry out what keeps no device busy; how long it took [s]."""
        started = self._env.now
        for task in tasks:
            yield task(share)
        return float(self._env.now) - started

    def _run(self, name: str, tasks: Sequence[Task], share: float, step: int) -> Steps:
        started = self._env.now
        for task in tasks:
            yield task(share)
        self.ledger.compute += self._env.now - started
        self._tell(name, started, step)

    def _backward_with_reductions(self, item: _Item) -> Steps:
        finished, last = Event(self._env), len(self._work.bucket_shares) - 1
        for number, share in enumerate(self._work.bucket_shares):
            yield from self._run("backward", self._work.backward, item.share * share, item.step)
            self._buckets.put(_Bucket(share, item.step, finished if number == last else None))
        started, reduced = self._env.now, self._time_reducing()
        yield finished
        exposed = self._time_reducing() - reduced
        waited = self._env.now - started
        self.ledger.communication += exposed
        self.ledger.other += waited - exposed
        self.ledger.hidden_communication -= exposed
        self._tell("waits for all-reduce", started, item.step)
        yield from self._stand_idle("waits for other ranks", self._work.wait, item.step)

    def _run_reductions(self, barriers: tuple[Barrier, Barrier]) -> Steps:
        before, after = barriers
        while True:
            bucket = yield from self._buckets.get()
            if not before.alone:
                yield before.wait(self._rules.stands_for)
                self._lag = max(self._lag, before.lag)
            started = self._reducing_since = self._env.now
            # Chunks of a bucket are between machines while others are inside: both at once.
            yield from [task(bucket.task_share) for task in self._work.reduce]
            if not after.alone:
                yield after.wait()
            self._reducing_since = None
            self._reducing += self._env.now - started
            self.ledger.hidden_communication += self._env.now - started
            self._tell("all-reduce", started, bucket.step, COMMUNICATION)
            if bucket.finished is not None:
                bucket.finished.succeed()

    def _time_reducing(self) -> float:
        running = self._reducing_since
        return self._reducing + (0.0 if running is None else self._env.now - running)

    def _copy_out(self, item: _Item) -> Steps:
        started = self._env.now
        for task in self._work.result:
            yield task(item.share)
        self.ledger.other += self._env.now - started
        self._tell("d2h", started, item.step, COPY_BACK)
        self._tell("waits for copy back", started, item.step)

    def _tell(self, name: str, started: float, step: int, lane: str = COMPUTE) -> None:
        if self._note is not None and self._env.now > started:
            self._note(Noted(rank=self.index, lane=lane, name=name, started=started, step=step))
