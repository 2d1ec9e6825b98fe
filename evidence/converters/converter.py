"""Tables of measurements as measurement sets: one function a table, one entry point.

The converters and what they have to keep: `converters`.
"""

from __future__ import annotations

import math
import pkgutil
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from fnmatch import fnmatchcase
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, Final, Protocol, cast

import converters
from converters import Columns, TableRow
from simulator.errors import InputError, Problem, UnknownName
from simulator.reading.document import SCHEMA, check, parse_document, read_document
from simulator.reading.hardware.profile_text import quote
from simulator.reading.measured.measurement_set import parse_set, set_csv
from simulator.reading.measured.rows import Context, Heading, described_by, rows_of
from simulator.reading.shipped import set_folder
from simulator.reading.table import Line, Table, capped, parse_table, read_table
from simulator.schema.fields import nearest_hint
from simulator.schema.measurement import MeasurementSet, Split, SplitRule, held_out

YES: Final = "yes"


class Converter(Protocol):
    """A module of `converters`."""

    COLUMNS: Columns
    SHIPPED: str

    def convert(self, rows: Sequence[TableRow]) -> list[dict[str, str]]:
        """The rows as cells of a set's CSV file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """A set ready to be written: both files as text, and what the set holds.

    `declared`: the TOML file is there already and is kept.
    """

    toml_path: Path
    csv_path: Path
    toml: str
    csv: str
    found: MeasurementSet
    declared: bool = False


def table_names() -> tuple[str, ...]:
    """Names of the tables that can be converted."""
    names = (module.name for module in pkgutil.iter_modules(converters.__path__))
    return tuple(sorted(name for name in names if hasattr(_module(name), "COLUMNS")))


def _module(name: str) -> ModuleType:
    return import_module(f"converters.{name}")


def converter(name: str) -> Converter:
    """The converter of a table.

    Raises
    ------
    UnknownName
        If there is none of that name.
    """
    names = table_names()
    if name not in names:
        msg = f"there is no table '{name}'; {nearest_hint(name, names)}"
        raise UnknownName(msg)
    return cast("Converter", _module(name))


def import_table(
    name: str,
    path: Path,
    output: Path,
    *,
    by_configuration: bool | None = None,
    only: Mapping[str, str] | None = None,
) -> Imported:
    """Convert a table's file to a measurement set.

    Parameters
    ----------
    name : str
        The table whose columns the file has.
    path : pathlib.Path
        The CSV file.
    output : pathlib.Path
        The set's TOML file; the CSV file lies next to it under the same name.
    by_configuration : bool or None
        Whether configurations are held out by their hash; else every row that is not an anchor is.
        By default what the declaration says where the shipped set is written again, else no.
    only : mapping of str to str, optional
        Beginnings of cells by column: other rows of the file are not read.

    Raises
    ------
    InputError
        With all mistakes of the file at once.
    UnknownName
        If there is no such table.
    """
    module = converter(name)
    table = _chosen(read_table(path), only or {})
    rows = list(_checked(table, module.COLUMNS))
    declaration = set_folder() / f"{module.SHIPPED}.toml"
    shipped = check(MeasurementSet, read_document(declaration))
    declared = output.resolve() == declaration.resolve()
    if by_configuration is None:
        by_configuration = declared and shipped.split is SplitRule.CONFIGURATION
    reasons = _not_finite(rows, module.COLUMNS)
    while True:
        cells = _converted(module, rows, reasons)
        _split(cells, rows, shipped, by_configuration=by_configuration)
        file = shipped if declared else _renamed(shipped, output, path, cells)
        toml, text = _set_toml(file), set_csv(cells, _needed(shipped))
        odd = _odd(toml, text, output)
        if odd.keys() <= reasons.keys():
            break
        reasons = odd | reasons
    found = _read_back(toml, text, output, table)
    csv_path = output.with_suffix(".csv")
    return Imported(
        toml_path=output, csv_path=csv_path, toml=toml, csv=text, found=found, declared=declared
    )


def _set_toml(file: MeasurementSet) -> str:
    """The declaration as TOML that reads back as `file`; its notes are left behind."""
    stated = asdict(
        file, dict_factory=lambda items: {k: v for k, v in items if v not in (None, "", ())}
    )
    given = {key: value for key, value in stated.items() if key not in ("notes", "rows")}
    plain = {key: value for key, value in given.items() if not _is_tables(value)}
    tables = {key: value for key, value in given.items() if _is_tables(value)}
    lines = [f"schema = {SCHEMA}", *(f"{key} = {_value(value)}" for key, value in plain.items())]
    for name, rows in tables.items():
        for row in rows:
            lines += ["", f"[[{name}]]", *(f"{key} = {_value(cell)}" for key, cell in row.items())]
    return "\n".join(lines) + "\n"


def _is_tables(value: object) -> bool:
    return isinstance(value, tuple) and isinstance(value[0], dict)


def _value(value: Any) -> str:  # noqa: ANN401 - whatever a field of the file holds
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, StrEnum):
        return quote(value.value)
    if isinstance(value, str):
        return quote(value)
    if isinstance(value, tuple):
        return f"[{', '.join(_value(item) for item in value)}]"
    return repr(value)


def _chosen(table: Table, only: Mapping[str, str]) -> Table:
    """The rows whose cells begin as asked for.

    Raises
    ------
    InputError
        If the table lacks a column that is asked for.
    """
    for column in only:
        if column not in table.columns:
            hint = nearest_hint(column, table.columns)
            problem = Problem(
                origin=table.origin, key=column, message="is not a column of the table", hint=hint
            )
            raise InputError((problem,))
    lines = [
        line
        for line in table.lines
        if all(line.cells[column].startswith(start) for column, start in only.items())
    ]
    return replace(table, lines=tuple(lines))


def _not_finite(rows: Sequence[TableRow], columns: Columns) -> dict[int, str]:
    """Why rows with a number that is none, such as nan, cannot be used, by their position."""
    found = {}
    for i, row in enumerate(rows):
        wrong = [
            c for c in columns.numbers if row.text(c) and not math.isfinite(float(row.text(c)))
        ]
        if wrong:
            found[i] = "; ".join(
                f"{c} is not a finite number, found {row.text(c)!r}" for c in wrong
            )
    return found


def _converted(
    module: Converter, rows: Sequence[TableRow], reasons: Mapping[int, str]
) -> list[dict[str, str]]:
    """All rows as cells. Those with a reason have it; the others are converted as if alone."""
    good = [row for i, row in enumerate(rows) if i not in reasons]
    every, alone = module.convert(rows), iter(module.convert(good))
    if len(every) != len(rows):
        msg = f"the converter of {module.SHIPPED} gave {len(every)} rows for {len(rows)}"
        raise RuntimeError(msg)
    return _unique(
        [
            {**_labels(row), "exclude": reasons[i]} if i in reasons else dict(next(alone))
            for i, row in enumerate(every)
        ]
    )


def _labels(row: Mapping[str, str]) -> dict[str, str]:
    return {c: cell for c, cell in row.items() if "." not in c and c not in ("base", "anchor")}


def _odd(toml: str, text: str, output: Path) -> dict[int, str]:
    """Why rows of a set cannot be used as they are, by their position; none of a bad heading."""
    file = check(MeasurementSet, parse_document(toml.encode(), str(output)))
    table = parse_table(text.encode(), file.data)
    heading = Heading(table, described_by(file))
    if any(heading.problems()):
        return {}
    position = {line.number: i for i, line in enumerate(table.lines)}
    found: dict[int, list[str]] = {}
    for problem in rows_of(Context(file=file, table=table, folder=output.parent), heading)[1]:
        found.setdefault(position[problem.line or 0], []).append(_told(problem))
    return {i: "; ".join(told) for i, told in found.items()}


def _told(problem: Problem) -> str:
    """Return a problem as a reason; the row's own names are printed next to it."""
    if not problem.key:
        return problem.message
    found = f", found {problem.found}" if problem.found is not None else ""
    hint = f" ({problem.hint})" if problem.hint else ""
    return f"{problem.key} {problem.message}{found}{hint}"


