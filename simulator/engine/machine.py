"""The simulated machine: what a demand of a rank turns into when it is carried out."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import TypeAlias

from simpy import Environment, Event

from simulator.engine.contention import NOTHING, Unshared, limiting, own_rate
from simulator.engine.cpu_pool import CpuPool
from simulator.engine.fixed_delays import Courses, course
from simulator.engine.flows import FlowNetwork, Flows
from simulator.engine.folding import Fold
from simulator.engine.stream import Stream
from simulator.engine.trace_events import Meter
from simulator.pipeline.stages.base import Demand, Path
from simulator.pipeline.topology import CPU, Location, Topology

Task: TypeAlias = Callable[[float], Event]
"""Carries out a demand scaled by a factor; the event fires when it is done."""


class Machine:
    """The shared units of all sites, a CPU pool for each, a compute stream for each rank.

    Of the topology's ranks and units those of `fold` are there; what ranks ask for counts for all
    that they stand for. What `alone` says is never slowed takes its fixed time; all else shares.
    """

    def __init__(
        self,
        env: Environment,
        topology: Topology,
        fold: Fold,
        alone: Unshared = NOTHING,
        meter: Meter | None = None,
    ) -> None:
        self.env = env
        self.topology = topology
        self.fold = fold
        self._alone = alone
        on_change = None if meter is None else meter.shared
        self._courses = Courses(env, None if meter is None else meter.fixed)
        wider = {
            topology.sites[site].prefix: float(fold.machines(site))
            for site in set(fold.sites.values())
        }
        self._network = FlowNetwork(
            env,
            {
                name: float(topology.units[name].capacity) * wider.get(_machine_of(name), 1.0)
                for name in dict.fromkeys(fold.units.values())
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
            if fold.site(number) == number
        }
        self._compute = {
            rank: Stream(env, on_change=on_change, unit=device(rank)) for rank in fold.ranks
        }
        self._cpus = {topology.sites[n].prefix + CPU: pool for n, pool in self._pools.items()}
        self._streams = {device(rank): stream for rank, stream in self._compute.items()}

    def task(self, demand: Demand, place: Location) -> Task | None:
        """How to carry out a demand at a place; None where it asks for nothing."""
        amount, latency = float(demand.amount), float(demand.latency)
        if amount == 0.0 and latency == 0.0:
            return None
        if demand.path is Path.COMPUTE:
            return partial(_scaled, self._compute[place.rank].run, amount)
        fixed = course(demand, place, self.topology, self.fold, self._alone)
        if fixed is not None:
            return partial(self._courses.run, fixed)
        if demand.path is Path.CORES:
            count = self.fold.count(place.rank) * float(self.topology.sites[place.site].serves)
            return partial(_run, self._pools[place.site], amount * count, demand.threads * count)
        ceiling = math.inf if demand.ceiling is None else float(demand.ceiling)
        route = self.fold.route(self.topology, demand, place)
        if place.site in self.fold.sites:
            # On machines taken together none is faster than on the one that it is on.
            ceiling = own_rate(demand, limiting(route, self.topology), self.topology)
        flows = self._network.flows(route, ceiling)
        return partial(self._carry, flows, amount, ceiling, latency)

    def shares(self, demand: Demand, place: Location) -> bool:
        """Whether others may slow a demand at a place."""
        return course(demand, place, self.topology, self.fold, self._alone) is None

    def _carry(
        self, flows: Flows | None, amount: float, ceiling: float, latency: float, scale: float
    ) -> Event:
        return self._network.carry(flows, amount * scale, ceiling, latency * scale)

    def busy(self) -> dict[str, float]:
        """Busy time of every simulated unit up to now [s]; a unit half used counts half."""
        found = self._network.busy_times()
        for unit, pool in self._cpus.items():
            found[unit] = pool.busy()
        for unit, time in self._courses.busy().items():
            if unit in found:
                found[unit] += time
        for unit, stream in self._streams.items():
            found[unit] = stream.busy()
        return found


def _machine_of(unit: str) -> str:
    """What leads the names of the units of a unit's machine, if that does not train."""
    return unit.split(" ", 1)[0] + " "


def device(rank: int) -> str:
    """What the compute stream of a rank goes by."""
    return f"gpu{rank}"


def _run(pool: CpuPool, core_seconds: float, threads: float, scale: float) -> Event:
    return pool.run(core_seconds * scale, threads=threads)


def _scaled(run: Callable[[float], Event], seconds: float, scale: float) -> Event:
    return run(seconds * scale)


def named(fold: Fold) -> dict[str, list[str]]:
    """The units and devices that each simulated one stands for, itself first."""
    found: dict[str, list[str]] = {}
    for unit, simulated in fold.units.items():
        found.setdefault(simulated, []).append(unit)
    return found | {device(r): [device(other) for other in fold.lanes(r)] for r in fold.ranks}
