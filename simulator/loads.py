"""Closed-form loads: how long each unit and each actor needs for one batch, without queueing.

`bounds` adds them up, `pressures` names the bottleneck. Everything works on floats and on arrays
of candidates alike.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import Final, NamedTuple

import numpy as np

from simulator.plant import CPU, Place, Plant
from simulator.scenario import Scenario
from simulator.stages.base import MAKERS, Actor, Demand, Path, Resource, StageDemands
from simulator.units import Real, Seconds
from simulator.workload.loader import Assignment, Straggler

TINY = 1e-300
OF_A_RANK: Final = frozenset({Path.HOST_TO_DEVICE, Path.DEVICE_TO_HOST, Path.DEVICE_TO_DEVICE})
"""Ways that differ from rank to rank, whatever is carried."""


def unit_loads(plant: Plant, stages: Sequence[StageDemands]) -> dict[str, Real]:
    """Time each unit needs for one batch of every rank [s], by unit.

    CPU pools and the devices' streams are units too. A group of several machines shares its work
    equally, so each of its machines carries a part.
    """
    loads: dict[str, Real] = {}
    for unit, seconds in _all_parts(plant, stages):
        loads[unit] = loads.get(unit, 0.0) + seconds
    return loads


def _all_parts(plant: Plant, stages: Sequence[StageDemands]) -> Iterator[tuple[str, Real]]:
    for stage in stages:
        sites = plant.sites_of(stage.group)
        for demand, site in product(stage.demands, sites):
            for unit, seconds in _parts(plant, demand, site):
                yield unit, seconds * stage.times / len(sites)


def _parts(plant: Plant, demand: Demand, site: int) -> Iterator[tuple[str, Real]]:
    """What a demand of every rank asks of each unit [s], were `site` to carry all of it."""
    if demand.path is Path.COMPUTE:
        yield "gpu", demand.amount
    elif demand.path is Path.CORES:
        pool = plant.sites[site].host.cpu
        yield plant.sites[site].prefix + CPU, plant.ranks * demand.amount / pool.capacity
    else:
        for rank, alike in users(plant, demand.path):
            for unit, use in plant.way(demand, Place(rank=rank, site=site)):
                yield unit, alike * (demand.amount * use / plant.units[unit].capacity)


def users(plant: Plant, path: Path) -> tuple[tuple[int, float], ...]:
    """Ranks that differ in the units they use on a way, each with how many are like it."""
    return plant.representatives if path in OF_A_RANK else ((0, float(plant.ranks)),)


def alone(plant: Plant, demand: Demand, place: Place) -> Real:
    """Time of a demand on otherwise idle machines [s]."""
    if demand.path is Path.COMPUTE:
        return demand.amount
    if demand.path is Path.CORES:
        return demand.amount / plant.sites[place.site].host.cpu.capacity_for(demand.threads)
    rate: Real = np.inf if demand.ceiling is None else demand.ceiling
    for unit, use in plant.way(demand, place):
        if np.any(use):
            rate = np.minimum(rate, plant.units[unit].capacity / np.maximum(use, TINY))
    time: Real = demand.latency + demand.amount / rate
    return time


def slowest_unit(plant: Plant, demand: Demand, place: Place) -> tuple[str, Real] | None:
    """The unit that slows a demand most on idle machines, and the rate it leaves [amount/s].

    None where the demand goes through no unit.
    """
    found = {
        unit: plant.units[unit].capacity / use
        for unit, use in plant.way(demand, place)
        if np.any(use)
    }
    name = min(found, key=lambda unit: float(found[unit]), default=None)
    return None if name is None else (name, found[name])


def actor_times(
    plant: Plant, stages: Sequence[StageDemands], actor: Actor, group: str = ""
) -> dict[Resource, Real]:
    """Time the first rank's `actor` spends on one batch on idle machines, by resource [s]."""
    place = Place(rank=0, site=plant.sites_of(group)[0])
    times: dict[Resource, Real] = {}
    for stage in stages:
        if stage.actor is actor and stage.group == group:
            for demand in stage.demands:
                spent = alone(plant, demand, place)
                times[demand.resource] = times.get(demand.resource, 0.0) + spent * stage.times
    return times


