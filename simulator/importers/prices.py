"""Catalogues of cloud prices: CSV with the columns of SkyPilot's ``vms.csv``, for profiles.

Rows with errors that were seen in SkyPilot's catalogues of 2025 and 2026, or in the price lists
behind them, are left out: placeholders, spot prices that are no offers, hosts priced without their
accelerators, local zones listed among those of a region.
"""

from __future__ import annotations

import csv
import difflib
import io
import math
import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Final

from simulator.importers.foreign import read_text
from simulator.reading.hardware.catalogue import Catalogue
from simulator.reading.reading import fail
from simulator.reading.shipped import DATA
from simulator.schema.cost import Price, Purchase, price_of
from simulator.schema.machines import Host
from simulator.uncertainty.provenance import Source
from simulator.units import BYTE, HOUR, UsdPerSecond, parse

MACHINE: Final = "InstanceType"
ACCELERATOR: Final = "AcceleratorName"
COUNT: Final = "AcceleratorCount"
THREADS: Final = "vCPUs"
MEMORY: Final = "MemoryGiB"
PRICE: Final = "Price"
SPOT: Final = "SpotPrice"
REGION: Final = "Region"
ZONE: Final = "AvailabilityZone"

_NEEDED: Final = (MACHINE, PRICE, REGION)
_READ: Final[tuple[str, ...]] = (*_NEEDED, ACCELERATOR, COUNT, THREADS, MEMORY, SPOT, ZONE)
_WANTED: Final = "a CSV of prices"
_NOTHING: Final = frozenset({"", "nan", "none", "null", "na", "n/a", "-"})


class OddNumber(ValueError):  # noqa: N818 - reads as the sentence it prints
    """A field that should hold a number above zero, and holds something else."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One row; `cells` holds the columns that plan reads, blanks cut off."""

    line: int
    cells: Mapping[str, str]
    ragged: bool = False

    def text(self, column: str) -> str:
        """Return the text of a column; empty where the row or the file has none."""
        return self.cells.get(column, "")

    def number(self, column: str) -> float | None:
        """Return the number of a column, or None where it is left empty.

        Raises
        ------
        OddNumber
            If it isn't a number of zero or above.
        """
        text = self.text(column)
        if text.lower() in _NOTHING:
            return None
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not 0.0 <= value < math.inf:
            msg = f"{column} is not a number: {text[:40]!r}"
            raise OddNumber(msg)
        return value


def read_rows(path: Path) -> tuple[Row, ...]:
    """Return all rows of a catalogue.

    Raises
    ------
    InputError
        If the file is missing, a folder, empty, binary or no CSV, has a heading without the
        columns `InstanceType`, `Price` and `Region` or with one of them twice, or has no rows.
    """
    origin = str(path)
    rows = csv.reader(io.StringIO(read_text(path, _WANTED)), strict=True)
    found: list[Row] = []
    try:
        heading = [cell.strip() for cell in next(rows)]
        _check(heading, origin)
        found.extend(
            _row(heading, cells, rows.line_num)
            for cells in rows
            if any(cell.strip() for cell in cells)
        )
    except (csv.Error, StopIteration) as error:
        reason = str(error) or "it has no heading"
        fail(origin, f"is not {_WANTED}: {reason}", line=rows.line_num)
    if not found:
        fail(origin, "has a heading and no rows")
    return tuple(found)


def _row(heading: list[str], cells: list[str], line: int) -> Row:
    named = dict(zip(heading, (cell.strip() for cell in cells), strict=False))
    read = {column: named[column] for column in _READ if column in named}
    return Row(line=line, cells=read, ragged=len(cells) != len(heading))


def _check(heading: list[str], origin: str) -> None:
    missing = [column for column in _NEEDED if column not in heading]
    if missing:
        wanted = f"it needs {', '.join(_NEEDED)}, and {SPOT} for spot prices"
        hint = f"{wanted}; the file has {_shown(heading)}"
        fail(origin, f"has no column {' and no column '.join(missing)}", line=1, hint=hint)
    for column in _READ:
        if heading.count(column) > 1:
            fail(origin, f"has the column {column} twice", line=1)


