"""Rows of a measurement set as the text of its CSV file."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence

FIRST = ("id", "base", "family")
LAST = ("split", "anchor", "exclude", "source")


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