def pressures(
    scenario: Scenario, plant: Plant, stages: Sequence[StageDemands]
) -> Mapping[str, Seconds]:
    """Step time that each resource imposes by itself [s], longest first.

    Either because a unit of it needs that long for a step's batches, or because an actor that
    works serially (the loader's workers together, the receiving thread, the copy engine) spends
    most of its time on it. Groups that make batches side by side share them by their speed.
    """
    found: dict[str, float] = {}

    def raise_to(resource: str, seconds: Real) -> None:
        found[resource] = max(found.get(resource, 0.0), float(seconds))

    loads, cycles = _imposed(scenario, plant, stages)
    for unit, load in loads:
        raise_to(resource_name(plant, unit), load)
    for cycle in cycles:
        _charge(cycle, raise_to)
    ordered = sorted(found.items(), key=lambda item: -item[1])
    per_step = scenario.job.train.accumulation
    return {resource: seconds * per_step for resource, seconds in ordered}


def limiting_time(scenario: Scenario, plant: Plant, stages: Sequence[StageDemands]) -> Real:
    """Step time that the slowest of all resources imposes [s]: the longest of `pressures`.

    Names nothing, and so works on batches of candidates.
    """
    loads, cycles = _imposed(scenario, plant, stages)
    serial = (cycle.whole for cycle in cycles)
    slowest = longest((*(load for _, load in loads), *serial))
    return slowest * scenario.job.train.accumulation


class Cycle(NamedTuple):
    """What a serial actor of a group spends on a batch, by resource [s].

    Makers work side by side, so together they spend a part of one maker's time on a batch.
    """

    group: str
    actor: Actor
    times: Mapping[Resource, Real]

    @property
    def whole(self) -> Real:
        """From one batch to the next [s]."""
        return sum(self.times.values(), 0.0)


def slowest_actor(scenario: Scenario, plant: Plant, stages: Sequence[StageDemands]) -> Cycle | None:
    """The serial actor that a batch takes longest; None if a unit needs longer for it."""
    loads, cycles = _imposed(scenario, plant, stages)
    slowest = max(cycles, key=lambda cycle: float(cycle.whole), default=None)
    longer = float(longest(load for _, load in loads))
    return None if slowest is None or float(slowest.whole) <= longer else slowest


def least_step(scenario: Scenario, plant: Plant, stages: Sequence[StageDemands]) -> Real:
    """Least mean step of a run that goes on for ever [s]."""
    return least_batch(scenario, plant, stages) * scenario.job.train.accumulation


def least_batch(scenario: Scenario, plant: Plant, stages: Sequence[StageDemands]) -> Real:
    """Least mean time between two batches of a rank [s]: of the busiest unit or serial actor."""
    serial = longest(serial_cycles(scenario, plant, stages))
    return np.maximum(fastest_batch(plant, stages), serial)


def fastest_batch(plant: Plant, stages: Sequence[StageDemands]) -> Real:
    """Least time between two batches of a rank [s].

    That of the busiest unit. Where groups make batches side by side, together they make no more
    than the sum of what each could make alone.
    """
    groups = {stage.group for stage in stages if stage.actor in MAKERS}
    if len(groups) <= 1:
        return longest(unit_loads(plant, stages).values())
    using = longest(unit_loads(plant, [s for s in stages if s.actor not in MAKERS]).values())
    rate: Real = 0.0
    makers = [
        unit_loads(plant, [s for s in stages if s.actor in MAKERS and s.group == group])
        for group in groups
    ]
    for loads in makers:
        rate = rate + 1.0 / np.maximum(longest(loads.values()), TINY)
    least: Real = np.maximum(using, 1.0 / rate)
    for unit in set.intersection(*(set(loads) for loads in makers)):
        # Whoever makes a batch, a unit that all go through carries it.
        shared: Real = np.inf
        for loads in makers:
            shared = np.minimum(shared, loads[unit])
        least = np.maximum(least, shared)
    return least