def _checked(table: Table, columns: Columns) -> Iterator[TableRow]:
    """The rows of a table whose columns and numbers are sound."""
    problems = [
        Problem(
            origin=table.origin,
            line=1,
            key=column,
            message="is missing",
            hint=nearest_hint(column, [c for c in table.columns if c not in columns.required]),
        )
        for column in columns.required
        if column not in table.columns
    ]
    if not problems:
        problems += [p for line in table.lines for p in _cell_problems(table, line, columns)]
    if problems:
        raise InputError(capped(problems))
    yield from (TableRow(line=line.number, cells=line.cells) for line in table.lines)


def _cell_problems(table: Table, line: Line, columns: Columns) -> Iterator[Problem]:
    for column in columns.filled:
        if not line.cells[column]:
            yield table.problem(line, column, "is empty")
    for column in columns.numbers:
        if not _is_number(line.cells.get(column, "")):
            hint = "write a number with a point, or nothing"
            yield table.problem(line, column, "is not a number", hint)
    allowed = tuple(split.value for split in Split)
    split = line.cells.get("split", "")
    if split and split not in allowed:
        yield table.problem(line, "split", "is not a valid choice", nearest_hint(split, allowed))


def _is_number(cell: str) -> bool:
    try:
        float(cell or "0")
    except ValueError:
        return False
    return True


