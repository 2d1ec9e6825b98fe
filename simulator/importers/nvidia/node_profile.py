"""From what a driver shows of a machine to its profile."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from simulator import units
from simulator.errors import Problem
from simulator.importers.nvidia.query import Device
from simulator.importers.nvidia.topology import Topology
from simulator.importers.reading import refuse
from simulator.importers.result import Fragment, Kind
from simulator.reading.hardware.catalogue import Catalogue
from simulator.reading.hardware.profile_text import (
    Line,
    binary_size,
    comment,
    quantity,
    quote,
    table,
)
from simulator.schema.hardware.gpu import Gpu
from simulator.schema.hardware.host import PeerTopology
from simulator.units import Bytes, BytesPerSecond

MOST_LINKS: Final = 18
"""NVLinks of the accelerators that have most: more in sum means a switch behind them."""
_WHOLE: Final = 16
"""Lanes of a full PCIe slot."""
_RAW: Final = 0.1
"""How far the raw rate of NVLinks may lie above the rate a profile gives, as a fraction."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """What the user says, because the driver doesn't; None and empty: not said."""

    ram: Bytes | None = None
    cores: int | None = None
    threads: int | None = None
    network: BytesPerSecond | None = None
    gpu: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What the driver says of a machine with `count` of the same `gpu`.

    `device` is the first accelerator, `peer_rate` that of all its NVLinks in one direction.
    """

    gpu: Gpu
    count: int
    product: str
    device: Device | None
    topology: Topology | None
    peer_rate: BytesPerSecond | None
    source: str
    date: str
    origin: str


@dataclass(frozen=True, slots=True)
class _Writer:
    """Lines of one profile, with the source of what was seen or given."""

    seen: Seen
    warnings: list[str] = field(default_factory=list)

    def saw(self, key: str, value: object, note: str = "", *, verified: bool = True) -> Line:
        """A figure that the driver says, or that follows from what it says."""
        text = value if isinstance(value, str) else str(value)
        source, date = self.seen.source, self.seen.date
        return Line(key=key, value=text, source=source, date=date, note=note, verified=verified)

    def told(self, key: str, value: object) -> Line:
        """A figure that the user said."""
        line = self.saw(key, value)
        return replace(line, source="given to plan import nvidia-smi")


def node_profile(seen: Seen, catalogue: Catalogue, given: Given) -> Fragment:
    """The profile of a machine; see `nvidia_smi.read`.

    Raises
    ------
    InputError
        If RAM or hardware threads are neither seen nor given.
    """
    threads = given.threads or _threads(seen.topology)
    refuse(list(_missing(seen, given, threads)))
    writer = _Writer(seen)
    parts = [
        comment(f"As shown by {seen.source}."),
        "schema = 1",
        f"note = {quote(_note(seen))}",
        "",
        str(writer.told("ram", quote(binary_size(given.ram or 0.0)))),
        "",
        table("cpu", _cpu(writer, given, threads)),
        "",
        table("gpu", _gpu(writer, catalogue, given)),
    ]
    if given.network is not None:
        parts += ["", table("network", _network(writer, given.network))]
    layout = _layout(writer, catalogue, with_nics=given.network is not None)
    if len(layout) > 1:
        parts += ["", table("layout", layout)]
    return Fragment(
        kind=Kind.NODE,
        text="\n".join(parts) + "\n",
        summary=tuple(_summary(seen, threads)),
        warnings=(*writer.warnings, *_warnings(seen, given, catalogue)),
    )


def _missing(seen: Seen, given: Given, threads: int) -> Iterator[Problem]:
    if given.ram is None:
        message = "nvidia-smi doesn't say how much RAM the machine has"
        yield Problem(origin="--ram", message=message, hint="such as --ram '2 TiB'")
    if not threads:
        message = f"{seen.origin} doesn't say how many hardware threads the machine has"
        yield Problem(origin="--threads", message=message, hint="such as --threads 224")


def _threads(topology: Topology | None) -> int:
    """Hardware threads near the GPUs, all together; 0 if not said."""
    if topology is None:
        return 0
    return len({cpu for ranges in topology.cpus.values() for each in ranges for cpu in each})


def _cpu(writer: _Writer, given: Given, threads: int) -> list[Line]:
    near = "hardware threads near the GPUs (CPU Affinity)"
    if given.threads:
        lines = [writer.told("threads", threads)]
    else:
        lines = [writer.saw("threads", threads, near)]
    if given.cores:
        lines.append(writer.told("cores", given.cores))
    else:
        cores, note = _cores(writer.seen.topology, threads)
        writer.warnings.append(f"{cores} cores: {note}; give --cores if that is wrong")
        lines.append(writer.saw("cores", cores, note, verified=False))
    sockets = _sockets(writer.seen.topology)
    note = "NUMA nodes that GPUs lie on" if sockets else "not said"
    count = max(sockets, default=0) + 1
    return [*lines, writer.saw("sockets", count, note, verified=bool(sockets))]


def _cores(topology: Topology | None, threads: int) -> tuple[int, str]:
    """Physical cores, assumed from how hardware threads are counted."""
    ranges = set(topology.cpus.values()) if topology else set()
    paired = all(len(each) % 2 == 0 for each in ranges)
    if ranges and paired:
        return max(1, threads // 2), "assumed: two hardware threads a core, as ranges come in pairs"
    return threads, "assumed: one hardware thread a core"


def _sockets(topology: Topology | None) -> list[int]:
    """Socket of each GPU, from 0: its NUMA node, or which hardware threads are near; may be empty.

    NUMA nodes are counted as sockets, and those without a GPU not at all.
    """
    if topology is None:
        return []
    for said in (topology.numa, topology.cpus):
        near = [said[gpu] for gpu in topology.gpus if gpu in said]
        if len(near) == len(topology.gpus):
            nodes = sorted(set(near), key=near.index)
            return [nodes.index(node) for node in near]
    return []


def _gpu(writer: _Writer, catalogue: Catalogue, given: Given) -> list[Line]:
    seen = writer.seen
    name = seen.gpu.name.partition("/")[2]
    model = writer.told("model", quote(name))
    if not given.gpu:
        model = writer.saw("model", quote(name), seen.product)
    lines = [model, writer.saw("count", seen.count)]
    link = _host_link(seen, catalogue)
    if link:
        lines.append(writer.saw("host_link", quote(link), "max_link_gen x link width"))
    if seen.topology is not None and seen.count > 1:
        topology, note = _peers(seen.topology)
        lines.append(writer.saw("peer_topology", quote(str(topology)), note))
    return lines


def _host_link(seen: Seen, catalogue: Catalogue) -> str:
    """Name of the PCIe link's profile; empty if not said, or if there is no such profile."""
    device = seen.device
    if device is None or device.generation is None or device.width is None:
        return ""
    name = f"pcie-gen{device.generation}-x{device.width}"
    return name if f"link/{name}" in catalogue.names("link") else ""


