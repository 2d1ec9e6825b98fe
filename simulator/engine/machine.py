"""The simulated machine: shared units, compute streams, and tasks of a fixed duration.

A stream executes one task at a time, in order; its end is known at the start. If all that can use a
unit at once, each at its highest rate, stays within the unit's capacity, that unit can never
saturate (`Unshared`). Work that passes only such units has a fixed duration (`FixedDelayTask`),
independent of contention; all other work shares its units. The busy time of units is added up
without rounding, so it does not depend on the order of work.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Final, TypeAlias

from simpy import Environment, Event

from simulator.engine.cpu_pool import CpuPool
from simulator.engine.flows import FlowNetwork, Flows, Route
from simulator.engine.sharing import Alarm, OnChange, Signal, UnitKey, checked, happen, ignore
from simulator.engine.symmetry import SymmetryReduction
from simulator.engine.trace import Meter
from simulator.pipeline.stages.base import Actor, Demand, Path, StageDemands
from simulator.pipeline.topology import CPU, Location, Topology, WeightedRoute, compute_stream
from simulator.records import dataclass
from simulator.schema.scenario import Scenario
from simulator.units import Seconds


class Stream:
    """A FIFO queue with one server, such as a compute stream.

    Parameters
    ----------
    env : Environment
        The clock.
    on_change : callable, optional
        Called with (time [s], `unit`, 0 or 1) when the stream turns busy or idle.
    unit : str, optional
        Name of the stream in these calls.

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
        """Queue work of `seconds` [s] and return an event that fires when it is done."""
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
        """Return the time up to now during which the stream was busy [s]."""
        return self._asked - max(0.0, self._free_at - self._env.now)

    def _tell_idle(self, since: float, _: Event) -> None:
        if self._on_change is not None and self._free_at <= since:
            self._on_change(self._env.now, self._unit, 0.0)


