"""A CSV file as rows of named cells with their lines, and its mistakes.

The first line names the columns. Every row has one cell per column; blank lines and spaces around a
cell are ignored. Measured figures may have the names that people and tools use.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from simulator import units
from simulator.errors import InputError, Problem, UnitError, first_problems
from simulator.reading.reading import decode, fail, read_bytes, refuse_irregular
from simulator.records import dataclass
from simulator.units import PERCENT, Unit, parse, parse_count

LARGEST_TABLE: Final = int(units.parse("64 MB", units.BYTE))
"""Size of the largest CSV file that is read [B]; a hundred thousand wide rows are less."""

_SEPARATORS: Final = {";": "semicolons", "\t": "tabs", "|": "bars"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A row: the line of the file it ends on (from 1), and its cells by column."""

    number: int
    cells: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A CSV file: `origin` names it in messages."""

    origin: str
    columns: tuple[str, ...]
    lines: tuple[Line, ...]

    def problem(self, line: Line, column: str, message: str, hint: str = "") -> Problem:
        """Return a `Problem` with the cell of a row."""
        found = line.cells.get(column)
        return Problem(
            origin=self.origin,
            line=line.number,
            key=column,
            message=message,
            found=repr(shortened(found)) if found else None,
            hint=hint or None,
        )

    def about(self, column: str, message: str, hint: str = "") -> Problem:
        """Return a `Problem` with a column."""
        return Problem(origin=self.origin, line=1, key=column, message=message, hint=hint or None)


def shortened(text: str, longest: int = 60) -> str:
    """Return `text`, cut to `longest` characters."""
    return text if len(text) <= longest else f"{text[: longest - 3]}..."


def capped(problems: list[Problem]) -> tuple[Problem, ...]:
    """Return the first problems by line, without duplicates, and the number of the others."""
    every = sorted(dict.fromkeys(problems), key=lambda p: (p.origin, p.line or 0))
    return first_problems(every)


def read_table(path: Path) -> Table:
    """Read a CSV file.

    Raises
    ------
    InputError
        With everything wrong about its form: missing, a pipe or device, too big, binary, not
        UTF-8, separated by something else, cut off, columns without a name or named twice, rows
        of another length.
    """
    refuse_irregular(path)
    if path.is_file() and path.stat().st_size > LARGEST_TABLE:
        size = units.show(path.stat().st_size, units.BYTE)
        most = units.show(LARGEST_TABLE, units.BYTE)
        fail(
            str(path), f"is larger than {most} ({size})", hint="this is not a table of measurements"
        )
    return parse_table(read_bytes(path, LARGEST_TABLE), str(path))


def parse_table(content: bytes, origin: str) -> Table:
    """Read CSV from memory; `origin` names it in messages. Raises as `read_table` does."""
    begin = "the first line names the columns"
    text = decode(content, origin, kind="CSV", largest=LARGEST_TABLE, begin=begin)
    rows = _records(text, origin)
    if not rows:
        fail(origin, "has no columns", hint=begin)
    head, columns = rows[0][0], tuple(cell.strip() for cell in rows[0][1])
    problems = list(_heading_problems(columns, origin, head))
    if problems:
        raise InputError(tuple(problems))
    wrong = [
        _length_problem(origin, number, len(cells), len(columns), last=number == rows[-1][0])
        for number, cells in rows[1:]
        if len(cells) != len(columns)
    ]
    if wrong:
        raise InputError(capped(wrong))
    lines = tuple(
        Line(number=number, cells={c: cell.strip() for c, cell in zip(columns, cells, strict=True)})
        for number, cells in rows[1:]
    )
    if not lines:
        fail(origin, "has columns but no rows")
    return Table(origin=origin, columns=columns, lines=lines)


def _records(text: str, origin: str) -> list[tuple[int, list[str]]]:
    """Return line number and cells of every row that is not blank, starting with the heading."""
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    rows = []
    try:
        rows = [(reader.line_num, cells) for cells in reader if any(c.strip() for c in cells)]
    except csv.Error as error:
        if "unexpected end" in str(error):
            message = "ends within a quoted cell"
            fail(origin, message, line=reader.line_num, hint="is the file cut off?")
        fail(origin, f"is not valid CSV: {error}", line=reader.line_num)
    return rows


def _heading_problems(columns: tuple[str, ...], origin: str, line: int) -> Iterator[Problem]:
    if len(columns) == 1:
        other = next((name for mark, name in _SEPARATORS.items() if mark in columns[0]), None)
        if other:
            hint = "separate cells by commas"
            yield Problem(origin=origin, line=line, message=f"is separated by {other}", hint=hint)
            return
    for position, name in enumerate(columns, start=1):
        if not name:
            message = f"has no name for column {position}"
            yield Problem(origin=origin, line=line, message=message)
        elif name in columns[: position - 1]:
            yield Problem(origin=origin, line=line, key=name, message="names two columns")


def _length_problem(origin: str, line: int, found: int, needed: int, *, last: bool) -> Problem:
    hint = f"the heading has {needed}"
    if found > needed:
        hint += "; a cell with a comma in it needs quotes"
    elif last:
        hint += "; is the file cut off?"
    return Problem(origin=origin, line=line, message=f"has {found} cells", hint=hint)


NAMES: Final = {
    "utilization": "accelerator_utilization",
    "samples/s": "throughput_samples_per_s",
    "images/s": "throughput_samples_per_s",
    "throughput": "throughput_samples_per_s",
    "step": "step_time_s.mean",
    "step_time": "step_time_s.mean",
    "epoch": "epoch_time_s",
    "tokens/s": "tokens_per_s",
    "checkpoint": "checkpoint_s",
}
"""Names that people use for measured figures of a job."""


SERVICE_NAMES: Final = {
    "ttft": "first_token_s.mean",
    "first_token": "first_token_s.mean",
    "tpot": "per_token_s.mean",
    "per_token": "per_token_s.mean",
    "e2e": "end_to_end_s.mean",
    "end_to_end": "end_to_end_s.mean",
    "tokens/s": "output_tokens_per_s",
    "output_tokens/s": "output_tokens_per_s",
}
"""Names that people use for measured figures of a service: means over requests, unless the column
states another statistic."""


def figure_value(text: str, unit: Unit | None) -> float | None:
    """Parse a share in per cent, a quantity with its unit, or a plain number; None if invalid.

    Examples
    --------
    >>> from simulator.units import SECOND
    >>> figure_value("45%", None), figure_value("120 ms", SECOND), figure_value("3,900", None)
    (0.45, 0.12, 3900.0)
    """
    if text.endswith("%"):
        share = parse_count(text.removesuffix("%"))
        return None if share is None else share / PERCENT
    plain = parse_count(text)
    if plain is not None or unit is None:
        return plain
    try:
        return parse(text, unit)
    except UnitError:
        return None
