"""Epochs that were simulated before, for runs that differ in nothing that is simulated.

Candidates of a search often differ only in what an epoch does not depend on: what machines cost,
from which store the data is copied before the run begins, or which one it was first read from when
it now lies in RAM. The engine is given scenarios without those figures, so that none of them can
reach an epoch. Two runs that are equal without them have the same one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from simulator.engine.recorder import Epoch, Plan
from simulator.pipeline.stages.base import Demand, Path, Resource, StageDemands
from simulator.pipeline.topology import NETWORK_OPERATIONS, STORAGE_NETWORK, Site, Topology, Unit
from simulator.schema.hardware.cluster import Group
from simulator.schema.hardware.storage import Scope, Storage
from simulator.schema.scenario import CostPlan, Scenario

MOST: Final = 96
"""Epochs that are kept: those of the candidates that a search takes one after another."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """All that an epoch depends on: what is run, on which units, for how long, with which draws."""

    scenario: Scenario
    topology: Topology
    stages: tuple[StageDemands, ...]
    plan: Plan
    seed: int

    @staticmethod
    def of(
        scenario: Scenario,
        topology: Topology,
        stages: tuple[StageDemands, ...],
        plan: Plan,
        seed: int,
    ) -> Asked:
        """The question without names, notes and prices, and without a store that nobody uses."""
        idle = _is_idle(stages)
        groups = tuple(_bare(group, idle=idle) for group in scenario.cluster.groups)
        bare = replace(
            scenario,
            name="",
            title="",
            notes=(),
            uncertainties=(),
            cost=CostPlan(),
            cluster=replace(scenario.cluster, groups=groups),
            interruptions=None,
            energy=None,
            owned=None,
        )
        sites = tuple(_bare_site(site, idle=idle) for site in topology.sites)
        units = {n: unit for n, unit in topology.units.items() if not (idle and _of_store(unit))}
        return Asked(
            scenario=bare,
            topology=replace(topology, sites=sites, units=units),
            stages=tuple(map(_asking, stages)) if idle else stages,
            plan=plan,
            seed=seed,
        )


_WITH_STORE: Final = frozenset({Path.STORE_TO_HOST, Path.CACHE_TO_HOST, Path.HOST_TO_STORE})
_UNUSED: Final = Storage(name="", scope=Scope.LOCAL, read_bandwidth=1.0)
"""Stands for a store that nobody reads from or writes to."""


def _is_idle(stages: Sequence[StageDemands]) -> bool:
    """Whether nothing is read from a store or written to one, by any group of machines."""
    demands = (demand for stage in stages for demand in stage.demands)
    return not any(_asks(demand) for demand in demands if demand.path in _WITH_STORE)


def _asks(demand: Demand) -> bool:
    return float(demand.amount) != 0.0 or float(demand.latency) != 0.0


def _asking(stage: StageDemands) -> StageDemands:
    """A stage without what asks an idle store for nothing."""
    kept = tuple(demand for demand in stage.demands if demand.path not in _WITH_STORE)
    return stage if len(kept) == len(stage.demands) else replace(stage, demands=kept)


def _of_store(unit: Unit) -> bool:
    wires = (STORAGE_NETWORK, NETWORK_OPERATIONS)  # after the name of a machine that only makes
    return unit.resource is Resource.STORAGE or unit.name.endswith(wires)


def _bare_site(site: Site, *, idle: bool) -> Site:
    bare = replace(site, group=_bare(site.group, idle=idle))
    return replace(bare, shared="") if idle else bare


def _bare(group: Group, *, idle: bool) -> Group:
    bare = replace(group, origin=None, price=None)
    return replace(bare, storage=_UNUSED, cache=None) if idle else bare


def simulated(asked: Asked, simulate: Callable[[Asked], Epoch]) -> Epoch:
    """The epoch that answers a question: one that was simulated before, or one that is now.

    Parameters
    ----------
    asked : Asked
        The question; nothing else decides the epoch.
    simulate : callable
        Simulates it.
    """
    for known, epoch in tuple(_RECENT):
        if known == asked:
            return epoch
    epoch = simulate(asked)
    _RECENT.append((asked, epoch))
    return epoch


_RECENT: Final[deque[tuple[Asked, Epoch]]] = deque(maxlen=MOST)