ROUNDING: Final = 1e-12
"""Part of a capacity by which uses may exceed it: sums of figures are not exact."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unshared:
    """Units that can never saturate.

    `cores` is True if no thread slows down another on the CPU cores.
    """

    units: frozenset[str] = frozenset()
    cores: bool = False


ALL_SHARED: Final = Unshared()


def own_rate(demand: Demand, route: Route, topology: Topology) -> float:
    """Return the rate of a demand without contention [amount/s]; infinity if unlimited."""
    ceiling = math.inf if demand.ceiling is None else float(demand.ceiling)
    return min([ceiling, *(float(topology.units[u].capacity) / use for u, use in route)])


def limiting(route: WeightedRoute, topology: Topology) -> Route:
    """Return the part of a route that consists of units with a finite capacity."""
    found = ((unit, float(use)) for unit, use in route)
    return tuple((u, c) for u, c in found if c > 0.0 and topology.units[u].capacity < math.inf)


def unshared(
    scenario: Scenario,
    topology: Topology,
    stages: Sequence[StageDemands],
    reduction: SymmetryReduction,
) -> Unshared:
    """Return the units of the training machine that can never saturate.

    Parameters
    ----------
    scenario, topology, stages, reduction
        The job, its units, the demands of each stage, and the simulated ranks.
    """
    if scenario.job.remote is not None:
        return ALL_SHARED
    groups = _together(scenario, stages)
    used = dict.fromkeys(topology.units, 0.0)
    for rank in reduction.ranks:
        for times, demands in groups:
            for unit, most in _greatest(demands, rank, topology, reduction).items():
                used[unit] += times * most
    room = 1.0 + ROUNDING
    return Unshared(
        units=frozenset(u for u, use in used.items() if use <= topology.units[u].capacity * room),
        cores=_own_cores(groups, topology, reduction),
    )


_Group = tuple[int, list[Demand]]
"""Number of threads or engines of a rank that execute these demands in sequence."""


def _together(scenario: Scenario, stages: Sequence[StageDemands]) -> list[_Group]:
    """Return the groups of a rank's demands that run concurrently.

    Each group has the number of demands that run at once, and the demands of which each is one.
    """
    pipeline = scenario.job.input
    policy = pipeline.policy
    reading: list[Demand] = []
    making: list[Demand] = []
    receiving: list[Demand] = []
    copying: list[Demand] = []
    rest: list[Demand] = []
    groups: list[_Group] = []
    for stage in stages:
        if stage.actor is Actor.WORKER:
            (reading if stage.slot.reads else making).extend(stage.demands)
        elif stage.actor is Actor.PIN_MEMORY:
            receiving += stage.demands
        elif stage.actor is Actor.COPY_ENGINE:
            copying += stage.demands
        elif stage.actor is Actor.COMMUNICATION_STREAM:
            groups += [(1, [demand]) for demand in stage.demands]
        else:
            rest += stage.demands
    if policy.producers:
        beside = pipeline.copies_beside_compute
        workers = [reading, making] if policy.reads_ahead else [reading + making]
        device = [copying, rest] if beside else [copying + rest]
        return [
            *groups,
            *((policy.producers, demands) for demands in workers),
            *((1, demands) for demands in [receiving, *device]),
        ]
    alone = reading + making + receiving
    return [*groups, *((1, demands) for demands in _in_turn(scenario, alone, copying, rest))]


def _in_turn(
    scenario: Scenario, making: list[Demand], copying: list[Demand], rest: list[Demand]
) -> list[list[Demand]]:
    """Return the groups of concurrent demands if the main thread prepares batches."""
    pipeline, train = scenario.job.input, scenario.job.train
    if train.sync_every_step and train.accumulation == 1:
        return [making + copying + rest]
    if pipeline.copies_beside_compute:
        return [making, copying, rest]
    return [making + copying, rest] if pipeline.copies_block else [making, copying + rest]


def _greatest(
    demands: Sequence[Demand], rank: int, topology: Topology, reduction: SymmetryReduction
) -> dict[str, float]:
    """Return the highest use of each unit by demands that run one at a time."""
    found: dict[str, float] = {}
    for demand in demands:
        if demand.path in {Path.CORES, Path.COMPUTE} or float(demand.amount) == 0.0:
            continue
        route = limiting(reduction.route(topology, demand, Location(rank=rank)), topology)
        rate = own_rate(demand, route, topology)
        for unit, use in route:
            found[unit] = max(found.get(unit, 0.0), rate * use)
    return found


def _own_cores(groups: Sequence[_Group], topology: Topology, reduction: SymmetryReduction) -> bool:
    """Return True if the speed of a thread never depends on other threads.

    That is so if every thread has a core and causes no contention, or if only one runs at a time.
    """
    pool, users = topology.host.cpu, []
    for times, demands in groups:
        threads = [d.threads for d in demands if d.path is Path.CORES and float(d.amount) > 0.0]
        users += [max(threads)] * times if threads else []
    alone = len(users) <= 1 and len(reduction.ranks) == 1
    wanted = sum(users) * sum(reduction.counts)
    return alone or (
        float(pool.contention) == 0.0 and wanted + float(pool.taken) <= float(pool.cores)
    )


Use: TypeAlias = tuple[tuple[str, float], ...]
"""Units in use by work: the share of the capacity of each, 0 to 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FixedDelayTask:
    """A task of fixed duration: `latency` [s], then `amount` at `rate` [amount/s].

    `use` holds the units that it uses meanwhile, each with the share of its capacity.
    """

    latency: Seconds
    amount: float
    rate: float
    use: Use

    def waits(self, scale: float) -> Seconds:
        """Return the latency before any unit is busy [s], for `scale` times the work."""
        return self.latency * scale

    def works(self, scale: float) -> Seconds:
        """Return the time during which units are busy [s], for `scale` times the work."""
        return self.amount * scale / self.rate if self.amount > 0.0 else 0.0


def fixed_delay_task(
    demand: Demand,
    place: Location,
    topology: Topology,
    reduction: SymmetryReduction,
    alone: Unshared,
) -> FixedDelayTask | None:
    """Return the fixed-delay task of a demand; None if it shares a unit with other demands."""
    amount, latency = float(demand.amount), float(demand.latency)
    if demand.path is Path.COMPUTE:
        return None
    if demand.path is Path.CORES:
        return _on_cores(demand, place, topology, reduction) if alone.cores else None
    if amount == 0.0:
        return FixedDelayTask(latency=latency, amount=0.0, rate=math.inf, use=())
    route = limiting(reduction.route(topology, demand, place), topology)
    if not alone.units.issuperset(unit for unit, _ in route):
        return None
    rate = own_rate(demand, route, topology)
    use = tuple((unit, rate * use / float(topology.units[unit].capacity)) for unit, use in route)
    return FixedDelayTask(latency=latency, amount=amount, rate=rate, use=use)


