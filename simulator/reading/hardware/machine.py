"""Profiles of machines: their tables, and the `Host` built from them and the profiles of parts.

The accelerators of a machine may be replaced by others; the rest of the machine stays, except for
its price.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import field, replace
from typing import Annotated, Final, Protocol, TypeVar

from simulator.errors import InputError, Problem, UnknownName
from simulator.reading.document import Document, check
from simulator.reading.hardware.devices import Cite, refuse_if, vector_units_of
from simulator.reading.lines import KeyPath
from simulator.records import dataclass
from simulator.schema.accelerators import Gpu
from simulator.schema.cost import Price, Purchase, PurchaseField
from simulator.schema.fields import (
    SOURCED,
    ByteFigure,
    ByteRateFigure,
    Choice,
    Citation,
    CountFigure,
    CountOrZeroField,
    FractionFigure,
    MoneyFigure,
    NameFigure,
    PowerFigure,
    PriceFigure,
    Profile,
    RateFigure,
    TextField,
)
from simulator.schema.machines import (
    PAIR,
    Cpu,
    CpuPool,
    Host,
    Link,
    Network,
    PcieSwitch,
    PeerTopology,
)
from simulator.schema.provenance import Source
from simulator.schema.storage import Storage

TopologyFigure = Annotated[PeerTopology, Choice(PeerTopology), SOURCED]


@dataclass(frozen=True, slots=True, kw_only=True)
class CpuTable:
    """The processors of a machine, all sockets together."""

    model: NameFigure | None = None
    """Name of the profile of one socket."""
    threads: CountFigure
    """Hardware threads (vCPUs)."""
    cores: CountFigure
    """Physical cores behind them."""
    sockets: CountFigure
    """Number of sockets."""
    coremark: RateFigure | None = None
    """CoreMark of the whole machine."""
    smt_worth: FractionFigure | None = None
    """Extra speed of a busy core with a second hardware thread, as a fraction of a core."""
    contention: FractionFigure | None = None
    """Extra time of work with all cores busy over that with one, as a fraction."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuTable:
    """The accelerators of a machine, all of one kind."""

    model: NameFigure
    """Name of the accelerator's profile."""
    count: CountFigure
    """Number of accelerators."""
    host_link: NameFigure | None = None
    """Link of each to the host, if other than in the accelerator's profile."""
    peer_link: NameFigure | None = None
    """Link between them, if other than in the accelerator's profile."""
    peer_topology: TopologyFigure | None = None
    """Topology of the links between them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkTable:
    """The network attachment, one direction, all cards together."""

    rdma: bool = False
    """Whether traffic skips the copy through host memory."""
    bandwidth: ByteRateFigure
    """Rate of all cards together."""
    cards: CountFigure | None = None
    """Number of cards."""
    baseline: ByteRateFigure | None = None
    """Sustained rate after a burst."""
    storage_cap: ByteRateFigure | None = None
    """Limit of the provider's storage network."""
    storage_operations_cap: RateFigure | None = None
    """Operations per second over that network."""
    per_flow: ByteRateFigure | None = None
    """Highest rate of a single flow."""
    link: NameFigure | None = None
    """Name of the profile of all cards together, with measured collectives."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DrivesTable:
    """The drives inside a machine, all of one kind."""

    model: NameFigure
    """Name of the drive's profile."""
    count: CountFigure
    """Number of drives."""
    capacity: ByteFigure | None = None
    """Size of each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceBlock:
    """One price of the machine by the hour, by how and where its hours are bought."""

    purchase: PurchaseField
    """Way to buy its hours."""
    region: TextField
    """Region of this price."""
    price: PriceFigure
    """The price; if it varies, the lowest seen."""
    highest: PriceFigure | None = None
    """Highest price seen, if it varies."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceTable:
    """Prices of the machine by the hour, on demand and as spot capacity in one region."""

    region: TextField
    """Region of these prices."""
    on_demand: PriceFigure
    """Price without commitment."""
    spot_low: PriceFigure | None = None
    """Lowest spot price seen."""
    spot_high: PriceFigure | None = None
    """Highest spot price seen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SwitchTable:
    """A PCIe switch and the devices below it."""

    socket: CountOrZeroField
    """Socket its uplink goes to, from 0."""
    uplink: TextField
    """Name of the link to the socket."""
    gpus: tuple[CountOrZeroField, ...] = ()
    """Accelerators below it, from 0."""
    nics: tuple[CountOrZeroField, ...] = ()
    """Network cards below it, from 0."""
    drives: tuple[CountOrZeroField, ...] = ()
    """Drives below it, from 0."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LayoutTable(Citation):
    """Devices and the sockets and switches they are attached to; all of it from one source."""

    gpu_sockets: tuple[CountOrZeroField, ...] = ()
    """Socket of each accelerator, from 0."""
    socket_link: TextField | None = None
    """Name of the link between sockets."""
    switches: tuple[SwitchTable, ...] = ()
    """The PCIe switches."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineFile(Profile):
    """A machine as bought or rented, without its rent."""

    cloud: TextField = ""
    """Cloud that rents it out."""
    family: TextField = ""
    """Family of machines that differ in size only."""
    virtual: bool = False
    """Whether it is a virtual machine."""
    ram: ByteFigure
    """Memory of the machine."""
    memory_bandwidth: ByteRateFigure | None = None
    """Peak bandwidth of that memory, if other than that of the sockets."""
    power: PowerFigure | None = None
    """Highest power draw."""
    cpu: CpuTable
    """The processors."""
    gpu: GpuTable | None = None
    """The accelerators, if any."""
    network: NetworkTable | None = None
    """The network attachment, where known."""
    drives: DrivesTable | None = None
    """The drives inside, if any."""
    capex: MoneyFigure | None = None
    """Purchase price, if known."""
    layout: LayoutTable | None = None
    """Sockets and switches of its devices, where known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostFile(MachineFile):
    """A machine with at most an on-demand price and a range of spot prices."""

    price: PriceTable | None = None
    """Rent, if known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PricedHostFile(MachineFile):
    """A machine with a list of prices."""

    price: tuple[PriceBlock, ...]
    """Rent by purchase type and region."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DefaultsFile(Profile):
    """Default values for keys that a profile leaves out."""

    smt_worth: FractionFigure
    """Extra speed of a busy core with a second hardware thread, as a fraction of a core."""
    contention: FractionFigure
    """Extra time of work with all cores busy over that with one, as a fraction."""


