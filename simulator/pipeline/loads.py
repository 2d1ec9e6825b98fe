"""Closed-form loads: time of each unit, actor and device for one batch or step, without queueing.

`pressures` names the bottleneck; `device_step` and `serial_batch` add up stages for the bounds and
the estimate. All functions take floats or arrays over candidates.

If it affects the result and is not stated, a variability of samples in size and cost is assumed.
Equal samples mislead if workers alternate between a shared store and the cores: all workers would
read at the same time and compute at the same time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import compress, product
from typing import Final, NamedTuple, TypeAlias

import numpy as np

from simulator.equations.step import exposed_communication, step_time
from simulator.errors import PlanError
from simulator.pipeline.program import FILLS_BUCKETS, worker_table
from simulator.pipeline.stages.base import (
    OF_A_RANK,
    PRODUCERS,
    Actor,
    Demand,
    Path,
    Per,
    Phase,
    Resource,
    StageDemands,
)
from simulator.pipeline.topology import CPU, Location, Topology, build
from simulator.records import dataclass
from simulator.schema.candidates import stack
from simulator.schema.data_loading import Assignment, Straggler
from simulator.schema.fields import Shape, Spread
from simulator.schema.provenance import Assumption, Source
from simulator.schema.scenario import Scenario
from simulator.units import Real, Seconds, anywhere, at_least, at_most, where

TINY = 1e-300


def unit_loads(topology: Topology, stages: Sequence[StageDemands]) -> dict[str, Real]:
    """Return the time of each unit for one batch of every rank [s].

    CPU pools and device streams are units too. A group of several machines divides its work
    equally, so each of its machines has a part.
    """
    loads: dict[str, Real] = {}
    for stage in stages:
        sites = topology.sites_of(stage.group)
        for demand, site in product(stage.demands, sites):
            for unit, seconds in _parts(topology, demand, site):
                loads[unit] = loads.get(unit, 0.0) + seconds * stage.times / len(sites)
    return loads


def _parts(topology: Topology, demand: Demand, site: int) -> Iterator[tuple[str, Real]]:
    """Yield the time of each unit for a demand of every rank, if `site` serves all of it [s]."""
    if demand.path is Path.COMPUTE:
        yield "gpu", demand.amount
    elif demand.path is Path.CORES:
        there = topology.sites[site]
        work = topology.ranks * there.serves * demand.amount
        yield there.prefix + CPU, work / there.host.cpu.capacity
    else:
        for rank, alike in users(topology, demand.path):
            for unit, use in topology.way(demand, Location(rank=rank, site=site)):
                yield unit, alike * (demand.amount * use / topology.units[unit].capacity)


def users(topology: Topology, path: Path) -> tuple[tuple[int, float], ...]:
    """Return ranks whose routes differ, each with the number of ranks that have an equal route."""
    return topology.representatives if path in OF_A_RANK else ((0, float(topology.ranks)),)


def alone(topology: Topology, demand: Demand, place: Location) -> Real:
    """Return the time of a demand without contention [s]."""
    if demand.path is Path.COMPUTE:
        return demand.amount
    if demand.path is Path.CORES:
        return demand.amount / topology.sites[place.site].host.cpu.capacity_for(demand.threads)
    rate: Real = np.inf if demand.ceiling is None else demand.ceiling
    for unit, use in topology.way(demand, place):
        if anywhere(use):
            used = where(use > 0.0, use, 1.0)
            most = where(use > 0.0, topology.units[unit].capacity / used, np.inf)
            rate = at_most(rate, most)
    time: Real = demand.latency + demand.amount / rate
    return time


def slowest_unit(topology: Topology, demand: Demand, place: Location) -> tuple[str, Real] | None:
    """Return the slowest unit on a demand's route without contention, and its rate [amount/s].

    None if the demand uses no unit.
    """
    found = {
        unit: topology.units[unit].capacity / use
        for unit, use in topology.way(demand, place)
        if anywhere(use)
    }
    name = min(found, key=lambda unit: float(found[unit]), default=None)
    return None if name is None else (name, found[name])


def actor_times(
    topology: Topology, stages: Sequence[StageDemands], actor: Actor, group: str = ""
) -> dict[Resource, Real]:
    """Return the time of the first rank's `actor` for a batch, by resource [s].

    It is the time without contention.
    """
    place = Location(rank=0, site=topology.sites_of(group)[0])
    times: dict[Resource, Real] = {}
    for stage in stages:
        if stage.actor is actor and stage.group == group:
            for demand in stage.demands:
                spent = alone(topology, demand, place)
                times[demand.resource] = times.get(demand.resource, 0.0) + spent * stage.times
    return times


def pressures(
    scenario: Scenario, topology: Topology, stages: Sequence[StageDemands]
) -> Mapping[str, Seconds]:
    """Return the step time that each resource requires by itself [s], longest first.

    A resource requires it because one of its units needs that time for the batches of a step, or
    because a serial actor (all workers together, the pin-memory thread, the copy engine) spends
    most of its time on it. Groups of machines that prepare batches share them in proportion to
    their speed.
    """
    found: dict[str, float] = {}

    def raise_to(resource: str, seconds: Real) -> None:
        found[resource] = max(found.get(resource, 0.0), float(seconds))

    for unit, load in _unit_times(scenario, topology, stages):
        raise_to(resource_name(topology, unit), load)
    for cycle in _cycles(scenario, topology, stages):
        # An actor's whole time counts for the resource with the largest part.
        most = max(cycle.times, key=lambda resource: float(cycle.times[resource]), default=None)
        for resource, part in cycle.times.items():
            name = f"{cycle.group}.{resource}" if cycle.group else str(resource)
            raise_to(name, float(cycle.whole) if resource is most else part)
    ordered = sorted(found.items(), key=lambda item: -item[1])
    per_step = scenario.job.train.accumulation
    return {resource: seconds * per_step for resource, seconds in ordered}


def limiting_time(scenario: Scenario, topology: Topology, stages: Sequence[StageDemands]) -> Real:
    """Return the step time of the slowest resource [s]: the largest value of `pressures`.

    Unlike `pressures`, it works on arrays over candidates.
    """
    loads = [load for _, load in _unit_times(scenario, topology, stages)]
    slowest = longest((*loads, *serial_cycles(scenario, topology, stages)))
    return slowest * scenario.job.train.accumulation


class Cycle(NamedTuple):
    """Time of a serial actor of a group between two batches, by resource [s].

    Workers run concurrently: their cycle is the time of one worker divided by their number.
    """

    group: str
    actor: Actor
    times: Mapping[Resource, Real]

    @property
    def whole(self) -> Real:
        """Time from one batch to the next [s]."""
        return sum(self.times.values(), 0.0)


def slowest_actor(
    scenario: Scenario, topology: Topology, stages: Sequence[StageDemands], within: float = 1.0
) -> Cycle | None:
    """Return the serial actor with the longest time between batches.

    None if a unit needs longer than the actor's time over `within`.
    """
    cycles = _cycles(scenario, topology, stages)
    slowest = max(cycles, key=lambda cycle: float(cycle.whole), default=None)
    longer = float(longest(load for _, load in _unit_times(scenario, topology, stages)))
    return None if slowest is None or float(slowest.whole) <= within * longer else slowest


def least_step(scenario: Scenario, topology: Topology, stages: Sequence[StageDemands]) -> Real:
    """Return the lower bound on the steady-state step [s]."""
    return least_batch(scenario, topology, stages) * scenario.job.train.accumulation


def least_batch(scenario: Scenario, topology: Topology, stages: Sequence[StageDemands]) -> Real:
    """Return the lower bound on the time between batches of a rank [s], by units and actors."""
    serial = longest(serial_cycles(scenario, topology, stages))
    return at_least(fastest_batch(topology, stages), serial)


def fastest_batch(topology: Topology, stages: Sequence[StageDemands]) -> Real:
    """Return the lower bound of all units on the time between two batches of a rank [s].

    It is that of the busiest unit. Groups of machines that prepare batches concurrently together
    prepare at most the sum of their separate rates.
    """
    groups = _by_group(stages)
    if len(groups) <= 1:
        return longest(unit_loads(topology, stages).values())
    using = longest(unit_loads(topology, [s for s in stages if s.actor not in PRODUCERS]).values())
    rate: Real = 0.0
    producers = [unit_loads(topology, own) for own in groups.values()]
    for loads in producers:
        rate = rate + 1.0 / np.maximum(longest(loads.values()), TINY)
    least: Real = np.maximum(using, 1.0 / rate)
    for unit in set.intersection(*(set(loads) for loads in producers)):
        # A unit on the routes of all groups carries every batch.
        shared: Real = np.inf
        for loads in producers:
            shared = np.minimum(shared, loads[unit])
        least = np.maximum(least, shared)
    return least


def serial_cycles(
    scenario: Scenario, topology: Topology, stages: Sequence[StageDemands]
) -> list[Real]:
    """Return the time between batches of a rank for each serial actor without contention [s].

    For n workers it is the time of one batch divided by n. The pin-memory thread, and the copy
    engine with the device that waits for it, handle one batch at a time.
    """
    return [cycle.whole for cycle in _cycles(scenario, topology, stages)]


def main_process(scenario: Scenario, topology: Topology, stages: Sequence[StageDemands]) -> Cycle:
    """Return the cycle of the main process if it prepares batches itself (0 workers)."""
    return next(c for c in _using_cycles(scenario, topology, stages) if c.actor is Actor.WORKER)


def _unit_times(
    scenario: Scenario, topology: Topology, stages: Sequence[StageDemands]
) -> Iterator[tuple[str, Real]]:
    """Yield the time of each unit per batch, with batches divided among groups [s]."""
    groups = _by_group(stages)
    shares = _shares(scenario, topology, groups)
    using = [stage for stage in stages if stage.actor not in PRODUCERS]
    for group in dict.fromkeys(("", *groups)):
        share = shares.get(group, 0.0)
        loads = {} if group else unit_loads(topology, using)
        for unit, load in unit_loads(topology, groups.get(group, [])).items():
            loads[unit] = loads.get(unit, 0.0) + share * load
        yield from loads.items()


def _cycles(scenario: Scenario, topology: Topology, stages: Sequence[StageDemands]) -> list[Cycle]:
    """Return the cycles of all serial actors, with batches divided among groups."""
    groups = _by_group(stages)
    shares = _shares(scenario, topology, groups)
    cycles = [
        Cycle(group, Actor.WORKER, {r: shares.get(group, 0.0) * time for r, time in cycle.items()})
        for group in dict.fromkeys(("", *groups))
        for cycle in _making_cycles(scenario, topology, groups.get(group, []), group)
    ]
    return [*cycles, *_using_cycles(scenario, topology, stages)]


def _by_group(stages: Sequence[StageDemands]) -> dict[str, list[StageDemands]]:
    """Return the stages that prepare batches, by group; the training group has an empty name."""
    groups: dict[str, list[StageDemands]] = {}
    for stage in stages:
        if stage.actor in PRODUCERS:
            groups.setdefault(stage.group, []).append(stage)
    return dict(sorted(groups.items()))


def longest(times: Iterable[Real]) -> Real:
    """Return the longest of several times for each candidate [s]; 0 for an empty sequence."""
    found: Real = 0.0
    for time in times:
        found = at_least(found, time)
    return found


def _shares(
    scenario: Scenario, topology: Topology, groups: Mapping[str, Sequence[StageDemands]]
) -> dict[str, Real]:
    """Return the share of the batches that each group prepares, in proportion to their speed."""
    if len(groups) == 1:
        return dict.fromkeys(groups, 1.0)
    speeds: dict[str, Real] = {}
    for group, own in groups.items():
        cycles = _making_cycles(scenario, topology, own, group)
        serial = (sum(cycle.values(), 0.0) for cycle in cycles)
        least = longest((*unit_loads(topology, own).values(), *serial))
        speeds[group] = 1.0 / np.maximum(least, TINY)
    total = sum(speeds.values(), 0.0)
    return {group: speed / total for group, speed in speeds.items()}


def resource_name(topology: Topology, unit: str) -> str:
    """Return the name of a unit's resource, with the group's name in front if it is a helper's."""
    known = topology.units.get(unit)
    if known is not None:
        own = known.owner == topology.sites[0].group.name
        return str(known.resource) if own else f"{known.owner}.{known.resource}"
    for site in topology.sites[1:]:
        if unit == site.prefix + CPU:
            return f"{site.group.name}.{Resource.CPU}"
    return unit