def serial_cycles(scenario: Scenario, plant: Plant, stages: Sequence[StageDemands]) -> list[Real]:
    """Time between two batches of a rank that each serial actor needs, alone on the machines [s].

    Workers / time of a batch of one of them is the most that they make together; the receiving
    thread, and the copy engine with the device that waits for it, take one batch at a time.
    """
    _, cycles = _imposed(scenario, plant, stages)
    return [cycle.whole for cycle in cycles]


def main_process(scenario: Scenario, plant: Plant, stages: Sequence[StageDemands]) -> Cycle:
    """What the thread that trains spends on making a batch, where there are no workers."""
    return next(c for c in _using_cycles(scenario, plant, stages) if c.actor is Actor.WORKER)


def _imposed(
    scenario: Scenario, plant: Plant, stages: Sequence[StageDemands]
) -> tuple[list[tuple[str, Real]], list[Cycle]]:
    """Time a batch takes on each unit, and of each serial actor, by the batches it makes [s]."""
    making = [stage for stage in stages if stage.actor in MAKERS]
    groups = sorted({stage.group for stage in making})
    shares = _shares(scenario, plant, making, groups)
    others = [stage for stage in stages if stage.actor not in MAKERS]
    busy: list[tuple[str, Real]] = []
    cycles: list[Cycle] = []
    for group in ("", *(g for g in groups if g)):
        own = [stage for stage in making if stage.group == group]
        share = shares.get(group, 0.0)
        loads = unit_loads(plant, others if group == "" else [])
        for unit, load in unit_loads(plant, own).items():
            loads[unit] = loads.get(unit, 0.0) + share * load
        busy += loads.items()
        made = _making_cycles(scenario, plant, own, group)
        cycles += [
            Cycle(group, Actor.WORKER, {r: share * time for r, time in cycle.items()})
            for cycle in made
        ]
    cycles += _using_cycles(scenario, plant, stages)
    return busy, cycles


def longest(times: Iterable[Real]) -> Real:
    """The longest of several times, for each candidate [s]; 0 of none."""
    found: Real = 0.0
    for time in times:
        found = np.maximum(found, time)
    return found


def _charge(cycle: Cycle, raise_to: Callable[[str, Real], None]) -> None:
    """Blame an actor's whole time on what it spends most of it on."""
    times, whole = cycle.times, float(cycle.whole)
    most = max(times, key=lambda resource: float(times[resource]), default=None)
    for resource, part in times.items():
        name = f"{cycle.group}.{resource}" if cycle.group else str(resource)
        raise_to(name, whole if resource is most else part)


def _shares(
    scenario: Scenario, plant: Plant, making: Sequence[StageDemands], groups: Sequence[str]
) -> dict[str, Real]:
    """Share of the batches that each group makes when all work as fast as they can."""
    if len(groups) == 1:
        return {groups[0]: 1.0}
    speeds: dict[str, Real] = {}
    for group in groups:
        own = [stage for stage in making if stage.group == group]
        cycles = _making_cycles(scenario, plant, own, group)
        serial = (sum(cycle.values(), 0.0) for cycle in cycles)
        least = longest((*unit_loads(plant, own).values(), *serial))
        speeds[group] = 1.0 / np.maximum(least, TINY)
    total = sum(speeds.values(), 0.0)
    return {group: speed / total for group, speed in speeds.items()}


def resource_name(plant: Plant, unit: str) -> str:
    """The resource a unit belongs to, led by its group's name if that does not train."""
    known = plant.units.get(unit)
    if known is not None:
        own = known.owner == plant.sites[0].group.name
        return str(known.resource) if own else f"{known.owner}.{known.resource}"
    for site in plant.sites[1:]:
        if unit == site.prefix + CPU:
            return f"{site.group.name}.{Resource.CPU}"
    return unit


