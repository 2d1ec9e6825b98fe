"""Flows that share units of capacity max-min fairly: disks, networks, memory, links.

A transfer is a *flow*: an amount carried along a route of units at a rate that changes
whenever another flow starts or ends. A flow of rate ``x`` uses ``coefficient * x`` of each unit
on its route, so a disk can be a bandwidth unit (coefficient 1) and an IOPS unit (coefficient
1 / request size) at once. The rates are the max-min fair ones: no flow can be given more
without taking from a flow that has no more than it. This is the fluid model of SimGrid [1]_.

Flows with equal route and ceiling have equal rates at every moment, so they are one *class*
with one rate, and an event costs time in the number of classes, not of flows. The rates
depend only on how many flows each class has; solved states are remembered.

Not modeled: packets, the ramp-up of TCP, unfairness by round-trip time.

References
----------
.. [1] H. Casanova, A. Giersch, A. Legrand, M. Quinson, F. Suter, "Versatile, scalable, and
   accurate simulation of distributed applications and platforms", J. Parallel Distrib. Comput.
   74 (2014) 2899-2917, https://doi.org/10.1016/j.jpdc.2014.06.008
"""

from __future__ import annotations

import math
from bisect import insort
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from itertools import count
from typing import Final, TypeAlias

from simpy import Environment, Event

from simulator.engine.sharing import (
    JUST_BELOW,
    TOGETHER,
    Alarm,
    Batch,
    Deadline,
    Departure,
    Late,
    OnChange,
    Signal,
    UnitKey,
    checked,
    clock_slack,
    ignore,
    succeed_in_order,
)
from simulator.records import dataclass

Route: TypeAlias = tuple[tuple[UnitKey, float], ...]
"""Units passed, each with the capacity that one unit of rate uses there."""

_REMEMBERED: Final = 8192


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowGroup:
    """Equal flows: their route, the highest rate of each, and their number."""

    route: Route
    ceiling: float = math.inf
    count: int = 1


def fair_rates(capacities: Mapping[UnitKey, float], groups: Sequence[FlowGroup]) -> list[float]:
    """Return the max-min fair rate of one flow of each group.

    Parameters
    ----------
    capacities : mapping
        Capacity of each unit [amount/s].
    groups : sequence of FlowGroup
        The flows, equal ones together.

    Returns
    -------
    list of float
        Rates [amount/s], in the order of `groups`.

    Notes
    -----
    Progressive filling (section 6.5.2 of [1]_): all rates rise together; flows that reach their
    ceiling stop there; when a unit is full the flows that pass it stop; the others rise on.

    References
    ----------
    .. [1] D. Bertsekas, R. Gallager, "Data Networks", 2nd ed., Prentice Hall 1992,
       https://web.mit.edu/dimitrib/www/datanets.html

    Examples
    --------
    Two links of 1 and 2; one flow passes both, one each link alone. The first link is full at
    1/2 each; the second flow of the second link takes what is left, 3/2.

    >>> both = FlowGroup(route=(("a", 1.0), ("b", 1.0)))
    >>> only_a, only_b = (FlowGroup(route=((unit, 1.0),)) for unit in "ab")
    >>> fair_rates({"a": 1.0, "b": 2.0}, [both, only_a, only_b])
    [0.5, 0.5, 1.5]
    """
    rates = [0.0] * len(groups)
    left = {unit: capacities[unit] for group in groups for unit, _ in group.route}
    rising = list(range(len(groups)))
    level = 0.0
    while rising:
        demand = _demand(groups[i] for i in rising)
        full_at = min((left[unit] / each for unit, each in demand.items()), default=math.inf)
        level = max(level, full_at)
        stopped = [i for i in rising if groups[i].ceiling <= level]
        if not stopped:
            full = {u for u, d in demand.items() if left[u] <= level * d * (1.0 + TOGETHER)}
            stopped = [i for i in rising if any(u in full for u, _ in groups[i].route)]
        for i in stopped:
            rates[i] = min(level, groups[i].ceiling)
            for unit, coefficient in groups[i].route:
                left[unit] -= rates[i] * coefficient * groups[i].count
        rising = sorted(set(rising).difference(stopped))
    return rates


def _demand(groups: Iterable[FlowGroup]) -> dict[UnitKey, float]:
    """Return the use of each unit if every flow has rate 1."""
    demand: dict[UnitKey, float] = {}
    for group in groups:
        for unit, coefficient in group.route:
            demand[unit] = demand.get(unit, 0.0) + coefficient * group.count
    return demand