def _unique(cells: list[dict[str, str]]) -> list[dict[str, str]]:
    """The rows with ids that repeat numbered: ``name``, ``name~2``."""
    seen: Counter[str] = Counter()
    for row in cells:
        seen[row["id"]] += 1
        if seen[row["id"]] > 1:
            row["id"] = f"{row['id']}~{seen[row['id']]}"
    return cells


def _split(
    cells: Sequence[dict[str, str]],
    rows: Sequence[TableRow],
    shipped: MeasurementSet,
    *,
    by_configuration: bool,
) -> None:
    """Mark what may be fitted to: anchors; then what the table says; then what the hash says."""
    family = shipped.family or shipped.name
    for row, table_row in zip(cells, rows, strict=True):
        full = {"family": family, **{c: cell for c, cell in row.items() if cell}}
        key = tuple(full.get(column, "") for column in shipped.configuration)
        fitted = by_configuration and not held_out(key)
        given = table_row.text("split") or row.get("split") or (Split.FIT if fitted else Split.TEST)
        row["split"] = str(Split.FIT if row.get("anchor") == YES else given)


def _renamed(
    shipped: MeasurementSet, output: Path, path: Path, cells: Sequence[Mapping[str, str]]
) -> MeasurementSet:
    """What the shipped set declares, for rows of another file and the families among them."""
    families = {row.get("family") or shipped.family or output.stem for row in cells}
    changes: dict[str, Any] = {
        "tolerance": tuple(t for t in shipped.tolerance if t.family in ("", "*", *families)),
        "name": output.stem,
        "title": f"{shipped.title}, rows of {path.name}",
        "data": output.with_suffix(".csv").name,
        "split": SplitRule.GIVEN,
    }
    return replace(shipped, **changes)


def _needed(shipped: MeasurementSet) -> tuple[str, ...]:
    """Columns that the declaration speaks of."""
    lists = (shipped.configuration, shipped.group_by, shipped.baseline_by)
    named = [column for columns in lists for column in columns if column not in ("id", "family")]
    measured = [f"measured.{metric}" for metric in shipped.metrics]
    return (*named, *measured, "split", *(["anchor"] if shipped.fit else []))


def _read_back(toml: str, text: str, output: Path, table: Table) -> MeasurementSet:
    """The set as it will be read; mistakes in its rows are those of the table's rows."""
    try:
        return parse_set(toml, text, str(output), output.parent)
    except InputError as error:
        raise InputError(tuple(_at_home(p, table) for p in error.problems)) from None


def _at_home(problem: Problem, table: Table) -> Problem:
    """Return a problem with a row of the set as one of the table's row it was made from."""
    row = (problem.line or 0) - 2
    if not problem.origin.endswith(".csv") or not 0 <= row < len(table.lines):
        return problem
    return replace(problem, origin=table.origin, line=table.lines[row].number)


def never_read(columns: Columns, names: Sequence[str]) -> tuple[str, ...]:
    """The columns among `names` that hold what was measured, patterns matched."""
    return tuple(n for n in names if any(fnmatchcase(n, p) for p in columns.measured))
