"""Documents as text, Markdown, CSV or JSON."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Mapping
from enum import StrEnum

from simulator.report.document import Cell, Document, Table
from simulator.report.text import WIDTH


class Format(StrEnum):
    """The format of an answer on standard output."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"
    MARKDOWN = "markdown"


def render(document: Document, form: Format | str, *, width: int = WIDTH) -> str:
    """Return a document in a format, without a final line end.

    Parameters
    ----------
    document : Document
        The answer.
    form : Format or str
        The format, or its name.
    width : int
        Columns of text.
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

            return text.render(document, width)


def as_json(tree: object) -> str:
    """Return JSON text without NaN or Infinity: numbers that are not finite become null."""
    return json.dumps(_finite(tree), indent=2, ensure_ascii=False, allow_nan=False)


def _finite(value: object) -> object:
    if isinstance(value, Mapping):
        return {str(key): _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def as_csv(table: Table) -> str:
    r"""Return the table as CSV, without a final line end.

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
