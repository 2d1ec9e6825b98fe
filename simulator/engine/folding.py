"""Equal ranks folded: a few are simulated, each standing for many.

Without randomness all ranks that are `alike` do everything at the same instant, so one stands for
all of its class, exactly: each of its flows takes as much of a unit as those of the whole class
take, and each of its threads is as many. Units of a class are as busy as the one that stands for
them. A rank with a slow loader is a class of its own.

With random samples ranks differ. Where none has a unit of its own, `SAMPLED` of them stand for
all, of this machine and of those like it; otherwise every rank is simulated.

How much later the latest of all is than the latest of those few depends on what holds batches up.
Workers make them ahead of time and share a store, which holds all ranks up together: there the
difference is small (within half a point of utilization of all ranks simulated, for 12 to 411 of
them; more only where a store a tenth too slow meets queues of a hundred batches), and none is
added. A rank that makes each batch when it needs it has no such reserve: there the barrier waits
for the latest of all, as far as draws of a normal distribution would spread.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias

from simulator.engine.symmetry import Classes, Route, refine
from simulator.pipeline.stages.base import OF_A_RANK, Demand, Path, StageDemands
from simulator.pipeline.topology import Location, Topology, WeightedRoute
from simulator.schema.scenario import Scenario

MACHINES: Final = 16
"""Machines of a group that does not train that are simulated; more of them are taken together."""

SAMPLED: Final = 8
"""Ranks that stand for all others where samples are random; so many are never folded."""

NOWHERE: Final = frozenset({Path.CORES, Path.COMPUTE})
"""Ways through no unit that is shared as flows are."""


Way: TypeAlias = tuple[Path, float]
"""What decides which units bytes of a rank pass: their path, and the share that leaves the
machine."""


def way_of(demand: Demand) -> Way:
    """The way that a demand's bytes take."""
    return demand.path, float(demand.outward)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fold:
    """`ranks` are simulated; each stands for so many of its machine as `counts` says.

    At a barrier they are taken for `standing_for` ranks. `units` names for each unit the one that
    stands for it, `routes` the ways that differ from rank to rank, with the share of all that a
    rank stands for. `members` are the ranks that do what a simulated one does. `sites` says as
    which one other machines are simulated, where several are one that is as many times as wide.
    """

    ranks: tuple[int, ...]
    counts: tuple[float, ...]
    units: Mapping[str, str]
    standing_for: int = 0
    routes: Mapping[tuple[Way, int], Route] = field(default_factory=dict)
    members: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    sites: Mapping[int, int] = field(default_factory=dict)

    def site(self, site: int) -> int:
        """The site that one is simulated as."""
        return self.sites.get(site, site)

    def machines(self, site: int) -> int:
        """How many machines a simulated site is."""
        return sum(its == site for its in self.sites.values()) or 1

    def count(self, rank: int) -> float:
        """How many ranks a simulated one stands for."""
        return self.counts[self.ranks.index(rank)]

    def route(self, topology: Topology, demand: Demand, place: Location) -> Route:
        """Units that a demand goes through, for all ranks that the simulated one stands for."""
        own = self.routes.get((way_of(demand), place.rank))
        if own is not None:
            return own
        count = self.count(place.rank)
        way = _limited(topology.way(demand, place))
        return tuple((unit, use * count) for unit, use in way if self.units[unit] == unit)

    def lanes(self, rank: int) -> tuple[int, ...]:
        """Ranks whose timelines are that of a simulated one."""
        return self.members.get(rank, (rank,))


def fold(scenario: Scenario, topology: Topology, stages: Sequence[StageDemands]) -> Fold:
    """Which ranks and machines are simulated, and how many each of them stands for."""
    return _wider(_of_ranks(scenario, topology, stages), topology)


