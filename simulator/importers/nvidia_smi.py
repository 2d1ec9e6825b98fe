"""Importer of nvidia-smi output to a node profile.

Reads the matrix of ``nvidia-smi topo -m``, the XML of ``nvidia-smi -q -x`` and the link rates of
``nvidia-smi nvlink -s``, each recognised by its content. The user states the RAM, which none of
them contains.

Cells of the matrix: NV# a bond of # NVLinks; PIX at most one PCIe bridge; PXB several bridges; PHB
through the host bridge; NODE between host bridges of a NUMA node; SYS (SOC in old drivers) between
NUMA nodes. Columns are separated by tabs, by spaces in pasted copies; the header may be underlined
by an escape sequence. Captures: utkuozdemir/nvidia_gpu_exporter, internal/captures; NVIDIA/nccl
issue 707.

Elements of the XML: power_readings/power_limit up to driver 530, gpu_power_readings or
power_readings/current_power_limit since; ``current_link_gen`` falls when the device idles, so the
maximum is taken. Captures: influxdata/telegraf, plugins/inputs/nvidia_smi/testdata.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from datetime import UTC, datetime
from functools import partial
from itertools import combinations_with_replacement
from pathlib import Path
from typing import Final
from xml.etree import ElementTree as ET

from simulator import units
from simulator.errors import Problem, UnitError
from simulator.importers.foreign import Problems, changed, read_text, refuse
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
from simulator.reading.reading import fail
from simulator.records import dataclass
from simulator.schema.accelerators import Gpu
from simulator.schema.machines import PeerTopology
from simulator.units import Bytes, BytesPerSecond, Hertz, Unit, Watts

WANTED: Final = "the output of nvidia-smi"
MAX_NVLINKS: Final = 18
"""Maximum number of NVLinks of an accelerator; larger sums imply an NVSwitch."""
FULL_SLOT: Final = 16
"""Lanes of a full PCIe slot."""
RATE_TOLERANCE: Final = 0.1
"""Tolerated relative difference between the raw rate of NVLinks and that of a profile."""
ECC_SHARE: Final = 0.1
"""Tolerated relative difference of memory sizes, for ECC and the driver."""
_USUAL_SOCKETS: Final = 2
_MAX_LANES, _MAX_GENERATION, _MAX_GPUS, _MAX_CPUS = 32, 8, 1000, 65536

_MISSING: Final = ("", "N/A", "[N/A]", "Requested functionality has been deprecated")
_REFUSALS: Final = ("[Not Supported]", "Not Supported", "Unknown Error", "[Unknown Error]")
_ESCAPE: Final = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_HEADER: Final = re.compile(r"^\s*GPU0\b")
_CELL: Final = re.compile(r"X|NV\d{1,4}|PIX|PXB|PHB|NODE|SYS|SOC")
_NEAREST_FIRST: Final = ("PIX", "PXB", "PHB", "NODE", "SYS", "SOC")
_CPUS: Final = re.compile(r"\d+(-\d+)?(,\d+(-\d+)?)*")
_LINK: Final = re.compile(r"\s*Link \d+:\s*(\S+ [A-Za-z/]+)\s*")
_GPU: Final = re.compile(r"GPU (\d+):")
_MEMORY_WORD: Final = re.compile(r"\d+(gb|g)")
_FORM: Final = re.compile(r"sxm\d*|pcie|nvl")
_NO_DIFFERENCE: Final = frozenset(
    {"nvidia", "tesla", "geforce", "quadro", "gpu", "graphics", "blackwell", "generation"}
    | {"edition", "hgx", "hbm2", "hbm2e", "hbm3", "hbm3e"}
)
"""Words of product names that do not distinguish accelerators."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """Values stated by the user, as nvidia-smi doesn't report them; None or empty if not stated."""

    ram: Bytes | None = None
    sockets: int | None = None
    cores: int | None = None
    threads: int | None = None
    network: BytesPerSecond | None = None
    gpu: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """One accelerator as nvidia-smi reports it; None for values that it doesn't report."""

    product: str
    memory: Bytes | None
    generation: int | None
    lanes: int | None
    power_cap: Watts | None
    clock: Hertz | None
    mig: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Topology:
    """Connections between the devices of one machine.

    `between` holds the cell of the matrix for each ordered pair of `gpus` and `nics`; `cpus` the
    hardware threads with affinity to each GPU, as ranges; `numa` its NUMA node. `cpus` and `numa`
    are empty for old drivers.
    """

    gpus: tuple[str, ...]
    nics: tuple[str, ...]
    between: Mapping[tuple[str, str], str]
    cpus: Mapping[str, tuple[range, ...]]
    numa: Mapping[str, int]

    def links(self, a: str, b: str) -> int:
        """Return the number of NVLinks between two GPUs."""
        match = re.fullmatch(r"NV(\d+)", self.between[a, b])
        return int(match[1]) if match else 0

    def groups(self) -> list[list[str]]:
        """Return groups of devices, each with a GPU, that are connected without a host bridge."""
        groups: list[list[str]] = []
        for device in (*self.gpus, *self.nics):
            near = [
                group
                for group in groups
                if any(self.between[device, other] in {"PIX", "PXB"} for other in group)
            ]
            groups = [group for group in groups if group not in near]
            groups.append([*(other for group in near for other in group), device])
        return sorted(g for g in groups if len(g) > 1 and not set(g).isdisjoint(self.gpus))

    @property
    def threads(self) -> int:
        """Number of hardware threads up to the highest that is near a GPU; 0 if unknown.

        Threads are numbered from 0, so that those of NUMA nodes without a GPU count too.
        """
        return max((each[-1] + 1 for near in self.cpus.values() for each in near), default=0)

    @property
    def far_threads(self) -> int:
        """Number of these hardware threads that are near no GPU."""
        near = {cpu for ranges in self.cpus.values() for each in ranges for cpu in each}
        return self.threads - len(near)

    @property
    def nodes(self) -> list[int]:
        """NUMA node of each GPU, or the order of its CPU affinity; empty if unknown."""
        if all(gpu in self.numa for gpu in self.gpus):
            return [self.numa[gpu] for gpu in self.gpus]
        if not all(gpu in self.cpus for gpu in self.gpus):
            return []
        order = sorted(set(self.cpus.values()), key=lambda ranges: ranges[0][0])
        return [order.index(self.cpus[gpu]) for gpu in self.gpus]

    def sockets(self, count: int | None = None) -> tuple[list[int], int]:
        """Return the socket of each GPU and the number of sockets; empty and 1 if unknown.

        NUMA nodes lie evenly on `count` sockets. By default each of one or two nodes is a socket,
        and more are on two, as EPYC processors with several nodes a socket (NPS2, NPS4).
        """
        if not self.nodes:
            return [], count or 1
        nodes = max(self.nodes) + 1
        count = count or min(nodes, _USUAL_SOCKETS)
        return [node * count // max(nodes, count) for node in self.nodes], count

    @property
    def peers(self) -> tuple[PeerTopology, str]:
        """Peer topology of the GPUs, and a note on the cells that it follows from."""
        first, *others = self.gpus
        bonds = [self.links(a, b) for a in self.gpus for b in self.gpus if a != b]
        if not any(bonds):
            return PeerTopology.PCIE, f"{self.between[first, others[0]]} at best, no NVLink"
        in_all = max(sum(self.links(a, b) for b in self.gpus if a != b) for a in self.gpus)
        if min(bonds) == max(bonds) and in_all > MAX_NVLINKS:
            note = f"NV{bonds[0]} between every pair: more than a GPU has alone"
            return PeerTopology.SWITCHED, note
        return PeerTopology.MESH, f"NV{max(bonds)} at most between a pair, {in_all} links a GPU"


@dataclass(slots=True)
class _Machine:
    """Content of the files of one machine.

    `link_rate` is the NVLink bandwidth of a GPU in one direction [B/s]; `link` the profile of its
    PCIe link, empty if unknown or not in the catalogue; `sockets` the socket of each GPU, empty if
    unknown.
    """

    topology: Topology | None = None
    devices: tuple[Device, ...] = ()
    driver: str = ""
    link_rate: BytesPerSecond | None = None
    link: str = ""
    sockets: list[int] = field(default_factory=list)
    socket_count: int = 1
    files: list[str] = field(default_factory=list)
    date: str = ""


def read(paths: Sequence[Path], catalogue: Catalogue, given: Given) -> Fragment:
    """Convert the output of nvidia-smi on one machine to a node profile.

    Parameters
    ----------
    paths : sequence of pathlib.Path
        Output files, in any order.
    catalogue : Catalogue
        Profiles of accelerators and links.
    given : Given
        Values that nvidia-smi doesn't report.

    Raises
    ------
    InputError
        For files of another kind or truncated files, files of two machines, an accelerator that is
        not in the catalogue, and unknown RAM or number of hardware threads.
    """
    machine = _Machine()
    for path in paths:
        _read_file(machine, path)
    origin = ", ".join(str(path) for path in paths)
    gpu, count, product = _accelerator(machine, catalogue, given, origin)
    for device in machine.devices[:1]:
        name = f"pcie-gen{device.generation}-x{device.lanes}"
        machine.link = name if f"link/{name}" in catalogue.names("link") else ""
    machine.socket_count = given.sockets or 1
    if machine.topology is not None:
        machine.sockets, machine.socket_count = machine.topology.sockets(given.sockets)
    threads = given.threads or (machine.topology.threads if machine.topology else 0)
    missing = {
        "--ram": (given.ram, "nvidia-smi doesn't say how much RAM the machine has", "'2 TiB'"),
        "--threads": (threads, f"{origin} doesn't say how many hardware threads it has", "224"),
    }
    refuse(
        [
            Problem(origin=option, message=message, hint=f"such as {option} {example}")
            for option, (value, message, example) in missing.items()
            if not value
        ]
    )
    driver = f", driver {machine.driver}" if machine.devices else ""
    source = f"nvidia-smi{driver}: {', '.join(machine.files)}"
    seen = partial(Line, source=source, date=machine.date)
    user = partial(Line, source="given to plan import nvidia-smi", date=machine.date)
    cpu, assumed = _cpu(machine, given, threads, seen, user)
    model = quote(gpu.name.partition("/")[2])
    named = user(key="model", value=model)
    lines = [named if given.gpu else seen(key="model", value=model, note=product)]
    lines.append(seen(key="count", value=str(count)))
    if machine.link:
        lines.append(
            seen(key="host_link", value=quote(machine.link), note="max_link_gen x link width")
        )
    if machine.topology is not None and count > 1:
        peers, note = machine.topology.peers
        lines.append(seen(key="peer_topology", value=quote(str(peers)), note=note))
    facts = list(_facts(machine))
    parts = [
        comment(f"As shown by {source}."),
        "schema = 1",
        f"note = {quote('; '.join(facts) or 'what nvidia-smi shows')}",
        "",
        str(user(key="ram", value=quote(binary_size(given.ram or 0.0)))),
        *("", table("cpu", cpu), "", table("gpu", lines)),
    ]
    if given.network is not None:
        rate = quantity(given.network, units.BYTE_PER_SECOND)
        network = [user(key="bandwidth", value=rate)]
        if machine.topology is not None and machine.topology.nics:
            cards, note = str(len(machine.topology.nics)), "all that the matrix lists"
            network.append(seen(key="cards", value=cards, note=note))
        parts += ["", table("network", network)]
    layout = _layout(machine, with_nics=given.network is not None)
    if layout:
        head = [f"source = {quote(source)}", f"date = {quote(machine.date)}"]
        parts += ["", table("layout", [*head, *layout])]
    summary = [
        f"{count} x {product}, profile {gpu.name}",
        *_summary(machine, count, threads),
        *_peer_rate(machine, gpu, count, catalogue),
    ]
    return Fragment(
        kind=Kind.NODE,
        text="\n".join(parts) + "\n",
        summary=(*summary, *facts),
        warnings=(*assumed, *_warnings(machine, gpu, count, given, catalogue)),
    )


def _read_file(machine: _Machine, path: Path) -> None:
    text, origin = read_text(path, WANTED), str(path)
    machine.date = machine.date or changed(path)
    machine.files.append(path.name)
    if text.lstrip().startswith("<"):
        if machine.devices:
            fail(origin, "is a second XML (-q -x)", hint="one machine at a time")
        machine.devices, machine.driver, date = parse_query(text, origin)
        machine.date = date or machine.date
    elif is_topology(text):
        if machine.topology is not None:
            fail(origin, "is a second matrix (topo -m)", hint="one machine at a time")
        machine.topology = parse_topology(text, origin)
    elif _LINK.search(text):
        machine.link_rate = _link_rate(text.split("\n"), origin)
    else:
        hint = "known: nvidia-smi topo -m, nvidia-smi -q -x, nvidia-smi nvlink -s"
        fail(origin, f"is not {WANTED}", hint=hint)


def _link_rate(lines: Sequence[str], origin: str) -> BytesPerSecond:
    """Return the total bandwidth of the NVLinks of the first GPU, one direction [B/s]."""
    total, gpu = 0.0, ""
    for number, line in enumerate(lines, start=1):
        heading, link = _GPU.match(line), _LINK.fullmatch(line)
        if heading is not None:
            gpu = gpu or heading[1]
        if heading is not None and heading[1] != gpu:
            break
        if link is not None:
            try:
                total += units.parse(link[1], units.BYTE_PER_SECOND)
            except UnitError as error:
                fail(origin, str(error).partition(";")[0], line=number)
    return total


def _accelerator(
    machine: _Machine, catalogue: Catalogue, given: Given, origin: str
) -> tuple[Gpu, int, str]:
    """Return the accelerator's profile, the number of accelerators, and the product name."""
    devices, topology = machine.devices, machine.topology
    products = sorted({device.product for device in devices})
    if len(products) > 1:
        message = f"shows GPUs of several kinds, found {', '.join(products)}"
        fail(origin, message, hint="a profile has one kind")
    if devices and topology and len(devices) != len(topology.gpus):
        message = f"has {len(devices)} GPUs in the XML, but {len(topology.gpus)} in the matrix"
        fail(origin, message, hint="give files of one machine")
    count = len(devices) if devices else len(topology.gpus) if topology else 0
    if not count:
        fail(origin, "shows no GPU", hint="give topo -m or -q -x")
    if given.gpu:
        return catalogue.gpu(given.gpu), count, products[0] if products else given.gpu
    if not products:
        fail(origin, "doesn't say what the GPUs are", hint="add -q -x, or give --gpu")
    profiles = [catalogue.gpu(name) for name in catalogue.names("gpu")]
    candidates = matching(products[0], devices[0].memory, profiles)
    if len(candidates) != 1:
        names = ", ".join(gpu.name for gpu in candidates) or "none"
        hint = f"give --gpu; those that may be meant: {names}"
        fail(origin, f"shows a GPU that the catalogue lacks: {products[0]!r}", hint=hint)
    return candidates[0], count, products[0]


def matching(product: str, memory: Bytes | None, profiles: Sequence[Gpu]) -> list[Gpu]:
    """Return the profiles that match a product name, limited to those closest in memory size.

    Every word of the name has to match, so a variant that is not in the catalogue (a ``Ti``, a
    ``Laptop GPU``) matches no profile. A name without a form factor matches the socketed device, as
    drivers name ``PCIe`` and ``NVL`` explicitly.

    Parameters
    ----------
    product : str
        Product name reported by the driver.
    memory : float or None
        Memory reported by the driver [B].
    profiles : sequence of Gpu
        Accelerators to choose from.
    """
    words = set(re.findall(r"[a-z0-9]+", product.lower()))
    candidates = [
        gpu
        for gpu in profiles
        if _is_named(words, gpu) and (memory is None or abs(memory / gpu.memory - 1.0) <= ECC_SHARE)
    ]
    if memory is None or not candidates:
        return candidates
    nearest = min(abs(gpu.memory - memory) for gpu in candidates)
    return [gpu for gpu in candidates if abs(gpu.memory - memory) == nearest]


def _is_named(words: set[str], gpu: Gpu) -> bool:
    parts = set(gpu.name.rpartition("/")[2].split("-"))
    forms, product_forms = (set(filter(_FORM.fullmatch, each)) for each in (parts, words))
    family = {word for word in parts - forms if not _MEMORY_WORD.fullmatch(word)}
    rest = words - family - _NO_DIFFERENCE - product_forms
    if not family <= words or any(not _MEMORY_WORD.fullmatch(word) for word in rest):
        return False
    if not product_forms or not forms:
        return not forms & {"pcie", "nvl"}
    return all(any(_is_form(word, form) for form in forms) for word in product_forms)


def _is_form(word: str, form: str) -> bool:
    kinds = {word.rstrip("0123456789"), form.rstrip("0123456789")}
    return word == form or (len(kinds) == 1 and bool(kinds & {word, form}))


def _cpu(
    machine: _Machine, given: Given, threads: int, seen: partial[Line], user: partial[Line]
) -> tuple[list[Line], list[str]]:
    """Return the lines of the ``[cpu]`` table and warnings about assumed values.

    `seen` and `user` construct lines with nvidia-smi and with the user as the source.
    """
    near = "hardware threads up to the highest near a GPU (CPU Affinity)"
    total = partial(user) if given.threads else partial(seen, note=near)
    lines, warnings = [total(key="threads", value=str(threads))], []
    if given.cores:
        lines.append(user(key="cores", value=str(given.cores)))
    else:
        ranges = set(machine.topology.cpus.values()) if machine.topology else set()
        cores, note = threads, "assumed: one hardware thread a core"
        if ranges and all(len(each) % 2 == 0 for each in ranges):
            cores = max(1, threads // 2)
            note = "assumed: two hardware threads a core, as ranges come in pairs"
        warnings.append(f"{cores} cores: {note}; give --cores if that is wrong")
        lines.append(seen(key="cores", value=str(cores), note=note, verified=False))
    count, nodes = machine.socket_count, machine.topology.nodes if machine.topology else []
    if given.sockets:
        lines.append(user(key="sockets", value=str(count)))
        return lines, warnings
    seen_nodes = max(nodes, default=-1) + 1
    note = f"{seen_nodes} NUMA nodes" if nodes else "not said"
    sure = 0 < seen_nodes <= _USUAL_SOCKETS
    if seen_nodes > _USUAL_SOCKETS:
        warnings.append(
            f"{seen_nodes} NUMA nodes: taken as {count} sockets; give --sockets if that is wrong"
        )
    lines.append(seen(key="sockets", value=str(count), note=note, verified=sure))
    return lines, warnings


def _layout(machine: _Machine, *, with_nics: bool) -> list[str]:
    """Return the lines of the ``[layout]`` table: sockets and PCIe switches; empty if unknown."""
    topology, sockets = machine.topology, machine.sockets
    lines = [f"gpu_sockets = {sockets}"] if sockets else []
    groups = topology.groups() if topology and machine.link else []
    if topology is None or not groups:
        return lines
    lines.append("verified = false")
    lines.append('note = "devices that reach each other by PIX or PXB; uplinks are assumed"')
    lines.append("switches = [")
    for group in groups:
        gpus = [i for i, gpu in enumerate(topology.gpus) if gpu in group]
        nics = [i for i, nic in enumerate(topology.nics) if nic in group]
        socket = sockets[gpus[0]] if sockets else 0
        cards = f", nics = {nics}" if with_nics else ""
        ends = f"socket = {socket}, uplink = {quote(machine.link)}, gpus = {gpus}{cards}"
        lines.append(f"  {{ {ends} }},")
    return [*lines, "]"]


def _facts(machine: _Machine) -> Iterator[str]:
    """Yield facts that no key of a profile holds, for its note."""
    device, topology = machine.devices[0] if machine.devices else None, machine.topology
    if device is not None and device.power_cap is not None:
        yield f"power cap {device.power_cap:g} W a GPU"
    if machine.link_rate is not None:
        yield f"NVLinks {units.show(machine.link_rate, units.BYTE_PER_SECOND)} raw a GPU, one way"
    if device is not None and device.clock is not None:
        yield f"SM clock up to {units.show(device.clock, units.HERTZ)}"
    if topology is not None and topology.nics:
        near = (f"{gpu} {_nearest(topology, gpu)}" for gpu in topology.gpus)
        yield f"nearest NIC: {', '.join(near)}"


def _nearest(topology: Topology, gpu: str) -> str:
    ranks = {cell: rank for rank, cell in enumerate(_NEAREST_FIRST)}
    cells = {nic: topology.between[gpu, nic] for nic in topology.nics}
    best = min(cells, key=lambda nic: ranks.get(cells[nic], len(ranks)))
    return f"{best} ({cells[best]})"


def _summary(machine: _Machine, count: int, threads: int) -> Iterator[str]:
    nodes = len(set(machine.topology.nodes)) if machine.topology else 0
    plural = "s" if nodes != 1 else ""
    yield f"{threads} hardware threads; the GPUs lie on {nodes or 'unknown'} NUMA node{plural}"
    device = machine.devices[0] if machine.devices else None
    if device is not None and device.generation is not None and device.lanes is not None:
        yield f"PCIe gen {device.generation} x{device.lanes}"
    if machine.topology is not None and count > 1:
        peers, note = machine.topology.peers
        yield f"GPU to GPU: {peers}, {note}"


def _peer_rate(machine: _Machine, gpu: Gpu, count: int, catalogue: Catalogue) -> Iterator[str]:
    """Yield the link between the GPUs and its rate, if they have one of their own."""
    name = gpu.peer_link or gpu.bridge
    if machine.topology is None or count <= 1 or name is None:
        return
    if machine.topology.peers[0] is not PeerTopology.PCIE:
        rate = units.show(catalogue.link(name).peak, units.BYTE_PER_SECOND)
        yield f"they reach each other over link/{name.removeprefix('link/')}, {rate} one way"


def _warnings(
    machine: _Machine, gpu: Gpu, count: int, given: Given, catalogue: Catalogue
) -> Iterator[str]:
    topology = machine.topology
    if topology is None and count > 1:
        yield "without topo -m: how GPUs reach each other is left out, so they talk over PCIe"
    if not machine.devices:
        yield "without -q -x: PCIe link and power cap are left out"
    for device in machine.devices[:1]:
        yield from _device_warnings(device, gpu, machine.link)
    if machine.link_rate is not None and gpu.peer_link is not None:
        peak = catalogue.link(gpu.peer_link).peak
        if abs(machine.link_rate / peak - 1.0) > RATE_TOLERANCE:
            rates = [units.show(each, units.BYTE_PER_SECOND) for each in (machine.link_rate, peak)]
            link = f"link/{gpu.peer_link}"
            yield f"NVLinks of a GPU carry {rates[0]} one way; {link}, {rates[1]}, is used"
    if topology is not None and topology.nics and given.network is None:
        yield f"{len(topology.nics)} NICs of unknown rate: the network is left out; see --network"
    if topology is not None and topology.far_threads and given.threads is None:
        yield (
            f"{topology.far_threads} of {topology.threads} hardware threads are near no GPU, on "
            "NUMA nodes of their own; give --threads if there are more"
        )
    if topology is not None and not topology.nodes and count > 1:
        yield "the matrix says no NUMA nodes: one socket is assumed"


def _device_warnings(device: Device, gpu: Gpu, link: str) -> Iterator[str]:
    cap, power = device.power_cap, gpu.power
    if cap is not None and power is not None and cap < 0.99 * power:
        yield f"GPUs are capped at {cap:g} W; the rates of {gpu.name} hold for {power:g} W"
    if device.mig:
        yield "GPUs are split (MIG): the profile describes whole ones"
    if device.lanes is not None and device.lanes < FULL_SLOT and not link:
        yield (
            f"GPUs sit on {device.lanes} PCIe lanes, for which there is no link profile: the "
            f"machine gets the full link of its GPUs; set hardware.pcie_bandwidth to "
            f"{device.lanes}/{FULL_SLOT} of its rate in the scenario"
        )
    elif device.generation is not None and not link:
        generation = f"PCIe gen {device.generation}"
        yield f"no link profile for {generation}: the link of {gpu.name} is used"


def parse_query(text: str, origin: str) -> tuple[tuple[Device, ...], str, str]:
    """Parse the XML of one machine: accelerators, driver version and date (empty if unknown).

    Raises
    ------
    InputError
        For truncated or other XML, and values in unexpected units.
    """
    root = _root(text, origin)
    problems = Problems(origin)
    gpus = root.findall("gpu")[:_MAX_GPUS]
    devices = tuple(_device(_Fields(gpu, f"gpu[{i}]", problems)) for i, gpu in enumerate(gpus))
    refuse(problems)
    if not devices:
        fail(origin, "lists no GPU")
    stamp, date = (root.findtext("timestamp") or "").strip(), ""
    try:
        at = datetime.strptime(stamp, "%a %b %d %H:%M:%S %Y").replace(tzinfo=UTC)
        date = at.date().isoformat()
    except ValueError:
        pass
    return devices, (root.findtext("driver_version") or "unknown").strip(), date


def _root(text: str, origin: str) -> ET.Element:
    if "<!ENTITY" in text:
        fail(origin, "declares entities, which nvidia-smi never does")
    try:
        root = ET.fromstring(text.strip())  # noqa: S314 - no entities, no fetched DTD
    except ET.ParseError as error:
        line, _ = error.position
        if "no element found" in str(error) or "unclosed token" in str(error):
            fail(origin, "is cut off: the XML stops before its end", line=line)
        fail(origin, f"is not valid XML: {error}", line=line)
    except ValueError as error:
        fail(origin, f"is not valid XML: {error}")
    if root.tag != "nvidia_smi_log":
        hint = "nvidia-smi -q -x writes <nvidia_smi_log>"
        fail(origin, f"is XML of another kind: <{root.tag[:40]}>", hint=hint)
    return root


@dataclass(frozen=True, slots=True)
class _Fields:
    """Access to the XML elements of one GPU by path."""

    gpu: ET.Element
    name: str
    problems: Problems

    def fault(self, path: str, message: str, found: str | None = None) -> None:
        self.problems.note(message, key=f"{self.name}/{path}", found=found)

    def text(self, path: str) -> str | None:
        """Return the element's text; None if it is missing or not available."""
        text = (self.gpu.findtext(path) or "").strip()
        return None if text in _MISSING or text in _REFUSALS else text

    def quantity(self, path: str, unit: Unit) -> float | None:
        """Parse a quantity such as ``81559 MiB``; None, with a problem, if it is invalid."""
        text = self.text(path)
        if text is None:
            return None
        try:
            value = units.parse(text, unit)
        except UnitError as error:
            self.fault(path, str(error).partition(";")[0], text)
            return None
        if value < 0.0:
            self.fault(path, "is negative", text)
            return None
        return value or None

    def count(self, path: str, most: int) -> int | None:
        """Parse an integer such as ``5`` or ``16x``; None, with a problem, if it is invalid."""
        text = self.text(path)
        if text is None:
            return None
        match = re.fullmatch(r"(\d{1,4})x?", text)
        if match is None or not 0 < int(match[1]) <= most:
            self.fault(path, f"is not a count from 1 to {most}", text)
            return None
        return int(match[1])


def _device(fields: _Fields) -> Device:
    product = fields.text("product_name")
    if product is None:
        fields.fault("product_name", "is missing")
    link = "pci/pci_gpu_link_info"
    lanes = fields.count(f"{link}/link_widths/current_link_width", _MAX_LANES)
    most_lanes = fields.count(f"{link}/link_widths/max_link_width", _MAX_LANES)
    paths = (
        f"{group}/{name}"
        for group in ("gpu_power_readings", "power_readings")
        for name in ("current_power_limit", "power_limit")
    )
    caps = (cap for path in paths if (cap := fields.quantity(path, units.WATT)) is not None)
    return Device(
        product=product or "",
        memory=fields.quantity("fb_memory_usage/total", units.BYTE),
        generation=fields.count(f"{link}/pcie_gen/max_link_gen", _MAX_GENERATION),
        lanes=lanes or most_lanes,
        power_cap=next(caps, None),
        clock=fields.quantity("max_clocks/sm_clock", units.HERTZ),
        mig=fields.text("mig_mode/current_mig") == "Enabled",
    )


def is_topology(text: str) -> bool:
    """Return True if a text contains the matrix of ``nvidia-smi topo -m``."""
    return any(_HEADER.match(_ESCAPE.sub("", line)) for line in text.split("\n"))


def parse_topology(text: str, origin: str) -> Topology:
    """Parse the matrix of ``nvidia-smi topo -m``; text before and after it is skipped.

    Raises
    ------
    InputError
        For missing rows or cells, unknown cells, and an asymmetric matrix.
    """
    lines = _ESCAPE.sub("", text).split("\n")
    start = next(i for i, line in enumerate(lines) if _HEADER.match(line))
    devices, affinity, rest = lines[start].partition("CPU Affinity")
    names = devices.split()
    more = [affinity, *(name for name in ("NUMA Affinity", "GPU NUMA ID") if name in rest)]
    problems = Problems(origin)
    between: dict[tuple[str, str], str] = {}
    cpus: dict[str, tuple[range, ...]] = {}
    numa: dict[str, int] = {}
    for number, line in enumerate(lines[start + 1 :], start=start + 2):
        name, cells, last = _row(line, len(names))
        if name not in names:
            continue
        _check_cells(problems, number, name, cells, len(names))
        between |= {(name, other): cell for other, cell in zip(names, cells, strict=False)}
        about = dict(zip(more, last if affinity else (), strict=False))
        near = about.get("CPU Affinity", "")
        if _CPUS.fullmatch(near):
            cpus[name] = _ranges(near)
        node = re.match(r"\d{1,4}", about.get("NUMA Affinity", ""))
        if node:
            numa[name] = int(node[0])
    missing = [name for name in names if (name, names[0]) not in between]
    if missing:
        # The last line of a truncated matrix is broken, too.
        end = _ESCAPE.sub("", text).rstrip().count("\n") + 1
        problems[:] = [problem for problem in problems if problem.line != end]
        problems.note(f"is cut off: the matrix has no row for {', '.join(missing)}")
    refuse(problems)
    for a, b in combinations_with_replacement(names, 2):
        there, back = between[a, b], between[b, a]
        if there != back or (there == "X") != (a == b):
            problems.note(f"says {there} from {a} to {b}, but {back} back")
    refuse(problems)
    gpus = tuple(name for name in names if re.fullmatch(r"GPU\d+", name))
    nics = tuple(name for name in names if name not in gpus)
    return Topology(gpus=gpus, nics=nics, between=between, cpus=cpus, numa=numa)


def _row(line: str, devices: int) -> tuple[str, list[str], list[str]]:
    if "\t" in line:
        cells = [cell.strip() for cell in line.split("\t")]
        # The header and each row have an extra tab before the last cell.
        return cells[0], cells[1 : devices + 1], [c for c in cells[devices + 1 :] if c]
    name, *cells = line.split() or [""]
    return name, cells[:devices], cells[devices:]


def _check_cells(
    problems: Problems, line: int, name: str, cells: Sequence[str], devices: int
) -> None:
    filled = [cell for cell in cells if cell]
    if len(filled) < devices:
        message = f"has {len(filled)} cells for {name} where the header names {devices} devices"
        problems.note(message, line=line)
        return
    hint = "known: X, NV#, PIX, PXB, PHB, NODE, SYS"
    for cell in filled:
        if not _CELL.fullmatch(cell):
            problems.note("has an unknown cell", line=line, found=repr(cell), hint=hint)


def _ranges(text: str) -> tuple[range, ...]:
    parts = (part.partition("-") for part in text.split(","))
    ends = ((int(low[:9]), int((high or low)[:9])) for low, _, high in parts)
    return tuple(range(low, min(high, low + _MAX_CPUS) + 1) for low, high in ends)