def _shown(heading: list[str]) -> str:
    most = 8
    more = f" and {len(heading) - most} more" if len(heading) > most else ""
    return ", ".join(repr(cell[:30]) for cell in heading[:most]) + more


def accelerator_rows(rows: tuple[Row, ...]) -> Iterator[Row]:
    """Return the rows that price accelerators without a machine, as Google's catalogue has them."""
    return (row for row in rows if not row.text(MACHINE) and row.text(ACCELERATOR))


GIB: Final = parse("1 GiB", BYTE)
MIN_SPOT_SHARE: Final = 0.1
"""Share of the price on demand below which AWS lists no spot price; a price of just that share is
no offer (SkyPilot's AWS catalogue, read 2026)."""
MAX_PRICE_RATIO: Final = 5.0
"""Ratio to the price known so far from which on a price is taken for a mistake: catalogues that
price a Google host without its accelerators are off by 9 (a3-highgpu-1g, 1.18 for 11.06)."""
PLACEHOLDER_PRICE: Final = 700.0
"""What SkyPilot's Google catalogue writes for accelerators whose price it does not know [$/h]."""

_SAME_PRICE: Final = 1e-6
_RAM_TOLERANCE: Final = 0.1
_AWS_ZONE: Final = re.compile(r"[a-z]+-[a-z]+(?:-[a-z]+)?-\d+[a-z]|[a-z]+\d+-az\d+")
_RETIRED: Final = re.compile(r"_Promo$", re.IGNORECASE)


def faults(row: Row, host: Host | None, cloud: str) -> Iterator[str]:
    """Return the reason why a row cannot price its machine; None for a sound row.

    Parameters
    ----------
    row : Row
        The row of a machine.
    host : Host or None
        The machine's profile; None is not held against the row.
    cloud : str
        Folder of the cloud, such as ``aws``.
    """
    if row.ragged:
        yield "has more or fewer fields than the heading"
        return
    if not row.text(REGION):
        yield "names no region"
    if _RETIRED.search(row.text(MACHINE)):
        yield "is a retired promotion"
    if cloud == "aws" and row.text(ZONE) and not _AWS_ZONE.fullmatch(row.text(ZONE)):
        yield "is of a local zone, which is not a zone of the region"
    if host is not None:
        yield from _another_machine(row, host)


def _another_machine(row: Row, host: Host) -> Iterator[str]:
    """Return the difference between the row's machine and the profile of that name."""
    try:
        threads, count, ram = row.number(THREADS), row.number(COUNT), row.number(MEMORY)
    except OddNumber as odd:
        yield str(odd)
        return
    if threads and not math.isclose(threads, host.cpu.threads):
        yield f"has {threads:g} vCPUs, its profile {host.cpu.threads:g}"
    if count is not None and not math.isclose(count, host.gpu_count):
        yield f"has {count:g} accelerators, its profile {host.gpu_count}"
    if ram and not math.isclose(ram * GIB, host.ram, rel_tol=_RAM_TOLERANCE):
        yield f"has {ram:g} GiB of RAM, its profile {host.ram / GIB:g}"


def price_fault(row: Row, known: UsdPerSecond | None) -> str | None:
    """Return the reason why the on-demand price of a row cannot be used; None where it can.

    Parameters
    ----------
    row : Row
        The row of a machine.
    known : float or None
        The price on demand that the machine's profile has so far [$/s].
    """
    try:
        price = row.number(PRICE)
    except OddNumber as odd:
        return str(odd)
    if price is None:
        return "has no price on demand"
    if price == 0.0:
        return "has a price of zero"
    if price == PLACEHOLDER_PRICE:
        return f"has {PLACEHOLDER_PRICE:.2f}, a placeholder, for its price"
    if known and not 1.0 / MAX_PRICE_RATIO < price / (known * HOUR) < MAX_PRICE_RATIO:
        return f"is ${price:g}/h, far from the ${known * HOUR:.4g}/h known"
    return None


