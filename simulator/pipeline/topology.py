"""Topology: the units of machines, and the routes of demands over them.

The bounds divide by a unit's capacity, the engine shares it. A route is a list of (unit,
coefficient): a flow of one byte per second uses `coefficient` of the unit's capacity.

The first site is one of the training machines, which are equal. Every machine of another group is a
site of its own, whose units have its name as a prefix; it serves all training machines equally.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import Final, TypeAlias

import numpy as np

from simulator.equations.cpu import threads_taken
from simulator.equations.storage import frame_payload
from simulator.physics.device_time import device_time
from simulator.pipeline.program import makes_own_batches
from simulator.pipeline.stages.base import Actor, Demand, Path, Phase, Resource, StageDemands
from simulator.pipeline.stages.communication import over_peer_link
from simulator.pipeline.stages.input import Collate, Decode, PinMemory, Read, drives_of
from simulator.records import dataclass
from simulator.schema.machines import Group, Host, PcieSwitch, PeerPath, Role
from simulator.schema.scenario import Scenario
from simulator.schema.storage import Scope
from simulator.schema.training import Mode
from simulator.schema.uncertainty import Rate
from simulator.units import Real, anywhere, where

WeightedRoute = tuple[tuple[str, Real], ...]

STORE = "storage"
OPERATIONS = "storage operations"
REQUESTS = "storage requests"
NETWORK_IN = "network in"
NETWORK_OUT = "network out"
STORAGE_NETWORK = "storage network"
NETWORK_OPERATIONS = "storage network operations"
MEMORY = "host memory"
SOCKET_LINK = "socket link"
CPU = "cpu"
CACHE = "cache drives"


def compute_stream(rank: int) -> str:
    """Return the unit name of a rank's compute stream."""
    return f"gpu{rank}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """A part of the hardware with a capacity in bytes or operations per second.

    `owner` is the name of the group that it belongs to.
    """

    name: str
    owner: str
    resource: Resource
    capacity: Real


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """One machine. `prefix` and `shared` are prefixes of the names of its units and of its store.

    `serves` training machines share it equally. Its units have the capacity for one of them; its
    cores are counted whole, and a demand of one training machine on cores counts for all.
    """

    prefix: str
    shared: str
    group: Group
    serves: Real = 1

    @property
    def host(self) -> Host:
        """Machine of the site."""
        return self.group.host


@dataclass(frozen=True, slots=True, kw_only=True)
class Location:
    """Location of a demand: a machine (`site`), and the rank for which it works."""

    rank: int
    site: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Topology:
    """All units of the machines, with the routes over them.

    `ranks` train on the first site, `ring` of them for each job. Their batches are in the memory of
    `memory_socket` (None: of each device's own socket).
    """

    units: Mapping[str, Unit]
    sites: tuple[Site, ...]
    ranks: int
    ring: int
    memory_socket: int | None = None

    @property
    def host(self) -> Host:
        """Machine that trains."""
        return self.sites[0].host

    @property
    def ranks_alike(self) -> bool:
        """True if all units are shared by all ranks, so that all ranks are equal."""
        return not any(
            name.removeprefix("pcie ").removeprefix("nvlink ").startswith("gpu")
            for name in self.units
        )

    @property
    def representatives(self) -> tuple[tuple[int, float], ...]:
        """Ranks with different routes, each with the number of ranks that it represents."""
        if self.ranks_alike:
            return ((0, float(self.ranks)),)
        return tuple((rank, 1.0) for rank in range(self.ranks))

    def sites_of(self, group: str) -> tuple[int, ...]:
        """Return the indices of the sites of a group; an empty name is the training group."""
        name = group or self.sites[0].group.name
        return tuple(i for i, site in enumerate(self.sites) if site.group.name == name)

    def way(self, demand: Demand, place: Location) -> WeightedRoute:
        """Return the route of a demand: its units, each with the use per byte."""
        return _WAYS[demand.path](self, demand, place)

    @property
    def devices_of_rank(self) -> int:
        """Number of accelerators of the machine that hold a rank's model."""
        return max(1, self.sites[0].group.gpus_per_host // self.ranks)


def build(scenario: Scenario) -> Topology:
    """Return the topology of one training machine and of all machines of other groups."""
    trainers = scenario.cluster.trainers
    others = [group for group in scenario.cluster.groups if group is not trainers]
    sites = [Site(prefix="", shared="", group=_beside_programs(scenario, trainers))]
    for group in others:
        same = group.storage.name == trainers.storage.name
        shared, serves = "" if same else f"{group.name} ", trainers.count
        sites += [
            Site(prefix=f"{group.name}{i} ", shared=shared, group=group, serves=serves)
            for i in range(group.count)
        ]
    units = {unit.name: unit for site in sites for unit in _units(site)}
    return Topology(
        units=units,
        sites=tuple(sites),
        ranks=scenario.ranks_per_host,
        ring=scenario.ranks_per_job,
        memory_socket=scenario.job.input.socket,
    )


def at_rest(topology: Topology) -> Topology:
    """Return the topology with the CPU threads of the training processes free."""
    first, *others = topology.sites
    pool = replace(first.host.cpu, taken=0.0)
    group = replace(first.group, host=replace(first.host, cpu=pool))
    return replace(topology, sites=(replace(first, group=group), *others))


def _beside_programs(scenario: Scenario, trainers: Group) -> Group:
    """Return the training group with the CPU threads that training processes occupy."""
    train, pool = scenario.job.train, trainers.host.cpu
    alone = train.host_threads == 0.0 or scenario.job.mode is Mode.PREPARE
    # A main process that prepares batches does not wait for its device at the same time.
    if alone or not anywhere(scenario.job.input.policy.producers):
        return trainers
    time, core_seconds = device_time(scenario), _loading(scenario)
    if time is None or not anywhere(core_seconds):
        return trainers
    ranks = scenario.ranks_per_host
    making = ranks * core_seconds / pool.capacity
    taken = threads_taken(ranks * train.host_threads, time.total, making, pool.threads)
    return replace(trainers, host=replace(trainers.host, cpu=replace(pool, taken=taken)))


def _loading(scenario: Scenario) -> Real:
    """Return the CPU work to load one batch on the training machine [core-seconds]."""
    producers = (Read(), Decode(), Collate()) if makes_own_batches(scenario) else ()
    stages = (*producers, PinMemory())
    work = (demand for stage in stages for demand in stage.demands(scenario, Phase.WARM))
    return sum((demand.amount for demand in work if demand.path is Path.CORES), 0.0)


def _units(site: Site) -> Iterator[Unit]:
    host, gpus = site.host, site.group.gpus_per_host
    found = [*_storage_units(site), *_pcie_units(site)]
    if host.network is not None:
        directions = (site.prefix + name for name in (NETWORK_IN, NETWORK_OUT))
        found += [(name, Resource.NETWORK, host.network.bandwidth) for name in directions]
    if gpus > 1 and over_peer_link(host) and host.peer_link is not None:
        links = (f"{site.prefix}nvlink gpu{i}" for i in range(gpus))
        found += [(name, Resource.NVLINK, host.peer_link.rate) for name in links]
    if host.memory_bandwidth is not None:
        found.append((site.prefix + MEMORY, Resource.HOST_MEMORY, host.memory_bandwidth))
    for name, resource, capacity in found:
        part = capacity / site.serves
        yield Unit(name=name, owner=site.group.name, resource=resource, capacity=part)


def store_prefix(site: Site) -> str:
    """Return the name prefix of the units of a site's store."""
    return site.prefix if site.group.storage.scope is Scope.LOCAL else site.shared


def _storage_units(site: Site) -> Iterator[tuple[str, Resource, Real]]:
    group = site.group
    store, network = group.storage, group.host.network
    drives, prefix = drives_used(group) / clients(group), store_prefix(site)
    yield prefix + STORE, Resource.STORAGE, store.read_rate * drives
    operations = store.read_operations or store.write_operations
    # Each cap is a unit of its own: a write may weigh more than a read in one and not in another.
    if operations is not None:
        yield prefix + OPERATIONS, Resource.STORAGE, operations * drives
    if store.request_limit is not None:
        yield prefix + REQUESTS, Resource.STORAGE, store.request_limit * drives
    if group.cache is not None:
        own = drives_of(group, group.cache)
        yield site.prefix + CACHE, Resource.STORAGE, group.cache.read_rate * own
    if store.scope is Scope.VOLUME and network is not None:
        if network.storage_cap is not None:
            yield site.prefix + STORAGE_NETWORK, Resource.NETWORK, network.storage_cap
        limit = network.storage_operations_cap
        if limit is not None:
            yield site.prefix + NETWORK_OPERATIONS, Resource.NETWORK, limit


def drives_used(group: Group) -> int:
    """Return the number of drives that share the reads of a group's store."""
    return drives_of(group, group.storage)


def clients(group: Group) -> int:
    """Return the number of machines that share the store with the simulated one, itself included.

    Machines of other groups are all simulated; of the training group, one represents all.
    """
    local = group.storage.scope is Scope.LOCAL
    return 1 if local or group.role is Role.PREPROCESS else group.count


def _pcie_units(site: Site) -> Iterator[tuple[str, Resource, Real]]:
    host, gpus = site.host, site.group.gpus_per_host
    if host.host_link is None or host.gpu is None or host.gpu.unified_memory:
        return
    links = [(f"pcie gpu{i}", host.host_link.rate) for i in range(gpus)]
    links += [
        (f"pcie switch{i}", switch.uplink.rate)
        for i, switch in enumerate(host.switches)
        if switch.drives or switch.nics or any(gpu < gpus for gpu in switch.gpus)
    ]
    if host.socket_link is not None:
        links.append((SOCKET_LINK, host.socket_link.rate))
    for name, capacity in links:
        for direction in ("down", "up"):
            yield f"{site.prefix}{name} {direction}", Resource.PCIE, capacity


def _present(topology: Topology, *names: str) -> WeightedRoute:
    return tuple((name, 1.0) for name in names if name in topology.units)


def _from_store(topology: Topology, demand: Demand, place: Location) -> WeightedRoute:
    site = topology.sites[place.site]
    prefix = store_prefix(site)
    weight = 0.0 if site.group.storage.read_operations is None else 1.0
    operations = _operations(topology, demand, site, weight, 1.0)
    return ((prefix + STORE, 1.0), *operations, *_wire(topology, site, NETWORK_IN))


def _operations(
    topology: Topology, demand: Demand, site: Site, weight: Real, requests: Real
) -> WeightedRoute:
    """Return the operation limits on a demand's route, with the operations per byte.

    One operation uses the store like `weight` reads, and like `requests` requests; the machine's
    own limit counts it once.
    """
    amount = demand.amount
    if not anywhere(amount):
        return ()
    per_byte = demand.operations / where(amount > 0.0, amount, np.inf)
    prefix = store_prefix(site)
    caps: WeightedRoute = (
        (prefix + OPERATIONS, weight),
        (prefix + REQUESTS, requests),
        (site.prefix + NETWORK_OPERATIONS, 1.0),
    )
    met = ((name, each) for name, each in caps if anywhere(each) and name in topology.units)
    return tuple((name, each * per_byte) for name, each in met)


def _wire(topology: Topology, site: Site, direction: str) -> WeightedRoute:
    """Return the route between store and machine: network or PCIe tree, and host memory."""
    flow = "up" if direction == NETWORK_IN else "down"
    if site.group.storage.scope is Scope.LOCAL:
        return (*_tree(topology, site, "drives", flow), *_present(topology, site.prefix + MEMORY))
    own = site.prefix + STORAGE_NETWORK in topology.units
    wire = site.prefix + (STORAGE_NETWORK if own else direction)
    carried = frame_payload() if site.group.storage.scope is Scope.OBJECT else 1.0
    wires = ((wire, 1.0 / carried),) if wire in topology.units else ()
    memory = _present(topology, site.prefix + MEMORY)
    return (*wires, *memory, *_tree(topology, site, "nics", flow))


def _tree(topology: Topology, site: Site, devices: str, flow: str) -> WeightedRoute:
    """Return the uplinks of PCIe switches above drives or network cards, each with its share."""
    host, prefix = site.host, site.prefix
    cards = 0 if host.network is None else host.network.cards
    below = [len(getattr(switch, devices)) for switch in host.switches]
    whole = max(sum(below), host.drive_count if devices == "drives" else cards)
    way = []
    for i, (switch, number) in enumerate(zip(host.switches, below, strict=True)):
        far = topology.memory_socket is not None and switch.socket != topology.memory_socket
        names = [f"{prefix}pcie switch{i} {flow}"]
        names += [f"{prefix}{SOCKET_LINK} {flow}"] if far else []
        way += [(name, number / whole) for name in names if number and name in topology.units]
    return _merged(way)


def _merged(way: Sequence[tuple[str, Real]]) -> WeightedRoute:
    """Return the route with repeated units merged and their coefficients added up."""
    total: dict[str, Real] = {}
    for name, use in way:
        total[name] = total.get(name, 0.0) + use
    return tuple(total.items())


def _from_cache(topology: Topology, demand: Demand, place: Location) -> WeightedRoute:  # noqa: ARG001 - bytes only
    site = topology.sites[place.site]
    beside = (*_tree(topology, site, "drives", "up"), *_present(topology, site.prefix + MEMORY))
    return ((site.prefix + CACHE, 1.0), *beside)


def _between_machines(topology: Topology, demand: Demand, place: Location) -> WeightedRoute:  # noqa: ARG001 - bytes only
    """Return the route to other machines and back: network, and host memory without GPUDirect."""
    network = topology.host.network
    cards = _present(topology, NETWORK_OUT, NETWORK_IN)
    if network is None or network.rdma:
        return cards
    home = topology.sites[0]
    trees = (*_tree(topology, home, "nics", "down"), *_tree(topology, home, "nics", "up"))
    return (*cards, *_present(topology, MEMORY), *_merged(trees))


def _to_store(topology: Topology, demand: Demand, place: Location) -> WeightedRoute:
    site = topology.sites[place.site]
    store, prefix = site.group.storage, store_prefix(site)
    slower = 1.0 if store.write_bandwidth is None else store.read_rate / store.write_bandwidth
    reads, writes = store.read_operations, store.write_operations
    rarer = reads / writes if reads is not None and writes is not None else 1.0
    whole = _share_of_store(site.group, demand)
    limits = store.request_limit, store.write_request_limit
    scarcer = limits[0] / limits[1] if limits[0] is not None and limits[1] is not None else 1.0
    operations = _operations(topology, demand, site, rarer * whole, scarcer * whole)
    return ((prefix + STORE, slower * whole), *operations, *_wire(topology, site, NETWORK_OUT))


def _share_of_store(group: Group, demand: Demand) -> Real:
    """Return the coefficient of a store's unit; below 1 if only some of its clients use it."""
    alone = demand.sharers is None or group.storage.scope is Scope.LOCAL
    return 1.0 if alone or demand.sharers is None else demand.sharers / clients(group)


def _memory(topology: Topology, demand: Demand, place: Location) -> WeightedRoute:  # noqa: ARG001 - bytes only
    return _present(topology, topology.sites[place.site].prefix + MEMORY)


def _to_trainer(topology: Topology, demand: Demand, place: Location) -> WeightedRoute:  # noqa: ARG001 - bytes only
    away, home = topology.sites[place.site], topology.sites[0]
    wires = _present(topology, away.prefix + NETWORK_OUT, NETWORK_IN, MEMORY)
    return (*wires, *_tree(topology, away, "nics", "down"), *_tree(topology, home, "nics", "up"))


def _over_pcie(
    topology: Topology, demand: Demand, place: Location, *, direction: str
) -> WeightedRoute:
    """Return the route over the PCIe tree, the link between sockets if crossed, and host memory."""
    home, gpu = topology.memory_socket, place.rank
    crosses = home is not None and home != _socket_of(topology.host, gpu)
    return (
        *_host_side(topology, gpu, direction),
        *(_present(topology, f"{SOCKET_LINK} {direction}") if crosses else ()),
        *_memory(topology, demand, place),
    )


def _switch_of(host: Host, gpu: int) -> tuple[int, PcieSwitch] | None:
    return next(((i, s) for i, s in enumerate(host.switches) if gpu in s.gpus), None)


def _host_side(topology: Topology, gpu: int, direction: str) -> WeightedRoute:
    switch = _switch_of(topology.host, gpu)
    above = () if switch is None else (f"pcie switch{switch[0]} {direction}",)
    return _present(topology, f"pcie gpu{gpu} {direction}", *above)


def _to_peer(topology: Topology, demand: Demand, place: Location) -> WeightedRoute:  # noqa: ARG001 - bytes only
    return _to_next(topology, place.rank, topology.ring)


def _to_next(topology: Topology, gpu: int, ring: int) -> WeightedRoute:
    """Return the route from an accelerator to the next one of its `ring`."""
    host = topology.host
    if f"nvlink gpu{gpu}" in topology.units:
        return ((f"nvlink gpu{gpu}", 1.0),)
    first = gpu - gpu % ring
    peer = first + (gpu - first + 1) % ring
    here, there = _switch_of(host, gpu), _switch_of(host, peer)
    below_one = here is not None and there is not None and here[0] == there[0]
    if below_one and host.peer_path is not PeerPath.HOST:
        return _present(topology, f"pcie gpu{gpu} up", f"pcie gpu{peer} down")
    crossing = _socket_of(host, gpu) != _socket_of(host, peer)
    onward = "up" if _socket_of(host, gpu) < _socket_of(host, peer) else "down"
    between = _present(topology, f"{SOCKET_LINK} {onward}") if crossing else ()
    # A buffer in host memory is written and read.
    twice = host.peer_path is PeerPath.HOST and MEMORY in topology.units
    copied = ((MEMORY, 2.0),) if twice else ()
    route = (*_host_side(topology, gpu, "up"), *between, *_host_side(topology, peer, "down"))
    return (*route, *copied)


def _exchanged(topology: Topology, demand: Demand, place: Location) -> WeightedRoute:
    """Return the routes from a rank's accelerators to others of the machine, and out of it."""
    devices = topology.devices_of_rank
    ring = topology.ring * devices
    near, far = 1.0 - demand.outward, demand.outward * devices
    first = place.rank * devices
    way = [
        (unit, use * near)
        for gpu in range(first, first + devices)
        for unit, use in _to_next(topology, gpu, ring)
    ]
    way += [(unit, use * far) for unit, use in _between_machines(topology, demand, place)]
    return _merged(way)


def _socket_of(host: Host, gpu: int) -> int:
    return host.gpu_sockets[gpu] if gpu < len(host.gpu_sockets) else 0


def _nowhere(topology: Topology, demand: Demand, place: Location) -> WeightedRoute:  # noqa: ARG001 - no flow unit
    return ()


_WAYS: Final[Mapping[Path, Callable[[Topology, Demand, Location], WeightedRoute]]] = {
    Path.STORE_TO_HOST: _from_store,
    Path.CACHE_TO_HOST: _from_cache,
    Path.HOST_TO_STORE: _to_store,
    Path.HOST_TO_TRAINER: _to_trainer,
    Path.MEMORY: _memory,
    Path.HOST_TO_DEVICE: partial(_over_pcie, direction="down"),
    Path.DEVICE_TO_HOST: partial(_over_pcie, direction="up"),
    Path.DEVICE_TO_DEVICE: _to_peer,
    Path.MACHINE_TO_MACHINE: _between_machines,
    Path.EXCHANGE: _exchanged,
    Path.CORES: _nowhere,
    Path.COMPUTE: _nowhere,
}


Speeds: TypeAlias = Mapping[Rate, Real]
"""How much faster each rate is than figured, at each point; above 1: faster."""
NO_SPEEDS: Final[Speeds] = MappingProxyType({})
"""Every rate as figured."""

RATE_OF: Final = {
    Resource.GPU: Rate.DEVICE,
    Resource.CPU: Rate.WORKERS,
    Resource.STORAGE: Rate.STORAGE,
    Resource.NETWORK: Rate.NETWORK,
    Resource.PCIE: Rate.PCIE,
    Resource.NVLINK: Rate.NVLINK,
    Resource.HOST_MEMORY: Rate.HOST_MEMORY,
}
"""Uncertain rate of each resource."""
_ACTORS: Final = {
    Actor.PIN_MEMORY: Rate.HANDOVER,
    Actor.SENDER: Rate.HANDOVER,
    Actor.COMPUTE_STREAM: Rate.DEVICE,
}
"""Whose work on the cores is not that of the workers."""


_OF_A_CLIENT: Final = {Rate.STORAGE: Rate.CLIENT, Rate.WORKERS: Rate.CLIENT_CPU}
"""Rates of reading that are those of the client, if an object store is read through one."""


def scale_topology(topology: Topology, speeds: Speeds) -> Topology:
    """Return the topology with the capacity of each unit multiplied by the factor of its rate."""
    units = {
        name: replace(unit, capacity=unit.capacity * speeds[RATE_OF[unit.resource]])
        if RATE_OF[unit.resource] in speeds
        else unit
        for name, unit in topology.units.items()
    }
    return replace(topology, units=units)


def scale_stage(stage: StageDemands, speeds: Speeds) -> StageDemands:
    """Return the stage with its demands at other rates; bytes stay, as units get faster."""
    demands = tuple(_faster(stage, demand, speeds) for demand in stage.demands)
    return replace(stage, demands=demands)


def _faster(stage: StageDemands, demand: Demand, speeds: Speeds) -> Demand:
    actor = stage.actor
    if actor is Actor.MAIN_THREAD:
        return _launched_faster(demand, speeds)
    exchanges = actor is Actor.COMMUNICATION_STREAM
    works = demand.path in {Path.CORES, Path.COMPUTE}
    rate = RATE_OF[demand.resource]
    if exchanges:
        rate = Rate.COLLECTIVES
    elif demand.path is Path.CORES:
        rate = _ACTORS.get(actor, Rate.WORKERS)
    elif actor is Actor.COMPUTE_STREAM and not works:
        rate = Rate.WAITING
    if stage.slot.reads and rate in _OF_A_CLIENT and _OF_A_CLIENT[rate] in speeds:
        rate = _OF_A_CLIENT[rate]
    if rate not in speeds:
        return demand
    speed = speeds[rate]
    less = demand.amount / speed if works or exchanges else demand.amount
    ceiling = demand.ceiling
    # Less work already makes an exchange as much shorter.
    if ceiling is not None and not exchanges:
        ceiling = ceiling * speed
    return replace(demand, amount=less, latency=demand.latency / speed, ceiling=ceiling)


def _launched_faster(demand: Demand, speeds: Speeds) -> Demand:
    """Return the launching of a batch at other rates; it never takes longer than the device.

    Launching that is taken to last as long as the device computes follows the device's rate.
    """
    speed = np.maximum(1.0, speeds.get(Rate.LAUNCH, 1.0))
    if demand.resource is Resource.GPU:
        speed = speed * speeds.get(Rate.DEVICE, 1.0)
    return replace(demand, latency=demand.latency / speed)