def _making_cycles(
    scenario: Scenario, topology: Topology, stages: Sequence[StageDemands], group: str
) -> list[dict[Resource, Real]]:
    """Return the times between two batches of a rank for all workers of a group together [s].

    They are by resource; reader threads that read ahead have a cycle of their own.
    """
    producers = producer_count(scenario, topology, group)
    slow = 1.0 if group else mean_slowness(scenario)
    if not anywhere(producers):
        return []
    parts = [stages]
    if scenario.job.input.policy.reads_ahead and not group:
        reading = [stage for stage in stages if stage.slot.reads]
        parts = [reading, [stage for stage in stages if not stage.slot.reads]]
    working = [actor_times(topology, part, Actor.WORKER, group) for part in parts]
    return [{r: time * slow / producers for r, time in times.items()} for times in working]


def _using_cycles(
    scenario: Scenario, topology: Topology, stages: Sequence[StageDemands]
) -> list[Cycle]:
    """Return the cycles of the pin-memory thread and of the device of a rank.

    Copies that are not concurrent with compute delay it. Without workers the main thread also
    prepares the batches, waits for such copies, and launches kernels, one after another.
    """
    pipeline = scenario.job.input
    receiving = actor_times(topology, stages, Actor.PIN_MEMORY)
    copying = actor_times(topology, stages, Actor.COPY_ENGINE)
    if not pipeline.copies_beside_compute:
        # all that occupies the device's timeline delays its copies
        device = Resource.CPU if topology.host.gpu is None else Resource.GPU
        working = sum(actor_times(topology, stages, Actor.COMPUTE_STREAM).values(), 0.0)
        copying = {**copying, device: working + copying.get(device, 0.0)}
    if anywhere(producer_count(scenario, topology, "")) or scenario.job.remote is not None:
        return [Cycle("", Actor.PIN_MEMORY, receiving), Cycle("", Actor.COPY_ENGINE, copying)]
    slow, making = mean_slowness(scenario), actor_times(topology, stages, Actor.WORKER)
    inline = {r: slow * making.get(r, 0.0) + receiving.get(r, 0.0) for r in {**making, **receiving}}
    launching = sum(actor_times(topology, stages, Actor.MAIN_THREAD).values(), 0.0)
    inline[Resource.CPU] = inline.get(Resource.CPU, 0.0) + launching
    if pipeline.copies_block:
        for resource, time in actor_times(topology, stages, Actor.COPY_ENGINE).items():
            inline[resource] = inline.get(resource, 0.0) + time
    return [Cycle("", Actor.WORKER, inline), Cycle("", Actor.COPY_ENGINE, copying)]


