"""The report model: the result of a command as a document, independent of layout.

Every report module has a function `document` that builds the `Document` of its result: title,
settings, verdict, and sections of items. Values in it are text with units and, where known, 80%
intervals (`report.numbers`); names are those of `report.labels`. The document also has functions
that return the machine-readable form of the same result: the object of ``--json`` (names and SI
units that scripts rely on) and the table of ``--csv``.

`render` converts a document to text (`report.text`), Markdown (`report.markdown`), CSV or JSON. The
HTML pages (`report.html`) contain the same items next to drawings, which are not part of this
model.
"""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Any, TypeAlias, TypeVar

from simulator.records import dataclass

Thing = TypeVar("Thing")
Columns: TypeAlias = Mapping[str, Callable[[Thing], Any]]
"""Columns of a table, or keys of an object: getters of the value by name."""
Cell: TypeAlias = str | float | int | None
"""A cell of a table: numbers are written so that they read back exactly; None: does not apply."""
Row: TypeAlias = tuple[str, str]
"""A label and its text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Rows of cells under a head; the head may be empty, otherwise each row is as long as it.

    `align` has ``<`` or ``>`` for each column; by default columns of numbers are aligned to the
    right.
    """

    head: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    align: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """Pairs of a label and a text; long texts are wrapped."""

    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """A labelled bar from `start` to `start + length`, fractions of the full width.

    `share` is a text next to `value`.
    """

    label: str
    value: str
    share: str
    start: float
    length: float
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bars:
    """Bars in rows below each other."""

    bars: tuple[Bar, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Notes:
    """Sentences, each in a line of its own."""

    texts: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Actions:
    """Recommended actions, best first; numbered if there are several."""

    texts: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Code:
    """Commands, or lines of a file."""

    lines: tuple[str, ...]


Item: TypeAlias = Table | Rows | Bars | Notes | Actions | Code


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """Items under a title; without a title they continue the preceding section."""

    title: str
    items: tuple[Item, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """The result of a command.

    Attributes
    ----------
    title : str
        Name of the scenario, or topic of the result; may be empty.
    question : tuple of Row
        The settings that the result is for.
    verdict : tuple of str
        The result in a few sentences, a paragraph each.
    sections : tuple of Section
        The details.
    preface : tuple of Section
        Sections before the title.
    data : callable
        Returns the object that ``--json`` prints: dictionaries, lists, strings, finite numbers.
    table : callable
        Returns the table that ``--csv`` prints, in SI units.
    """

    title: str = ""
    question: tuple[Row, ...] = ()
    verdict: tuple[str, ...] = ()
    sections: tuple[Section, ...] = ()
    preface: tuple[Section, ...] = ()
    data: Callable[[], Mapping[str, Any] | Sequence[Any]]
    table: Callable[[], Table]


def section(title: str, *items: Item | None) -> tuple[Section, ...]:
    """Return a tuple with a section of the items that are not empty; an empty tuple if all are."""
    filled = tuple(item for item in items if item is not None and not is_empty(item))
    return (Section(title=title, items=filled),) if filled else ()


def notes(texts: Iterable[str]) -> Notes:
    """Return the non-empty texts as notes."""
    return Notes(texts=tuple(text for text in texts if text))


def rows(pairs: Iterable[Row]) -> Rows:
    """Return the pairs whose text is not empty as rows."""
    return Rows(rows=tuple((label, text) for label, text in pairs if text))


def grid(head: Sequence[str], cells: Iterable[Sequence[Cell]], align: str = "") -> Table | None:
    """Return a table; None if it has no rows."""
    rows = tuple(tuple(row) for row in cells)
    return Table(head=tuple(head), rows=rows, align=align) if rows else None


def tabled(columns: Columns[Thing], things: Iterable[Thing], align: str = "") -> Table:
    """Return a table with a row for each of `things`; `columns` maps heads to getters.

    Examples
    --------
    >>> tabled({"value": abs, "text": str}, [-1, 2]).rows
    ((1, '-1'), (2, '2'))
    """
    rows = tuple(tuple(value(thing) for value in columns.values()) for thing in things)
    return Table(head=tuple(columns), rows=rows, align=align)


def record(columns: Columns[Thing], thing: Thing) -> dict[str, Any]:
    """Apply the getter of each column to `thing`; return the values by name.

    Examples
    --------
    >>> record({"value": abs, "text": str}, -1)
    {'value': 1, 'text': '-1'}
    """
    return {name: value(thing) for name, value in columns.items()}


def listed(texts: Iterable[str], most: int, rest: str = "{} more") -> list[str]:
    """Return the first `most` texts, and a line with the number of others, formatted by `rest`.

    Examples
    --------
    >>> listed("abcd", 2), listed("ab", 2)
    (['a', 'b', '2 more'], ['a', 'b'])
    """
    every = list(texts)
    more = len(every) - most
    return [*every[:most], *([rest.format(f"{more:,}")] if more > 0 else [])]


def some_of(names: Sequence[str], most: int) -> str:
    """Join the first `most` names with commas, and add the number of others.

    Examples
    --------
    >>> some_of(("a", "b", "c"), 2), some_of(("a",), 2)
    ('a, b and 1 more', 'a')
    """
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return f"{', '.join(names[:most])}{more}"


def is_empty(item: Item) -> bool:
    """Return True if an item has no content."""
    match item:
        case Table() | Rows():
            return not item.rows
        case Bars():
            return not item.bars
        case Code():
            return not item.lines
        case _:
            return not item.texts


def sides(table: Table) -> str:
    """Return the alignment of each column; by default columns of numbers to the right."""
    wide = len(table.head or table.rows[0])
    return table.align or "".join("<" if _is_text(table.rows, i) else ">" for i in range(wide))


def _is_text(rows: Sequence[Sequence[Cell]], column: int) -> bool:
    return any(isinstance(row[column], str) for row in rows)


class Format(StrEnum):
    """Output format of a result."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"
    MARKDOWN = "markdown"


def render(document: Document, form: Format | str, *, width: int | None = None) -> str:
    """Render a document in a format, without a final newline.

    Parameters
    ----------
    document : Document
        The document.
    form : Format or str
        The format, or its name.
    width : int
        Width of text in columns; by default that of a report.
    """
    match Format(form):
        case Format.JSON:
            return as_json(document.data())
        case Format.CSV:
            return as_csv(document.table())
        case Format.MARKDOWN:
            from simulator.report import markdown

            return markdown.render(document)
        case _:
            from simulator.report import text

            return text.render(document, width or text.WIDTH)


def as_json(tree: object) -> str:
    """Return JSON text in which numbers that are not finite are null."""
    return json.dumps(_finite(tree), indent=2, ensure_ascii=False, allow_nan=False)


def _finite(value: object) -> object:
    if isinstance(value, Mapping):
        return {str(key): _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def as_csv(table: Table) -> str:
    r"""Return a table as CSV, without a final newline.

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


def _exact(cell: Cell) -> str:
    return "" if cell is None else str(cell)