def _wider(folded: Fold, topology: Topology) -> Fold:
    """With machines of a group taken together to at most `MACHINES`.

    So many equal machines are one with so many times the cores and the capacity of each link, and
    all their workers. What goes through it alone is no faster for that (`machine.Machine`).
    """
    groups: dict[str, list[int]] = {}
    for number, site in enumerate(topology.sites[1:], start=1):
        groups.setdefault(site.group.name, []).append(number)
    sites = {
        number: own[_first_of(place * MACHINES // len(own), len(own))]
        for own in groups.values()
        if len(own) > MACHINES
        for place, number in enumerate(own)
    }
    if not sites:
        return folded
    prefixes = {
        topology.sites[one].prefix: topology.sites[other].prefix for one, other in sites.items()
    }
    units = dict(folded.units)
    for name in folded.units:
        machine = name.split(" ", 1)[0] + " "
        if machine in prefixes:
            units[name] = prefixes[machine] + name.removeprefix(machine)
    return replace(folded, units=units, sites=sites)


def _first_of(part: int, machines: int) -> int:
    """The first machine of one of `MACHINES` parts as equal as can be."""
    return -(-part * machines // MACHINES)


def _of_ranks(scenario: Scenario, topology: Topology, stages: Sequence[StageDemands]) -> Fold:
    """Which ranks of a machine are simulated, and how many each of them stands for."""
    job = scenario.job
    if not (job.dataset.size_spread.varies or job.preprocessing.cost_spread.varies):
        return _by_classes(scenario, topology, stages)
    standing_for = scenario.ranks if job.loader.policy.producers == 0 else 0
    marked = any(straggler.rank is not None for straggler in job.loader.stragglers)
    several = job.copies > 1 or job.remote is not None
    few = topology.ranks <= SAMPLED or not topology.ranks_alike or marked or several
    return everyone(topology, topology.ranks if few else SAMPLED, standing_for)


def everyone(topology: Topology, simulated: int, standing_for: int = 0) -> Fold:
    """The first ranks simulated one by one, in equal parts for all."""
    return Fold(
        ranks=tuple(range(simulated)),
        counts=(topology.ranks / simulated,) * simulated,
        units={name: name for name in topology.units},
        standing_for=standing_for,
    )


def _by_classes(scenario: Scenario, topology: Topology, stages: Sequence[StageDemands]) -> Fold:
    marks = [
        tuple(s.hits(rank, 0, 0) for s in scenario.job.loader.stragglers if s.rank is not None)
        for rank in range(topology.ranks)
    ]
    if topology.ranks_alike and len(set(marks)) == 1:
        members = {} if topology.ranks > SAMPLED else {0: tuple(range(topology.ranks))}
        units = {name: name for name in topology.units}
        return Fold(ranks=(0,), counts=(float(topology.ranks),), units=units, members=members)
    any_of = {way_of(d): d for _, d in _carried(stages) if d.path in OF_A_RANK}
    ways = sorted(any_of)
    routes = [
        [_limited(topology.way(any_of[way], Location(rank=rank))) for way in ways]
        for rank in range(topology.ranks)
    ]
    jobs = [rank // topology.ring for rank in range(topology.ranks)]
    found = refine(routes, marks=marks, kinds=_kinds(topology, stages), jobs=jobs)
    members = _members(found)
    units = found.first_units()
    return Fold(
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


def _members(found: Classes) -> dict[int, tuple[int, ...]]:
    """The ranks of each class, by the first of them."""
    classes: dict[int, list[int]] = {}
    for rank, its in enumerate(found.ranks):
        classes.setdefault(its, []).append(rank)
    return {ranks[0]: tuple(ranks) for ranks in classes.values()}


def _carried(stages: Sequence[StageDemands]) -> Iterator[tuple[StageDemands, Demand]]:
    """Demands that carry something through units."""
    for stage in stages:
        for demand in stage.demands:
            if demand.path not in NOWHERE and float(demand.amount) > 0.0:
                yield stage, demand


def _kinds(topology: Topology, stages: Sequence[StageDemands]) -> dict[str, Hashable]:
    """What tells units apart before ranks do: capacity, and what all ranks alike carry there."""
    common: dict[str, list[tuple[int, float]]] = {name: [] for name in topology.units}
    flows = 0
    for stage, demand in _carried(stages):
        for site in topology.sites_of(stage.group) if demand.path not in OF_A_RANK else ():
            flows += 1
            for unit, use in _limited(topology.way(demand, Location(rank=0, site=site))):
                common[unit].append((flows, use))
    return {name: (float(topology.units[name].capacity), *uses) for name, uses in common.items()}


def _limited(way: WeightedRoute) -> Route:
    """The units of a way that what is carried there takes something of."""
    return tuple((unit, float(use)) for unit, use in way if float(use) > 0.0)


def _together(ways: Sequence[Route], units: Mapping[str, str]) -> Route:
    """What several ranks use of the units that stand for others."""
    total: dict[str, float] = {}
    for way in ways:
        for unit, use in way:
            if units[unit] == unit:
                total[unit] = total.get(unit, 0.0) + use
    return tuple(total.items())
