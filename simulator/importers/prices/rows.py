"""The rows of a catalogue of cloud prices: a CSV with the columns of SkyPilot's ``vms.csv``."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from simulator.importers.reading import read_text
from simulator.reading.reading import fail

MACHINE: Final = "InstanceType"
ACCELERATOR: Final = "AcceleratorName"
COUNT: Final = "AcceleratorCount"
THREADS: Final = "vCPUs"
MEMORY: Final = "MemoryGiB"
PRICE: Final = "Price"
SPOT: Final = "SpotPrice"
REGION: Final = "Region"
ZONE: Final = "AvailabilityZone"

_NEEDED: Final = (MACHINE, PRICE, REGION)
_READ: Final[tuple[str, ...]] = (*_NEEDED, ACCELERATOR, COUNT, THREADS, MEMORY, SPOT, ZONE)
_WANTED: Final = "a CSV of prices"
_NOTHING: Final = frozenset({"", "nan", "none", "null", "na", "n/a", "-"})


class OddNumber(ValueError):  # noqa: N818 - reads as the sentence it prints
    """A field that should hold a number above zero, and holds something else."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One row; `cells` holds the columns that plan reads, blanks cut off."""

    line: int
    cells: Mapping[str, str]
    ragged: bool = False

    def text(self, column: str) -> str:
        """The text of a column; empty where the row or the file has none."""
        return self.cells.get(column, "")

    def number(self, column: str) -> float | None:
        """The number of a column, or None where it is left empty.

        Raises
        ------
        OddNumber
            If it isn't a number of zero or above.
        """
        text = self.text(column)
        if text.lower() in _NOTHING:
            return None
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not 0.0 <= value < math.inf:
            msg = f"{column} is no number: {text[:40]!r}"
            raise OddNumber(msg)
        return value


def read_rows(path: Path) -> tuple[Row, ...]:
    """All rows of a catalogue.

    Raises
    ------
    InputError
        If the file is missing, a folder, empty, binary or no CSV, has a heading without the
        columns `InstanceType`, `Price` and `Region` or with one of them twice, or has no rows.
    """
    origin = str(path)
    rows = csv.reader(io.StringIO(read_text(path, _WANTED)), strict=True)
    found: list[Row] = []
    try:
        heading = [cell.strip() for cell in next(rows)]
        _check(heading, origin)
        found.extend(
            _row(heading, cells, rows.line_num)
            for cells in rows
            if any(cell.strip() for cell in cells)
        )
    except (csv.Error, StopIteration) as error:
        reason = str(error) or "it has no heading"
        fail(origin, f"is not {_WANTED}: {reason}", line=rows.line_num)
    if not found:
        fail(origin, "has a heading and no rows")
    return tuple(found)


def _row(heading: list[str], cells: list[str], line: int) -> Row:
    named = dict(zip(heading, (cell.strip() for cell in cells), strict=False))
    read = {column: named[column] for column in _READ if column in named}
    return Row(line=line, cells=read, ragged=len(cells) != len(heading))


def _check(heading: list[str], origin: str) -> None:
    missing = [column for column in _NEEDED if column not in heading]
    if missing:
        wanted = f"it needs {', '.join(_NEEDED)}, and {SPOT} for spot prices"
        hint = f"{wanted}; the file has {_shown(heading)}"
        fail(origin, f"has no column {' and no column '.join(missing)}", line=1, hint=hint)
    for column in _READ:
        if heading.count(column) > 1:
            fail(origin, f"has the column {column} twice", line=1)


def _shown(heading: list[str]) -> str:
    most = 8
    more = f" and {len(heading) - most} more" if len(heading) > most else ""
    return ", ".join(repr(cell[:30]) for cell in heading[:most]) + more


def accelerator_rows(rows: tuple[Row, ...]) -> Iterator[Row]:
    """The rows that price accelerators without a machine, as Google's catalogue has them."""
    return (row for row in rows if not row.text(MACHINE) and row.text(ACCELERATOR))