def producer_count(scenario: Scenario, topology: Topology, group: str) -> int:
    """Return the number of workers of a group for each rank."""
    remote = scenario.job.remote
    if group and remote is not None:
        return remote.producers(scenario.ranks_served) * len(topology.sites_of(group))
    return scenario.job.input.policy.producers


def mean_slowness(scenario: Scenario) -> float:
    """Return the mean slowdown of batches by stragglers, for the slowest worker.

    In round robin the slowest worker sets the pace of all; if free workers take the next batch, the
    others compensate.
    """
    policy = scenario.job.input.policy
    in_turn = policy.assignment is Assignment.ROUND_ROBIN
    slow = 1.0
    for straggler in scenario.job.input.straggler:
        slow *= _slowness(straggler, 1 if in_turn else policy.producers)
    return slow


def _slowness(straggler: Straggler, together: int) -> float:
    """Return the slowdown by a straggler among workers that share the batches."""
    if straggler.every is not None:
        return 1.0 + (straggler.factor - 1.0) / straggler.every
    if straggler.worker is None or together == 0:
        return straggler.factor
    return together / (together - 1.0 + 1.0 / straggler.factor)


ALTERNATES = 0.1
"""Minimum share of a batch's time of a resource that workers alternate with."""


def alternating(topology: Topology, stages: Sequence[StageDemands]) -> Real:
    """Return True, for each candidate, if workers alternate between a shared store and the cores.

    Equal batches would keep all workers in step: they would read at the same time and compute at
    the same time, and each resource would be idle while the other is used. Real batches differ, so
    that workers drift apart.
    """
    groups = {stage.group for stage in stages if stage.actor is Actor.WORKER}
    found: Real = False
    for group in groups:
        times = actor_times(topology, stages, Actor.WORKER, group).values()
        batch = sum(times, 0.0)
        matter = sum((np.asarray(time > ALTERNATES * batch, dtype=int) for time in times), 0)
        found = np.logical_or(found, matter > 1)
    return found


