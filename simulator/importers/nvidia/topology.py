"""The matrix of ``nvidia-smi topo -m``: how devices reach each other.

Cells: NV# a bond of # NVLinks; PIX at most one PCIe bridge; PXB several bridges; PHB through the
host bridge; NODE between host bridges of a NUMA node; SYS (SOC in old drivers) between NUMA nodes.
Columns are separated by tabs, by spaces in pasted copies; the header may be underlined by an escape
sequence. Captures: utkuozdemir/nvidia_gpu_exporter, internal/captures; NVIDIA/nccl issue 707.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from simulator.errors import Problem
from simulator.importers.reading import refuse

_ESCAPE: Final = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_HEADER: Final = re.compile(r"^\s*GPU0\b")
_CELL: Final = re.compile(r"X|NV\d{1,4}|PIX|PXB|PHB|NODE|SYS|SOC")
_GPU: Final = re.compile(r"GPU\d+")
_BONDED: Final = re.compile(r"NV(\d{1,4})")
_CPUS: Final = re.compile(r"\d+(-\d+)?(,\d+(-\d+)?)*")
_MOST_CPUS: Final = 65536


@dataclass(frozen=True, slots=True, kw_only=True)
class Topology:
    """How devices of one machine reach each other.

    `between` holds a cell for each ordered pair of `gpus` and `nics`; `cpus` the hardware threads
    near each GPU, as ranges; `numa` its NUMA node. Both are empty where the driver is too old to
    say.
    """

    gpus: tuple[str, ...]
    nics: tuple[str, ...]
    between: Mapping[tuple[str, str], str]
    cpus: Mapping[str, tuple[range, ...]]
    numa: Mapping[str, int]

    def links(self, a: str, b: str) -> int:
        """NVLinks between two GPUs; 0 if none."""
        match = _BONDED.fullmatch(self.between[a, b])
        return int(match[1]) if match else 0

    def below_one_switch(self) -> list[list[str]]:
        """Devices that reach each other without passing a host bridge, groups of two or more."""
        groups: list[list[str]] = []
        for device in (*self.gpus, *self.nics):
            near = [g for g in groups if any(self._is_near(device, other) for other in g)]
            groups = [g for g in groups if g not in near]
            groups.append([*(other for g in near for other in g), device])
        return sorted(group for group in groups if len(group) > 1)

    def _is_near(self, a: str, b: str) -> bool:
        return self.between[a, b] in {"PIX", "PXB"}


def is_topology(text: str) -> bool:
    """Whether a text holds the matrix."""
    return any(_HEADER.match(_ESCAPE.sub("", line)) for line in text.split("\n"))


def parse(text: str, origin: str) -> Topology:
    """The matrix in a text; what stands before and after it is skipped.

    Raises
    ------
    InputError
        For missing rows or cells, unknown cells, and a matrix that contradicts itself.
    """
    lines = _ESCAPE.sub("", text).split("\n")
    start = next(i for i, line in enumerate(lines) if _HEADER.match(line))
    names, more = _columns(lines[start])
    problems: list[Problem] = []
    between: dict[tuple[str, str], str] = {}
    cpus: dict[str, tuple[range, ...]] = {}
    numa: dict[str, int] = {}
    for number, line in enumerate(lines[start + 1 :], start=start + 2):
        name, cells, rest = _row(line, len(names))
        if name not in names:
            continue
        problems += _cell_problems(origin, number, name, cells, len(names))
        between |= {(name, other): cell for other, cell in zip(names, cells, strict=False)}
        about = dict(zip(more, rest, strict=False))
        near = about.get("CPU Affinity", "")
        if _CPUS.fullmatch(near):
            cpus[name] = _ranges(near)
        node = re.match(r"\d{1,4}", about.get("NUMA Affinity", ""))
        if node:
            numa[name] = int(node[0])
    missing = [name for name in names if (name, names[0]) not in between]
    if missing:
        # What is wrong with the last line is that it is cut off.
        last = _ESCAPE.sub("", text).rstrip().count("\n") + 1
        problems = [problem for problem in problems if problem.line != last]
        message = f"is cut off: the matrix has no row for {', '.join(missing)}"
        problems.append(Problem(origin=origin, message=message))
    refuse(problems)
    refuse(_contradictions(origin, names, between))
    return Topology(
        gpus=tuple(name for name in names if _GPU.fullmatch(name)),
        nics=tuple(name for name in names if not _GPU.fullmatch(name)),
        between=between,
        cpus=cpus,
        numa=numa,
    )


def _columns(header: str) -> tuple[list[str], list[str]]:
    """Names of the devices, and of the columns behind them."""
    devices, mark, rest = header.partition("CPU Affinity")
    more = [mark, *(name for name in ("NUMA Affinity", "GPU NUMA ID") if name in rest)]
    return devices.split(), more if mark else []


def _row(line: str, devices: int) -> tuple[str, list[str], list[str]]:
    if "\t" in line:
        cells = [cell.strip() for cell in line.split("\t")]
        # The header and each row have a tab too many before the last cell.
        return cells[0], cells[1 : devices + 1], [c for c in cells[devices + 1 :] if c]
    cells = line.split()
    if not cells:
        return "", [], []
    return cells[0], cells[1 : devices + 1], cells[devices + 1 :]


def _cell_problems(
    origin: str, line: int, name: str, cells: Sequence[str], devices: int
) -> list[Problem]:
    found = [cell for cell in cells if cell]
    if len(found) < devices:
        message = f"has {len(found)} cells for {name} where the header names {devices} devices"
        return [Problem(origin=origin, line=line, message=message)]
    hint = "known: X, NV#, PIX, PXB, PHB, NODE, SYS"
    return [
        Problem(
            origin=origin, line=line, message="has an unknown cell", found=repr(cell), hint=hint
        )
        for cell in found
        if not _CELL.fullmatch(cell)
    ]


def _contradictions(
    origin: str, names: Sequence[str], between: Mapping[tuple[str, str], str]
) -> list[Problem]:
    problems = []
    for i, a in enumerate(names):
        for b in names[i:]:
            there, back = between[a, b], between[b, a]
            if there != back or (there == "X") != (a == b):
                message = f"says {there} from {a} to {b}, but {back} back"
                problems.append(Problem(origin=origin, message=message))
    return problems


def _ranges(text: str) -> tuple[range, ...]:
    parts = (part.partition("-") for part in text.split(","))
    found = ((int(low[:9]), int((high or low)[:9])) for low, _, high in parts)
    return tuple(range(low, min(high, low + _MOST_CPUS) + 1) for low, high in found)
