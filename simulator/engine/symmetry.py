"""Symmetry reduction: equal ranks, machines and micro-batches are simulated once.

Ranks and units that are equal up to their names form the classes of an equitable partition. Two
ranks are in one class if they demand as much of as many units of each class, and two units if
equally many ranks of each class demand as much of them: colour refinement finds the coarsest such
classes. On a deterministic machine with equal ranks all members of a class do the same at the same
instant, so one of them represents all; for linear programs this is shown in [1]_, and max-min fair
rates are a sequence of those.

References
----------
.. [1] M. Grohe, K. Kersting, M. Mladenov, E. Selman, "Dimension Reduction via Colour Refinement",
   ESA 2014, https://doi.org/10.1007/978-3-662-44777-2_42
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import Final, TypeAlias

from simulator.pipeline.loads import pressures
from simulator.pipeline.run_length import Lengths
from simulator.pipeline.stages.base import (
    OF_A_RANK,
    Demand,
    Path,
    Per,
    Phase,
    Resource,
    StageDemands,
)
from simulator.pipeline.topology import Location, Topology, WeightedRoute
from simulator.records import dataclass
from simulator.schema.scenario import Scenario

Route: TypeAlias = tuple[tuple[str, float], ...]
"""Units passed, each with the capacity that one unit of rate uses there."""


def refine(
    routes: Sequence[Sequence[Route]],
    *,
    marks: Sequence[Hashable],
    kinds: Mapping[str, Hashable],
    jobs: Sequence[int],
) -> tuple[tuple[int, ...], dict[str, int]]:
    """Return the class number of each rank and of each unit in the coarsest equitable partition.

    Parameters
    ----------
    routes : sequence of sequence of routes
        The route of each flow of each rank; all ranks have the same flows.
    marks, kinds : sequence, mapping
        Initial colours of ranks and of units; only equal ones can share a class.
    jobs : sequence of int
        The job each rank belongs to: ranks of a job wait for each other.

    Examples
    --------
    Four ranks with a link each, two to a switch; one link is faster.

    >>> routes = [[[(f"link{r}", 1.0), (f"switch{r // 2}", 1.0)]] for r in range(4)]
    >>> kinds = {f"link{r}": 1.0 + (r == 3) for r in range(4)} | {"switch0": 5.0, "switch1": 5.0}
    >>> refine(routes, marks=[0] * 4, kinds=kinds, jobs=[0] * 4)[0]
    (0, 0, 1, 2)
    """
    ranks, units = _numbered(marks), _named(kinds)
    users: dict[str, list[tuple[int, float, int]]] = {}  # of each unit: flow, use and rank
    for rank, ways in enumerate(routes):
        for flow, way in enumerate(ways):
            for unit, use in way:
                users.setdefault(unit, []).append((flow, use, rank))
    known = 0
    while len(set(ranks)) + len(set(units.values())) > known:
        known = len(set(ranks)) + len(set(units.values()))
        units = _named(
            {
                unit: (its, *sorted((flow, use, ranks[r]) for flow, use, r in users.get(unit, ())))
                for unit, its in units.items()
            }
        )
        together: dict[int, list[int]] = {}  # the sorted classes of each job's ranks
        for its, job in sorted(zip(ranks, jobs, strict=True)):
            together.setdefault(job, []).append(its)
        ranks = _numbered(
            (
                own,
                tuple(together[jobs[rank]]),
                tuple(tuple(sorted((units[u], use) for u, use in way)) for way in routes[rank]),
            )
            for rank, own in enumerate(ranks)
        )
    return tuple(ranks), units


def _numbered(colours: Iterable[Hashable]) -> list[int]:
    """Number equal colours in order of first appearance."""
    numbers: dict[Hashable, int] = {}
    return [numbers.setdefault(colour, len(numbers)) for colour in colours]


def _named(colours: Mapping[str, Hashable]) -> dict[str, int]:
    return dict(zip(colours, _numbered(colours.values()), strict=True))


MAX_MACHINES: Final = 16
"""Maximum of simulated machines of a group that does not train; more are merged."""

SAMPLED: Final = 8
"""Ranks that represent all others where samples are random; no fewer are simulated."""

NOWHERE: Final = frozenset({Path.CORES, Path.COMPUTE})
"""Ways without a unit that flows share."""


Way: TypeAlias = tuple[Path, float]
"""What decides which units bytes of a rank pass: their path, and the share that leaves the
machine."""


def way_of(demand: Demand) -> Way:
    """Return the path and outward share of a demand, which determine its route."""
    return demand.path, float(demand.outward)


@dataclass(frozen=True, slots=True, kw_only=True)
class SymmetryReduction:
    """Simulated ranks and units, and the number that each represents.

    `ranks` are simulated, each for `counts` ranks of its machine. At a barrier they count as
    `standing_for` ranks. `units` maps each unit to its representative. `routes` holds the routes
    that differ from rank to rank, weighted for all ranks that the simulated one represents, and
    `members` these ranks. `sites` maps other machines to their representative, where several are
    merged into one with the sum of their capacities.
    """

    ranks: tuple[int, ...]
    counts: tuple[float, ...]
    units: Mapping[str, str]
    standing_for: int = 0
    routes: Mapping[tuple[Way, int], Route] = field(default_factory=dict)
    members: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    sites: Mapping[int, int] = field(default_factory=dict)

    def site(self, site: int) -> int:
        """Return the index of the simulated machine that represents machine `site`."""
        return self.sites.get(site, site)

    def machines(self, site: int) -> int:
        """Return the number of machines that a simulated machine represents."""
        return sum(its == site for its in self.sites.values()) or 1

    def count(self, rank: int) -> float:
        """Return the number of ranks that a simulated rank represents."""
        return self.counts[self.ranks.index(rank)]

    def route(self, topology: Topology, demand: Demand, place: Location) -> Route:
        """Return the route of a demand, weighted for all ranks that the rank represents."""
        own = self.routes.get((way_of(demand), place.rank))
        if own is not None:
            return own
        count = self.count(place.rank)
        way = _limited(topology.way(demand, place))
        return tuple((unit, use * count) for unit, use in way if self.units[unit] == unit)

    def lanes(self, rank: int) -> tuple[int, ...]:
        """Return the ranks that a simulated rank represents, which have the same timeline."""
        return self.members.get(rank, (rank,))


def reduce_symmetry(
    scenario: Scenario, topology: Topology, stages: Sequence[StageDemands]
) -> SymmetryReduction:
    """Return the ranks and machines to simulate, and the number that each represents."""
    return _wider(_of_ranks(scenario, topology, stages), topology)


def _wider(reduction: SymmetryReduction, topology: Topology) -> SymmetryReduction:
    """Return the reduction with the machines of each group merged to at most `MAX_MACHINES`.

    n equal machines become one with n times the cores, link capacities and workers. A single flow
    through it is no faster for that (`machine.Machine`).
    """
    groups: dict[str, list[int]] = {}
    for number, site in enumerate(topology.sites[1:], start=1):
        groups.setdefault(site.group.name, []).append(number)
    sites = {
        number: own[_first_of(place * MAX_MACHINES // len(own), len(own))]
        for own in groups.values()
        if len(own) > MAX_MACHINES
        for place, number in enumerate(own)
    }
    if not sites:
        return reduction
    prefixes = {
        topology.sites[one].prefix: topology.sites[other].prefix for one, other in sites.items()
    }
    units = dict(reduction.units)
    for name in reduction.units:
        machine = name.split(" ", 1)[0] + " "
        if machine in prefixes:
            units[name] = prefixes[machine] + name.removeprefix(machine)
    return replace(reduction, units=units, sites=sites)


def _first_of(part: int, machines: int) -> int:
    """Return the index of the first machine in part `part` of `MAX_MACHINES` nearly equal parts."""
    return -(-part * machines // MAX_MACHINES)


def _of_ranks(
    scenario: Scenario, topology: Topology, stages: Sequence[StageDemands]
) -> SymmetryReduction:
    """Return the ranks of a machine to simulate, with the number of ranks that each represents."""
    job = scenario.job
    if not (job.dataset.size_spread.varies or job.input.cost_spread.varies):
        return _by_classes(scenario, topology, stages)
    standing_for = scenario.ranks if job.input.policy.producers == 0 else 0
    marked = any(straggler.rank is not None for straggler in job.input.straggler)
    several = job.copies > 1 or job.remote is not None
    few = topology.ranks <= SAMPLED or not topology.ranks_alike or marked or several
    return everyone(topology, topology.ranks if few else SAMPLED, standing_for)


def everyone(topology: Topology, simulated: int, standing_for: int = 0) -> SymmetryReduction:
    """Return a reduction that simulates the first `simulated` ranks, and all units, one by one."""
    return SymmetryReduction(
        ranks=tuple(range(simulated)),
        counts=(topology.ranks / simulated,) * simulated,
        units={name: name for name in topology.units},
        standing_for=standing_for,
    )


def _by_classes(
    scenario: Scenario, topology: Topology, stages: Sequence[StageDemands]
) -> SymmetryReduction:
    marks = [
        tuple(s.hits(rank, 0, 0) for s in scenario.job.input.straggler if s.rank is not None)
        for rank in range(topology.ranks)
    ]
    if topology.ranks_alike and len(set(marks)) == 1:
        members = {} if topology.ranks > SAMPLED else {0: tuple(range(topology.ranks))}
        units = {name: name for name in topology.units}
        return SymmetryReduction(
            ranks=(0,), counts=(float(topology.ranks),), units=units, members=members
        )
    any_of = {way_of(d): d for _, d in _carried(stages) if d.path in OF_A_RANK}
    ways = sorted(any_of)
    routes = [
        [_limited(topology.way(any_of[way], Location(rank=rank))) for way in ways]
        for rank in range(topology.ranks)
    ]
    jobs = [rank // topology.ring for rank in range(topology.ranks)]
    of_ranks, of_units = refine(routes, marks=marks, kinds=_kinds(topology, stages), jobs=jobs)
    classes: dict[int, list[int]] = {}
    for rank, its in enumerate(of_ranks):
        classes.setdefault(its, []).append(rank)
    members = {ranks[0]: tuple(ranks) for ranks in classes.values()}
    first: dict[int, str] = {}
    units = {unit: first.setdefault(its, unit) for unit, its in of_units.items()}
    return SymmetryReduction(
        ranks=tuple(members),
        counts=tuple(float(len(alike)) for alike in members.values()),
        units=units,
        routes={
            (way, rank): _together([routes[other][number] for other in alike], units)
            for number, way in enumerate(ways)
            for rank, alike in members.items()
        },
        members=members,
    )


def _carried(stages: Sequence[StageDemands]) -> Iterator[tuple[StageDemands, Demand]]:
    """Yield each demand that uses units, with its stage."""
    for stage in stages:
        for demand in stage.demands:
            if demand.path not in NOWHERE and float(demand.amount) > 0.0:
                yield stage, demand


def _kinds(topology: Topology, stages: Sequence[StageDemands]) -> dict[str, Hashable]:
    """Return the initial colour of each unit: its capacity, and the load that all ranks share."""
    common: dict[str, list[tuple[int, float]]] = {name: [] for name in topology.units}
    flows = 0
    for stage, demand in _carried(stages):
        for site in topology.sites_of(stage.group) if demand.path not in OF_A_RANK else ():
            flows += 1
            for unit, use in _limited(topology.way(demand, Location(rank=0, site=site))):
                common[unit].append((flows, use))
    return {name: (float(topology.units[name].capacity), *uses) for name, uses in common.items()}


def _limited(way: WeightedRoute) -> Route:
    """Return the part of a route with a weight above zero."""
    return tuple((unit, float(use)) for unit, use in way if float(use) > 0.0)


def _together(ways: Sequence[Route], units: Mapping[str, str]) -> Route:
    """Return the combined route of several ranks, restricted to representative units."""
    total: dict[str, float] = {}
    for way in ways:
        for unit, use in way:
            if units[unit] == unit:
                total[unit] = total.get(unit, 0.0) + use
    return tuple(total.items())


MIN_BATCHES: Final = 2
"""Batches of a step that are always simulated one by one."""
IDLE: Final = 0.5
"""Share of the device's time up to which all else is idle enough never to be waited for."""
MAX_FIRST_STEP_DELAY: Final = 1.0 / 16.0
"""Share of a step by which merging may put off the first one, whose batches are made in time."""