def _on_cores(
    demand: Demand, place: Location, topology: Topology, reduction: SymmetryReduction
) -> FixedDelayTask:
    site, count = topology.sites[place.site], reduction.count(place.rank)
    pool, threads = site.host.cpu, demand.threads * count
    share = min(1.0, threads / float(pool.free))
    return FixedDelayTask(
        latency=0.0,
        amount=float(demand.amount) * count,
        rate=float(pool.capacity_for(threads)),
        use=((site.prefix + CPU, share),),
    )


_SHIFT: Final = 1074
"""Every float is a whole multiple of 2**-1074."""


class Tally:
    """Total time of concurrent tasks, added up without rounding."""

    __slots__ = ("_open", "_sum")

    def __init__(self) -> None:
        self._sum = 0
        self._open = 0

    def start(self, now: Seconds) -> None:
        """Record the start of a task at time `now`."""
        self._open += 1
        self._sum -= _exact(now)

    def stop(self, now: Seconds) -> None:
        """Record the end of a task at time `now`."""
        self._open -= 1
        self._sum += _exact(now)

    def total(self, now: Seconds) -> Seconds:
        """Return the summed time of all tasks up to `now` [s], rounded once."""
        return (self._sum + self._open * _exact(now)) / (1 << _SHIFT)

    @property
    def under_way(self) -> int:
        """Number of tasks in progress."""
        return self._open


def _exact(value: float) -> int:
    whole, power = value.as_integer_ratio()
    return whole << (_SHIFT + 1 - power.bit_length())


def busy_times(spent: Iterable[tuple[Use, Seconds]]) -> dict[str, Seconds]:
    """Return the busy time of each unit [s], weighted by the share of its capacity in use."""
    parts: dict[str, list[float]] = {}
    for use, seconds in spent:
        for unit, share in use:
            parts.setdefault(unit, []).append(share * seconds)
    return {unit: math.fsum(shares) for unit, shares in parts.items()}


class FixedDelays:
    """Executes fixed-delay tasks, and records the busy time of units.

    Parameters
    ----------
    env : Environment
        The clock.
    on_change : callable, optional
        Called with (time [s], unit, share in use 0..1) at each change.
    """

    def __init__(self, env: Environment, on_change: OnChange | None = None) -> None:
        self._env = env
        self._on_change = on_change
        self._tallies: dict[Use, Tally] = {}

    def run(self, task: FixedDelayTask, scale: float) -> Event:
        """Start `scale` times a task and return an event that fires when it is done."""
        waits = task.waits(scale)
        if waits == 0.0:
            return Alarm(self._env, self._work(task), task.works(scale))
        if task.amount * scale == 0.0:
            return Alarm(self._env, ignore, waits)
        done = Signal(self._env)
        Alarm(self._env, partial(self._begin, task, scale, done), waits)
        return done

    def busy(self) -> dict[str, Seconds]:
        """Return the busy time of each unit up to now [s]."""
        now = float(self._env.now)
        return busy_times((use, tally.total(now)) for use, tally in self._tallies.items())

    def _begin(self, task: FixedDelayTask, scale: float, done: Event, _: Event) -> None:
        happen(done, self._work(task), task.works(scale))

    def _work(self, task: FixedDelayTask) -> Callable[[Event], None]:
        """Record the start of a task now; return the callback for its end."""
        tally = self._tallies.setdefault(task.use, Tally())
        tally.start(float(self._env.now))
        self._report_use(task.use)
        return partial(self._end, task.use, tally)

    def _end(self, use: Use, tally: Tally, _: Event) -> None:
        tally.stop(float(self._env.now))
        self._report_use(use)

    def _report_use(self, use: Use) -> None:
        if self._on_change is None:
            return
        for unit, _ in use:
            shares = [
                share * tally.under_way
                for other, tally in self._tallies.items()
                for name, share in other
                if name == unit
            ]
            self._on_change(float(self._env.now), unit, math.fsum(shares))


Task: TypeAlias = Callable[[float], Event]
"""Carries out a demand scaled by a factor; the event fires when it is done."""