def _peers(topology: Topology) -> tuple[PeerTopology, str]:
    """How the GPUs reach each other, and what says so."""
    first, *others = topology.gpus
    bonds = [topology.links(a, b) for a in topology.gpus for b in topology.gpus if a != b]
    if not any(bonds):
        return PeerTopology.PCIE, f"{topology.between[first, others[0]]} at best, no NVLink"
    in_all = max(sum(topology.links(a, b) for b in topology.gpus if a != b) for a in topology.gpus)
    if min(bonds) == max(bonds) and in_all > MOST_LINKS:
        return PeerTopology.SWITCHED, f"NV{bonds[0]} between every pair: more than a GPU has alone"
    return PeerTopology.MESH, f"NV{max(bonds)} at most between a pair, {in_all} links a GPU"


def _network(writer: _Writer, bandwidth: BytesPerSecond) -> list[Line]:
    lines = [writer.told("bandwidth", quantity(bandwidth, units.BYTE_PER_SECOND))]
    topology = writer.seen.topology
    if topology is not None and topology.nics:
        lines.append(writer.saw("cards", len(topology.nics), "all that the matrix lists"))
    return lines


def _layout(writer: _Writer, catalogue: Catalogue, *, with_nics: bool) -> list[str]:
    """Lines of the layout; the source alone if nothing is known of it."""
    seen, topology = writer.seen, writer.seen.topology
    head = f"source = {quote(seen.source)}\ndate = {quote(seen.date)}"
    if topology is None:
        return [head]
    sockets = _sockets(topology)
    lines = [head, f"gpu_sockets = {sockets}"] if sockets else [head]
    link = _host_link(seen, catalogue)
    switches = [_switch(topology, group, link, with_nics=with_nics) for group in _below(topology)]
    if link and switches:
        lines.append("verified = false")
        lines.append('note = "devices that reach each other by PIX or PXB; uplinks are assumed"')
        lines.append("switches = [\n  " + ",\n  ".join(switches) + ",\n]")
    return lines


def _below(topology: Topology) -> list[list[str]]:
    """Groups below one PCIe switch that hold a GPU."""
    groups = topology.below_one_switch()
    return [group for group in groups if any(device in topology.gpus for device in group)]


