"""The reports of ``plan hardware``: lists of profiles, one profile, differences, age of prices."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from types import MappingProxyType
from typing import Any, Final, TypeAlias

from simulator.errors import PlanError
from simulator.report.document import Cell, Code, Document, Table, grid, notes, section
from simulator.report.profile_figures import Figure, Profile, figures
from simulator.report.text import INDENT, columns, printable, wrapped
from simulator.results.cost import Listed
from simulator.schema.cost import Price
from simulator.schema.machines import Host, short_name
from simulator.schema.provenance import Source
from simulator.units import USD_PER_SECOND, show

SCHEMA: Final = 1
"""Version of the JSON that ``plan hardware`` prints."""
NO_PRICE: Final = "no price"
ON_DEMAND: Final = "price.on_demand"
NOTHING: Final = "-"
SHAKY: Final = "*"
LEGEND: Final = f"{SHAKY} unverified: estimated, or derived from other figures"

Index: TypeAlias = Mapping[str, Figure]
Column: TypeAlias = tuple[str, str, Callable[[Index], str]]
"""Head, alignment, and a function from a profile's values by key to the cell."""


def _at(*keys: str, otherwise: str = NOTHING) -> Callable[[Index], str]:
    """Return a function that formats the first of these values that a profile has."""

    def cell(index: Index) -> str:
        figure = next((index[key] for key in keys if key in index), None)
        return otherwise if figure is None else f"{figure.text}{_mark(figure.source)}"

    return cell


def _accelerators(index: Index) -> str:
    if "gpu" not in index:
        return NOTHING
    number, device = index["gpu_count"], index["gpu"]
    shaky = _mark(number.source) or _mark(device.source)
    return f"{number.text} x {device.text.removeprefix('gpu/')}{shaky}"


def _price(index: Index) -> str:
    """Return the on-demand price per hour, without unit."""
    return _at(ON_DEMAND, otherwise=NO_PRICE)(index).removeprefix("$").replace("/h", "")


def _mark(source: Source | None) -> str:
    return "" if source is None or source.verified else SHAKY


_MACHINE: Final[tuple[Column, ...]] = (
    ("vCPU", ">", _at("cpu.threads")),
    ("RAM", ">", _at("ram")),
    ("accelerators", "<", _accelerators),
    ("$/h", ">", _price),
)
COLUMNS: Final[Mapping[str, tuple[Column, ...]]] = MappingProxyType(
    {
        "gpu": (
            ("memory", ">", _at("memory")),
            ("bandwidth", ">", _at("memory_bandwidth")),
            ("fp32", ">", _at("peak.fp32")),
            ("bf16 (fp16)", ">", _at("peak.bf16", "peak.fp16")),
            ("achieved", ">", _at("achievable.bf16")),
            ("power", ">", _at("power")),
        ),
        "cpu": (
            ("cores", ">", _at("cores")),
            ("threads", ">", _at("threads")),
            ("clock", ">", _at("base_clock")),
            ("bandwidth", ">", _at("memory_bandwidth")),
            ("PCIe", ">", _at("pcie_generation")),
        ),
        "link": (
            ("kind", "<", _at("kind")),
            ("peak, one way", ">", _at("peak")),
            ("achieved", ">", _at("achievable")),
            ("latency", ">", _at("latency")),
        ),
        "storage": (
            ("scope", "<", _at("scope")),
            ("read", ">", _at("read_bandwidth")),
            ("achieved", ">", _at("achievable_read_bandwidth")),
            ("reads", ">", _at("read_operations", "request_limit")),
            ("latency", ">", _at("read_latency")),
        ),
        "client": (
            ("request", ">", _at("request_time")),
            ("reader", ">", _at("stream_rate")),
            ("CPU/request", ">", _at("request_cpu")),
            ("a core", ">", _at("core_rate")),
        ),
        "node": _MACHINE,
        "instance": _MACHINE,
    }
)
"""Columns of the list of each kind of profile, after the name."""


def kind_of(thing: Profile) -> str:
    """Return the kind of a profile, the first part of its name: gpu, cpu, link, storage, ..."""
    return thing.name.partition("/")[0]


_MACHINE_FIGURES: Final = ("cpu.threads", "ram", "gpu_count", "gpu", "price.on_demand")
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
        "client": ("request_time", "stream_rate", "request_cpu", "core_rate"),
        "node": _MACHINE_FIGURES,
        "instance": _MACHINE_FIGURES,
    }
)
"""Main keys of each kind of profile."""


def list_document(things: Sequence[Profile]) -> Document:
    """Return a table for each kind of profiles as a document; unverified values are marked."""
    tables = [_list_table(kind, list(group)) for kind, group in groupby(things, kind_of)]
    return Document(
        sections=(
            *(part for table in tables for part in section("", table)),
            *section("", notes([*_price_dates(things), _legend(*tables)])),
        ),
        data=lambda: {"schema": SCHEMA, "profiles": [_profile_object(thing) for thing in things]},
        table=lambda: _exact_list(things),
    )


