"""Work that nothing ever slows: it takes a fixed time, whatever else goes on.

`Course` says how long, in the one form that both solvers use; `Courses` carries it out beside
what shares. How busy a unit was is added up without rounding, so it does not depend on the order
in which work was done.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Final

from simpy import Environment, Event

from simulator.engine.clock import Signal
from simulator.engine.contention import Unshared, limiting, own_rate
from simulator.engine.folding import Fold
from simulator.engine.sharing import Alarm, OnChange, happen, ignore
from simulator.pipeline.stages.base import Demand, Path
from simulator.pipeline.topology import CPU, Location, Topology
from simulator.units import Seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """What is busy while work is under way: `share` of each unit's capacity, 0 to 1."""

    units: tuple[tuple[str, float], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """Work of a fixed length: `latency` [s] passes, then `amount` is done at `rate` [amount/s]."""

    latency: Seconds
    amount: float
    rate: float
    use: Use

    def waits(self, scale: float) -> Seconds:
        """Time before anything is busy [s], for so many times the work."""
        return self.latency * scale

    def works(self, scale: float) -> Seconds:
        """Time that units are busy [s]."""
        return self.amount * scale / self.rate if self.amount > 0.0 else 0.0


def course(
    demand: Demand, place: Location, topology: Topology, fold: Fold, alone: Unshared
) -> Course | None:
    """The course of a demand; None where it shares with others what they ask for."""
    amount, latency = float(demand.amount), float(demand.latency)
    if demand.path is Path.COMPUTE:
        return None
    if demand.path is Path.CORES:
        return _on_cores(demand, place, topology, fold) if alone.cores else None
    if amount == 0.0:
        return Course(latency=latency, amount=0.0, rate=math.inf, use=Use(units=()))
    route = limiting(fold.route(topology, demand, place), topology)
    if not alone.units.issuperset(unit for unit, _ in route):
        return None
    rate = own_rate(demand, route, topology)
    shares = ((unit, rate * use / float(topology.units[unit].capacity)) for unit, use in route)
    use = Use(units=tuple((unit, min(1.0, share)) for unit, share in shares))
    return Course(latency=latency, amount=amount, rate=rate, use=use)


def _on_cores(demand: Demand, place: Location, topology: Topology, fold: Fold) -> Course:
    site, count = topology.sites[place.site], fold.count(place.rank)
    pool, threads = site.host.cpu, demand.threads * count
    share = min(1.0, threads / float(pool.free))
    return Course(
        latency=0.0,
        amount=float(demand.amount) * count,
        rate=float(pool.capacity_for(threads)),
        use=Use(units=((site.prefix + CPU, share),)),
    )


_SHIFT: Final = 1074
"""Every float is a whole multiple of 2**-1074."""


class Tally:
    """Time that pieces of work were under way, all together, added up without rounding."""

    __slots__ = ("_open", "_sum")

    def __init__(self) -> None:
        self._sum = 0
        self._open = 0

    def start(self, now: Seconds) -> None:
        """A piece of work begins."""
        self._open += 1
        self._sum -= _exact(now)

    def stop(self, now: Seconds) -> None:
        """A piece of work ends."""
        self._open -= 1
        self._sum += _exact(now)

    def total(self, now: Seconds) -> Seconds:
        """Time up to now [s], rounded once."""
        return (self._sum + self._open * _exact(now)) / (1 << _SHIFT)

    @property
    def under_way(self) -> int:
        """Pieces of work under way."""
        return self._open


def _exact(value: float) -> int:
    whole, power = value.as_integer_ratio()
    return whole << (_SHIFT + 1 - power.bit_length())


def busy_times(spent: Iterable[tuple[Use, Seconds]]) -> dict[str, Seconds]:
    """Busy time of each unit [s] from what was under way how long; a unit half used counts half."""
    parts: dict[str, list[float]] = {}
    for use, seconds in spent:
        for unit, share in use.units:
            parts.setdefault(unit, []).append(share * seconds)
    return {unit: math.fsum(shares) for unit, shares in parts.items()}


class Courses:
    """Carries out work that nothing slows, and knows how busy it keeps units.

    Parameters
    ----------
    env : Environment
        The clock.
    on_change : callable, optional
        Told (time [s], unit, share in use 0..1) whenever that changes.
    """

    def __init__(self, env: Environment, on_change: OnChange | None = None) -> None:
        self._env = env
        self._on_change = on_change
        self._tallies: dict[Use, Tally] = {}

    def run(self, course: Course, scale: float) -> Event:
        """Return an event that fires when so many times the work has been done."""
        waits = course.waits(scale)
        if waits == 0.0:
            return Alarm(self._env, self._work(course), course.works(scale))
        if course.amount * scale == 0.0:
            return Alarm(self._env, ignore, waits)
        done = Signal(self._env)
        Alarm(self._env, partial(self._begin, course, scale, done), waits)
        return done

    def busy(self) -> dict[str, Seconds]:
        """Busy time of each unit up to now [s]."""
        now = float(self._env.now)
        return busy_times((use, tally.total(now)) for use, tally in self._tallies.items())

    def _begin(self, course: Course, scale: float, done: Event, _: Event) -> None:
        happen(done, self._work(course), course.works(scale))

    def _work(self, course: Course) -> Callable[[Event], None]:
        """Begin the work now; what is to be done when it ends."""
        tally = self._tallies.setdefault(course.use, Tally())
        tally.start(float(self._env.now))
        self._tell(course.use)
        return partial(self._end, course.use, tally)

    def _end(self, use: Use, tally: Tally, _: Event) -> None:
        tally.stop(float(self._env.now))
        self._tell(use)

    def _tell(self, use: Use) -> None:
        if self._on_change is None:
            return
        for unit, _ in use.units:
            shares = [
                share * tally.under_way
                for other, tally in self._tallies.items()
                for name, share in other.units
                if name == unit
            ]
            self._on_change(float(self._env.now), unit, min(1.0, math.fsum(shares)))
