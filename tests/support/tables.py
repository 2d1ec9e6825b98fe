"""What every converter of a table of measurements has to keep; its own tests call these."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

from converters import TableRow
from converters.converter import converter, never_read
from simulator.reading.table import read_table

READABLE = ("measured.", "spread.")


def rows_of(path: Path) -> list[TableRow]:
    """The rows of a sample."""
    return [TableRow(line=line.number, cells=line.cells) for line in read_table(path).lines]


def assert_reads_no_measurement(name: str, rows: Sequence[TableRow]) -> None:
    """Shuffling what was measured among rows changes only the measured cells.

    Rows that lack a measurement keep lacking it: whether a row was measured may exclude it.
    """
    module = converter(name)
    before = module.convert(rows)
    shuffled = _shuffled(rows, never_read(module.COLUMNS, list(rows[0].cells)))
    after = module.convert(shuffled)
    assert shuffled != list(rows), "the sample's measured cells are all alike"
    for one, other in zip(before, after, strict=True):
        assert _described(one) == _described(other)


def assert_keeps_rows(name: str, rows: Sequence[TableRow]) -> None:
    """One row in, one row out; an id doesn't depend on the other rows."""
    module = converter(name)
    before = module.convert(rows)
    assert len(before) == len(rows)
    assert all(row["id"] for row in before)
    backwards = module.convert(list(reversed(rows)))
    assert [row["id"] for row in reversed(backwards)] == [row["id"] for row in before]


def _described(row: dict[str, str]) -> dict[str, str]:
    return {c: cell for c, cell in row.items() if not c.startswith(READABLE) and cell}


def _shuffled(rows: Sequence[TableRow], columns: Sequence[str]) -> list[TableRow]:
    """The rows with the filled cells of each measured column dealt anew."""
    cells = [dict(row.cells) for row in rows]
    deal = random.Random(20261121)  # noqa: S311 - a shuffle, no secret
    for column in columns:
        filled = [row for row in cells if row.get(column)]
        values = [row[column] for row in filled]
        deal.shuffle(values)
        for row, value in zip(filled, values, strict=True):
            row[column] = value
    return [TableRow(line=row.line, cells=c) for row, c in zip(rows, cells, strict=True)]
