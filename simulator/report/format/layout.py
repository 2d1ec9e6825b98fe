"""Plain-text building blocks: sections, aligned columns, bars, wrapped lines."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from typing import Final

WIDTH: Final = 100
"""Columns of a report."""
INDENT: Final = "  "
BAR: Final = 40
"""Columns of a full bar."""


def printable(text: str) -> str:
    r"""`text` with control characters written as escapes, so that input cannot steer a terminal.

    Examples
    --------
    >>> print(printable("a" + chr(27) + "[2J"))
    a\x1b[2J
    """
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def section(title: str, lines: Sequence[str]) -> list[str]:
    """A title with indented lines below it and an empty line above; nothing without lines."""
    return ["", title, *(f"{INDENT}{line}" for line in lines)] if lines else []


def wrapped(text: str, hang: str = INDENT, width: int = WIDTH - len(INDENT)) -> list[str]:
    """`text` broken at spaces into lines of `width`; all but the first start with `hang`."""
    return textwrap.wrap(printable(text), width, subsequent_indent=hang) or [""]


def labelled(rows: Sequence[tuple[str, str]], label: int, width: int = WIDTH) -> list[str]:
    """Names at the left in `label` columns and what stands beside them, wrapped under itself.

    Examples
    --------
    >>> labelled([("load", "10 requests/s; prompts of 1,155")], 5, width=27)
    ['load  10 requests/s;', '      prompts of 1,155']
    """
    found = list[str]()
    for name, text in rows:
        if text:
            first, *more = wrapped(text, "", max(20, width - label - 1))
            found.append(f"{name:<{label}} {first}")
            found += [f"{'':<{label}} {line}" for line in more]
    return found


def columns(rows: Sequence[Sequence[str]], align: str) -> list[str]:
    """Rows as aligned columns two spaces apart.

    Parameters
    ----------
    rows : sequence of rows of cells
        All of one length.
    align : str
        One of ``<`` and ``>`` for each column.

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
    """A bar for `share` of the whole that starts where `before` of it ended.

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
    """A ratio as per cent with one decimal.

    Examples
    --------
    >>> percent(0.4)
    '40.0%'
    """
    return f"{100.0 * share:.1f}%"


def count(number: float) -> str:
    """A count or a rate of events in full, three significant digits below a hundred.

    Examples
    --------
    >>> count(45000.4), count(73.561), count(0.25)
    ('45,000', '73.6', '0.25')
    """
    return f"{number:,.0f}" if abs(number) >= 99.95 else f"{number:.3g}"  # noqa: PLR2004 - rounding edge