def _legend(*tables: Table | None) -> str:
    """Return the legend of the mark of unverified values; empty if no cell has it."""
    cells = (str(cell) for table in tables if table for row in table.rows for cell in row)
    return LEGEND if any(cell.endswith(SHAKY) for cell in cells) else ""


def _price_dates(things: Sequence[Profile]) -> Iterator[str]:
    listed = (figure for thing in things for figure in figures(thing) if figure.key == ON_DEMAND)
    days = [one.source.oldest for one in listed if one.source is not None]
    known = [day for day in days if day is not None]
    if known:
        older = f", {len(days) - len(known)} undated" if len(known) < len(days) else ""
        span = str(known[0]) if len(set(known)) == 1 else f"{min(known)} to {max(known)}"
        yield f"$/h: prices of {span}{older}; plan hardware show NAME has the date of each"


def _list_table(kind: str, things: Sequence[Profile]) -> Table | None:
    shape = COLUMNS[kind]
    lines = []
    for thing in things:
        index = {figure.key: figure for figure in figures(thing)}
        lines.append((printable(thing.name), *(cell(index) for _, _, cell in shape)))
    head = ("name", *(heading for heading, _, _ in shape))
    return grid(head, lines, "<" + "".join(align for _, align, _ in shape))


def _exact_list(things: Sequence[Profile]) -> Table:
    """Return a row for each profile: the main values of its kind, and the unverified keys.

    The head names keys with their unit: ``memory [B]``.
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


def profile_document(thing: Profile) -> Document:
    """Return all values of a profile as a document, with unit, date and source."""
    every = figures(thing)
    references = list(dict.fromkeys(f.source.reference for f in every if f.source is not None))
    return Document(
        title=printable(thing.name),
        verdict=(thing.note,) if thing.note else (),
        sections=(
            *section("", Code(lines=tuple(_figure_lines(every, references)))),
            *(_host_sections(thing) if isinstance(thing, Host) else ()),
            *section("Sources", notes(f"[{n}] {text}" for n, text in enumerate(references, 1))),
        ),
        data=lambda: {"schema": SCHEMA, **_profile_object(thing)},
        table=lambda: Table(
            head=("figure", "value", "unit", "source", "date", "verified"),
            rows=tuple(map(_exact_cells, every)),
        ),
    )


def _figure_lines(every: Sequence[Figure], references: Sequence[str]) -> Iterator[str]:
    """Yield the values as aligned lines; the note of a source is below its last value."""
    head = ("figure", "value", "date", "source", "")
    first, *lines = columns([head, *(_row(figure, references) for figure in every)], "<<<<<")
    yield first
    following = [*(figure.source for figure in every[1:]), None]
    for figure, line, after in zip(every, lines, following, strict=True):
        yield line
        if figure.source != after and figure.source is not None and figure.source.note:
            for text in wrapped(figure.source.note, hang="", width=90):
                yield f"{INDENT * 2}{text}"


def _host_sections(host: Host) -> tuple[Any, ...]:
    return (
        *section("PCIe topology", grid((), _layout(host), "<<<<<<")),
        *section("", notes([] if host.prices else [NO_PRICE])),
    )


def _row(figure: Figure, references: Sequence[str]) -> tuple[str, str, str, str, str]:
    source = figure.source
    if source is None:
        return (figure.key, figure.text, "", "", "")
    number = f"[{references.index(source.reference) + 1}]"
    return (figure.key, figure.text, source.date, number, "" if source.verified else "unverified")


def _layout(host: Host) -> list[tuple[str, ...]]:
    lines = []
    for i, switch in enumerate(host.switches):
        below = (("GPU", switch.gpus), ("NIC", switch.nics), ("drive", switch.drives))
        held = [f"{name} {' '.join(map(str, ids))}" if ids else "" for name, ids in below]
        lines.append((f"switch {i}", f"socket {switch.socket}", switch.uplink.name, *held))
    return lines


def difference_document(first: Profile, second: Profile) -> Document:
    """Return the differences between two profiles as a document, with the ratio of second to first.

    Raises
    ------
    PlanError
        If they are of different kinds.
    """
    if type(first) is not type(second):
        msg = f"{first.name} and {second.name} are different kinds of things: nothing to compare"
        raise PlanError(msg)
    head = ("figure", _clipped(_short(first)), _clipped(_short(second)), "ratio")
    table = grid(head, _differences(deep_figures(first), deep_figures(second)), "<>>>")
    names = f"{first.name} and {second.name}"
    return Document(
        title=f"{names}, ratio of the second to the first" if table else f"{names} are the same",
        sections=(*section("", table), *section("", notes([_legend(table)]))),
        data=lambda: _difference_object(first, second),
        table=lambda: _difference_table(first, second),
    )


def deep_figures(thing: Profile) -> dict[str, Figure]:
    """Return the values of a profile by key; for a machine also of its accelerator and links."""
    found = {figure.key: figure for figure in figures(thing)}
    parts = ("gpu", "host_link", "peer_link") if isinstance(thing, Host) else ()
    for name in parts:
        part = getattr(thing, name)
        if part is not None:
            found |= {f"{name}.{figure.key}": figure for figure in figures(part)}
    return found


def _differences(first: Index, second: Index) -> Iterator[tuple[str, str, str, str]]:
    for key in dict.fromkeys([*first, *second]):
        one, other = first.get(key), second.get(key)
        if one is None or other is None or one.value != other.value:
            yield key, _side(one), _side(other), _ratio(one, other)


def _short(thing: Profile) -> str:
    return short_name(printable(thing.name))


def _side(figure: Figure | None) -> str:
    return NOTHING if figure is None else _clipped(f"{figure.text}{_mark(figure.source)}")


def _clipped(text: str, longest: int = 28) -> str:
    return text if len(text) <= longest else f"{text[: longest - 3]}..."


def _ratio(one: Figure | None, other: Figure | None) -> str:
    if one is None or other is None or isinstance(one.value, str) or isinstance(other.value, str):
        return ""
    return f"{other.value / one.value:.3g}" if one.value and math.isfinite(one.value) else ""


def _difference_table(first: Profile, second: Profile) -> Table:
    one, other = deep_figures(first), deep_figures(second)
    lines: list[tuple[Cell, ...]] = []
    for key in dict.fromkeys([*one, *other]):
        a, b = one.get(key), other.get(key)
        if a is None or b is None or a.value != b.value:
            symbol = next(_symbol(figure) for figure in (a, b) if figure is not None)
            lines.append((key, _value(a), _value(b), symbol, _exact_ratio(a, b)))
    return Table(head=("figure", first.name, second.name, "unit", "ratio"), rows=tuple(lines))


def _exact_ratio(a: Figure | None, b: Figure | None) -> float | None:
    if a is None or b is None or isinstance(a.value, str) or isinstance(b.value, str):
        return None
    return b.value / a.value if a.value else None


def _difference_object(first: Profile, second: Profile) -> dict[str, Any]:
    names = ("figure", "first", "second", "unit", "ratio")
    lines = _difference_table(first, second).rows
    return {
        "schema": SCHEMA,
        "first": first.name,
        "second": second.name,
        "differences": [dict(zip(names, row, strict=True)) for row in lines],
    }


def _exact_cells(figure: Figure) -> tuple[Cell, ...]:
    source = figure.source
    if source is None:
        return figure.key, figure.value, _symbol(figure), "", "", ""
    said = (source.reference, source.date, "yes" if source.verified else "no")
    return figure.key, figure.value, _symbol(figure), *said


def _symbol(figure: Figure) -> str:
    return "" if figure.unit is None else figure.unit.symbol


def _profile_object(thing: Profile) -> dict[str, object]:
    return {
        "name": thing.name,
        "kind": kind_of(thing),
        "note": thing.note,
        "figures": {figure.key: _figure_data(figure) for figure in figures(thing)},
        "switches": _switch_data(thing) if isinstance(thing, Host) else [],
    }


def _switch_data(host: Host) -> list[dict[str, object]]:
    return [
        {
            "socket": switch.socket,
            "uplink": switch.uplink.name,
            "gpus": switch.gpus,
            "nics": switch.nics,
            "drives": switch.drives,
        }
        for switch in host.switches
    ]


def _figure_data(figure: Figure) -> dict[str, object]:
    source = figure.source
    return {
        "value": figure.value,
        "unit": None if figure.unit is None else figure.unit.symbol,
        "source": None if source is None else source.reference,
        "date": None if source is None else source.date,
        "verified": None if source is None else source.verified,
        "note": "" if source is None else source.note,
    }


def old_price_line(one: Listed, age: str) -> str:
    """Return a warning about an old price.

    Parameters
    ----------
    one : Listed
        The price.
    age : str
        The maximum age, as the user wrote it.
    """
    price, stated = one.price, one.price.source.date
    what = f"warning: the {price.purchase} price of {one.machine} in {price.region}"
    if price.source.oldest is None:
        return f"{what} may be older than {age}: {stated}"
    if price.source.oldest.isoformat() == stated:
        return f"{what} is older than {age}: of {stated}"
    return f"{what} may be older than {age}: of {_day(stated)}"


def moved_price_line(machine: str, before: Price, after: Price) -> str:
    """Return a note on a new default price, which applies to jobs without a region."""
    price = show(after.usual, USD_PER_SECOND)
    now = f"{machine} {after.purchase} now costs {price}, the price of {after.region}"
    old = f"{before.region} is of {_day(before.source.date)}"
    return f"{now}, unless cost.region is set ({old})"


def _day(stated: str) -> str:
    later = " or later" if stated.startswith(">=") else ""
    return f"{stated.removeprefix('>=')}{later}"
