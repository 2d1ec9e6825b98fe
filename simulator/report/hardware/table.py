"""Hardware profiles as tables for programs and documents: exact numbers in SI units."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import groupby
from types import MappingProxyType
from typing import Final

from simulator.report.format.table import Cell, Table, as_markdown
from simulator.report.hardware.figures import Figure, Profile, figures
from simulator.report.hardware.text import (
    LEGEND,
    SCHEMA,
    SHAKY,
    deep_figures,
    difference_rows,
    kind_of,
    list_rows,
    same_kind,
)

_MACHINE: Final = ("cpu.threads", "ram", "gpu_count", "gpu", "price.on_demand")
LISTED: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "gpu": (
            *("memory", "memory_bandwidth", "peak.fp32", "peak.bf16", "peak.fp16"),
            *("achievable.bf16", "power"),
        ),
        "cpu": ("cores", "threads", "base_clock", "memory_bandwidth", "pcie_generation"),
        "link": ("kind", "peak", "achievable", "latency"),
        "storage": (
            *("scope", "read_bandwidth", "achievable_read_bandwidth", "read_operations"),
            *("request_limit", "read_latency"),
        ),
        "node": _MACHINE,
        "instance": _MACHINE,
    }
)
"""Figures by which profiles of a kind are compared."""
_LEGEND: Final = f"\\{LEGEND}"


def list_table(things: Sequence[Profile]) -> Table:
    """A row for each profile with the main figures of its kind, and which of them are unverified.

    The head names a figure and its unit: ``memory [B]``.
    """
    keys = tuple(dict.fromkeys(key for thing in things for key in LISTED[kind_of(thing)]))
    found = [{figure.key: figure for figure in figures(thing)} for thing in things]
    return Table(
        head=("name", *(_head(key, found) for key in keys), "unverified"),
        rows=tuple(
            (
                thing.name,
                *(_value(index.get(key)) for key in keys),
                ", ".join(key for key in keys if _shaky(index.get(key))),
            )
            for thing, index in zip(things, found, strict=True)
        ),
    )


def _head(key: str, found: Sequence[Mapping[str, Figure]]) -> str:
    unit = next((index[key].unit for index in found if key in index), None)
    return key if unit is None else f"{key} [{unit.symbol}]"


def _value(figure: Figure | None) -> Cell:
    return None if figure is None else figure.value


def _shaky(figure: Figure | None) -> bool:
    return figure is not None and figure.source is not None and not figure.source.verified


def list_markdown(things: Sequence[Profile]) -> str:
    """A Markdown table for each kind of profile, figures as people write them."""
    tables = (_of_texts(list_rows(kind, list(group))) for kind, group in groupby(things, kind_of))
    text = "\n\n".join(as_markdown(table) for table in tables)
    return f"{text}\n\n{_LEGEND}" if SHAKY in text else text


def _of_texts(rows: Sequence[tuple[str, ...]]) -> Table:
    return Table(head=rows[0], rows=tuple(rows[1:]))


def profile_table(thing: Profile) -> Table:
    """A row for each figure with its unit, source and date, and whether it is verified."""
    return Table(
        head=("figure", "value", "unit", "source", "date", "verified"),
        rows=tuple(_row(figure) for figure in figures(thing)),
    )


def _row(figure: Figure) -> tuple[Cell, ...]:
    source = figure.source
    if source is None:
        return figure.key, figure.value, _symbol(figure), "", "", ""
    said = (source.reference, source.date, "yes" if source.verified else "no")
    return figure.key, figure.value, _symbol(figure), *said


def _symbol(figure: Figure) -> str:
    return "" if figure.unit is None else figure.unit.symbol


def profile_markdown(thing: Profile) -> str:
    """Every figure as people write it, with source and date."""
    rows = []
    for figure in figures(thing):
        key, _, _, source, date, verified = _row(figure)
        rows.append((key, figure.text, source, date, "unverified" if verified == "no" else ""))
    return as_markdown(Table(head=("figure", "value", "source", "date", ""), rows=tuple(rows)))


def difference_markdown(first: Profile, second: Profile) -> str:
    """What differs, figures as people write them; raises as `difference_table` does."""
    text = as_markdown(_of_texts(difference_rows(first, second)))
    return f"{text}\n\n{_LEGEND}" if SHAKY in text else text


def difference_table(first: Profile, second: Profile) -> Table:
    """A row for each figure that differs, with both values and the ratio of second to first.

    Raises
    ------
    PlanError
        If they are of kinds that have nothing in common.
    """
    same_kind(first, second)
    one, other = deep_figures(first), deep_figures(second)
    rows: list[tuple[Cell, ...]] = []
    for key in dict.fromkeys([*one, *other]):
        a, b = one.get(key), other.get(key)
        if a is None or b is None or a.value != b.value:
            symbol = next(_symbol(figure) for figure in (a, b) if figure is not None)
            rows.append((key, _value(a), _value(b), symbol, _ratio(a, b)))
    return Table(head=("figure", first.name, second.name, "unit", "ratio"), rows=tuple(rows))


def _ratio(a: Figure | None, b: Figure | None) -> float | None:
    if a is None or b is None or isinstance(a.value, str) or isinstance(b.value, str):
        return None
    return b.value / a.value if a.value else None


def difference_json(first: Profile, second: Profile) -> str:
    """The same as one JSON object."""
    table = difference_table(first, second)
    names = ("figure", "first", "second", "unit", "ratio")
    differences = [dict(zip(names, row, strict=True)) for row in table.rows]
    tree = {
        "schema": SCHEMA,
        "first": first.name,
        "second": second.name,
        "differences": differences,
    }
    return json.dumps(tree, indent=2, ensure_ascii=False)
