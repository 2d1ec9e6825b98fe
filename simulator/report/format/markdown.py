"""Tables and lines of Markdown documents."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table.

    Examples
    --------
    >>> print(table(("a", "b"), [("1", "x")]), end="")
    | a | b |
    |---|---|
    | 1 | x |
    """
    lines = ["| " + " | ".join(as_line(cell) for cell in line) + " |" for line in (head, *rows)]
    return "\n".join([lines[0], "|" + "---|" * len(head), *lines[1:]]) + "\n"


def as_line(text: str) -> str:
    """`text` as one cell or line: no line ends, no bars, no markup."""
    plain = " ".join(text.split())
    for mark in ("\\", "|", "<", "*", "_", "`"):
        plain = plain.replace(mark, f"\\{mark}")
    return plain