def _making_cycles(
    scenario: Scenario, plant: Plant, stages: Sequence[StageDemands], group: str
) -> list[dict[Resource, Real]]:
    """Times between two batches of a rank that the group's workers, all together, need."""
    makers = maker_count(scenario, plant, group)
    slow = 1.0 if group else mean_slowness(scenario)
    if not np.any(makers):
        return []
    parts = [stages]
    if scenario.job.loader.crew.reads_ahead and not group:
        reading = [stage for stage in stages if stage.slot.reads]
        parts = [reading, [stage for stage in stages if not stage.slot.reads]]
    working = [actor_times(plant, part, Actor.WORKER, group) for part in parts]
    return [{r: time * slow / makers for r, time in times.items()} for times in working]


def _using_cycles(scenario: Scenario, plant: Plant, stages: Sequence[StageDemands]) -> list[Cycle]:
    """Times between two batches of a rank that its receiver and its device need.

    Copies that don't run beside compute delay it. Without workers the thread that receives also
    makes the batches.
    """
    loader = scenario.job.loader
    receiving = actor_times(plant, stages, Actor.RECEIVER)
    copying = actor_times(plant, stages, Actor.COPY_ENGINE)
    if not (loader.pin_memory and loader.overlap_copies):
        # what passes on the device's timeline holds its copies up, whatever it waits for
        device = Resource.CPU if plant.host.gpu is None else Resource.GPU
        working = sum(actor_times(plant, stages, Actor.COMPUTE_STREAM).values(), 0.0)
        copying = {**copying, device: working + copying.get(device, 0.0)}
    if np.any(maker_count(scenario, plant, "")) or scenario.job.remote is not None:
        return [Cycle("", Actor.RECEIVER, receiving), Cycle("", Actor.COPY_ENGINE, copying)]
    slow, making = mean_slowness(scenario), actor_times(plant, stages, Actor.WORKER)
    inline = {r: slow * making.get(r, 0.0) + receiving.get(r, 0.0) for r in {**making, **receiving}}
    return [Cycle("", Actor.WORKER, inline), Cycle("", Actor.COPY_ENGINE, copying)]


def maker_count(scenario: Scenario, plant: Plant, group: str) -> int:
    """Workers of a group that make batches for one rank; 0: the trainer's own thread does."""
    remote = scenario.job.remote
    if group and remote is not None:
        return remote.makers(plant.ranks) * len(plant.sites_of(group))
    return scenario.job.loader.crew.makers


def mean_slowness(scenario: Scenario) -> float:
    """How many times longer than stated a worker takes, over all batches and the slowest worker.

    With batches dealt round robin the slowest worker sets the pace of all; where whoever is free
    takes the next batch, the others make up for it.
    """
    crew = scenario.job.loader.crew
    in_turn = crew.assignment is Assignment.ROUND_ROBIN
    slow = 1.0
    for straggler in scenario.job.loader.stragglers:
        slow *= _slowness(straggler, 1 if in_turn else crew.makers)
    return slow


def _slowness(straggler: Straggler, together: int) -> float:
    """The factor that a straggler adds, if so many workers share what is to be done."""
    if straggler.every is not None:
        return 1.0 + (straggler.factor - 1.0) / straggler.every
    if straggler.worker is None or together == 0:
        return straggler.factor
    return together / (together - 1.0 + 1.0 / straggler.factor)


ALTERNATES = 0.1
"""Share of a batch's time from which on a resource matters to who waits for whom."""


def alternating(plant: Plant, stages: Sequence[StageDemands]) -> Real:
    """Whether workers go back and forth between a shared store and the cores, for each candidate.

    Equal batches would then keep all workers in step for ever: they read together and compute
    together, and each resource idles while the other is used. Real batches differ, so real
    workers drift apart.
    """
    groups = {stage.group for stage in stages if stage.actor is Actor.WORKER}
    found: Real = False
    for group in groups:
        times = actor_times(plant, stages, Actor.WORKER, group).values()
        batch = sum(times, 0.0)
        matter = sum((np.asarray(time > ALTERNATES * batch, dtype=int) for time in times), 0)
        found = np.logical_or(found, matter > 1)
    return found
