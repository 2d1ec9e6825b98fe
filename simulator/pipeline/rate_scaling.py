"""A topology and its stages at other rates: each resource so many times as fast as figured."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Final, TypeAlias

from simulator.pipeline.stages.base import Actor, Demand, Path, Resource, StageDemands
from simulator.pipeline.topology import Topology
from simulator.uncertainty.components import Rate
from simulator.units import Real

Speeds: TypeAlias = Mapping[Rate, Real]
"""How much faster each rate is than figured, at each point; above 1: faster."""
NO_SPEEDS: Final[Speeds] = MappingProxyType({})
"""Every rate as figured."""

_OF: Final = {
    Resource.GPU: Rate.DEVICE,
    Resource.CPU: Rate.WORKERS,
    Resource.STORAGE: Rate.STORAGE,
    Resource.NETWORK: Rate.NETWORK,
    Resource.PCIE: Rate.PCIE,
    Resource.NVLINK: Rate.NVLINK,
    Resource.HOST_MEMORY: Rate.HOST_MEMORY,
}
_ACTORS: Final = {
    Actor.PIN_MEMORY: Rate.HANDOVER,
    Actor.SENDER: Rate.HANDOVER,
    Actor.COMPUTE_STREAM: Rate.DEVICE,
}
"""Whose work on the cores is not that of the workers."""


def faster_plant(topology: Topology, speeds: Speeds) -> Topology:
    """The topology with the capacity of each unit as drawn."""
    units = {
        name: replace(unit, capacity=unit.capacity * speeds[_OF[unit.resource]])
        if _OF[unit.resource] in speeds
        else unit
        for name, unit in topology.units.items()
    }
    return replace(topology, units=units)


def faster_stage(stage: StageDemands, speeds: Speeds) -> StageDemands:
    """The stage with what its demands take as drawn; bytes stay, units get faster."""
    demands = tuple(_faster(stage.actor, demand, speeds) for demand in stage.demands)
    return replace(stage, demands=demands)


def _faster(actor: Actor, demand: Demand, speeds: Speeds) -> Demand:
    exchanges = actor is Actor.COMMUNICATION_STREAM
    works = demand.path in {Path.CORES, Path.COMPUTE}
    rate = _OF[demand.resource]
    if exchanges:
        rate = Rate.COLLECTIVES
    elif demand.path is Path.CORES:
        rate = _ACTORS.get(actor, Rate.WORKERS)
    elif actor is Actor.COMPUTE_STREAM and not works:
        rate = Rate.WAITING
    if rate not in speeds:
        return demand
    speed = speeds[rate]
    less = demand.amount / speed if works or exchanges else demand.amount
    ceiling = None if demand.ceiling is None else demand.ceiling * speed
    return replace(demand, amount=less, latency=demand.latency / speed, ceiling=ceiling)
