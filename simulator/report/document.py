"""The report model: an answer of `plan` as a document, before any layout.

Every report module has one function `document` that builds the `Document` of its answer: a title,
what was asked, a verdict, and sections of items. Values in it are texts with their units and, where
they are known, their 80% intervals (`report.numbers`); names are those of `report.labels`. The
document also carries the machine-readable form of the same answer, made only when it is wanted:
the object of ``--json`` (names and SI units that scripts rely on) and the table of ``--csv``.

`report.render` turns a document into text (`report.text`), Markdown (`report.markdown`), CSV or
JSON. The HTML pages (`report.html`) show the same rows, bars and tables next to their drawings,
which do not belong to this model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

Cell: TypeAlias = str | float | int | None
"""A cell of a table: numbers are written so that they read back exactly; None: does not apply."""
Row: TypeAlias = tuple[str, str]
"""A label and its text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Rows of cells under a head; each row is as long as the head, which may be empty.

    `align` has one of ``<`` and ``>`` for each column; by default columns of numbers are aligned
    to the right.
    """

    head: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    align: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """Labelled texts, wrapped below themselves."""

    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """A labelled bar from `start` to `start + length`, both shares of a full bar's width."""

    label: str
    value: str
    share: str
    start: float
    length: float
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bars:
    """Bars below each other."""

    bars: tuple[Bar, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Notes:
    """Sentences, each on lines of its own."""

    texts: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Actions:
    """Things to do, the best first; numbered where there are several."""

    texts: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Code:
    """Commands, or lines of a file."""

    lines: tuple[str, ...]


Item: TypeAlias = Table | Rows | Bars | Notes | Actions | Code


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """Items under a title; without a title they follow what stands above."""

    title: str
    items: tuple[Item, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """An answer.

    Attributes
    ----------
    title : str
        What the answer is about; may be empty.
    question : tuple of Row
        What was asked.
    verdict : tuple of str
        The answer in a few sentences, a paragraph each.
    sections : tuple of Section
        All else.
    preface : tuple of Section
        What stands before the title.
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
    """Return a section of those items that hold anything; nothing if none does."""
    filled = tuple(item for item in items if item is not None and not is_empty(item))
    return (Section(title=title, items=filled),) if filled else ()


def notes(texts: Iterable[str]) -> Notes:
    """Return the texts that are not empty as notes."""
    return Notes(texts=tuple(text for text in texts if text))


def rows(pairs: Iterable[Row]) -> Rows:
    """Return the rows whose text is not empty."""
    return Rows(rows=tuple((label, text) for label, text in pairs if text))


def grid(head: Sequence[str], cells: Iterable[Sequence[Cell]], align: str = "") -> Table | None:
    """Return a table; None without rows."""
    found = tuple(tuple(row) for row in cells)
    return Table(head=tuple(head), rows=found, align=align) if found else None


def is_empty(item: Item) -> bool:
    """Return whether an item holds nothing to show."""
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
    """Return the alignment of each column: as stated, else numbers to the right."""
    wide = len(table.head or table.rows[0])
    return table.align or "".join("<" if _is_text(table.rows, i) else ">" for i in range(wide))


def _is_text(rows: Sequence[Sequence[Cell]], column: int) -> bool:
    return any(isinstance(row[column], str) for row in rows)