class Flows(Batch):
    """The flows of one route and rate limit, with their common rate."""

    __slots__ = ("ceiling", "number", "rate", "route")

    def __init__(self, number: int, route: Route, ceiling: float) -> None:
        super().__init__()
        self.number = number
        self.route = route
        self.ceiling = ceiling
        self.rate = 0.0


class _State:
    """Rates and utilizations of one set of active flows, and the time spent in it."""

    __slots__ = ("elapsed", "rates", "utilization")

    def __init__(self, rates: list[float], utilization: dict[UnitKey, float]) -> None:
        self.rates = rates
        self.utilization = utilization
        self.elapsed = 0.0


class FlowNetwork:
    """Units of capacity and the flows that share them.

    Parameters
    ----------
    env : Environment
        The clock.
    capacities : mapping
        Capacity of each unit [amount/s], above zero; infinity for a unit without limit.
    on_change : callable, optional
        Called with (time [s], unit, utilization 0..1) whenever a unit's utilization changes.

    Examples
    --------
    >>> env = Environment()
    >>> disk = FlowNetwork(env, {"disk": 100.0})
    >>> first, second = (disk.transfer(amount, [("disk", 1.0)]) for amount in (50.0, 150.0))
    >>> env.run(first), env.now
    (None, 1.0)
    >>> env.run(second), env.now, disk.busy("disk")
    (None, 2.0, 2.0)
    """

    def __init__(
        self,
        env: Environment,
        capacities: Mapping[UnitKey, float],
        *,
        on_change: OnChange | None = None,
    ) -> None:
        self._env = env
        self._capacities = {u: checked(f"capacity of {u}", c) for u, c in capacities.items()}
        self._on_change = on_change
        self._classes: dict[tuple[Route, float], Flows | None] = {}
        self._active: list[Flows] = []
        self._next: Flows | None = None
        self._numbers = count()
        self._idle = _State([], {})
        self._state = self._idle
        self._states: dict[tuple[int, ...], _State] = {(): self._idle}
        self._visited: list[_State] = []
        self._busy = dict.fromkeys(self._capacities, 0.0)
        self._since = float(env.now)
        self._deadline = Deadline(env, self._complete)
        self._late = Late(env, self._settle)

    def transfer(
        self,
        amount: float,
        route: Sequence[tuple[UnitKey, float]],
        *,
        ceiling: float = math.inf,
        latency: float = 0.0,
    ) -> Event:
        """Start a transfer and return an event that fires when it is complete.

        Parameters
        ----------
        amount : float
            Amount to transfer, in the unit of the capacities (bytes, requests, ...), zero or more.
        route : sequence of (unit, coefficient)
            Units passed, with the capacity used there per unit of rate. Empty: only the
            ceiling limits.
        ceiling : float, optional
            Highest rate of this flow [amount/s].
        latency : float, optional
            Time before the first byte [s]; uses no capacity.
        """
        return self.carry(self.flows(tuple(route), ceiling), amount, ceiling, latency)

    def carry(
        self, flows: Flows | None, amount: float, ceiling: float = math.inf, latency: float = 0.0
    ) -> Event:
        """Start a transfer of `amount` and return an event that fires when it is complete.

        `flows` is what the method `flows` returns for the route; without a route the transfer
        takes `amount` over `ceiling`, its highest rate. `latency` is the delay before it [s].
        """
        if not (amount >= 0.0 and latency >= 0.0):
            checked("amount", amount, zero=True)
            checked("latency", latency, zero=True)
        if flows is None or amount == 0.0:
            return Alarm(self._env, ignore, latency + amount / ceiling)
        done = Signal(self._env)
        if latency > 0.0:
            Alarm(self._env, partial(self._start, flows, amount, done), latency)
        else:
            self._start(flows, amount, done)
        return done

    def busy(self, unit: UnitKey) -> float:
        """Return the integral of utilization over time up to now [s], exact."""
        return self.busy_times()[unit]

    def busy_times(self) -> dict[UnitKey, float]:
        """Return the integral of utilization over time up to now [s] of every unit."""
        self._advance()
        self._bank()
        return dict(self._busy)

    def utilization(self, unit: UnitKey) -> float:
        """Return the used fraction of a unit at the current rates, 0 to 1."""
        return self._state.utilization.get(unit, 0.0)

    def flows(self, route: Route, ceiling: float = math.inf) -> Flows | None:
        """Return the class of flows with a route and a rate limit.

        None if no unit of the route has a finite capacity: only the rate limit applies.
        """
        key = (route, ceiling)
        if key not in self._classes:
            checked("ceiling", ceiling)
            limiting = tuple(
                (unit, coefficient)
                for unit, coefficient in route
                if checked(f"coefficient at {unit}", coefficient, zero=True)
                and self._capacities[unit] < math.inf
            )
            shared = Flows(len(self._classes), limiting, ceiling) if limiting else None
            self._classes[key] = shared
        return self._classes[key]

    def _start(self, flows: Flows, amount: float, done: Event, _: Event | None = None) -> None:
        self._advance()
        if not flows.marks:
            flows.rate = 0.0
            insort(self._active, flows, key=_number)
        flows.join(amount, next(self._numbers), done)
        self._late.ask()

    def _advance(self) -> None:
        """Advance all flows to the current time at their current rates."""
        now = self._env.now
        passed = now - self._since
        if passed > 0.0:
            for flows in self._active:
                flows.progress += flows.rate * passed
            if not self._state.elapsed:
                self._visited.append(self._state)
            self._state.elapsed += passed
            self._since = now

    def _complete(self) -> None:
        """Remove the flows that have completed (at least one) and trigger their events."""
        self._advance()
        slack = clock_slack(self._since)
        if self._next is not None:
            self._next.complete_next()
        gone: list[Departure] = []
        emptied = False
        for flows in self._active:
            if flows.marks[0][0] * JUST_BELOW <= flows.progress + flows.rate * slack:
                gone += flows.leave(flows.rate * slack)
                emptied = emptied or not flows.marks
        if emptied:
            self._active = [flows for flows in self._active if flows.marks]
        succeed_in_order(gone)
        if self._active:
            self._late.ask()
            return
        # Called at once: an extra event for traces would end the epoch at another step.
        before, self._state, self._next = self._state, self._idle, None
        if self._on_change is not None:
            self._tell(before.utilization, self._idle.utilization, self._on_change)

    def _settle(self, _: Event) -> None:
        """Update the rates of the active flows and the time of the next completion.

        The caller has advanced all flows up to now.
        """
        before, self._state = self._state, self._solved()
        self._next, next_in = None, math.inf
        for flows, rate in zip(self._active, self._state.rates, strict=True):
            flows.rate = rate
            lack = flows.marks[0][0] - flows.progress
            left = lack / rate if lack > 0.0 else 0.0
            if left < next_in:
                self._next, next_in = flows, left
        self._deadline.move(next_in)
        if self._on_change is not None and before is not self._state:
            self._tell(before.utilization, self._state.utilization, self._on_change)

    def _solved(self) -> _State:
        """Return rates and utilizations of the active flows; equal sets are solved once."""
        key = tuple([n for flows in self._active for n in (flows.number, len(flows.marks))])
        state = self._states.get(key)
        if state is None:
            if len(self._states) >= _REMEMBERED:
                self._forget()
            state = self._states[key] = self._solve()
        return state

    def _solve(self) -> _State:
        groups = [
            FlowGroup(route=flows.route, ceiling=flows.ceiling, count=len(flows.marks))
            for flows in self._active
        ]
        rates = fair_rates(self._capacities, groups)
        used: dict[UnitKey, float] = {}
        for group, rate in zip(groups, rates, strict=True):
            for unit, coefficient in group.route:
                used[unit] = used.get(unit, 0.0) + rate * coefficient * group.count
        return _State(rates, {u: x / self._capacities[u] for u, x in used.items()})

    def _forget(self) -> None:
        self._bank()
        self._states = {(): self._idle}

    def _bank(self) -> None:
        """Add the time spent in each state to the busy time of the units."""
        for state in self._visited:
            for unit, utilization in state.utilization.items():
                self._busy[unit] += utilization * state.elapsed
            state.elapsed = 0.0
        self._visited.clear()

    def _tell(
        self,
        before: dict[UnitKey, float],
        after: dict[UnitKey, float],
        on_change: OnChange,
    ) -> None:
        for unit in before | after:
            utilization = after.get(unit, 0.0)
            if utilization != before.get(unit, 0.0):
                on_change(self._env.now, unit, utilization)


def _number(flows: Flows) -> int:
    return flows.number