SERIAL_STREAMS: Final = frozenset({Actor.COMPUTE_STREAM, Actor.RESULT_ENGINE})
"""Streams that a device executes one after another."""

TimeOf: TypeAlias = Callable[[Demand], Seconds | Real]
"""Time of a demand by itself [s]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceStep:
    """Time of a device without overlap [s]: per batch, per step, and exposed bucket exchange.

    Copies to the device are excluded: they may overlap with compute.
    """

    per_batch: Seconds | Real
    per_step: Seconds | Real
    exposed: Seconds | Real

    def of(self, batches: Real) -> Seconds | Real:
        """Return the time of a step with a number of batches [s]."""
        return step_time(
            data_stall=0.0,
            h2d=0.0,
            compute=batches * self.per_batch + self.per_step,
            communication=self.exposed,
        )


def device_step(
    stages: Sequence[StageDemands],
    time_of: TimeOf,
    shares: Callable[[], Sequence[float]],
    last: Real = 1.0,
) -> DeviceStep:
    """Return the time of a device without overlap, and the exposed exchange of its buckets.

    Parameters
    ----------
    stages : sequence of StageDemands
        The demand table.
    time_of : callable
        Returns the time of a demand without contention [s].
    shares : callable
        Returns the share of the gradients in each bucket; called if buckets are exchanged.
    last : float or array
        Size of a step's last batch relative to a full one; its backward pass hides the
        exchange of buckets [1].
    """
    serial = [stage for stage in stages if stage.actor in SERIAL_STREAMS]
    return DeviceStep(
        per_batch=serial_time((s for s in serial if s.slot.per is Per.BATCH), time_of),
        per_step=serial_time((s for s in serial if s.slot.per is Per.STEP), time_of),
        exposed=_exposed(stages, time_of, shares, last),
    )


def serial_time(stages: Iterable[StageDemands], time_of: TimeOf) -> Real:
    """Return the summed time of all demands of some stages [s]."""
    return sum((time_of(demand) for stage in stages for demand in stage.demands), 0.0)


def serial_batch(topology: Topology, stages: Sequence[StageDemands]) -> Real:
    """Return the time of one batch of every rank without overlap, by the slowest group [s]."""
    made: dict[str, Real] = {}
    used: Real = 0.0
    for stage in stages:
        site = topology.sites_of(stage.group)[0]

        def of_all_ranks(demand: Demand, stage: StageDemands = stage, site: int = site) -> Real:
            # A transfer that overlaps with compute is slowed to the time of compute.
            asked = replace(demand, ceiling=None) if stage.slot.beside_compute else demand
            times = (
                count * alone(topology, asked, Location(rank=rank, site=site))
                for rank, count in users(topology, demand.path)
            )
            return sum(times, 0.0)

        if stage.actor is Actor.MAIN_THREAD and all(
            demand.resource is Resource.GPU for demand in stage.demands
        ):
            continue  # It goes on while the device works, and no longer than that.
        taken = serial_time((stage,), of_all_ranks) * stage.times
        if stage.actor in PRODUCERS:
            made[stage.group] = made.get(stage.group, 0.0) + taken
        else:
            used = used + taken
    return used + longest(made.values())


def _exposed(
    stages: Sequence[StageDemands],
    time_of: TimeOf,
    shares: Callable[[], Sequence[float]],
    last: Real,
) -> Real:
    """Return the time of the bucket exchange that the backward pass does not hide [s]."""
    whole: Real = 0.0
    for stage in stages:
        if stage.slot.per is Per.BUCKET:
            for demand in stage.demands:
                whole = np.maximum(whole, time_of(demand))
    if not np.any(whole):
        return 0.0
    filling = [stage for stage in stages if stage.slot is FILLS_BUCKETS]
    hiding = serial_time(filling, time_of)
    parts = shares()
    window = (1.0 - parts[0]) * hiding * np.minimum(1.0, last)
    return exposed_communication(whole, window, parts[-1] * whole)


ASSUMED = Spread(shape=Shape.GAMMA, relative_deviation=0.2)
_SOURCE = Source(
    reference="a guess: real samples differ, and workers that alternate between a store and the "
    "cores drift apart; equal samples would keep them reading together and computing together "
    "(any spread of a few per cent per sample prevents it)",
    date="2026-11-21",
    verified=False,
)


def with_assumed_spread(scenario: Scenario) -> Scenario:
    """Return the scenario with variable sample sizes and costs, if that matters and is not stated.

    Raises
    ------
    PlanError
        If the machines cannot run the job.
    """
    if not scenario.assume_spread:
        return scenario
    return (
        _varied(scenario) if bool(_alternates(scenario)) else replace(scenario, assume_spread=False)
    )


def with_assumed_spreads(scenarios: Sequence[Scenario]) -> tuple[Scenario | PlanError, ...]:
    """Apply `with_assumed_spread` to many scenarios; those of equal structure in one batch.

    Returns
    -------
    tuple
        Results in the order of `scenarios`; an error instead of a scenario that cannot run.
    """
    resolved: list[Scenario | PlanError] = list(scenarios)
    asked = [i for i, scenario in enumerate(scenarios) if scenario.assume_spread]
    for batch in stack([scenarios[i] for i in asked]):
        indices = [asked[index] for index in batch.indices]
        try:
            varied = np.broadcast_to(_alternates(batch.scenario), batch.size).tolist()
        except PlanError:
            for index in indices:
                resolved[index] = _resolved_or_error(scenarios[index])
            continue
        for index in indices:
            resolved[index] = replace(scenarios[index], assume_spread=False)
        for index in compress(indices, varied):
            resolved[index] = _varied(scenarios[index])
    return tuple(resolved)


def _resolved_or_error(scenario: Scenario) -> Scenario | PlanError:
    try:
        return with_assumed_spread(scenario)
    except PlanError as error:
        return error


def _varied(scenario: Scenario) -> Scenario:
    """Return the scenario with assumed variability of sample size and cost, and a note on it."""
    job = scenario.job
    varied = replace(
        job,
        dataset=replace(job.dataset, size_spread=ASSUMED),
        input=replace(job.input, cost_spread=ASSUMED),
    )
    note = Assumption(
        what="spread of samples in size and cost (data.size_spread, input.cost_spread not given)",
        value=f"{ASSUMED.deviation:.0%} of the mean, {ASSUMED.shape}",
        source=_SOURCE,
    )
    notes = (*scenario.notes, note)
    return replace(scenario, jobs=(varied,), notes=notes, assume_spread=False)


def _alternates(scenario: Scenario) -> Real:
    """Return True if workers alternate between a store and the cores in any epoch."""
    if scenario.job.input.policy.reads_ahead:
        return False
    topology = build(scenario)
    cold, warm = (alternating(topology, worker_table(scenario, phase)) for phase in Phase)
    return np.logical_or(cold, warm)
