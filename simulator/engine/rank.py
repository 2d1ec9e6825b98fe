"""One rank: main thread, compute, copy and communication streams, and barriers between ranks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial
from statistics import NormalDist, fmean

from simpy import Environment, Event

from simulator.engine.loader import Mailbox, RankLoader, Steps, Supply
from simulator.engine.machine import Task
from simulator.engine.sharing import Alarm, Signal, checked
from simulator.engine.trace import (
    COMMUNICATION,
    COMPUTE,
    COPY,
    MAIN,
    RecordEvent,
    TraceEvent,
    lane_of,
    shown_on_device,
)
from simulator.equations.step import left_to_wait
from simulator.pipeline.program import (
    DATA_LINE,
    DEVICE_STREAMS,
    FILLS_BUCKETS,
    OTHER_RANKS_LINE,
    Ledger,
    line_of,
)
from simulator.pipeline.stages.base import Actor, Per, Slot, StageDemands
from simulator.records import dataclass


class Barrier:
    """A barrier that opens when all parties have arrived, and can then be used again.

    Parameters
    ----------
    env : Environment
        The clock.
    parties : int
        Number of parties that must arrive, at least one.
    standing_for : int, optional
        Number of ranks that the simulated parties represent, with the same random times: the
        barrier opens at the expected arrival of the latest of all these ranks.

    Attributes
    ----------
    lag : float
        Time from the mean arrival to the last opening [s].

    Examples
    --------
    >>> env = Environment()
    >>> barrier = Barrier(env, 2)
    >>> first = barrier.wait()
    >>> first.triggered, barrier.wait().triggered, first.triggered, barrier.wait().triggered
    (False, True, True, False)
    """

    def __init__(self, env: Environment, parties: int, standing_for: int = 0) -> None:
        self._env = env
        self._parties = int(checked("parties", parties))
        self._later = _later(self._parties, max(standing_for, self._parties))
        self._came: list[float] = []
        self._weights: list[float] = []
        self.lag = 0.0
        self._open = Signal(env)

    @property
    def alone(self) -> bool:
        """True if the barrier has one party only."""
        return self._parties == 1

    @property
    def waiting(self) -> int:
        """Number of parties that wait now."""
        return len(self._came)

    def wait(self, stands_for: float = 1.0) -> Event:
        """Return an event that fires when the last party has arrived.

        `stands_for` is the weight of this party in the mean arrival, from which `lag` is counted.
        """
        opens = self._open
        self._came.append(self._env.now)
        self._weights.append(stands_for)
        if len(self._came) == self._parties:
            own = self._env.now - fmean(self._came, self._weights)
            others = self._later * own
            self.lag = own + others
            self._came.clear()
            self._weights.clear()
            self._open = Signal(self._env)
            if others > 0.0:
                Alarm(self._env, partial(_open, opens), others)
            else:
                opens.succeed()
        return opens


def _open(barrier: Event, _: Event) -> None:
    barrier.succeed()


@cache
def _later(parties: int, all_of_them: int) -> float:
    """Return the extra lag of the latest of `all_of_them` over the latest of `parties`.

    It is relative to the lag of the latest party. Lags are counted from the mean arrival, with the
    expected maximum of normal draws.
    """
    if parties in (1, all_of_them):
        return 0.0
    return expected_maximum(all_of_them) / expected_maximum(parties) - 1.0


def expected_maximum(draws: int) -> float:
    """Return the expected maximum of `draws` standard normal draws, two or more.

    References
    ----------
    .. [1] Chen, Tyler, "Accurate approximation to the extreme order statistics of Gaussian
       samples", Commun. Stat. Simul. Comput. 28 (1999) 177-188,
       https://doi.org/10.1080/03610919908813542

    Examples
    --------
    1.424 and 3.241 by numerical integration:

    >>> round(expected_maximum(8), 2), round(expected_maximum(1000), 2)
    (1.42, 3.22)
    """
    return NormalDist().inv_cdf(0.5264 ** (1.0 / draws))


RUN_AHEAD = 2
"""Batches handed to the device and not finished, the running one included, when the program
does not wait for the device: enough to hide the next batch, as a launch queue of about a
thousand kernels holds one to three steps of a common model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A slot of the step program with the tasks of a rank.

    `line` is the index of the ledger line that its time counts for.
    """

    slot: Slot
    tasks: Sequence[Task]
    line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """The work of one batch of one rank: its slots with their tasks, by execution order.

    `launching` occupies the main thread, `copies` run on the copy engine; then come the slots
    `before` the backward pass that fills the gradient buckets (`filling`), that pass, the slots
    that `reduce` a bucket, and the slots `after` them. `beside` are slots concurrent with the
    compute of the batch; the device waits for their end after it. `shares` are the shares of the
    gradients in each bucket.
    """

    launching: Sequence[Part]
    copies: Sequence[Part]
    beside: Sequence[Part]
    before: Sequence[Part]
    filling: Sequence[Part]
    reduce: Sequence[Part]
    after: Sequence[Part]
    shares: Sequence[float]


def work_of(
    stages: Sequence[StageDemands],
    shares: Sequence[float],
    tasks: Callable[[StageDemands], Sequence[Task]],
) -> Work:
    """Return the work of a rank's device for a batch: stages on its streams that have demands.

    Parameters
    ----------
    stages : sequence of StageDemands
        The demand table.
    shares : sequence of float
        Share of the gradients in each bucket; empty if gradients are not exchanged.
    tasks : callable
        Returns the tasks of a stage.
    """
    launching: list[Part] = []
    copies: list[Part] = []
    beside: list[Part] = []
    before: list[Part] = []
    filling: list[Part] = []
    reduce: list[Part] = []
    after: list[Part] = []
    now = before
    for stage in stages:
        slot = stage.slot
        if slot.stream not in DEVICE_STREAMS | {Actor.MAIN_THREAD}:
            continue
        own = tasks(stage)
        if slot.stream is Actor.MAIN_THREAD:
            place = launching
        elif slot.stream is Actor.COPY_ENGINE:
            place = copies
        elif slot is FILLS_BUCKETS:
            place, now = filling, after
        elif slot.beside_compute:
            place = beside
        else:
            place = reduce if slot.per is Per.BUCKET else now
        if own:
            line = DATA_LINE if place is launching else line_of(slot)
            place.append(Part(slot=slot, tasks=own, line=line))
    return Work(
        launching=launching,
        copies=copies,
        beside=beside,
        before=before,
        filling=filling,
        reduce=reduce,
        after=after,
        shares=shares if reduce else (1.0,),
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
    """Order and waits with which the training program issues work to its device.

    With `copies_block` the main thread waits for each copy, as from pageable memory; else copies
    that do not overlap compute are queued before it. With `loads_inline` the main thread makes
    batches itself, and so makes the next one before it waits for room to launch. With
    `waits_each_batch` the device is the main thread's own processor. `device_wait` is the wait for
    the slowest device at each synchronization of all ranks [s], `stands_for` the number of real
    ranks that this simulated rank represents in it.
    """

    accumulation: int
    copies_beside_compute: bool
    copies_block: bool
    waits_each_step: bool
    start_delay: float
    loads_inline: bool = False
    waits_each_batch: bool = False
    device_wait: float = 0.0
    stands_for: float = 1.0


class Rank:
    """One rank over one epoch.

    Parameters
    ----------
    env, index : Environment, int
        Clock and number of the rank.
    loader, supply, work, rules : RankLoader, Supply, Work, Rules
        Source of batches, batches of the epoch, work of each batch, rules of the program.
    barriers : pair of Barrier or None
        Barriers before and after each bucket's all-reduce; None with a single rank.
    on_step, record : callable
        Called at the end of each step (rank, step), and with each trace event.
    """

    def __init__(  # noqa: PLR0913 - the parts of a rank
        self,
        env: Environment,
        index: int,
        *,
        loader: RankLoader,
        supply: Supply,
        work: Work,
        rules: Rules,
        barriers: tuple[Barrier, Barrier] | None,
        on_step: Callable[[int, int], None],
        record: RecordEvent | None,
    ) -> None:
        self._env = env
        self.index = index
        self.loader = loader
        self._supply = supply
        self._work = work
        self._rules = rules
        self._barriers = barriers
        self._on_step = on_step
        self._record_event = record
        self._device: Mailbox[_Item | None] = Mailbox(env)
        self._copies: Mailbox[_Item] = Mailbox(env)
        self._buckets: Mailbox[_Bucket] = Mailbox(env)
        self._reducing = 0.0
        self._reducing_since: float | None = None
        self._slots = RUN_AHEAD
        self._lag = 0.0
        self._slot_free: Event | None = None
        self.ledger = Ledger()
        self._exposed_line = work.reduce[0].line if work.reduce else OTHER_RANKS_LINE
        self._reduced: float | None = None
        self.finished = Signal(env)

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
            if self._rules.loads_inline:
                yield from self._wait_for_room()
            item = self._hand_over(batch, taken)
            taken += 1
            if not self._rules.loads_inline:
                yield from self._wait_for_room()
            if self._rules.copies_block:
                yield item.copied
            yield from self._launch(item)
            if item.done is not None:
                yield item.done
        self._device.put(None)

    def _wait_for_room(self) -> Steps:
        """Wait until the device takes launches of one more batch."""
        while self._slots == 0:
            self._slot_free = Signal(self._env)
            yield self._slot_free

    def _launch(self, item: _Item) -> Steps:
        """Launch the kernels of a batch; the main thread does nothing else meanwhile."""
        for part in self._work.launching:
            started = self._env.now
            for task in part.tasks:
                yield task(item.share)
            if self._record_event is not None:
                self._record(part.slot.label, started, item.step, MAIN)

    def _hand_over(self, batch: int, taken: int) -> _Item:
        step = taken // self._rules.accumulation
        fills = (taken + 1) % self._rules.accumulation == 0
        closes = fills or not self._supply.has(taken + 1)
        item = _Item(
            share=self._supply.share(batch),
            step=step,
            closes_step=closes,
            copied=Signal(self._env),
            done=Signal(self._env) if self._waits(closes) else None,
        )
        self._slots -= 1
        if self._rules.copies_beside_compute:
            self._copies.put(item)
        self._device.put(item)
        return item

    def _waits(self, closes: bool) -> bool:  # noqa: FBT001 - of the batch
        """Return True if the main thread waits for the device after a batch."""
        return self._rules.waits_each_batch or (closes and self._rules.waits_each_step)

    def _run_copies(self) -> Steps:
        while True:
            item = yield from self._copies.get()
            yield from self._copy(item)

    def _copy(self, item: _Item) -> Steps:
        for part in self._work.copies:
            started = self._env.now
            for task in part.tasks:
                yield task(item.share)
            if self._record_event is not None:
                self._record(part.slot.label, started, item.step, COPY)
        item.copied.succeed()

    def _run_device(self) -> Steps:
        while True:
            started = self._env.now
            self.ledger.line = DATA_LINE
            item = yield from self._device.get()
            if item is None:
                break
            self._spent(DATA_LINE, started)
            if self._record_event is not None:
                self._record("waits for data", started, item.step)
            yield from self._copy_in(item)
            yield from self._compute(item)
            self._slots += 1
            if self._slot_free is not None and not self._slot_free.triggered:
                self._slot_free.succeed()
            if item.done is not None:
                item.done.succeed()
            if item.closes_step:
                self._on_step(self.index, item.step)
        self.ledger.line = OTHER_RANKS_LINE
        self.finished.succeed()

    def _copy_in(self, item: _Item) -> Steps:
        started = self._env.now
        if self._work.copies:
            self.ledger.line = self._work.copies[0].line
        if not self._rules.copies_beside_compute:
            yield from self._copy(item)
        elif not item.copied.processed:
            yield item.copied
        if self._work.copies:
            self._spent(self._work.copies[0].line, started)
        if self._record_event is not None:
            self._record(f"waits for {COPY}", started, item.step)

    def _compute(self, item: _Item) -> Steps:
        beside = [
            (part, [task(self._share(part, item)) for task in part.tasks], self._env.now)
            for part in self._work.beside
            if part.slot.per is Per.BATCH or item.closes_step
        ]
        for part in self._work.before:
            yield from self._carry_out(part, item)
        if item.closes_step and self._barriers is not None:
            yield from self._fill_buckets(item)
        else:
            for part in self._work.filling:
                yield from self._carry_out(part, item)
        for part, events, began in beside:
            yield from self._wait_for(part, events, began, item.step)
        for part in self._work.after:
            yield from self._carry_out(part, item)

    def _carry_out(self, part: Part, item: _Item) -> Steps:
        """Execute a slot if it is due with this batch: every batch, or the last of a step."""
        slot = part.slot
        if slot.per is Per.BATCH:
            yield from self._do(part, item.share, item.step)
        elif item.closes_step:
            yield from self._do(part, self._left() if slot.after_late else 1.0, item.step)

    @staticmethod
    def _share(part: Part, item: _Item) -> float:
        return item.share if part.slot.per is Per.BATCH else 1.0

    def _wait_for(self, part: Part, events: Sequence[Event], began: float, step: int) -> Steps:
        """Wait for the end of a slot that runs concurrently with compute."""
        started = self._env.now
        self.ledger.line = part.line
        for event in events:
            if not event.processed:
                yield event
        self._spent(part.line, started)
        self._record(shown_on_device(part.slot), started, step)
        self._record(part.slot.label, began, step, COMMUNICATION)

    def _left(self) -> float:
        """Return the share of the wait for the slowest device that remains after late batches."""
        lag, self._lag, wait = self._lag, 0.0, self._rules.device_wait
        return float(left_to_wait(wait, lag) / wait) if wait > 0.0 else 1.0

    def _do(self, part: Part, share: float, step: int) -> Steps:
        env, ledger, line = self._env, self.ledger, part.line
        started = env.now
        ledger.line = line
        for task in part.tasks:
            yield task(share)
        ledger.add(line, env.now - started, env.now)
        if self._record_event is not None:
            self._record_slot(part.slot, started, step)

    def _fill_buckets(self, item: _Item) -> Steps:
        finished, last = Signal(self._env), len(self._work.shares) - 1
        for number, share in enumerate(self._work.shares):
            for part in self._work.filling:
                yield from self._do(part, item.share * share, item.step)
            self._buckets.put(_Bucket(share, item.step, finished if number == last else None))
        started = self._env.now
        self._reduced = self._time_reducing()
        self.ledger.line = OTHER_RANKS_LINE
        yield finished
        exposed, self._reduced = self._exposed(), None
        self.ledger.hidden -= exposed
        self.ledger.add(self._exposed_line, exposed, self._env.now)
        self.ledger.add(OTHER_RANKS_LINE, self._env.now - started - exposed, self._env.now)
        self._record("waits for all-reduce", started, item.step)

    def _exposed(self) -> float:
        """Return the exposed time of the gradient exchange so far [s]."""
        return 0.0 if self._reduced is None else self._time_reducing() - self._reduced

    def spent(self) -> tuple[float, ...]:
        """Return the time of each ledger line up to now [s]."""
        totals = list(self.ledger.totals(self._env.now))
        exposed = self._exposed()
        totals[self._exposed_line] += exposed
        totals[OTHER_RANKS_LINE] -= exposed
        return tuple(totals)

    def _run_reductions(self, barriers: tuple[Barrier, Barrier]) -> Steps:
        before, after = barriers
        tasks = [task for part in self._work.reduce for task in part.tasks]
        while True:
            bucket = yield from self._buckets.get()
            if not before.alone:
                yield before.wait(self._rules.stands_for)
                self._lag = max(self._lag, before.lag)
            started = self._reducing_since = self._env.now
            # Chunks of a bucket are sent inside and between machines at the same time.
            yield from [task(bucket.task_share) for task in tasks]
            if not after.alone:
                yield after.wait()
            self._reducing_since = None
            self._reducing += self._env.now - started
            self.ledger.hidden += self._env.now - started
            if self._record_event is not None:
                self._record("all-reduce", started, bucket.step, COMMUNICATION)
            if bucket.finished is not None:
                bucket.finished.succeed()

    def _time_reducing(self) -> float:
        running = self._reducing_since
        return self._reducing + (0.0 if running is None else self._env.now - running)

    def _spent(self, line: int, started: float) -> None:
        now = self._env.now
        self.ledger.add(line, now - started, now)

    def _record_slot(self, slot: Slot, started: float, step: int) -> None:
        """Record a stage on the timeline row of its stream, if any, and on that of compute."""
        lane = lane_of(slot)
        if lane != COMPUTE:
            self._record(slot.label, started, step, lane)
        self._record(shown_on_device(slot), started, step)

    def _record(self, name: str, started: float, step: int, lane: str = COMPUTE) -> None:
        if self._record_event is not None and self._env.now > started:
            self._record_event(
                TraceEvent(rank=self.index, lane=lane, name=name, started=started, step=step)
            )
