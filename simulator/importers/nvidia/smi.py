"""What nvidia-smi shows of a machine, as a node profile.

Reads the matrix of ``nvidia-smi topo -m``, the XML of ``nvidia-smi -q -x`` and the link rates of
``nvidia-smi nvlink -s``, each recognised by its content. RAM, which none of them shows, is given.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from simulator import units
from simulator.errors import Problem, UnitError
from simulator.importers.nvidia import query as nvidia_query
from simulator.importers.nvidia import topology as nvidia_topology
from simulator.importers.nvidia.gpu_names import matching
from simulator.importers.nvidia.node_profile import Given, Seen, node_profile
from simulator.importers.nvidia.query import Device, Query
from simulator.importers.nvidia.topology import Topology
from simulator.importers.reading import changed, read_text, refuse
from simulator.importers.result import Fragment
from simulator.reading.hardware.catalogue import Catalogue
from simulator.reading.reading import fail
from simulator.schema.hardware.gpu import Gpu
from simulator.units import BytesPerSecond

WANTED: Final = "the output of nvidia-smi"

_LINK: Final = re.compile(r"\s*Link \d+:\s*(\S+ [A-Za-z/]+)\s*")
_GPU: Final = re.compile(r"GPU (\d+):")


@dataclass(slots=True)
class _Read:
    """The files of one machine, sorted by what they hold."""

    topology: Topology | None = None
    query: Query | None = None
    links: BytesPerSecond | None = None
    names: list[str] = field(default_factory=list)
    date: str = ""


def read(paths: Sequence[Path], catalogue: Catalogue, given: Given) -> Fragment:
    """A node profile from one or more outputs of nvidia-smi on one machine.

    Parameters
    ----------
    paths : sequence of pathlib.Path
        Files, in any order.
    catalogue : Catalogue
        Where the accelerator's profile and those of links are looked up.
    given : Given
        What nvidia-smi doesn't say.

    Raises
    ------
    InputError
        For files of another kind or cut off, two machines, an accelerator that the catalogue
        lacks, and what is missing altogether.
    """
    found = _Read()
    for path in paths:
        _take(found, path)
    origin = ", ".join(str(path) for path in paths)
    gpu, count, product = _accelerator(found, catalogue, given, origin)
    device = None if found.query is None else found.query.devices[0]
    driver = "" if found.query is None else f", driver {found.query.driver}"
    seen = Seen(
        gpu=gpu,
        count=count,
        product=product,
        device=device,
        topology=found.topology,
        peer_rate=found.links,
        source=f"nvidia-smi{driver}: {', '.join(found.names)}",
        date=found.date,
        origin=origin,
    )
    return node_profile(seen, catalogue, given)


def _take(found: _Read, path: Path) -> None:
    text, origin = read_text(path, WANTED), str(path)
    found.date = found.date or changed(path)
    found.names.append(path.name)
    if nvidia_query.is_query(text):
        _once(found.query, origin, "a second XML (-q -x)")
        found.query = nvidia_query.parse(text, origin)
        found.date = found.query.date or found.date
    elif nvidia_topology.is_topology(text):
        _once(found.topology, origin, "a second matrix (topo -m)")
        found.topology = nvidia_topology.parse(text, origin)
    elif _LINK.search(text):
        found.links = _link_rate(text.split("\n"), origin)
    else:
        hint = "known: nvidia-smi topo -m, nvidia-smi -q -x, nvidia-smi nvlink -s"
        fail(origin, f"is not {WANTED}", hint=hint)


def _once(already: object, origin: str, what: str) -> None:
    if already is not None:
        fail(origin, f"is {what}", hint="one machine at a time")


def _link_rate(lines: Iterable[str], origin: str) -> BytesPerSecond:
    """Rate of all NVLinks of the first GPU together, one direction [B/s]."""
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
    found: _Read, catalogue: Catalogue, given: Given, origin: str
) -> tuple[Gpu, int, str]:
    """The accelerator's profile, how many there are, and what the driver calls it."""
    devices = () if found.query is None else found.query.devices
    topology = found.topology
    products = sorted({device.product for device in devices})
    problems = list(_count_problems(devices, topology, products, origin))
    refuse(problems)
    count = len(devices) if devices else len(topology.gpus) if topology else 0
    if not count:
        fail(origin, "shows no GPU", hint="give topo -m or -q -x")
    if given.gpu:
        return catalogue.gpu(given.gpu), count, products[0] if products else given.gpu
    if not products:
        fail(origin, "doesn't say what the GPUs are", hint="add -q -x, or give --gpu")
    known = [catalogue.gpu(name) for name in catalogue.names("gpu")]
    candidates = matching(products[0], devices[0].memory, known)
    if len(candidates) != 1:
        names = ", ".join(gpu.name for gpu in candidates) or "none"
        hint = f"give --gpu; those that may be meant: {names}"
        fail(origin, f"shows a GPU that the catalogue lacks: {products[0]!r}", hint=hint)
    return candidates[0], count, products[0]


def _count_problems(
    devices: Sequence[Device], topology: Topology | None, products: Sequence[str], origin: str
) -> Iterator[Problem]:
    if len(products) > 1:
        yield Problem(
            origin=origin,
            message="shows GPUs of several kinds",
            found=", ".join(products),
            hint="a profile has one kind",
        )
    if devices and topology and len(devices) != len(topology.gpus):
        message = f"has {len(devices)} GPUs in the XML, but {len(topology.gpus)} in the matrix"
        yield Problem(origin=origin, message=message, hint="give files of one machine")
