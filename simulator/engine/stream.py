"""Streams: queues of one server each, such as a GPU's compute, copy and communication streams.

A stream does one thing at a time, in the order asked. Streams of one device overlap, but may
hold each other up: while a stream that `slowed_by` names is busy, this one progresses at
1 / (1 + factor) of its speed (communication kernels that take multiprocessors from compute).
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeAlias

from simpy import Environment, Event

from simulator.engine.sharing import Deadline, OnChange, UnitKey, checked

OnRun: TypeAlias = Callable[[float, float, object], None]
"""A listener told (start [s], end [s], tag) when a piece of work has been done."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Work:
    """A piece of work in the queue: its length alone [s], its tag and the event of its end."""

    seconds: float
    tag: object
    done: Event


class Stream:
    """A first-in first-out queue of one server.

    Parameters
    ----------
    env : Environment
        The clock.
    slowed_by : iterable of (Stream, factor), optional
        Streams whose being busy holds this one up; several factors add.
    on_run : callable, optional
        Told (start [s], end [s], tag) of each piece of work done.
    on_change : callable, optional
        Told (time [s], `unit`, 0 or 1) when the stream turns busy or idle.
    unit : str, optional
        What the stream goes by when it tells.

    Examples
    --------
    Compute is asked for 3 s; communication for 1 s, during which compute runs at half speed.

    >>> env = Environment()
    >>> communication = Stream(env)
    >>> compute = Stream(env, slowed_by=[(communication, 1.0)])
    >>> step, reduced = compute.run(3.0), communication.run(1.0)
    >>> env.run(step), env.now
    (None, 3.5)
    """

    def __init__(
        self,
        env: Environment,
        *,
        slowed_by: Iterable[tuple[Stream, float]] = (),
        on_run: OnRun | None = None,
        on_change: OnChange | None = None,
        unit: UnitKey = "stream",
    ) -> None:
        self._env = env
        self._on_run = on_run
        self._on_change = on_change
        self._unit = unit
        self._queue: deque[_Work] = deque()
        self._started = 0.0
        self._left = 0.0
        self._speed = 1.0
        self._since = float(env.now)
        self._busy = 0.0
        self._brakes: list[tuple[Stream, float]] = []
        self._slows: list[Stream] = []
        self._deadline = Deadline(env, self._finish)
        for other, factor in slowed_by:
            self.slow_by(other, factor)

    def slow_by(self, other: Stream, factor: float) -> None:
        """Have this stream progress at 1 / (1 + `factor`) of its speed while `other` is busy."""
        self._brakes.append((other, checked("factor", factor, zero=True)))
        other._slows.append(self)
        self._change_speed()

    def run(self, seconds: float, *, tag: object = None) -> Event:
        """Return an event that fires when work of `seconds` [s] alone has been done in turn."""
        checked("seconds", seconds, zero=True)
        self._advance()
        done = Event(self._env)
        self._queue.append(_Work(seconds=seconds, tag=tag, done=done))
        if len(self._queue) == 1:
            self._start()
            self._turn(busy=True)
        return done

    def busy(self) -> float:
        """Return the time up to now [s] during which something ran."""
        self._advance()
        return self._busy

    def is_busy(self) -> bool:
        """Return whether something runs."""
        return bool(self._queue)

    def _start(self) -> None:
        self._advance()
        self._started = self._env.now
        self._left = self._queue[0].seconds
        self._deadline.move(self._env.now + self._left / self._speed)

    def _finish(self) -> None:
        self._advance()
        work = self._queue.popleft()
        if self._on_run is not None:
            self._on_run(self._started, self._env.now, work.tag)
        work.done.succeed()
        if self._queue:
            self._start()
        else:
            self._turn(busy=False)

    def _advance(self) -> None:
        """Do the work there is up to now; call before the queue or the speed changes."""
        passed = self._env.now - self._since
        if passed > 0.0:
            if self._queue:
                self._left = max(0.0, self._left - self._speed * passed)
                self._busy += passed
            self._since = self._env.now

    def _turn(self, *, busy: bool) -> None:
        for other in self._slows:
            other._change_speed()  # noqa: SLF001 - the same class
        if self._on_change is not None:
            self._on_change(self._env.now, self._unit, float(busy))

    def _change_speed(self) -> None:
        self._advance()
        held_up = math.fsum(factor for other, factor in self._brakes if other.is_busy())
        self._speed = 1.0 / (1.0 + held_up)
        if self._queue:
            self._deadline.move(self._env.now + self._left / self._speed)