class Machine:
    """The simulated machines: shared units, a CPU pool for each, a compute stream for each rank.

    Only the ranks and units of `reduction` are simulated; demands of a rank count for all ranks
    that it represents. Demands on `alone` units are fixed-delay tasks; all others share.
    """

    def __init__(
        self,
        env: Environment,
        topology: Topology,
        reduction: SymmetryReduction,
        alone: Unshared = ALL_SHARED,
        meter: Meter | None = None,
    ) -> None:
        self.env = env
        self.topology = topology
        self.reduction = reduction
        self._alone = alone
        on_change = None if meter is None else meter.shared
        self._fixed_delays = FixedDelays(env, None if meter is None else meter.fixed)
        wider = {
            topology.sites[site].prefix: float(reduction.machines(site))
            for site in set(reduction.sites.values())
        }
        self._network = FlowNetwork(
            env,
            {
                name: float(topology.units[name].capacity) * wider.get(_machine_of(name), 1.0)
                for name in dict.fromkeys(reduction.units.values())
            },
            on_change=on_change,
        )
        self._pools = {
            number: CpuPool(
                env,
                cores=float(site.host.cpu.cores) * wider.get(site.prefix, 1.0),
                threads=float(site.host.cpu.threads) * wider.get(site.prefix, 1.0),
                smt_worth=float(site.host.cpu.smt_worth),
                contention=float(site.host.cpu.contention),
                taken=float(site.host.cpu.taken) * wider.get(site.prefix, 1.0),
                on_change=on_change,
                unit=site.prefix + CPU,
            )
            for number, site in enumerate(topology.sites)
            if reduction.site(number) == number
        }
        self._compute = {
            rank: Stream(env, on_change=on_change, unit=compute_stream(rank))
            for rank in reduction.ranks
        }
        self._cpus = {topology.sites[n].prefix + CPU: pool for n, pool in self._pools.items()}
        self._streams = {compute_stream(rank): stream for rank, stream in self._compute.items()}

    def task(self, demand: Demand, place: Location) -> Task | None:
        """Return the task that carries out a demand at a location; None for a demand of zero."""
        amount, latency = float(demand.amount), float(demand.latency)
        if amount == 0.0 and latency == 0.0:
            return None
        if demand.path is Path.COMPUTE:
            return partial(_scaled, self._compute[place.rank].run, amount)
        fixed = fixed_delay_task(demand, place, self.topology, self.reduction, self._alone)
        if fixed is not None:
            return partial(self._fixed_delays.run, fixed)
        if demand.path is Path.CORES:
            count = self.reduction.count(place.rank) * float(self.topology.sites[place.site].serves)
            return partial(_run, self._pools[place.site], amount * count, demand.threads * count)
        ceiling = math.inf if demand.ceiling is None else float(demand.ceiling)
        route = self.reduction.route(self.topology, demand, place)
        if place.site in self.reduction.sites:
            # A flow through merged machines is no faster than through a single one.
            ceiling = own_rate(demand, limiting(route, self.topology), self.topology)
        flows = self._network.flows(route, ceiling)
        return partial(self._carry, flows, amount, ceiling, latency)

    def shares(self, demand: Demand, place: Location) -> bool:
        """Return True if other demands can slow down a demand at a location."""
        return fixed_delay_task(demand, place, self.topology, self.reduction, self._alone) is None

    def _carry(
        self, flows: Flows | None, amount: float, ceiling: float, latency: float, scale: float
    ) -> Event:
        return self._network.carry(flows, amount * scale, ceiling, latency * scale)

    def busy(self) -> dict[str, float]:
        """Return the busy time of every simulated unit up to now [s], weighted by utilization."""
        found = self._network.busy_times()
        for unit, pool in self._cpus.items():
            found[unit] = pool.busy()
        for unit, time in self._fixed_delays.busy().items():
            if unit in found:
                found[unit] += time
        for unit, stream in self._streams.items():
            found[unit] = stream.busy()
        return found


def _machine_of(unit: str) -> str:
    """Return the machine prefix of the name of a unit."""
    return unit.split(" ", 1)[0] + " "


def _run(pool: CpuPool, core_seconds: float, threads: float, scale: float) -> Event:
    return pool.run(core_seconds * scale, threads=threads)


def _scaled(run: Callable[[float], Event], seconds: float, scale: float) -> Event:
    return run(seconds * scale)


def named(reduction: SymmetryReduction) -> dict[str, list[str]]:
    """Return, for each simulated unit and compute stream, the names that it represents."""
    found: dict[str, list[str]] = {}
    for unit, simulated in reduction.units.items():
        found.setdefault(simulated, []).append(unit)
    return found | {
        compute_stream(r): [compute_stream(other) for other in reduction.lanes(r)]
        for r in reduction.ranks
    }
