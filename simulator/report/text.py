"""Plain text for a terminal: documents, and helpers for columns, bars and wrapped lines."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from typing import Final

from simulator.report.document import (
    Actions,
    Bars,
    Cell,
    Code,
    Document,
    Item,
    Notes,
    Row,
    Rows,
    Section,
    Table,
    sides,
)

WIDTH: Final = 100
"""Width of a report [columns]."""
INDENT: Final = "  "
BAR: Final = 40
"""Width of a full bar [columns]."""
NARROWEST_BAR: Final = 6
_BESIDE_BAR: Final = 22
"""Columns that the value and the share of a bar take, with the gaps."""


def render(document: Document, width: int = WIDTH) -> str:
    """Render a document as text, at most `width` columns wide, without a final newline."""
    label = _label(document)
    lines = [line for part in document.preface for line in _section(part, label, width)]
    lines += ["", *wrapped(document.title, width=width)] if document.title else []
    lines += labelled(document.question, label, width)
    if document.verdict:
        lines += ["", *(x for text in document.verdict for x in wrapped(text, "", width))]
    lines += [line for part in document.sections for line in _section(part, label, width)]
    return "\n".join(lines[1:] if lines and not lines[0] else lines)


def _label(document: Document) -> int:
    """Return the width of the labels of rows outside of titled sections."""
    items = [item for part in document.sections if not part.title for item in part.items]
    pairs = [*document.question, *(row for i in items if isinstance(i, Rows) for row in i.rows)]
    return max((len(label) for label, _ in pairs), default=0)


def _section(part: Section, label: int, width: int) -> list[str]:
    if not part.title:
        return ["", *(line for item in part.items for line in item_lines(item, width, label))]
    lines = [line for item in part.items for line in item_lines(item, width - len(INDENT))]
    return ["", part.title, *(f"{INDENT}{line}".rstrip() for line in lines)]


def item_lines(item: Item, width: int = WIDTH, label: int | None = None) -> list[str]:
    """Return an item as lines; labels of rows are `label` columns wide, by default as needed."""
    match item:
        case Table():
            return table_lines(item)
        case Rows():
            wide = 1 + max(len(name) for name, _ in item.rows) if label is None else label
            return labelled(item.rows, wide, width)
        case Bars():
            return _bars(item, width, label)
        case Code() | Notes():
            if isinstance(item, Code):  # not wrapped, so that a copied command works
                return [printable(line) for line in item.lines]
            return [line for text in item.texts for line in _kept(text, width)]
        case Actions():
            several = len(item.texts) > 1
            texts = [f"{n}. {text}" if several else text for n, text in enumerate(item.texts, 1)]
            hang = f"{INDENT} " if several else INDENT
            return [line for text in texts for line in wrapped(text, hang, width)]


def _kept(text: str, width: int) -> list[str]:
    """Wrap a text; an indented text that fits stays unchanged."""
    return [text] if text[:1] == " " and len(text) <= width else wrapped(text, INDENT, width)


def _bars(item: Bars, width: int, label: int | None) -> list[str]:
    wide = max(len(each.label) for each in item.bars)
    before = "" if label is None else " " * (label + 1)
    room = min(BAR, max(NARROWEST_BAR, width - len(before) - wide - _BESIDE_BAR))
    rows = [
        (
            each.label,
            each.value,
            each.share,
            f"{bar(each.length, each.start, room):{room}}",
            each.note,
        )
        for each in item.bars
    ]
    return [f"{before}{line}" for line in columns(rows, "<>><<")]


def printable(text: str) -> str:
    r"""Escape the control characters in `text`, so that input cannot control a terminal.

    Examples
    --------
    >>> print(printable("a" + chr(27) + "[2J"))
    a\x1b[2J
    """
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def section(title: str, lines: Sequence[str]) -> list[str]:
    """Return a blank line, a title and indented lines; an empty list without lines."""
    return ["", title, *(f"{INDENT}{line}" for line in lines)] if lines else []


def wrapped(text: str, hang: str = INDENT, width: int = WIDTH - len(INDENT)) -> list[str]:
    """Wrap `text` at blanks; all lines but the first start with `hang`."""
    lines = textwrap.wrap(printable(text), width, subsequent_indent=hang, break_on_hyphens=False)
    return lines or [""]


def labelled(rows: Sequence[Row], label: int, width: int = WIDTH) -> list[str]:
    """Return rows as lines: labels in the first `label` columns, next to them the wrapped texts.

    Rows without a text are left out.

    Examples
    --------
    >>> labelled([("load", "10 requests/s; prompts of 1,155")], 5, width=27)
    ['load  10 requests/s;', '      prompts of 1,155']
    """
    lines = list[str]()
    for name, text in rows:
        if text:
            first, *more = wrapped(text, "", max(20, width - label - 1))
            lines.append(f"{name:<{label}} {first}")
            lines += [f"{'':<{label}} {line}" for line in more]
    return lines


def table_lines(table: Table) -> list[str]:
    """Return a table as aligned columns."""
    rows = [tuple(printable(_exact(cell)) for cell in row) for row in table.rows]
    return columns([table.head, *rows] if table.head else rows, sides(table))


def _exact(cell: Cell) -> str:
    return "" if cell is None else str(cell)


def columns(rows: Sequence[Sequence[str]], align: str) -> list[str]:
    """Align rows of cells in columns, two blanks apart.

    Parameters
    ----------
    rows : sequence of rows of cells
        Cells of each row; all rows have the same length.
    align : str
        ``<`` or ``>`` for each column.

    Examples
    --------
    >>> columns([("cpu", "99%"), ("storage", "7%")], "<>")
    ['cpu      99%', 'storage   7%']
    """
    widths = [max(len(row[i]) for row in rows) for i in range(len(align))] if rows else []
    return [
        "  ".join(f"{cell:{side}{n}}" for cell, side, n in zip(row, align, widths, strict=True))
        .rstrip()
        for row in rows
    ]  # fmt: skip


def bar(share: float, before: float = 0.0, width: int = BAR) -> str:
    """Return a bar of `share` of the width, starting at the fraction `before`.

    Examples
    --------
    >>> bar(0.5, before=0.25, width=8)
    '  ####'
    """
    start = round(width * _clipped(before))
    end = round(width * _clipped(before + share))
    return " " * start + "#" * (end - start)


def _clipped(share: float) -> float:
    return min(1.0, max(0.0, share)) if math.isfinite(share) else 0.0


def percent(share: float) -> str:
    """Format a ratio as a percentage with one decimal.

    Examples
    --------
    >>> percent(0.4)
    '40.0%'
    """
    return f"{100.0 * share:.1f}%"


def count(number: float) -> str:
    """Format a count or rate of events as an integer; below 100 with three digits.

    Examples
    --------
    >>> count(45000.4), count(73.561), count(0.25)
    ('45,000', '73.6', '0.25')
    """
    return f"{number:,.0f}" if abs(number) >= 99.95 else f"{number:.3g}"  # noqa: PLR2004 - rounding edge
