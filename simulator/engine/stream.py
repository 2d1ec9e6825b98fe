"""Streams: queues of one server each, such as a GPU's compute stream.

A stream does one thing at a time, in the order asked. Since nothing slows it, the end of a piece
of work is known when it is asked for.
"""

from __future__ import annotations

from functools import partial

from simpy import Environment, Event

from simulator.engine.sharing import Alarm, OnChange, UnitKey, checked, ignore


class Stream:
    """A first-in first-out queue of one server.

    Parameters
    ----------
    env : Environment
        The clock.
    on_change : callable, optional
        Told (time [s], `unit`, 0 or 1) when the stream turns busy or idle.
    unit : str, optional
        What the stream goes by when it tells.

    Examples
    --------
    >>> env = Environment()
    >>> compute = Stream(env)
    >>> forward, backward = compute.run(1.0), compute.run(2.0)
    >>> env.run(backward), env.now, compute.busy()
    (None, 3.0, 3.0)
    """

    __slots__ = ("_asked", "_env", "_free_at", "_on_change", "_unit")

    def __init__(
        self, env: Environment, *, on_change: OnChange | None = None, unit: UnitKey = "stream"
    ) -> None:
        self._env = env
        self._on_change = on_change
        self._unit = unit
        self._free_at = float(env.now)
        self._asked = 0.0

    def run(self, seconds: float) -> Event:
        """Return an event that fires when work of `seconds` [s] has been done in turn."""
        if not seconds >= 0.0:
            checked("seconds", seconds, zero=True)
        now = self._env.now
        queued = self._free_at - now if self._free_at > now else 0.0
        self._free_at = now + (queued + seconds)
        self._asked += seconds
        if self._on_change is None:
            return Alarm(self._env, ignore, queued + seconds)
        if queued == 0.0:
            self._on_change(now, self._unit, 1.0)
        return Alarm(self._env, partial(self._tell_idle, self._free_at), queued + seconds)

    def busy(self) -> float:
        """Return the time up to now [s] during which something ran."""
        return self._asked - max(0.0, self._free_at - self._env.now)

    def _tell_idle(self, since: float, _: Event) -> None:
        if self._on_change is not None and self._free_at <= since:
            self._on_change(self._env.now, self._unit, 0.0)