def _switch(topology: Topology, group: Sequence[str], link: str, *, with_nics: bool) -> str:
    gpus = [i for i, gpu in enumerate(topology.gpus) if gpu in group]
    nics = [i for i, nic in enumerate(topology.nics) if nic in group]
    sockets = _sockets(topology)
    socket = sockets[gpus[0]] if sockets else 0
    cards = f", nics = {nics}" if with_nics else ""
    return f"{{ socket = {socket}, uplink = {quote(link)}, gpus = {gpus}{cards} }}"


def _note(seen: Seen) -> str:
    return "; ".join([*_facts(seen)]) or "what nvidia-smi shows"


def _facts(seen: Seen) -> Iterator[str]:
    """What no figure of a profile holds."""
    device, topology = seen.device, seen.topology
    if device is not None and device.power_cap is not None:
        yield f"power cap {device.power_cap:g} W a GPU"
    if seen.peer_rate is not None:
        yield f"NVLinks {units.show(seen.peer_rate, units.BYTE_PER_SECOND)} raw a GPU, one way"
    if device is not None and device.clock is not None:
        yield f"SM clock up to {units.show(device.clock, units.HERTZ)}"
    if topology is not None and topology.nics:
        near = {gpu: _nearest(topology, gpu) for gpu in topology.gpus}
        yield "nearest NIC: " + ", ".join(f"{gpu} {said}" for gpu, said in near.items())


def _nearest(topology: Topology, gpu: str) -> str:
    order = ("PIX", "PXB", "PHB", "NODE", "SYS", "SOC")
    cells = {nic: topology.between[gpu, nic] for nic in topology.nics}
    best = min(cells, key=lambda nic: order.index(cells[nic]) if cells[nic] in order else 99)
    return f"{best} ({cells[best]})"


def _summary(seen: Seen, threads: int) -> Iterator[str]:
    yield f"{seen.count} x {seen.product}, profile {seen.gpu.name}"
    nodes = max(_sockets(seen.topology), default=0) + 1
    yield f"{threads} hardware threads near the GPUs, which lie on {nodes} NUMA node" + (
        "s" if nodes > 1 else ""
    )
    device = seen.device
    if device is not None and device.generation is not None and device.width is not None:
        yield f"PCIe gen {device.generation} x{device.width}"
    if seen.topology is not None and seen.count > 1:
        topology, note = _peers(seen.topology)
        yield f"GPU to GPU: {topology}, {note}"
    yield from _facts(seen)


def _warnings(seen: Seen, given: Given, catalogue: Catalogue) -> Iterator[str]:
    device, topology = seen.device, seen.topology
    if topology is None and seen.count > 1:
        yield "without topo -m: how GPUs reach each other is left out, so they talk over PCIe"
    if device is None:
        yield "without -q -x: PCIe link and power cap are left out"
    if device is not None:
        yield from _device_warnings(seen, device, catalogue)
    if topology is not None and topology.nics and given.network is None:
        yield f"{len(topology.nics)} NICs of unknown rate: the network is left out; see --network"
    if topology is not None and not _sockets(topology) and seen.count > 1:
        yield "the matrix says no NUMA nodes: one socket is assumed"


def _device_warnings(seen: Seen, device: Device, catalogue: Catalogue) -> Iterator[str]:
    usual = seen.gpu.power
    if device.power_cap is not None and usual is not None and device.power_cap < 0.99 * usual:
        yield (
            f"GPUs are capped at {device.power_cap:g} W; the rates of {seen.gpu.name} hold for "
            f"{usual:g} W"
        )
    if device.split:
        yield "GPUs are split (MIG): the profile describes whole ones"
    if device.width is not None and device.width < _WHOLE:
        if not _host_link(seen, catalogue):
            yield (
                f"GPUs sit on {device.width} PCIe lanes, for which there is no link profile: the "
                f"machine gets the full link of its GPUs; set hardware.pcie_bandwidth to "
                f"{device.width}/{_WHOLE} of its rate in the scenario"
            )
    elif device.generation is not None and not _host_link(seen, catalogue):
        generation = f"PCIe gen {device.generation}"
        yield f"no link profile for {generation}: the link of {seen.gpu.name} is used"
    if seen.peer_rate is not None and seen.gpu.peer_link is not None:
        peak = catalogue.link(seen.gpu.peer_link).peak
        if abs(seen.peer_rate / peak - 1.0) > _RAW:
            rates = [units.show(rate, units.BYTE_PER_SECOND) for rate in (seen.peer_rate, peak)]
            link = f"link/{seen.gpu.peer_link}"
            yield f"NVLinks of a GPU carry {rates[0]} one way; {link}, {rates[1]}, is used"
