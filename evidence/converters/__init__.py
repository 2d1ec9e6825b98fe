"""Converters: rows of a known table of measurements in, rows of a measurement set out.

``python evidence/convert.py TABLE FILE.csv -o SET`` runs one of them. Each module here is
named like its table and holds three things:

``COLUMNS``
    A `Columns`: what the table has, checked for all rows before anything is converted.
``SHIPPED``
    Name of the shipped set that declares the table (``simulator/data/measured/<SHIPPED>.toml``):
    an imported set takes ``base``, ``family``, ``metrics``, ``absolute``, ``configuration``,
    ``group_by``, ``anchor``, ``baseline``, ``baseline_by``, ``[[fit]]`` and ``[[tolerance]]`` from
    it.
``convert(rows: Sequence[TableRow]) -> list[dict[str, str]]``
    The rows as cells of a set's CSV file, by column (``docs/reference/measurement-sets.md``).

What `convert` has to keep:

- One row in, one row out, in the same order. A row that cannot be predicted comes out with its
  reason in ``exclude``, never left out and never an error: tables of the same format hold rows
  without a precedent.
- ``id`` is unique and stays the same when other rows come or go (made of the row's own cells; the
  the converter numbers those that still repeat: ``name``, ``name~2``).
- A row is converted by its own columns (framework, software, precision, machine), never by the
  name of its series: other series of the same table convert too. What had to be assumed for one
  is in its label ``assumed``, and the converter counts how many rows have which.
- Everything a prediction needs is in columns with a dot (``input.workers``), text with its
  unit as for ``--set``, or follows from ``base``: a scenario in ``data/measured/bases/``, named
  without folder and ``.toml``. Columns without a dot are labels and are never predicted from.
- ``measured.METRIC`` is named as in ``--json`` and holds a bare number in SI units; shares are
  0 to 1. ``spread.METRIC`` is the relative spread of repeats.
- ``anchor`` is ``yes`` for the rows that a group's constants are fitted to, by the rule that the
  shipped set describes in its ``anchor``. The groups are those of the shipped set's ``group_by``,
  so these columns have to be there. An anchor may be chosen by what describes the rows (the
  smallest run, the one without workers), never by what was measured.
- Columns listed in `Columns.measured` feed ``measured.*`` and ``spread.*`` of their own row, and
  nothing else: a test gives them other values and sees the same other cells.
- ``split`` is left to the converter, but for rows that nothing is ever fitted to (``test``): an
anchor
  is ``fit``; a ``split`` column of the table wins for the other rows; with ``--split
  configuration`` the hash of the configuration decides; else ``test``.

The shipped set's CSV file is what the converter writes for the whole table with ``--split
configuration`` and ``-o simulator/data/measured/<SHIPPED>.toml``: a declaration that is there
already is kept, and only the CSV file next to it is written.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """The columns of a table, as far as a converter reads them.

    `required` are columns of every such table, `filled` of every row; `numbers` hold a finite
    number or nothing. `measured` are what was measured by the run, or patterns such as ``au_*``.
    Other columns may be there and are not looked at.
    """

    required: tuple[str, ...]
    numbers: tuple[str, ...] = ()
    filled: tuple[str, ...] = ()
    measured: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TableRow:
    """One row of a table: the line it ends on, and its cells by column, without outer spaces."""

    line: int
    cells: Mapping[str, str]

    def text(self, column: str) -> str:
        """Return the cell of a column; empty where the row or the table lacks it."""
        return self.cells.get(column, "")

    def number(self, column: str) -> float | None:
        """The number in one of `Columns.numbers`, None where nothing stands there.

        Examples
        --------
        >>> row = TableRow(line=2, cells={"batch": "32", "ranks": ""})
        >>> row.number("batch"), row.number("ranks")
        (32.0, None)
        """
        text = self.text(column)
        value = float(text) if text else math.nan
        return value if math.isfinite(value) else None


def is_whole(value: float | None) -> bool:
    """Return whether a number has no parts; one that is not stated has none.

    Examples
    --------
    >>> is_whole(4.0), is_whole(3.7), is_whole(None)
    (True, False, True)
    """
    return value is None or value == math.floor(value)
