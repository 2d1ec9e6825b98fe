"""From the checked profile of a machine, and those of its parts, to a `Host`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Protocol, TypeVar

from simulator.errors import InputError, Problem, UnknownName
from simulator.reading.document import Document, check
from simulator.reading.hardware.accelerator import Cite, amount, cited, refuse_if
from simulator.reading.hardware.figures import Figure
from simulator.reading.hardware.processors import vector_units_of
from simulator.reading.hardware.sections import (
    DefaultsFile,
    HostFile,
    LayoutTable,
    MachineFile,
    PriceBlock,
    PricedHostFile,
)
from simulator.reading.lines import KeyPath
from simulator.schema.hardware.gpu import Gpu
from simulator.schema.hardware.host import Cpu, CpuPool, Host, Network, PcieSwitch, PeerTopology
from simulator.schema.hardware.link import Link
from simulator.schema.hardware.price import Price, Purchase
from simulator.schema.hardware.storage import Storage
from simulator.uncertainty.provenance import Source

Part = TypeVar("Part")

_WHOLE: Final = 0.75
"""Share of a socket's cores from which on a virtual machine has the socket to itself."""
_LINKED: Final = (PeerTopology.SWITCHED, PeerTopology.MESH)


class Parts(Protocol):
    """What a machine is made of, by name."""

    def gpu(self, name: str) -> Gpu:
        """The accelerator called `name`."""

    def cpu(self, name: str) -> Cpu:
        """The processor called `name`."""

    def link(self, name: str) -> Link:
        """The link called `name`."""

    def storage(self, name: str) -> Storage:
        """The store called `name`."""

    def defaults(self) -> DefaultsFile:
        """What holds where a profile doesn't say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Build:
    """A machine being put together; mistakes are collected in `problems`."""

    file: MachineFile
    document: Document
    cite: Cite
    parts: Parts
    sources: dict[str, Source] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    def part(self, load: Callable[[str], Part], name: str | None, *path: str | int) -> Part | None:
        """The part called `name`; None where there is none, with a problem if it was named."""
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

    def cite_as(self, **figures: Figure | None) -> None:
        """Remember the sources of figures under the names of the fields they fill."""
        known = {key: self.cite(figure) for key, figure in figures.items() if figure is not None}
        self.sources.update(known)

    def fault(self, path: KeyPath, message: str, hint: str | None = None) -> None:
        """Note a mistake at `path`."""
        self.problems.append(self.document.problem(path, message, hint=hint))


def to_host(name: str, document: Document, cite: Cite, parts: Parts) -> Host:
    """A machine from its profile.

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
    build.sources.update(cited(file, cite))
    socket = _socket(build)
    host = Host(
        name=name,
        cpu=_pool(build, socket),
        ram=file.ram.value,
        memory_bandwidth=_memory_bandwidth(build, socket),
        network=_network(build),
        virtual=file.virtual,
        power=amount(file.power),
        prices=_prices(build),
        capex=amount(file.capex),
        cloud=file.cloud or "",
        family=file.family or "",
        note=file.note or "",
        sources=build.sources,
    )
    host = _with_layout(build, _with_drives(build, _with_gpus(build, host)))
    refuse_if(build.problems)
    return host


def _socket(build: _Build) -> Cpu | None:
    table = build.file.cpu
    if table.threads.value < table.cores.value:
        build.fault(("cpu", "threads", "value"), "is less than the number of cores")
    return build.part(build.parts.cpu, amount(table.model), "cpu", "model", "value")


def _pool(build: _Build, socket: Cpu | None) -> CpuPool:
    table = build.file.cpu
    sources = build.sources
    sources |= {f"cpu.{key}": source for key, source in cited(table, build.cite).items()}
    smt_worth = table.smt_worth or build.parts.defaults().smt_worth
    contention = table.contention or build.parts.defaults().contention
    sources["cpu.smt_worth"] = build.cite(smt_worth)
    sources["cpu.contention"] = build.cite(contention)
    power = None
    if socket is not None:
        sources["cpu.base_clock"] = socket.sources["base_clock"]
    if socket is not None and socket.power is not None:
        sources["cpu.power"] = socket.sources["power"]
        power = socket.power * table.sockets.value
    return CpuPool(
        cores=table.cores.value,
        threads=table.threads.value,
        sockets=table.sockets.value,
        smt_worth=smt_worth.value,
        contention=contention.value,
        coremark=amount(table.coremark),
        base_clock=None if socket is None else socket.base_clock,
        model="" if socket is None else socket.name,
        power=power,
        vector=None if socket is None else vector_units_of(socket.name),
    )


def _memory_bandwidth(build: _Build, socket: Cpu | None) -> float | None:
    stated = build.file.memory_bandwidth
    if stated is not None:
        return stated.value
    if socket is None or socket.memory_bandwidth is None:
        return None
    table = build.file.cpu
    source = socket.sources["memory_bandwidth"]
    whole = table.cores.value >= _WHOLE * socket.cores * table.sockets.value
    if build.file.virtual and not whole:
        note = "of the whole socket, which is shared with other tenants"
        source = replace(source, verified=False, note=note)
    build.sources["memory_bandwidth"] = source
    return socket.memory_bandwidth * table.sockets.value


