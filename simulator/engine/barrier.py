"""A barrier at which parties wait for each other, step after step."""

from __future__ import annotations

from simpy import Environment, Event

from simulator.engine.sharing import checked


class Barrier:
    """A meeting point that opens when all parties are there, and is then ready for the next.

    Parameters
    ----------
    env : Environment
        The clock.
    parties : int
        How many have to come, at least one.

    Examples
    --------
    >>> env = Environment()
    >>> barrier = Barrier(env, 2)
    >>> first = barrier.wait()
    >>> first.triggered, barrier.wait().triggered, first.triggered, barrier.wait().triggered
    (False, True, True, False)
    """

    def __init__(self, env: Environment, parties: int) -> None:
        self._env = env
        self._parties = int(checked("parties", parties))
        self._there = 0
        self._open = Event(env)

    @property
    def waiting(self) -> int:
        """How many wait now."""
        return self._there

    def wait(self) -> Event:
        """Return an event that fires when the last of the parties has come."""
        opens = self._open
        self._there += 1
        if self._there == self._parties:
            self._there = 0
            self._open = Event(self._env)
            opens.succeed()
        return opens
