"""The machine as units that can be busy, and which of them each way of a demand goes through.

Both solvers use it: `bounds` divides by a unit's capacity, the engine shares it. A way is a list
of (unit, coefficient): one byte uses `coefficient` of the unit's capacity per second.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from simulator.hardware.cluster import Group
from simulator.hardware.host import Host, PcieSwitch
from simulator.hardware.storage import Scope, Storage
from simulator.scenario import Scenario
from simulator.stages.allreduce import over_peer_link
from simulator.stages.base import Demand, Path, Resource
from simulator.units import Real

Way = tuple[tuple[str, Real], ...]
UNLIMITED = float("inf")

STORE = "storage"
OPERATIONS = "storage operations"
NETWORK = "network"
STORAGE_NETWORK = "storage network"
MEMORY = "host memory"
SOCKET_LINK = "socket link"


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """Something with a capacity: bytes or operations per second."""

    name: str
    resource: Resource
    capacity: Real


@dataclass(frozen=True, slots=True, kw_only=True)
class Plant:
    """All flow units of one machine of the trainers and the ways through them."""

    units: Mapping[str, Unit]
    host: Host
    storage: Storage
    ranks: int

    def way(self, demand: Demand, rank: int) -> Way:
        """Units that a demand of `rank` goes through, with how much each byte uses of them."""
        return _WAYS[demand.path](self, demand, rank)


def build(scenario: Scenario) -> Plant:
    """Lay out the trainers' machine as units."""
    group = scenario.cluster.trainers
    units = (
        *_storage_units(group),
        *_memory_units(group.host),
        *_pcie_units(group.host, group.gpus_per_host),
        *_peer_units(group.host, group.gpus_per_host),
    )
    return Plant(
        units={unit.name: unit for unit in units},
        host=group.host,
        storage=group.storage,
        ranks=scenario.ranks_per_host,
    )


def _storage_units(group: Group) -> tuple[Unit, ...]:
    store, network = group.storage, group.host.network
    drives = drives_used(group)
    units = [Unit(name=STORE, resource=Resource.STORAGE, capacity=store.read_rate * drives)]
    limits = [store.read_operations, store.request_limit]
    operations = [limit * drives for limit in limits if limit is not None]
    if store.scope is not Scope.LOCAL and network is not None:
        units.append(Unit(name=NETWORK, resource=Resource.NETWORK, capacity=network.bandwidth))
    if store.scope is Scope.NETWORK and network is not None:
        if network.storage_cap is not None:
            units.append(
                Unit(name=STORAGE_NETWORK, resource=Resource.NETWORK, capacity=network.storage_cap)
            )
        if network.storage_operations_cap is not None:
            operations.append(network.storage_operations_cap)
    if operations:
        cap = min(operations)
        units.append(Unit(name=OPERATIONS, resource=Resource.STORAGE, capacity=cap))
    return tuple(units)


def drives_used(group: Group) -> int:
    """Drives that share the reads: all alike inside the machine, else the one store."""
    inside = group.host.local_storage
    own = inside is not None and inside.name == group.storage.name
    return max(1, group.host.drive_count) if own else 1


def _memory_units(host: Host) -> tuple[Unit, ...]:
    if host.memory_bandwidth is None:
        return ()
    return (Unit(name=MEMORY, resource=Resource.HOST_MEMORY, capacity=host.memory_bandwidth),)


def _pcie_units(host: Host, gpus: int) -> tuple[Unit, ...]:
    if host.host_link is None or host.gpu is None or host.gpu.unified_memory:
        return ()
    rate = host.host_link.rate
    links = [(f"pcie gpu{i}", rate) for i in range(gpus)]
    links += [
        (f"pcie switch{i}", switch.uplink.rate)
        for i, switch in enumerate(host.switches)
        if any(gpu < gpus for gpu in switch.gpus)
    ]
    if host.socket_link is not None:
        links.append((SOCKET_LINK, host.socket_link.rate))
    return tuple(
        Unit(name=f"{name} {direction}", resource=Resource.PCIE, capacity=capacity)
        for name, capacity in links
        for direction in ("down", "up")
    )


