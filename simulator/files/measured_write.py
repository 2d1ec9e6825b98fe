"""A measurement set as text: the TOML file that declares it, and the CSV file of its rows."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Any

from simulator.files.document import SCHEMA
from simulator.files.measured_sections import SetFile
from simulator.files.profile_text import quote

FIRST = ("id", "base", "family")
LAST = ("split", "anchor", "exclude", "source")


def set_toml(file: SetFile) -> str:
    """The declaration as TOML that reads back as `file`; its notes are left behind."""
    given = file.model_dump(exclude_none=True, exclude={"notes"})
    plain = {key: value for key, value in given.items() if not _is_tables(value) and value != []}
    tables = {key: value for key, value in given.items() if _is_tables(value)}
    lines = [f"schema = {SCHEMA}", *(f"{key} = {_value(value)}" for key, value in plain.items())]
    for name, rows in tables.items():
        for row in rows:
            lines += ["", f"[[{name}]]", *(f"{key} = {_value(cell)}" for key, cell in row.items())]
    return "\n".join(lines) + "\n"


def _is_tables(value: object) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], dict)


def _value(value: Any) -> str:  # noqa: ANN401 - whatever a field of the file holds
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, StrEnum):
        return quote(value.value)
    if isinstance(value, str):
        return quote(value)
    if isinstance(value, list):
        return f"[{', '.join(_value(item) for item in value)}]"
    return repr(value)


def set_csv(rows: Iterable[Mapping[str, str]], needed: Sequence[str] = ()) -> str:
    """Rows as CSV: who they are, labels, keys, what was measured, and how they are used.

    Parameters
    ----------
    rows : iterable of mapping of str to str
        Cells by column; a row need not have them all.
    needed : sequence of str
        Columns that are there even if no row fills them.
    """
    every = list(rows)
    filled = {column for row in every for column, cell in row.items() if cell}
    order = dict.fromkeys(column for row in every for column in row)
    columns = [c for c in dict.fromkeys((*order, *needed)) if c in filled or c in needed]
    text = io.StringIO()
    writer = csv.DictWriter(
        text, fieldnames=sorted(columns, key=_place), restval="", lineterminator="\n"
    )
    writer.writeheader()
    writer.writerows({c: row.get(c, "") for c in columns} for row in every)
    return text.getvalue()


def _place(column: str) -> int:
    """Where a column stands: a stable sort keeps the order within each kind."""
    if column in FIRST:
        return FIRST.index(column)
    if column in LAST:
        return 100 + LAST.index(column)
    kinds = {"measured.": 12, "spread.": 13}
    kind = next((n for prefix, n in kinds.items() if column.startswith(prefix)), None)
    return kind if kind is not None else 11 if "." in column else 10
