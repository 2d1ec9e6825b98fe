"""Which units can never be full, whoever uses them when: what passes them is never slowed.

If all that can use a unit at once, each at the fastest it could ever go, stays within the unit's
capacity, then nobody's rate there depends on who else is there. Such work takes a fixed time.
That is looked up once, before anything runs; where it cannot be shown, work shares as always.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from simulator.engine.flows import Route
from simulator.engine.folding import Fold
from simulator.pipeline.stages.base import Actor, Demand, Path, StageDemands
from simulator.pipeline.topology import Location, Topology, WeightedRoute
from simulator.schema.scenario import Scenario

ROUNDING: Final = 1e-12
"""Part of a capacity by which uses may exceed it: sums of figures are not exact."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unshared:
    """Units that are never full, and whether threads on the trainers' cores never slow others."""

    units: frozenset[str] = frozenset()
    cores: bool = False


NOTHING: Final = Unshared()


def own_rate(demand: Demand, route: Route, topology: Topology) -> float:
    """Fastest that a demand can go, alone on its way [amount/s]; infinite if nothing limits it."""
    ceiling = math.inf if demand.ceiling is None else float(demand.ceiling)
    return min([ceiling, *(float(topology.units[u].capacity) / use for u, use in route)])


def limiting(route: WeightedRoute, topology: Topology) -> Route:
    """The units of a way that have a limit."""
    found = ((unit, float(use)) for unit, use in route)
    return tuple((u, c) for u, c in found if c > 0.0 and topology.units[u].capacity < math.inf)


def unshared(
    scenario: Scenario, topology: Topology, stages: Sequence[StageDemands], fold: Fold
) -> Unshared:
    """Find what can never be full on the machine that trains.

    Parameters
    ----------
    scenario, topology, stages, fold
        What is run, on which units, what each stage asks for, which ranks are simulated.
    """
    if scenario.job.remote is not None:
        return NOTHING
    groups = _together(scenario, stages)
    used = dict.fromkeys(topology.units, 0.0)
    for rank in fold.ranks:
        for times, demands in groups:
            for unit, most in _greatest(demands, rank, topology, fold).items():
                used[unit] += times * most
    room = 1.0 + ROUNDING
    return Unshared(
        units=frozenset(u for u, use in used.items() if use <= topology.units[u].capacity * room),
        cores=_own_cores(groups, topology, fold),
    )


_Group = tuple[int, list[Demand]]
"""So many of a rank's threads or engines do these demands, each one after another."""


def _together(scenario: Scenario, stages: Sequence[StageDemands]) -> list[_Group]:
    """What can go on at once for one rank."""
    loader = scenario.job.loader
    policy = loader.policy
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
        beside = loader.copies_beside_compute
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
    """What can go on at once where the program's own thread makes each batch when it needs it."""
    loader, train = scenario.job.loader, scenario.job.train
    if train.sync_every_step and train.accumulation == 1:
        return [making + copying + rest]
    if loader.copies_beside_compute:
        return [making, copying, rest]
    return [making + copying, rest]


def _greatest(
    demands: Sequence[Demand], rank: int, topology: Topology, fold: Fold
) -> dict[str, float]:
    """Most that demands, done one after another, ever use of each unit [its own amount/s]."""
    found: dict[str, float] = {}
    for demand in demands:
        if demand.path in {Path.CORES, Path.COMPUTE} or float(demand.amount) == 0.0:
            continue
        route = limiting(fold.route(topology, demand, Location(rank=rank)), topology)
        rate = own_rate(demand, route, topology)
        for unit, use in route:
            found[unit] = max(found.get(unit, 0.0), rate * use)
    return found


def _own_cores(groups: Sequence[_Group], topology: Topology, fold: Fold) -> bool:
    """Whether a thread's speed never depends on which others run.

    Either each has a core to itself and slows nobody, or there is only one at a time.
    """
    pool, users = topology.host.cpu, []
    for times, demands in groups:
        threads = [d.threads for d in demands if d.path is Path.CORES and float(d.amount) > 0.0]
        users += [max(threads)] * times if threads else []
    alone = len(users) <= 1 and len(fold.ranks) == 1
    wanted = sum(users) * sum(fold.counts)
    return alone or (
        float(pool.contention) == 0.0 and wanted + float(pool.taken) <= float(pool.cores)
    )