def _peer_units(host: Host, gpus: int) -> tuple[Unit, ...]:
    if gpus < 2 or not over_peer_link(host) or host.peer_link is None:  # noqa: PLR2004 - a pair
        return ()
    rate = host.peer_link.rate
    return tuple(
        Unit(name=f"nvlink gpu{i}", resource=Resource.NVLINK, capacity=rate) for i in range(gpus)
    )


def _switch_of(host: Host, gpu: int) -> tuple[int, PcieSwitch] | None:
    return next(((i, s) for i, s in enumerate(host.switches) if gpu in s.gpus), None)


def _from_store(plant: Plant, demand: Demand, rank: int) -> Way:  # noqa: ARG001 - shared by ranks
    way: list[tuple[str, Real]] = [(STORE, 1.0)]
    per_byte = _operations_per_byte(demand)
    if OPERATIONS in plant.units and per_byte is not None:
        way.append((OPERATIONS, per_byte))
    way += [(name, 1.0) for name in (NETWORK, STORAGE_NETWORK, MEMORY) if name in plant.units]
    return tuple(way)


def _operations_per_byte(demand: Demand) -> Real | None:
    amount = demand.amount
    if isinstance(amount, float | int) and amount == 0.0:
        return None
    return demand.operations / amount


def _to_store(plant: Plant, demand: Demand, rank: int) -> Way:  # noqa: ARG001 - shared by ranks
    store = plant.storage
    slower = 1.0 if store.write_bandwidth is None else store.read_rate / store.write_bandwidth
    others = (name for name in (NETWORK, STORAGE_NETWORK, MEMORY) if name in plant.units)
    return ((STORE, slower), *((name, 1.0) for name in others))


def _memory(plant: Plant, demand: Demand, rank: int) -> Way:  # noqa: ARG001 - shared by ranks
    return ((MEMORY, 1.0),) if MEMORY in plant.units else ()


def _down(plant: Plant, demand: Demand, rank: int) -> Way:
    return (*_host_side(plant, rank, "down"), *_memory(plant, demand, rank))


def _up(plant: Plant, demand: Demand, rank: int) -> Way:
    return (*_host_side(plant, rank, "up"), *_memory(plant, demand, rank))


def _host_side(plant: Plant, gpu: int, direction: str) -> Way:
    way = [f"pcie gpu{gpu} {direction}"]
    switch = _switch_of(plant.host, gpu)
    if switch is not None:
        way.append(f"pcie switch{switch[0]} {direction}")
    return tuple((name, 1.0) for name in way if name in plant.units)


def _to_peer(plant: Plant, demand: Demand, rank: int) -> Way:  # noqa: ARG001 - bytes only
    if f"nvlink gpu{rank}" in plant.units:
        return ((f"nvlink gpu{rank}", 1.0),)
    host, peer = plant.host, (rank + 1) % plant.ranks
    here, there = _switch_of(host, rank), _switch_of(host, peer)
    if here is not None and there is not None and here[0] == there[0]:
        names = [f"pcie gpu{rank} up", f"pcie gpu{peer} down"]
        return tuple((name, 1.0) for name in names if name in plant.units)
    crossing = _socket_of(host, rank) != _socket_of(host, peer)
    between: Way = ((f"{SOCKET_LINK} up", 1.0),) if crossing else ()
    between = tuple(entry for entry in between if entry[0] in plant.units)
    return (*_host_side(plant, rank, "up"), *between, *_host_side(plant, peer, "down"))


def _socket_of(host: Host, gpu: int) -> int:
    return host.gpu_sockets[gpu] if gpu < len(host.gpu_sockets) else 0


def _nowhere(plant: Plant, demand: Demand, rank: int) -> Way:  # noqa: ARG001 - no flow unit
    return ()


_WAYS = {
    Path.STORE_TO_HOST: _from_store,
    Path.HOST_TO_STORE: _to_store,
    Path.MEMORY: _memory,
    Path.HOST_TO_DEVICE: _down,
    Path.DEVICE_TO_HOST: _up,
    Path.DEVICE_TO_DEVICE: _to_peer,
    Path.CORES: _nowhere,
    Path.COMPUTE: _nowhere,
}
