"""One table in every form: aligned for a terminal, CSV for programs, Markdown for documents."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol, TypeAlias, TypeVar

from simulator.report.format.layout import columns, printable

Cell: TypeAlias = str | float | int | None
"""Numbers are written so that they read back exactly; None: does not apply."""
Found_contra = TypeVar("Found_contra", contravariant=True)


class Format(StrEnum):
    """How a verb prints its answer."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"
    MARKDOWN = "markdown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Rows of cells under a head; each row is as long as the head."""

    head: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]


def rendered(
    form: Format,
    *,
    text: Callable[[], str],
    tree: Callable[[], str],
    table: Callable[[], Table],
    page: Callable[[], str] | None = None,
) -> str:
    """The answer in the form asked for; only that one is made.

    Parameters
    ----------
    form : Format
        Which.
    text, tree, table : callable
        The report for people, the JSON text, and the figures as a table.
    page : callable, optional
        The Markdown where it has other cells than the CSV, such as figures with their units; by
        default that of the table.
    """
    if form is Format.TABLE:
        return text()
    if form is Format.JSON:
        return tree()
    if form is Format.CSV:
        return as_csv(table())
    return as_markdown(table()) if page is None else page()


class Report(Protocol[Found_contra]):
    """What a report module offers of what was found."""

    def as_text(self, found: Found_contra, /) -> str:
        """The report for people."""

    def as_object(self, found: Found_contra, /) -> Mapping[str, Any]:
        """The figures as plain dictionaries, lists, strings and numbers."""

    def as_table(self, found: Found_contra, /) -> Table:
        """The figures as a table."""

    def as_page(self, found: Found_contra, /) -> str:
        """The Markdown, with units."""


def reported(report: Report[Found_contra], found: Found_contra, form: Format) -> str:
    """What was found, by its report, in the form asked for."""
    return rendered(
        form,
        text=lambda: report.as_text(found),
        tree=lambda: json.dumps(
            report.as_object(found), indent=2, ensure_ascii=False, allow_nan=False
        ),
        table=lambda: report.as_table(found),
        page=lambda: report.as_page(found),
    )


def as_csv(table: Table) -> str:
    r"""The table as CSV, without a final line end.

    Examples
    --------
    >>> as_csv(Table(head=("a", "b"), rows=(("x, y", 0.1), (None, 2))))
    'a,b\n"x, y",0.1\n,2'
    """
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(table.head)
    writer.writerows([_exact(cell) for cell in row] for row in table.rows)
    return out.getvalue().rstrip("\n")


def as_markdown(table: Table) -> str:
    r"""The table as Markdown, without a final line end; bars in cells are escaped.

    Examples
    --------
    >>> print(as_markdown(Table(head=("a", "b"), rows=(("x|y", 0.25),))))
    | a | b |
    | :--- | ---: |
    | x\|y | 0.25 |
    """
    marks = [":---" if _is_text(table.rows, i) else "---:" for i in range(len(table.head))]
    lines = [table.head, tuple(marks), *(tuple(_read(cell) for cell in row) for row in table.rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def as_columns(table: Table) -> list[str]:
    """The table as aligned lines for a terminal, numbers to the right."""
    align = "".join("<" if _is_text(table.rows, i) else ">" for i in range(len(table.head)))
    rows = [tuple(printable(_exact(cell)) for cell in row) for row in table.rows]
    return columns([table.head, *rows], align)


def _exact(cell: Cell) -> str:
    return "" if cell is None else str(cell)


def _read(cell: Cell) -> str:
    text = f"{cell:.6g}" if isinstance(cell, float) else _exact(cell)
    return printable(text).replace("|", "\\|")


def _is_text(rows: Sequence[Sequence[Cell]], column: int) -> bool:
    return any(isinstance(row[column], str) for row in rows)