def _with_gpus(build: _Build, host: Host) -> Host:
    table = build.file.gpu
    if table is None:
        return host
    gpu = build.part(build.parts.gpu, table.model.value, "gpu", "model", "value")
    if gpu is None:
        return host
    build.cite_as(gpu=table.model, gpu_count=table.count, peer_topology=table.peer_topology)
    several = table.count.value > 1
    topology = amount(table.peer_topology) or PeerTopology.PCIE
    return replace(
        host,
        gpu=gpu,
        gpu_count=table.count.value,
        host_link=_link(build, gpu, "host_link"),
        peer_topology=topology if several else PeerTopology.NONE,
        peer_link=_link(build, gpu, "peer_link") if several and topology in _LINKED else None,
    )


def _link(build: _Build, gpu: Gpu, key: str) -> Link | None:
    """The link of each accelerator: as the machine says, else as the accelerator's profile."""
    stated: Figure | None = getattr(build.file.gpu, key)
    own: str | None = getattr(stated, "value", None)
    usual: str | None = getattr(gpu, key)
    build.cite_as(**{key: stated})
    if own is None and key in gpu.sources:
        build.sources[key] = gpu.sources[key]
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
    drive = build.part(build.parts.storage, table.model.value, "drives", "model", "value")
    if drive is None:
        return host
    build.cite_as(local_storage=table.model, drive_count=table.count)
    if table.capacity is not None:
        sources = {**drive.sources, "capacity": build.cite(table.capacity)}
        drive = replace(drive, capacity=table.capacity.value, sources=sources)
    return replace(host, local_storage=drive, drive_count=table.count.value)


def _network(build: _Build) -> Network | None:
    table = build.file.network
    if table is None:
        return None
    build.sources.update({f"network.{k}": s for k, s in cited(table, build.cite).items()})
    return Network(
        bandwidth=table.bandwidth.value,
        cards=amount(table.cards) or 1,
        rdma=table.rdma,
        baseline=amount(table.baseline),
        storage_cap=amount(table.storage_cap),
        storage_operations_cap=amount(table.storage_operations_cap),
        per_flow=amount(table.per_flow),
        link=build.part(build.parts.link, amount(table.link), "network", "link", "value"),
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
            message = "is no price by the hour"
            build.fault(("price", i, "purchase"), message, "state what it costs to buy as capex")
        if (block.purchase, block.region) in seen:
            message = f"is the second {block.purchase} price in {block.region}"
            build.fault(("price", i, "purchase"), message, "keep one of them")
        seen.add((block.purchase, block.region))
        low, high = block.price.value, (block.highest or block.price).value
        if low > high:
            build.fault(("price", i, "price", "value"), "is above highest")
        yield Price(
            purchase=block.purchase,
            region=block.region,
            low=low,
            high=high,
            source=build.cite(block.price),
        )


def _tabled_prices(build: _Build) -> Iterator[Price]:
    """The two prices of a [price] table."""
    table = build.file.price if isinstance(build.file, HostFile) else None
    if table is None:
        return
    price = table.on_demand.value
    yield Price(
        purchase=Purchase.ON_DEMAND,
        region=table.region,
        low=price,
        high=price,
        source=build.cite(table.on_demand),
    )
    if table.spot_low is None or table.spot_high is None:
        return
    if table.spot_low.value > table.spot_high.value:
        build.fault(("price", "spot_low", "value"), "is above spot_high")
    yield Price(
        purchase=Purchase.SPOT,
        region=table.region,
        low=table.spot_low.value,
        high=table.spot_high.value,
        source=build.cite(table.spot_low),
    )


def _with_layout(build: _Build, host: Host) -> Host:
    layout = build.file.layout
    if layout is None:
        return host
    build.problems.extend(_layout_problems(build, host, layout))
    source = build.cite(
        Figure(source=layout.source, date=layout.date, verified=layout.verified, note=layout.note)
    )
    given = [key for key in ("gpu_sockets", "socket_link", "switches") if getattr(layout, key)]
    build.sources.update(dict.fromkeys(given, source))
    return replace(
        host,
        gpu_sockets=tuple(layout.gpu_sockets),
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
                gpus=tuple(switch.gpus),
                nics=tuple(switch.nics),
                drives=tuple(switch.drives),
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
            yield document.problem(path, "is no socket", hint=f"{sockets}, counted from 0")
    for key, count in known.items():
        below = [index for switch in layout.switches for index in getattr(switch, key)]
        missing = [index for index in below if index >= count]
        if missing or len(set(below)) != len(below):
            hint = f"the machine has {count}, counted from 0, each below one switch"
            yield document.problem(("layout", "switches"), f"has wrong {key}", hint=hint)
