"""Hardware profiles for reading: tables, every figure of one profile, two side by side."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from types import MappingProxyType
from typing import Final, TypeAlias

from simulator.errors import PlanError
from simulator.report.hardware.figures import Figure, Profile, figures
from simulator.report.text import INDENT, columns, printable, section, wrapped
from simulator.schema.hardware.host import Host
from simulator.schema.hardware.naming import short_name
from simulator.uncertainty.provenance import Source

SCHEMA: Final = 1
"""Version of the JSON that ``plan hardware`` prints."""
NO_PRICE: Final = "no price"
ON_DEMAND: Final = "price.on_demand"
NOTHING: Final = "-"
SHAKY: Final = "*"
LEGEND: Final = f"{SHAKY} unverified: a guess, or worked out from other figures"

Index: TypeAlias = Mapping[str, Figure]
Column: TypeAlias = tuple[str, str, Callable[[Index], str]]
"""Heading, alignment, and the cell made of a profile's figures by key."""


def _at(*keys: str, otherwise: str = NOTHING) -> Callable[[Index], str]:
    """A cell that shows the first of these figures the profile has."""

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
    """The price on demand by the hour, without its unit: the column is headed by it."""
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
        "node": _MACHINE,
        "instance": _MACHINE,
    }
)
"""What a list shows of each kind of profile, after the name."""


def kind_of(thing: Profile) -> str:
    """One of gpu, cpu, link, storage, node and instance: how the profile's name begins."""
    return thing.name.partition("/")[0]


def as_list(things: Sequence[Profile]) -> str:
    """One table for each kind: name, key figures, price; unverified figures are marked."""
    tables = ["\n".join(_table(kind, list(group))) for kind, group in groupby(things, kind_of)]
    text = "\n\n".join([*tables, *_price_dates(things)])
    return f"{text}\n\n{LEGEND}" if SHAKY in text else text


def _price_dates(things: Sequence[Profile]) -> Iterator[str]:
    """Of when the prices of a list are."""
    listed = (figure for thing in things for figure in figures(thing) if figure.key == ON_DEMAND)
    days = [one.source.oldest for one in listed if one.source is not None]
    known = [day for day in days if day is not None]
    if known:
        older = f", {len(days) - len(known)} undated" if len(known) < len(days) else ""
        span = str(known[0]) if len(set(known)) == 1 else f"{min(known)} to {max(known)}"
        yield f"$/h: prices of {span}{older}; plan hardware show NAME has the date of each"


def _table(kind: str, things: Sequence[Profile]) -> list[str]:
    return columns(list_rows(kind, things), "<" + "".join(align for _, align, _ in COLUMNS[kind]))


def list_rows(kind: str, things: Sequence[Profile]) -> list[tuple[str, ...]]:
    """Profiles of one kind below their headings, figures as people write them."""
    shape = COLUMNS[kind]
    rows = [("name", *(heading for heading, _, _ in shape))]
    for thing in things:
        index = {figure.key: figure for figure in figures(thing)}
        rows.append((printable(thing.name), *(cell(index) for _, _, cell in shape)))
    return rows


def as_profile(thing: Profile) -> str:
    """Every figure of a profile with unit, date and source; `unverified` where it is that."""
    said = figures(thing)
    references = list(dict.fromkeys(f.source.reference for f in said if f.source is not None))
    lines = [printable(thing.name), *(wrapped(thing.note, hang="") if thing.note else [])]
    rows = [("figure", "value", "date", "source", "")]
    rows += [_row(figure, references) for figure in said]
    table = columns(rows, "<<<<<")
    lines += ["", *(table[:1])]
    following = [figure.source for figure in said[1:]]
    for figure, line, after in zip(said, table[1:], [*following, None], strict=True):
        lines += [line, *(_note(figure) if figure.source != after else [])]
    if isinstance(thing, Host):
        lines += [*section("What hangs where", _layout(thing)), *_price_missing(thing)]
    listed = [
        line
        for number, reference in enumerate(references, start=1)
        for line in wrapped(f"[{number}] {reference}", hang="    ")
    ]
    return "\n".join([*lines, *section("Sources", listed)])


def _row(figure: Figure, references: Sequence[str]) -> tuple[str, str, str, str, str]:
    source = figure.source
    if source is None:
        return (figure.key, figure.text, "", "", "")
    number = f"[{references.index(source.reference) + 1}]"
    return (figure.key, figure.text, source.date, number, "" if source.verified else "unverified")


def _layout(host: Host) -> list[str]:
    rows = []
    for i, switch in enumerate(host.switches):
        below = (("GPU", switch.gpus), ("NIC", switch.nics), ("drive", switch.drives))
        held = [f"{name} {' '.join(map(str, ids))}" if ids else "" for name, ids in below]
        rows.append((f"switch {i}", f"socket {switch.socket}", switch.uplink.name, *held))
    return columns(rows, "<<<<<<")


def _price_missing(host: Host) -> list[str]:
    return ["", NO_PRICE] if not host.prices else []


def _note(figure: Figure) -> list[str]:
    if figure.source is None or not figure.source.note:
        return []
    return [f"{INDENT * 2}{line}" for line in wrapped(figure.source.note, hang="", width=90)]


def as_difference(first: Profile, second: Profile) -> str:
    """What differs between two profiles, side by side, with the ratio of second to first.

    Raises
    ------
    PlanError
        If they are of kinds that have nothing in common.
    """
    head, *rows = difference_rows(first, second)
    if not rows:
        return f"{first.name} and {second.name} say the same"
    table = "\n".join(columns([head, *rows], "<>>>"))
    text = f"{first.name} and {second.name}, ratio of the second to the first\n\n{table}"
    return f"{text}\n\n{LEGEND}" if SHAKY in text else text


def difference_rows(first: Profile, second: Profile) -> list[tuple[str, ...]]:
    """What differs below a heading, figures as people write them; raises as `same_kind` does."""
    same_kind(first, second)
    head = ("figure", _clipped(_short(first)), _clipped(_short(second)), "ratio")
    return [head, *_differences(deep_figures(first), deep_figures(second))]


def same_kind(first: Profile, second: Profile) -> None:
    """Refuse two profiles that have nothing in common.

    Raises
    ------
    PlanError
        If they are of different kinds.
    """
    if type(first) is not type(second):
        msg = f"{first.name} and {second.name} are different kinds of things: nothing to compare"
        raise PlanError(msg)


def deep_figures(thing: Profile) -> dict[str, Figure]:
    """Figures by key; those of a machine's accelerator and links are among them."""
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


def as_json(things: Sequence[Profile], *, one: bool = False) -> str:
    """Profiles with all their figures in SI units; a list of them, or just the `one`."""
    profiles = [_data(thing) for thing in things]
    data = profiles[0] if one else {"profiles": profiles}
    return json.dumps({"schema": SCHEMA, **data}, indent=2, ensure_ascii=False)


def _data(thing: Profile) -> dict[str, object]:
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
