"""The CSV of ``nvidia-smi --query-gpu=... --format=csv -l 1``: samples of GPUs.

Units stand in the header, and behind each value unless ``nounits`` was asked for. What a device
doesn't know is [N/A] or another text in brackets.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from simulator.importers.reading import refuse
from simulator.importers.result import Quantity, Utilization
from simulator.importers.utilization.samples import MEBIBYTE, PERCENT, Samples, typical_step

_COLUMNS: Final = {
    "utilization.gpu": Quantity.GPU_BUSY,
    "utilization.memory": Quantity.DEVICE_MEMORY_BUSY,
    "memory.used": Quantity.DEVICE_MEMORY,
    "power.draw": Quantity.POWER,
    "power.draw.average": Quantity.POWER,
    "power.draw.instant": Quantity.POWER,
}
"""Column: what it says. With several of a kind the first one counts."""
_DEVICE: Final = ("index", "uuid", "gpu_uuid", "pci.bus_id", "gpu_bus_id")
_UNITS: Final = {"%": PERCENT, "MiB": MEBIBYTE, "W": 1.0}
_UNIT_OF: Final = {Quantity.DEVICE_MEMORY: "MiB", Quantity.POWER: "W"}
_HEADING: Final = re.compile(r"\s*([a-z_.0-9]+)\s*(?:\[(.+)\])?\s*")
_VALUE: Final = re.compile(r"(-?[\d.]+(?:[eE][+-]?\d+)?)\s*(\S*)")
_ENOUGH: Final = 100
"""Samples of a device that tell the time between them."""
_HINT: Final = "record with nvidia-smi --query-gpu=timestamp,index,utilization.gpu --format=csv"


def is_csv(text: str) -> bool:
    """Whether the first line is a header of such a CSV, or a row of one without a header."""
    first = text.lstrip().split("\n", 1)[0]
    return "," in first and (
        any(name in first for name in _COLUMNS)
        or re.match(r"\d{4}/\d\d/\d\d ", first) is not None
        or first.startswith("timestamp")
    )


@dataclass(frozen=True, slots=True)
class _Columns:
    """Names of the columns, and the quantity of those that say one."""

    names: tuple[str, ...]
    known: Mapping[int, Quantity]

    def place(self, *names: str) -> int | None:
        """Position of the first of `names` there is."""
        return next((self.names.index(name) for name in names if name in self.names), None)


def parse(text: str, origin: str) -> Utilization:
    """Samples of all GPUs in the CSV.

    Raises
    ------
    InputError
        If there is no header, no known column, or rows are cut off or hold impossible values.
    """
    samples = Samples(origin=origin)
    lines = text.lstrip("\n").rstrip().split("\n")
    header = [_HEADING.fullmatch(cell) for cell in lines[0].split(",")]
    names = tuple(match[1] if match else "" for match in header)
    columns = _Columns(names, _known(names))
    if not columns.known:
        named = any(name[:1].isalpha() for name in names)
        hint = _HINT if named else f"record without noheader; {_HINT}"
        samples.fault("has no column that says how busy a GPU is", line=1, hint=hint)
    for i, quantity in columns.known.items():
        match, wanted = header[i], _UNIT_OF.get(quantity, "%")
        if match is not None and match[2] not in (None, wanted):
            message = f"has {names[i]} in {match[2]}, which is always in {wanted}"
            samples.fault(message, line=1)
    refuse(samples.problems)
    times: dict[str, list[float]] = {}
    for number, line in enumerate(lines[1:], start=2):
        if line != lines[0]:
            _take(samples, number, [cell.strip() for cell in line.split(",")], columns, times)
    if not samples.rows and not samples.problems:
        samples.fault("holds no sample, only a header")
    refuse(samples.problems)
    samples.interval = next((typical_step(seen) for seen in times.values()), None)
    return samples.utilization()


def _known(names: Sequence[str]) -> dict[int, Quantity]:
    """Column by position, the first of each quantity."""
    found: dict[int, Quantity] = {}
    for i, name in enumerate(names):
        quantity = _COLUMNS.get(name)
        if quantity is not None and quantity not in found.values():
            found[i] = quantity
    return found


def _take(
    samples: Samples,
    number: int,
    cells: Sequence[str],
    columns: _Columns,
    times: dict[str, list[float]],
) -> None:
    if len(cells) != len(columns.names):
        message = f"has {len(cells)} columns where the header has {len(columns.names)}"
        samples.fault(message, line=number, hint="is the file cut off here?")
        return
    place = columns.place(*_DEVICE)
    device = "GPU 0" if place is None else f"GPU {cells[place]}"
    row = {}
    for i, quantity in columns.known.items():
        cell, name = cells[i], columns.names[i]
        unit = _UNIT_OF.get(quantity, "%")
        match = _VALUE.fullmatch(cell)
        if cell.startswith("[") or cell == "N/A":
            continue
        if match is None or match[2] not in ("", unit):
            samples.fault(
                f"has no value in {unit} under {name}", line=number, found=repr(cell[:40])
            )
        else:
            factor = _UNITS[unit]
            row[quantity] = samples.checked(quantity, match[1], factor, line=number, name=name)
    samples.add(device, row)
    stamp, seen = columns.place("timestamp"), times.setdefault(device, [])
    seconds = None if stamp is None or len(seen) >= _ENOUGH else _seconds(cells[stamp])
    if seconds is not None:
        seen.append(seconds)


def _seconds(stamp: str) -> float | None:
    for form in ("%Y/%m/%d %H:%M:%S.%f", "%Y/%m/%d %H:%M:%S"):
        try:
            return datetime.strptime(stamp, form).replace(tzinfo=UTC).timestamp()
        except ValueError:
            continue
    return None
