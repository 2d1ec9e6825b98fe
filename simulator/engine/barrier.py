"""A barrier at which parties wait for each other, step after step."""

from __future__ import annotations

from functools import cache, partial
from statistics import NormalDist, fmean

from simpy import Environment, Event

from simulator.engine.clock import Signal
from simulator.engine.sharing import Alarm, checked


class Barrier:
    """A meeting point that opens when all parties are there, and is then ready for the next.

    Parameters
    ----------
    env : Environment
        The clock.
    parties : int
        How many have to come, at least one.
    standing_for : int, optional
        How many the parties stand for, drawn like them: it opens when the latest of so many is
        expected, going by how far apart the parties came.

    Attributes
    ----------
    lag : float
        How much later than the mean party came it opened last [s].

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
        """Whether there is nobody to wait for."""
        return self._parties == 1

    @property
    def waiting(self) -> int:
        """How many wait now."""
        return len(self._came)

    def wait(self, stands_for: float = 1.0) -> Event:
        """Return an event that fires when the last of the parties has come.

        It counts for `stands_for` in the mean that `lag` is taken from.
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
    """By how much the latest of all lags the latest party, over the latter's lag on the mean.

    From the expected maxima of normal draws.
    """
    if parties in (1, all_of_them):
        return 0.0
    return expected_maximum(all_of_them) / expected_maximum(parties) - 1.0


def expected_maximum(draws: int) -> float:
    """Expected largest of so many standard normal draws, two or more.

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
