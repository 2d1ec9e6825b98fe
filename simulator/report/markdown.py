"""Rendering of documents and tables as Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final

from simulator.report.document import (
    Actions,
    Bars,
    Cell,
    Code,
    Document,
    Item,
    Notes,
    Rows,
    Section,
    Table,
    rows,
    sides,
)
from simulator.report.text import printable


def render(document: Document) -> str:
    """Render a document as Markdown, without a final newline.

    A document without rows, tables and bars is rendered as its CSV table.
    """
    items = [item for part in document.sections for item in part.items]
    if not any(isinstance(item, Table | Rows | Bars) for item in items):
        return as_markdown(document.table())
    blocks = [block for part in document.preface for block in _section(part)]
    if document.title:
        blocks.append(f"# {escaped(document.title)}")
    if document.question:
        blocks.append(_item(rows(document.question)))
    blocks += [escaped(text) for text in document.verdict]
    blocks += [block for part in document.sections for block in _section(part)]
    return "\n\n".join(blocks)


def _section(part: Section) -> list[str]:
    title = [f"## {escaped(part.title)}"] if part.title else []
    return [*title, *map(_item, part.items)]


def _item(item: Item) -> str:
    match item:
        case Table():
            return as_markdown(item)
        case Rows():
            return as_markdown(Table(head=("", ""), rows=item.rows, align="<<"))
        case Bars():
            cells = tuple((bar.label, bar.value, bar.share, bar.note) for bar in item.bars)
            used = 3 + any(bar.note for bar in item.bars)
            shown = tuple(row[:used] for row in cells)
            return as_markdown(Table(head=("",) * used, rows=shown, align="<>><"[:used]))
        case Code():
            return "\n".join(["```", *item.lines, "```"])
        case Actions() if len(item.texts) > 1:
            return "\n".join(f"{n}. {escaped(text)}" for n, text in enumerate(item.texts, 1))
        case Actions() | Notes():
            return "\n".join(f"- {escaped(text)}" for text in item.texts)


def as_markdown(table: Table) -> str:
    r"""Return a table as Markdown, without a final newline; pipe characters in cells are escaped.

    Examples
    --------
    >>> print(as_markdown(Table(head=("a", "b"), rows=(("x|y", 0.25),))))
    | a | b |
    | :--- | ---: |
    | x\|y | 0.25 |
    """
    head = table.head or ("",) * len(table.rows[0])
    marks = [":---" if side == "<" else "---:" for side in sides(table)]
    lines = [head, tuple(marks), *(tuple(_read(cell) for cell in row) for row in table.rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _read(cell: Cell) -> str:
    text = f"{cell:.6g}" if isinstance(cell, float) else "" if cell is None else str(cell)
    return printable(text).replace("|", "\\|")


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table for a written document, with a final newline.

    Examples
    --------
    >>> print(table(("a", "b"), [("1", "x")]), end="")
    | a | b |
    |---|---|
    | 1 | x |
    """
    lines = ["| " + " | ".join(escaped(cell) for cell in line) + " |" for line in (head, *rows)]
    return "\n".join([lines[0], "|" + "---|" * len(head), *lines[1:]]) + "\n"


def escaped(text: str) -> str:
    """Escape `text` for one cell or line: no line breaks, pipe characters or markup."""
    plain = " ".join(printable(text).split())
    return _MARKUP.sub(r"\\\g<0>", plain)


_MARKUP: Final = re.compile(r"[\\|<*`]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])")
"""Pattern of Markdown markup; an underscore inside a word is not markup."""
