"""The clock of the engine, and building blocks of shared servers: alarms, deadlines, batches.

The clock is simpy's, with less overhead per event.

Three ideas keep the cost of an event small and independent of how many customers are served:

* A batch of customers served at one common rate needs one number, the service each has had
  since the batch began (its *progress*). A customer that joins asks for ``amount`` more, so it
  leaves when progress reaches ``progress + amount``, its *finish mark*, at any rate in between. A
  heap of finish marks therefore never has to be touched when rates change.
* Only the next departure needs an alarm (`Deadline`).
* All arrivals and departures at one instant change the rates once, after all other events of
  that instant (`LATE`).

Ties are resolved by arrival number, so a run is reproduced exactly.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator
from heapq import heapify, heappop, heappush
from typing import Final, TypeAlias

from simpy import Environment, Event
from simpy.events import NORMAL, PENDING, URGENT, EventPriority


class Clock(Environment):
    """A simpy environment whose events never fail; it processes them twice as fast as simpy.

    Examples
    --------
    >>> clock = Clock()
    >>> clock.run_until(clock.timeout(2.0))
    >>> clock.now
    2.0

    Attributes
    ----------
    now : float
        The time [s].
    events : int
        Number of events scheduled when the current event was scheduled.
    """

    now = 0.0
    events = 0

    def process(self, generator: Generator[Event, object, object]) -> Routine:  # type: ignore[override] # simpy's has more to tell
        """Start a generator as a process that resumes after each event that it yields."""
        return Routine(self, generator)

    def run_until(self, last: Event) -> None:
        """Process events in order until `last` has happened.

        Raises
        ------
        RuntimeError
            If the queue of events is empty before that.
        """
        queue, pop = self._queue, heappop
        while last.callbacks is not None:
            if not queue:
                msg = "no event is left, and a process still waits"
                raise RuntimeError(msg)
            now, _, self.events, event = pop(queue)
            self._now = self.now = now
            callbacks = event.callbacks
            event.callbacks = None  # type: ignore[assignment] # simpy's mark of what has happened
            for callback in callbacks:
                callback(event)


class Signal(Event):
    """An event that is triggered explicitly, at a third of the time that simpy's needs."""

    _ok = True
    _value = PENDING

    def __init__(self, env: Environment) -> None:
        self.env = env
        self.callbacks = []

    def succeed(self, value: object = None) -> Signal:
        """Trigger the event at this instant, after all events that were triggered before.

        Raises ------ RuntimeError If the event was triggered before.
        """
        if self._value is not PENDING:
            msg = f"{self} has already been triggered"
            raise RuntimeError(msg)
        self._value = value
        env = self.env
        # As the clock's own `schedule` does it: no other call but an alarm's is made as often.
        heappush(env._queue, (env._now, NORMAL, next(env._eid), self))  # noqa: SLF001 - the same
        return self


class Routine(Signal):
    """A process: a generator that waits for the events it yields; it triggers when it has ended.

    An exception that the generator raises is raised by the clock's run.

    Parameters
    ----------
    env : Clock
        The clock.
    steps : generator
        Yields the events to wait for.
    """

    def __init__(self, env: Clock, steps: Generator[Event, object, object]) -> None:
        super().__init__(env)
        self._send = steps.send
        self._waiting = self._go_on
        start = Event(env)
        start._ok = True  # noqa: SLF001 - as an event that has succeeded
        start._value = None  # noqa: SLF001 - the same
        start.callbacks.append(self._waiting)
        env.schedule(start, URGENT)

    def _go_on(self, event: Event) -> None:
        """Resume the generator, up to the next event that has not happened yet."""
        try:
            while True:
                event = self._send(event._value)  # noqa: SLF001 - of one that has succeeded
                if event.callbacks is not None:
                    event.callbacks.append(self._waiting)
                    return
        except StopIteration as end:
            self.succeed(end.value)


UnitKey: TypeAlias = str
"""What a unit of capacity goes by, such as ``"nvme0"``."""

OnChange: TypeAlias = Callable[[float, UnitKey, float], None]
"""A listener, called with (time [s], unit, utilization from 0 to 1) at a change."""

LATE: Final = EventPriority(NORMAL + 1)
"""Priority of events that must follow all others of the same instant."""

LAST: Final = EventPriority(NORMAL + 2)
"""Priority of observers, which see the final state of an instant."""

TOGETHER: Final = 1e-12
"""Finish marks this close, relative to their size, are one instant; below it is rounding."""

JUST_BELOW: Final = 1.0 - TOGETHER
"""Of a finish mark: the service from which on its customer has had all."""

_REBASE: Final = 1024.0
_ULPS: Final = 4.0


class Alarm(Event):
    """An event that calls `action` after `delay` [s]."""

    _ok = True
    _value = None

    def __init__(
        self,
        env: Environment,
        action: Callable[[Event], None],
        delay: float = 0.0,
        priority: EventPriority = NORMAL,
    ) -> None:
        self.env = env
        self.callbacks = [action]
        # As the clock's own `schedule` does it: no other call is made as often.
        due = env._now + delay  # noqa: SLF001 - as `Environment.schedule`
        heappush(env._queue, (due, priority, next(env._eid), self))  # noqa: SLF001 - the same