Part = TypeVar("Part")

_WHOLE: Final = 0.75
"""Share of a socket's cores from which on a virtual machine has the socket to itself."""
_LINKED: Final = (PeerTopology.SWITCHED, PeerTopology.MESH)


class Parts(Protocol):
    """Interface that returns parts of a machine by name."""

    def gpu(self, name: str) -> Gpu:
        """Return the accelerator called `name`."""

    def cpu(self, name: str) -> Cpu:
        """Return the processor called `name`."""

    def link(self, name: str) -> Link:
        """Return the link called `name`."""

    def storage(self, name: str) -> Storage:
        """Return the store called `name`."""

    def defaults(self) -> DefaultsFile:
        """Return defaults for values that a profile lacks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Build:
    """The parts of a machine under construction; mistakes are collected in `problems`."""

    file: MachineFile
    document: Document
    cite: Cite
    parts: Parts
    sources: dict[str, Source] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    def part(self, load: Callable[[str], Part], name: str | None, *path: str | int) -> Part | None:
        """Return the part called `name`; None if it is not named, or not found (a problem)."""
        if name is None:
            return None
        try:
            return load(name)
        except UnknownName as error:
            message, _, hint = str(error).partition("; ")
            self.problems.append(self.document.problem(path, message, hint=hint))
        except InputError as error:
            self.problems.extend(error.problems)
        return None

    def cite_as(self, **keys: str) -> None:
        """Copy the sources of keys of the file to the fields that they fill."""
        stated = self.file.sources
        self.sources.update(
            {to: self.cite(stated[key]) for to, key in keys.items() if key in stated}
        )

    def fault(self, path: KeyPath, message: str, hint: str | None = None) -> None:
        """Record a mistake at `path`."""
        self.problems.append(self.document.problem(path, message, hint=hint))


def to_host(name: str, document: Document, cite: Cite, parts: Parts) -> Host:
    """Build a machine from its profile.

    Raises
    ------
    InputError
        With all problems: those of single keys, unknown parts, devices that don't exist under
        switches, more cores than threads, prices given twice or as ranges upside down, and
        mistakes in the profiles of its parts.
    """
    listed = isinstance(document.data.get("price"), list)
    file = check(PricedHostFile if listed else HostFile, document)
    build = _Build(file=file, document=document, cite=cite, parts=parts)
    kept = ("ram", "memory_bandwidth", "power", "capex")
    build.cite_as(**{key: key for key in file.sources if key in kept})
    socket = _socket(build)
    host = Host(
        name=name,
        cpu=_pool(build, socket),
        ram=file.ram,
        memory_bandwidth=_memory_bandwidth(build, socket),
        network=_network(build),
        virtual=file.virtual,
        power=file.power,
        prices=_prices(build),
        capex=file.capex,
        cloud=file.cloud,
        family=file.family,
        note=file.note,
        sources=build.sources,
    )
    host = _with_layout(build, _with_drives(build, _with_gpus(build, host)))
    refuse_if(build.problems)
    return host


def _socket(build: _Build) -> Cpu | None:
    table = build.file.cpu
    if table.threads < table.cores:
        build.fault(("cpu", "threads", "value"), "is less than the number of cores")
    return build.part(build.parts.cpu, table.model, "cpu", "model", "value")


def _pool(build: _Build, socket: Cpu | None) -> CpuPool:
    table = build.file.cpu
    sources, defaults = build.sources, build.parts.defaults()
    build.cite_as(**{key: key for key in build.file.sources if key.startswith("cpu.")})
    for key in ("smt_worth", "contention"):
        sources.setdefault(f"cpu.{key}", build.cite(defaults.sources[key]))
    power = None
    if socket is not None:
        sources["cpu.base_clock"] = socket.sources["base_clock"]
    if socket is not None and socket.power is not None:
        sources["cpu.power"] = socket.sources["power"]
        power = socket.power * table.sockets
    return CpuPool(
        cores=table.cores,
        threads=table.threads,
        sockets=table.sockets,
        smt_worth=defaults.smt_worth if table.smt_worth is None else table.smt_worth,
        contention=defaults.contention if table.contention is None else table.contention,
        coremark=table.coremark,
        assumed=frozenset(
            key for key in ("smt_worth", "contention") if getattr(table, key) is None
        ),
        base_clock=None if socket is None else socket.base_clock,
        model="" if socket is None else socket.name,
        power=power,
        vector=None if socket is None else vector_units_of(socket.name),
    )


def _memory_bandwidth(build: _Build, socket: Cpu | None) -> float | None:
    stated = build.file.memory_bandwidth
    if stated is not None:
        return stated
    if socket is None or socket.memory_bandwidth is None:
        return None
    table = build.file.cpu
    source = socket.sources["memory_bandwidth"]
    whole = table.cores >= _WHOLE * socket.cores * table.sockets
    if build.file.virtual and not whole:
        note = "of the whole socket, which is shared with other tenants"
        source = replace(source, verified=False, note=note)
    build.sources["memory_bandwidth"] = source
    return socket.memory_bandwidth * table.sockets


def _with_gpus(build: _Build, host: Host) -> Host:
    table = build.file.gpu
    if table is None:
        return host
    gpu = build.part(build.parts.gpu, table.model, "gpu", "model", "value")
    if gpu is None:
        return host
    build.cite_as(gpu="gpu.model", gpu_count="gpu.count", peer_topology="gpu.peer_topology")
    several = table.count > 1
    topology = table.peer_topology or PeerTopology.PCIE
    host = replace(
        host,
        gpu=gpu,
        gpu_count=table.count,
        host_link=_link(build, gpu, "host_link"),
        peer_topology=topology if several else PeerTopology.NONE,
        peer_link=_link(build, gpu, "peer_link") if several and topology in _LINKED else None,
    )
    try:
        return _with_paths(host, build.parts)
    except InputError as error:
        build.problems.extend(error.problems)
        return host


STAGING: Final = "peers-through-host"
"""Profile of the path between cards through host memory."""


def _with_paths(host: Host, parts: Parts) -> Host:
    """Return the machine with the other paths that its accelerators could take to each other."""
    gpu = host.gpu
    if gpu is None or host.gpu_count < PAIR or host.host_link is None or gpu.unified_memory:
        return host
    bridge = None if gpu.bridge is None else parts.link(gpu.bridge)
    return replace(host, bridge=bridge, staging=parts.link(STAGING))


def _link(build: _Build, gpu: Gpu, key: str) -> Link | None:
    """Return the host link of each accelerator: of the machine, else of its own profile."""
    own: str | None = getattr(build.file.gpu, key)
    usual: str | None = getattr(gpu, key)
    origin = key
    table = build.file.gpu
    if key == "peer_link" and usual is None and table is not None and table.count == PAIR:
        origin, usual = "bridge", gpu.bridge
    build.cite_as(**{key: f"gpu.{key}"})
    if own is None and origin in gpu.sources:
        build.sources[key] = gpu.sources[origin]
    if own is None and usual is None and key == "peer_link":
        hint = f"the profile {gpu.name} names none"
        build.fault(("gpu", key), "is missing, as peer_topology asks for a link", hint)
    if gpu.unified_memory:
        return None
    return build.part(build.parts.link, own or usual, "gpu", key, "value")


def _with_drives(build: _Build, host: Host) -> Host:
    table = build.file.drives
    if table is None:
        return host
    drive = build.part(build.parts.storage, table.model, "drives", "model", "value")
    if drive is None:
        return host
    build.cite_as(local_storage="drives.model", drive_count="drives.count")
    if table.capacity is not None:
        source = build.cite(build.file.sources["drives.capacity"])
        drive = replace(
            drive, capacity=table.capacity, sources={**drive.sources, "capacity": source}
        )
    return replace(host, local_storage=drive, drive_count=table.count)


def _network(build: _Build) -> Network | None:
    table = build.file.network
    if table is None:
        return None
    build.cite_as(**{key: key for key in build.file.sources if key.startswith("network.")})
    return Network(
        bandwidth=table.bandwidth,
        cards=table.cards or 1,
        rdma=table.rdma,
        baseline=table.baseline,
        storage_cap=table.storage_cap,
        storage_operations_cap=table.storage_operations_cap,
        per_flow=table.per_flow,
        link=build.part(build.parts.link, table.link, "network", "link", "value"),
    )


def _prices(build: _Build) -> tuple[Price, ...]:
    file = build.file
    if isinstance(file, PricedHostFile):
        return tuple(_listed_prices(build, file.price))
    return tuple(_tabled_prices(build)) if isinstance(file, HostFile) else ()


def _listed_prices(build: _Build, blocks: Sequence[PriceBlock]) -> Iterator[Price]:
    seen = set[tuple[Purchase, str]]()
    for i, block in enumerate(blocks):
        if block.purchase is Purchase.OWNED:
            message = "is not a price by the hour"
            build.fault(("price", i, "purchase"), message, "state what it costs to buy as capex")
        if (block.purchase, block.region) in seen:
            message = f"is the second {block.purchase} price in {block.region}"
            build.fault(("price", i, "purchase"), message, "keep one of them")
        seen.add((block.purchase, block.region))
        low, high = block.price, block.highest or block.price
        if low > high:
            build.fault(("price", i, "price", "value"), "is above highest")
        yield Price(
            purchase=block.purchase,
            region=block.region,
            low=low,
            high=high,
            source=build.cite(build.file.sources[f"price.{i + 1}.price"]),
        )


def _tabled_prices(build: _Build) -> Iterator[Price]:
    """Yield the on-demand and the spot price of a ``[price]`` table."""
    table = build.file.price if isinstance(build.file, HostFile) else None
    if table is None:
        return
    price = table.on_demand
    yield Price(
        purchase=Purchase.ON_DEMAND,
        region=table.region,
        low=price,
        high=price,
        source=build.cite(build.file.sources["price.on_demand"]),
    )
    if table.spot_low is None or table.spot_high is None:
        return
    if table.spot_low > table.spot_high:
        build.fault(("price", "spot_low", "value"), "is above spot_high")
    yield Price(
        purchase=Purchase.SPOT,
        region=table.region,
        low=table.spot_low,
        high=table.spot_high,
        source=build.cite(build.file.sources["price.spot_low"]),
    )


def _with_layout(build: _Build, host: Host) -> Host:
    layout = build.file.layout
    if layout is None:
        return host
    build.problems.extend(_layout_problems(build, host, layout))
    source = build.cite(layout.cited)
    given = [key for key in ("gpu_sockets", "socket_link", "switches") if getattr(layout, key)]
    build.sources.update(dict.fromkeys(given, source))
    return replace(
        host,
        gpu_sockets=layout.gpu_sockets,
        socket_link=build.part(build.parts.link, layout.socket_link, "layout", "socket_link"),
        switches=tuple(_switches(build, layout)),
    )


def _switches(build: _Build, layout: LayoutTable) -> Iterator[PcieSwitch]:
    for i, switch in enumerate(layout.switches):
        uplink = build.part(build.parts.link, switch.uplink, "layout", "switches", i, "uplink")
        if uplink is not None:
            yield PcieSwitch(
                socket=switch.socket,
                uplink=uplink,
                gpus=switch.gpus,
                nics=switch.nics,
                drives=switch.drives,
            )


def _layout_problems(build: _Build, host: Host, layout: LayoutTable) -> Iterator[Problem]:
    document, sockets = build.document, host.cpu.sockets
    cards = 0 if host.network is None else host.network.cards
    known = {"gpus": host.gpu_count, "nics": cards, "drives": host.drive_count}
    if layout.gpu_sockets and len(layout.gpu_sockets) != host.gpu_count:
        hint = f"one for each of the {host.gpu_count} accelerators"
        yield document.problem(("layout", "gpu_sockets"), "has the wrong length", hint=hint)
    if any(socket >= sockets for socket in layout.gpu_sockets):
        hint = f"{sockets} sockets, counted from 0"
        yield document.problem(("layout", "gpu_sockets"), "names a missing socket", hint=hint)
    for i, switch in enumerate(layout.switches):
        if switch.socket >= sockets:
            path = ("layout", "switches", i, "socket")
            yield document.problem(path, "is not a socket", hint=f"{sockets}, counted from 0")
    for key, count in known.items():
        below = [index for switch in layout.switches for index in getattr(switch, key)]
        missing = [index for index in below if index >= count]
        if missing or len(set(below)) != len(below):
            hint = f"the machine has {count}, counted from 0, each below one switch"
            yield document.problem(("layout", "switches"), f"has wrong {key}", hint=hint)


def swapped(host: Host, name: str, parts: Parts) -> Host:
    """Return the machine with its accelerators replaced by the same number of those called `name`.

    Processors, RAM, drives, network and PCIe slots stay; a card with a slower interface than its
    slot determines the rate of its link. If accelerators are linked to each other, the new ones
    have their own links, or use PCIe if they have none. Such a machine is not sold, so that it has
    no price.

    Raises
    ------
    UnknownName
        If there is no such accelerator.
    InputError
        If a profile has mistakes.
    """
    gpu = parts.gpu(name)
    linked = host.peer_topology in {PeerTopology.SWITCHED, PeerTopology.MESH}
    peer = parts.link(gpu.peer_link) if linked and gpu.peer_link is not None else None
    replaced = replace(
        host,
        gpu=gpu,
        host_link=_slot(host, gpu, parts),
        peer_link=peer,
        peer_topology=PeerTopology.PCIE if linked and peer is None else host.peer_topology,
        bridge=None,
        staging=None,
        prices=(),
    )
    return _with_paths(replaced, parts)


def _slot(host: Host, gpu: Gpu, parts: Parts) -> Link | None:
    if gpu.unified_memory:
        return None
    own = None if gpu.host_link is None else parts.link(gpu.host_link)
    known = [link for link in (host.host_link, own) if link is not None]
    return min(known, key=lambda link: link.rate, default=None)
