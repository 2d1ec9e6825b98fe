"""Answers whose report has no document yet: one function for each format."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeVar

from simulator.report.document import Cell, Table
from simulator.report.markdown import as_markdown
from simulator.report.render import Format, as_csv
from simulator.report.text import table_lines as as_columns

__all__ = ["Cell", "Format", "Table", "as_columns", "as_csv", "as_markdown", "rendered", "reported"]
Found_contra = TypeVar("Found_contra", contravariant=True)


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