def spot_fault(row: Row) -> str | None:
    """Return the reason why a spot price is no offer; None where it is one, or there is none."""
    try:
        spot, price = row.number(SPOT), row.number(PRICE)
    except OddNumber as odd:
        return str(odd) if SPOT in str(odd) else None
    if spot is None:
        return None
    if spot == 0.0:
        return "has a spot price of zero"
    if spot == PLACEHOLDER_PRICE:
        return f"has {PLACEHOLDER_PRICE:.2f}, a placeholder, for its spot price"
    return None if not price else _beside(spot, price)


def _beside(spot: float, price: float) -> str | None:
    if math.isclose(spot, price, rel_tol=_SAME_PRICE):
        return "has the price on demand for its spot price: no offer"
    if spot > price:
        return "has a spot price above the one on demand"
    if math.isclose(spot, MIN_SPOT_SHARE * price, rel_tol=_SAME_PRICE):
        return "has a tenth of the price on demand for its spot price: a floor, no offer"
    return None


MAX_SHOWN: Final = 5
GOOGLE: Final = "gcp"
_LISTS: Final = DATA / "price_lists.toml"
_ATTACHED: Final = re.compile(r"(?P<host>.+)-(?P<count>\d+)x(?P<name>[\w-]+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """Rows of one machine (or of none) that were left out, or whose spot price was, and why."""

    machine: str
    reason: str
    lines: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    """A way to buy a machine whose usual price, that of no region asked for, is another one now."""

    machine: str
    before: Price
    after: Price


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """Prices of a catalogue, with what was left out.

    `machines` holds, by full name, all prices a machine has now: those read instead of the same
    ones it had. `moved` are prices that a bill without a region now rests on, of another region
    than before. `read` counts the prices read, `unknown` the names of machines without a profile.
    """

    machines: Mapping[str, tuple[Price, ...]]
    moved: tuple[Moved, ...]
    read: int
    left_out: tuple[LeftOut, ...]
    unknown: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Offer:
    """One price of one machine in one zone [$/h]."""

    machine: str
    purchase: Purchase
    region: str
    usd_per_hour: float


@dataclass(frozen=True, slots=True)
class _Fault:
    machine: str
    reason: str
    line: int


def read_prices(
    path: Path,
    catalogue: Catalogue,
    *,
    cloud: str,
    source: Source,
    regions: Sequence[str] = (),
) -> Prices:
    """Return the prices that a CSV has for machines of one cloud.

    Parameters
    ----------
    path : pathlib.Path
        The file, with the columns of SkyPilot's ``vms.csv``; may be gzip. Prices are $/h.
    catalogue : Catalogue
        Where the machines and the prices they have so far are looked up.
    cloud : str
        Folder of the cloud's machines, such as ``aws``.
    source : Source
        What the prices name as their source, and when they were read.
    regions : sequence of str
        Regions whose prices are taken; all if empty.

    Raises
    ------
    InputError
        If the file is no catalogue of prices, or none of its prices can be used.
    """
    rows = read_rows(path)
    hosts = _machines(catalogue, cloud)
    known = {_base(name).lower() for name in hosts}
    named = [row for row in rows if row.text(MACHINE)]
    unknown = {row.text(MACHINE) for row in named if row.text(MACHINE).lower() not in known}
    taken = _taken(rows, regions, str(path))
    found = list(_judged(taken, hosts, cloud))
    offers = [one for one in found if isinstance(one, _Offer)]
    left_out = _grouped(one for one in found if isinstance(one, _Fault))
    if not offers:
        _fail_useless(path, left_out, unknown, hosts)
    blocks = _ranges(offers, source)
    home = Counter(host.prices[0].region for host in hosts.values() if host.prices)
    machines = {
        hosts[name].name: _merged(hosts[name].prices, new, home) for name, new in blocks.items()
    }
    moved = tuple(
        one
        for name in blocks
        for one in _moved(hosts[name].name, hosts[name].prices, machines[hosts[name].name])
    )
    read = sum(map(len, blocks.values()))
    return Prices(
        machines=machines, moved=moved, read=read, left_out=left_out, unknown=len(unknown)
    )


def _taken(rows: tuple[Row, ...], regions: Sequence[str], origin: str) -> tuple[Row, ...]:
    """Return the rows of the regions asked for."""
    there = {row.text(REGION) for row in rows}
    for region in regions:
        if region not in there:
            near = difflib.get_close_matches(region, there, n=3)
            hint = f"did you mean {' or '.join(near)}?" if near else None
            fail(origin, f"has no prices in the region {region!r}", hint=hint)
    return tuple(row for row in rows if not regions or row.text(REGION) in regions)


def _machines(catalogue: Catalogue, cloud: str) -> dict[str, Host]:
    start = f"instance/{cloud}/"
    names = [name for name in catalogue.names("instance") if name.startswith(start)]
    return {name.removeprefix(start): catalogue.host(name) for name in names}


def _base(name: str) -> str:
    attached = _ATTACHED.fullmatch(name)
    return name if attached is None else attached["host"]


def _judged(
    rows: tuple[Row, ...], hosts: Mapping[str, Host], cloud: str
) -> Iterator[_Offer | _Fault]:
    """Return each row as offers and faults, for every machine it is a part of."""
    apart = _apart(rows)
    wanted: dict[str, list[str]] = {}
    for name in hosts:
        wanted.setdefault(_base(name).lower(), []).append(name)
    for row in rows:
        if not row.text(MACHINE):
            yield from _no_machine(row)
        for name in wanted.get(row.text(MACHINE).lower(), ()):
            for one in _of_machine(row, name, hosts[name], cloud, apart):
                yield one if isinstance(one, _Offer) else _Fault(name, one, row.line)


def _no_machine(row: Row) -> Iterator[_Fault]:
    """Return the fault of a row without a machine, unless it prices accelerators."""
    if not row.text(ACCELERATOR):
        yield _Fault("", "names neither a machine nor an accelerator", row.line)
    elif row.ragged:
        yield _Fault("", "is cut off", row.line)


def _of_machine(
    row: Row, name: str, host: Host, cloud: str, apart: Mapping[tuple[str, float, str], Row]
) -> Iterator[_Offer | str]:
    wrong = next(faults(row, None if _base(name) != name else host, cloud), None)
    if wrong is not None:
        yield wrong
        return
    whole = row
    if cloud == GOOGLE and host.gpu_count:
        summed = _with_accelerators(row, name, host, apart)
        if isinstance(summed, str):
            yield summed
            return
        whole = summed
    own = price_of(host.prices, Purchase.ON_DEMAND, row.text(REGION))
    usual = own or price_of(host.prices, Purchase.ON_DEMAND)
    yield from _offers(whole, name, None if usual is None else usual.usual)


def _offers(row: Row, name: str, known: UsdPerSecond | None) -> Iterator[_Offer | str]:
    price, spot = price_fault(row, known), spot_fault(row)
    for fault, column, purchase in (
        (price, PRICE, Purchase.ON_DEMAND),
        (spot, SPOT, Purchase.SPOT),
    ):
        if fault is not None:
            yield fault
            continue
        value = row.number(column)
        if value is not None:
            region = row.text(REGION)
            yield _Offer(machine=name, purchase=purchase, region=region, usd_per_hour=value)


def _apart(rows: tuple[Row, ...]) -> dict[tuple[str, float, str], Row]:
    """Return rows that price accelerators alone, by name, count and zone."""
    found = {}
    for row in accelerator_rows(rows):
        try:
            count = row.number(COUNT)
        except OddNumber:
            continue
        if count is not None and not row.ragged:
            found[row.text(ACCELERATOR).lower(), count, _place(row)] = row
    return found


def _place(row: Row) -> str:
    return row.text(ZONE) or row.text(REGION)


def _with_accelerators(
    row: Row, name: str, host: Host, apart: Mapping[tuple[str, float, str], Row]
) -> Row | str:
    """Return the row of a Google machine with its accelerators added, or why there is none."""
    attached = _ATTACHED.fullmatch(name)
    family = name.rsplit("-", 1)[0]
    called = _accelerators().get(family, "") if attached is None else attached["name"]
    added = apart.get((called.lower(), float(host.gpu_count), _place(row)))
    if added is None:
        # A catalogue without rows of accelerators may state whole machines.
        whole = bool(row.text(ACCELERATOR)) and not apart
        return row if whole else "is priced without its accelerators"
    return replace(row, cells={**row.cells, **_sums(row, added)})


def _sums(row: Row, other: Row) -> dict[str, str]:
    """Return both prices together; empty where one of them has none."""
    found = {}
    for column in (PRICE, SPOT):
        try:
            one, more = row.number(column), other.number(column)
        except OddNumber:
            one = more = None
        found[column] = "" if one is None or more is None else repr(one + more)
    return found


def _ranges(offers: Iterable[_Offer], source: Source) -> dict[str, tuple[Price, ...]]:
    """Return one price for a machine, purchase and region.

    From the least to the most of its zones.
    """
    seen: dict[str, dict[tuple[Purchase, str], list[float]]] = {}
    for offer in offers:
        own = seen.setdefault(offer.machine, {})
        own.setdefault((offer.purchase, offer.region), []).append(offer.usd_per_hour / HOUR)
    return {
        machine: tuple(
            Price(purchase=purchase, region=region, low=min(all_), high=max(all_), source=source)
            for (purchase, region), all_ in own.items()
        )
        for machine, own in seen.items()
    }


def _merged(
    old: Sequence[Price], new: Sequence[Price], home: Mapping[str, int]
) -> tuple[Price, ...]:
    """Return the old prices with new ones of the same kind replaced and new regions added.

    The first price of a purchase is the usual one. A new one comes before it where it was stated
    later, and after it otherwise; of several new ones that of the usual region leads.
    """
    fresh = {(price.purchase, price.region): price for price in new}
    kept = [fresh.pop((price.purchase, price.region), price) for price in old]
    rest = sorted(fresh.values(), key=lambda price: -home.get(price.region, 0))
    ways = dict.fromkeys(price.purchase for price in (*kept, *rest))
    return tuple(price for way in ways for price in _ordered(way, kept, rest))


def _ordered(way: Purchase, kept: Iterable[Price], rest: Iterable[Price]) -> list[Price]:
    known = [price for price in kept if price.purchase is way]
    added = [price for price in rest if price.purchase is way]
    return [*added, *known] if known and added and _later(added[0], known[0]) else [*known, *added]


def _later(price: Price, other: Price) -> bool:
    day, before = price.source.oldest, other.source.oldest
    return day is not None and (before is None or day > before)


def _moved(machine: str, old: Sequence[Price], new: Sequence[Price]) -> Iterator[Moved]:
    for way in dict.fromkeys(price.purchase for price in old):
        before, after = price_of(old, way), price_of(new, way)
        if before is not None and after is not None and before.region != after.region:
            yield Moved(machine=machine, before=before, after=after)


def _grouped(found: Iterable[_Fault]) -> tuple[LeftOut, ...]:
    lines: dict[tuple[str, str], list[int]] = {}
    for fault in found:
        lines.setdefault((fault.reason, fault.machine), []).append(fault.line)
    return tuple(
        LeftOut(machine=machine, reason=reason, lines=tuple(dict.fromkeys(at)))
        for (reason, machine), at in sorted(lines.items())
    )


def _fail_useless(
    path: Path, left_out: Sequence[LeftOut], unknown: Iterable[str], hosts: Mapping[str, Host]
) -> None:
    """Refuse a file without any price that can be used, with the reasons."""
    if left_out:
        reasons = [said(one) for one in left_out[:MAX_SHOWN]]
        more = len(left_out) - len(reasons)
        hint = "; ".join([*reasons, *([f"and {more} reasons more"] if more else [])])
    else:
        examples, other = list(unknown)[:3], list(hosts)[:3]
        hint = f"it has {', '.join(examples) or 'no machines'}; profiles are {', '.join(other)}"
    fail(str(path), "has no price that can be used", hint=hint)


def said(one: LeftOut) -> str:
    """Return rows that were left out, as one line for people."""
    count = len(one.lines)
    where = f"line {one.lines[0]}" if count == 1 else f"{count} rows, first in line {one.lines[0]}"
    return f"{one.machine or 'a row'} {one.reason} ({where})"


@cache
def _accelerators() -> Mapping[str, str]:
    """Return the names of the accelerators of Google's machines in lists, by family."""
    names: dict[str, str] = tomllib.loads(_LISTS.read_text(encoding="utf-8"))[GOOGLE][
        "accelerators"
    ]
    return names
