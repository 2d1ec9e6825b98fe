"""Closed-form loads: how long each unit and each actor needs for one batch, without queueing.

`bounds` adds them up, `pressures` names the bottleneck. Everything works on floats and on arrays
of candidates alike.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from simulator.plant import Plant
from simulator.scenario import Scenario
from simulator.stages.base import Actor, Demand, Path, Resource, StageDemands
from simulator.units import Real, Seconds
from simulator.workload.loader import Straggler


def unit_loads(plant: Plant, stages: Sequence[StageDemands]) -> dict[str, Real]:
    """Time each unit needs for one batch of every rank [s], by unit.

    The CPU pool and the devices' streams are units too (``cpu``, ``gpu``).
    """
    loads: dict[str, Real] = {}

    def add(unit: str, seconds: Real) -> None:
        loads[unit] = loads.get(unit, 0.0) + seconds

    for stage in stages:
        for demand in stage.demands:
            if demand.path is Path.COMPUTE:
                add("gpu", demand.amount)
            elif demand.path is Path.CORES:
                add("cpu", plant.ranks * demand.amount / plant.host.cpu.capacity)
            else:
                for rank in range(plant.ranks):
                    for unit, use in plant.way(demand, rank):
                        add(unit, demand.amount * use / plant.units[unit].capacity)
    return loads


def alone(plant: Plant, demand: Demand, rank: int) -> Real:
    """Time of a demand on an otherwise idle machine [s]."""
    if demand.path is Path.COMPUTE:
        return demand.amount
    if demand.path is Path.CORES:
        cores: Real = np.minimum(demand.threads, plant.host.cpu.capacity)
        return demand.amount / cores
    rate: Real = np.inf if demand.ceiling is None else demand.ceiling
    for unit, use in plant.way(demand, rank):
        rate = np.minimum(rate, plant.units[unit].capacity / use)
    time: Real = demand.latency + demand.amount / rate
    return time


def rank_times(plant: Plant, stages: Sequence[StageDemands], actor: Actor) -> dict[Resource, Real]:
    """Time one rank's `actor` spends on one batch on an idle machine, by resource [s]."""
    times: dict[Resource, Real] = {}
    for stage in stages:
        if stage.actor != actor:
            continue
        for demand in stage.demands:
            spent = alone(plant, demand, 0)
            times[demand.resource] = times.get(demand.resource, 0.0) + spent
    return times


def pressures(
    scenario: Scenario, plant: Plant, stages: Sequence[StageDemands]
) -> Mapping[Resource, Seconds]:
    """Step time that each resource imposes by itself [s], longest first.

    Either because a unit of it needs that long for a step's batches, or because an actor that
    works serially (the loader's workers together, the receiving thread, the copy engine) spends
    most of its time on it.
    """
    found: dict[Resource, float] = {}

    def raise_to(resource: Resource, seconds: Real) -> None:
        found[resource] = max(found.get(resource, 0.0), float(seconds))

    for unit, load in unit_loads(plant, stages).items():
        raise_to(_resource_of(plant, unit), load)
    for cycle in _cycles(scenario, plant, stages):
        whole = sum(float(part) for part in cycle.values())
        longest = max(cycle, key=lambda resource: float(cycle[resource]), default=None)
        for resource, part in cycle.items():
            raise_to(resource, whole if resource is longest else part)
    ordered = sorted(found.items(), key=lambda item: -item[1])
    per_step = scenario.job.train.accumulation
    return {resource: seconds * per_step for resource, seconds in ordered}


def _resource_of(plant: Plant, unit: str) -> Resource:
    known = plant.units.get(unit)
    return Resource(unit) if known is None else known.resource


def _cycles(
    scenario: Scenario, plant: Plant, stages: Sequence[StageDemands]
) -> list[dict[Resource, Real]]:
    crew = scenario.job.loader.crew
    slow = mean_slowness(scenario)
    working = rank_times(plant, stages, Actor.WORKER)
    making = {resource: time * slow for resource, time in working.items()}
    receiving = rank_times(plant, stages, Actor.RECEIVER)
    copying = rank_times(plant, stages, Actor.COPY_ENGINE)
    if crew.makers:
        shared = {resource: time / crew.makers for resource, time in making.items()}
        return [shared, receiving, copying]
    return [_sum(making, receiving)]


def _sum(first: dict[Resource, Real], second: dict[Resource, Real]) -> dict[Resource, Real]:
    return {r: first.get(r, 0.0) + second.get(r, 0.0) for r in {**first, **second}}


def mean_slowness(scenario: Scenario) -> float:
    """How many times longer than stated a worker takes, over all batches and the slowest worker.

    With batches dealt round robin the slowest worker sets the pace of all.
    """
    slow = 1.0
    for straggler in scenario.job.loader.stragglers:
        slow *= _slowness(straggler)
    return slow


def _slowness(straggler: Straggler) -> float:
    if straggler.every is None:
        return straggler.factor
    return 1.0 + (straggler.factor - 1.0) / straggler.every