def merged_together(
    scenario: Scenario, topology: Topology, demands: Mapping[Phase, tuple[StageDemands, ...]]
) -> int:
    """Return the number of micro-batches to merge into one.

    It is 1 unless the device alone limits the step.
    """
    accumulated, pipeline = scenario.job.train.accumulation, scenario.job.input
    waits = scenario.job.train.sync_every_step or pipeline.policy.producers == 0
    if accumulated < 2 * MIN_BATCHES or waits or pipeline.straggler:
        return 1
    if any(_reduces_beside(stages) for stages in demands.values()):
        return 1
    share = max(_share_of_device(scenario, topology, stages) for stages in demands.values())
    if share > IDLE:
        return 1
    # A single worker prepares the first batch, at any number of workers.
    kept = max(MIN_BATCHES, math.ceil(share * pipeline.policy.producers / MAX_FIRST_STEP_DELAY))
    return max(g for g in range(1, max(1, accumulated // kept) + 1) if accumulated % g == 0)


def _reduces_beside(stages: tuple[StageDemands, ...]) -> bool:
    """Return True if gradients are exchanged in buckets during the backward pass."""
    return any(s.demands for s in stages if s.slot.per is Per.BUCKET)


def _share_of_device(
    scenario: Scenario, topology: Topology, stages: tuple[StageDemands, ...]
) -> float:
    """Return the longest step time of any other resource or actor, over the device's.

    Communication within a replica counts as time of the device, and on links that batches also use.
    """
    imposed = dict(pressures(scenario, topology, stages))
    device = imposed.pop(str(Resource.GPU), 0.0)
    if device <= 0.0:
        return math.inf
    others = dict(pressures(scenario, topology, [_without_exchange(s) for s in stages]))
    others.pop(str(Resource.GPU), None)
    longest = [
        imposed[name] if alone > MAX_FIRST_STEP_DELAY * device else alone
        for name, alone in others.items()
    ]
    return max(longest, default=0.0) / device


def _without_exchange(stage: StageDemands) -> StageDemands:
    kept = tuple(demand for demand in stage.demands if demand.path is not Path.EXCHANGE)
    return replace(stage, demands=kept)


def merge_scenario(scenario: Scenario, together: int) -> Scenario:
    """Return the scenario with each `together` micro-batches merged into one."""
    job = scenario.job
    train = replace(
        job.train,
        batch_size=job.train.batch_size * together,
        accumulation=job.train.accumulation // together,
    )
    return replace(scenario, jobs=(replace(job, train=train),))


def merge_stages(stages: tuple[StageDemands, ...], together: int) -> tuple[StageDemands, ...]:
    """Return the demands of merged micro-batches; stages that occur once per step do not change."""
    return tuple(_merge(stage, together) for stage in stages)


def _merge(stage: StageDemands, together: int) -> StageDemands:
    if stage.slot.once_a_step:
        return replace(stage, times=stage.times * together)
    demands = tuple(
        replace(
            demand,
            amount=demand.amount * together,
            operations=demand.operations * together,
            latency=demand.latency * together,
        )
        for demand in stage.demands
    )
    return replace(stage, demands=demands)


def merge_lengths(lengths: Lengths, together: int) -> Lengths:
    """Return the lengths of the run in merged micro-batches; the last one holds the remainder."""
    whole = (lengths.batches - 1 + lengths.last_share) / together
    batches = math.ceil(lengths.batches / together)
    return replace(
        lengths,
        batches=batches,
        last_share=min(1.0, whole - (batches - 1)),
        accumulation=lengths.accumulation // together,
    )