def happen(event: Event, action: Callable[[Event], None], delay: float) -> None:
    """Trigger an event after `delay` [s], and call `action` before it."""
    event.callbacks.insert(0, action)
    event._ok = True  # noqa: SLF001 - as when it succeeds, but later
    event._value = None  # noqa: SLF001 - the same
    event.env.schedule(event, NORMAL, delay)


class Deadline:
    """A deadline that may be moved; `action` is called when it is reached.

    Moving it later is free: the alarm already set goes off early and is set again. Moving it
    earlier sets a new alarm and discards the old one.

    Parameters
    ----------
    env : Environment
        The clock.
    action : callable
        Called without arguments at the deadline.
    """

    __slots__ = ("_action", "_alarm", "_alarm_at", "_at", "_env")

    def __init__(self, env: Environment, action: Callable[[], None]) -> None:
        self._env = env
        self._action = action
        self._at = math.inf
        self._alarm: Event | None = None
        self._alarm_at = math.inf

    def move(self, delay: float) -> None:
        """Set the deadline `delay` [s] from now; infinity removes it."""
        at = self._at = self._env.now + delay
        if at < self._alarm_at:
            self._alarm_at = at
            self._alarm = Alarm(self._env, self._ring, delay)

    def _ring(self, alarm: Event) -> None:
        if alarm is not self._alarm:
            return
        self._alarm = None
        self._alarm_at = math.inf
        if self._at > self._env.now:
            self.move(self._at - self._env.now)
        else:
            self._at = math.inf
            self._action()


class Late:
    """Calls `action` once at the end of each instant in which `ask` was called."""

    __slots__ = ("_actions", "_asked", "_env")

    def __init__(self, env: Environment, action: Callable[[Event], None]) -> None:
        self._env = env
        self._actions = [action]
        # One event is scheduled repeatedly: simpy removes its callbacks when it happens.
        self._asked = Event(env)
        self._asked._ok = True  # noqa: SLF001 - as an event that has succeeded
        self._asked._value = None  # noqa: SLF001 - the same
        self._asked.callbacks = None  # type: ignore[assignment] # as simpy leaves it behind

    def ask(self) -> None:
        """Schedule `action` for the end of this instant."""
        asked = self._asked
        if asked.callbacks is None:
            asked.callbacks = self._actions  # type: ignore[unreachable] # None: it has happened
            env = self._env
            heappush(env._queue, (env._now, LATE, next(env._eid), asked))  # noqa: SLF001 - as an alarm


Departure: TypeAlias = tuple[int, float, Event]
"""Arrival number, weight and event of a customer that has had its service."""


class Batch:
    """Customers served at one common rate, as a heap of (finish mark, number, weight, event)."""

    __slots__ = ("marks", "progress")

    def __init__(self) -> None:
        self.progress = 0.0
        self.marks: list[tuple[float, int, float, Event]] = []

    def join(self, amount: float, number: int, event: Event, weight: float = 1.0) -> None:
        """Add a customer that leaves after `amount` more service.

        Progress restarts from zero when it is large compared with the amount, to preserve
        precision.
        """
        if not self.marks or self.progress > _REBASE * amount:
            self._rebase()
        heappush(self.marks, (self.progress + amount, number, weight, event))

    def remaining(self) -> float:
        """Return the service that is left until the next customer leaves."""
        return max(0.0, self.marks[0][0] - self.progress)

    def leave(self, slack: float) -> list[Departure]:
        """Remove and return all customers with at most `slack` of service left, up to rounding."""
        marks, served = self.marks, self.progress + slack
        gone: list[Departure] = []
        while marks and marks[0][0] * JUST_BELOW <= served:
            _, number, weight, event = heappop(marks)
            gone.append((number, weight, event))
        return gone

    def complete_next(self) -> None:
        """Advance progress to the next finish mark, which is reached up to rounding."""
        self.progress = max(self.progress, self.marks[0][0])

    def _rebase(self) -> None:
        base = self.progress
        self.progress = 0.0
        if not self.marks:
            return
        self.marks = [(mark - base, n, weight, event) for mark, n, weight, event in self.marks]
        heapify(self.marks)


def ignore(_: Event) -> None:
    """Do nothing: the action of an alarm that only processes wait for."""


def clock_slack(now: float) -> float:
    """Return the difference of times [s] below which instants at `now` [s] count as equal."""
    return _ULPS * math.ulp(now)


def succeed_in_order(gone: list[Departure]) -> None:
    """Trigger the events of departed customers in order of their arrival."""
    if len(gone) > 1:
        gone.sort(key=_arrival)
    for _, _, event in gone:
        event.succeed()


def _arrival(departure: Departure) -> int:
    return departure[0]


def checked(name: str, value: float, *, zero: bool = False) -> float:
    """Return `value` if it is positive (or zero with `zero`), else raise ValueError."""
    if value > 0.0 or (zero and value == 0.0):
        return value
    msg = f"{name}(={value}) must be {'at least' if zero else 'above'} 0"
    raise ValueError(msg)
