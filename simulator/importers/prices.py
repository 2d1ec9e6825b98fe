"""Importer of cloud price catalogues: CSV with the columns of SkyPilot's ``vms.csv``.

Rows with errors seen in SkyPilot's catalogues of 2025 and 2026, or in the price lists they are
built from, are left out: placeholders, invalid spot prices, hosts priced without their
accelerators, local zones listed as zones of a region.
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
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Final

from simulator.importers.foreign import read_text
from simulator.reading.hardware.catalogue import Catalogue
from simulator.reading.reading import fail
from simulator.reading.shipped import DATA
from simulator.records import dataclass
from simulator.schema.cost import Price, Purchase, price_of
from simulator.schema.machines import Host
from simulator.schema.provenance import Source
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
    """A price or count in a row that is not a non-negative number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One row; `cells` maps the columns that are read to their text without surrounding blanks.

    `ragged` rows have more or fewer cells than the header.
    """

    line: int
    cells: Mapping[str, str]
    ragged: bool = False

    def text(self, column: str) -> str:
        """Return the text of a column; empty if the row or the file lacks it."""
        return self.cells.get(column, "")

    def number(self, column: str) -> float | None:
        """Return the number in a column; None if it is empty.

        Raises
        ------
        OddNumber
            If the text is not a non-negative number.
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

    def number_or_none(self, column: str) -> float | None:
        """Return the number in a column; None if it is empty or not a number."""
        try:
            return self.number(column)
        except OddNumber:
            return None


def _read_rows(path: Path) -> tuple[Row, ...]:
    """Return all rows of a catalogue; raise an `InputError` if the file is not one."""
    origin = str(path)
    rows = csv.reader(io.StringIO(read_text(path, _WANTED)), strict=True)
    found: list[Row] = []
    try:
        heading = [cell.strip() for cell in next(rows)]
        _check(heading, origin)
        for cells in rows:
            named = dict(zip(heading, (cell.strip() for cell in cells), strict=False))
            read = {column: named[column] for column in _READ if column in named}
            if any(map(str.strip, cells)):
                ragged = len(cells) != len(heading)
                found.append(Row(line=rows.line_num, cells=read, ragged=ragged))
    except (csv.Error, StopIteration) as error:
        reason = str(error) or "it has no heading"
        fail(origin, f"is not {_WANTED}: {reason}", line=rows.line_num)
    if not found:
        fail(origin, "has a heading and no rows")
    return tuple(found)


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


GIB: Final = parse("1 GiB", BYTE)
MIN_SPOT_SHARE: Final = 0.1
"""Share of the price on demand below which AWS lists no spot price; a price of just that share is
no offer (SkyPilot's AWS catalogue, read 2026)."""
MAX_PRICE_RATIO: Final = 5.0
"""Ratio to the price known so far from which on a price is taken for a mistake: catalogues that
price a Google host without its accelerators are off by 9 (a3-highgpu-1g, 1.18 for 11.06)."""
PLACEHOLDER_PRICE: Final = 700.0
"""Placeholder for unknown accelerator prices in SkyPilot's Google catalogue [$/h]."""

_SAME_PRICE: Final = 1e-6
_RAM_TOLERANCE: Final = 0.1
_SAME: Final = 1e-9
_AWS_ZONE: Final = re.compile(r"[a-z]+-[a-z]+(?:-[a-z]+)?-\d+[a-z]|[a-z]+\d+-az\d+")
_RETIRED: Final = re.compile(r"_Promo$", re.IGNORECASE)


def _row_fault(row: Row, host: Host | None, cloud: str) -> str | None:
    """Return the reason why a row cannot price a machine; None for a valid row.

    If `host` is None, the row is not compared with a profile. `cloud` is a name such as ``aws``.
    """
    zone = row.text(ZONE)
    reasons = (
        (row.ragged, "has more or fewer fields than the heading"),
        (not row.text(REGION), "names no region"),
        (_RETIRED.search(row.text(MACHINE)), "is a retired promotion"),
        (
            cloud == "aws" and zone and not _AWS_ZONE.fullmatch(zone),
            "is of a local zone, which is not a zone of the region",
        ),
    )
    fault = next((reason for holds, reason in reasons if holds), None)
    if fault is not None or host is None:
        return fault
    try:
        for column, known, name, tolerance in (
            (THREADS, host.cpu.threads, "vCPUs", _SAME),
            (COUNT, host.gpu_count, "accelerators", _SAME),
            (MEMORY, host.ram / GIB, "GiB of RAM", _RAM_TOLERANCE),
        ):
            value = row.number(column)
            stated = value is not None if column == COUNT else bool(value)
            if value is not None and stated and not math.isclose(value, known, rel_tol=tolerance):
                return f"has {value:g} {name}, its profile {known:g}"
    except OddNumber as odd:
        return str(odd)
    return None


def _price_fault(row: Row, known: UsdPerSecond | None) -> str | None:
    """Return the reason why the on-demand price of a row is rejected; None if it is accepted.

    `known` is the present on-demand price in the machine's profile [$/s].
    """
    try:
        price = row.number(PRICE)
    except OddNumber as odd:
        return str(odd)
    if price is None:
        return "has no price on demand"
    if known and price and price != PLACEHOLDER_PRICE:
        far = not 1.0 / MAX_PRICE_RATIO < price / (known * HOUR) < MAX_PRICE_RATIO
        return f"is ${price:g}/h, far from the ${known * HOUR:.4g}/h known" if far else None
    return _blank(price, "price")


def _spot_fault(row: Row) -> str | None:
    """Return the reason why the spot price of a row is rejected; None if accepted or missing."""
    try:
        spot = row.number(SPOT)
    except OddNumber as odd:
        return str(odd)
    price = row.number_or_none(PRICE)
    if spot is None or not spot or spot == PLACEHOLDER_PRICE or not price:
        return None if spot is None else _blank(spot, "spot price")
    if math.isclose(spot, price, rel_tol=_SAME_PRICE):
        return "has the price on demand for its spot price: no offer"
    if spot > price:
        return "has a spot price above the one on demand"
    if math.isclose(spot, MIN_SPOT_SHARE * price, rel_tol=_SAME_PRICE):
        return "has a tenth of the price on demand for its spot price: a floor, no offer"
    return None


def _blank(price: float, name: str) -> str | None:
    if price == 0.0:
        return f"has a {name} of zero"
    if price == PLACEHOLDER_PRICE:
        return f"has {PLACEHOLDER_PRICE:.2f}, a placeholder, for its {name}"
    return None


MAX_SHOWN: Final = 5
GOOGLE: Final = "gcp"
_LISTS: Final = DATA / "price_lists.toml"
_ATTACHED: Final = re.compile(r"(?P<host>.+)-(?P<count>\d+)x(?P<name>[\w-]+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """Prices read from a catalogue, and the rows left out.

    `machines` maps full names of machines to all their prices: new prices replace old ones of the
    same purchase and region. `moved` lists purchases whose default price, used without a region, is
    now of another region: machine, price before and after. `read` counts the prices read, `unknown`
    the names of machines without a profile, `left_out` lists rejected rows with the reason.
    """

    machines: Mapping[str, tuple[Price, ...]]
    moved: tuple[tuple[str, Price, Price], ...]
    read: int
    left_out: tuple[str, ...]
    unknown: int


def read_prices(
    path: Path,
    catalogue: Catalogue,
    *,
    cloud: str,
    source: Source,
    regions: Sequence[str] = (),
) -> Prices:
    """Read the prices of machines of one cloud from a CSV file.

    Parameters
    ----------
    path : pathlib.Path
        File with the columns of SkyPilot's ``vms.csv``; may be gzip. Prices are in $/h.
    catalogue : Catalogue
        Profiles of machines with their present prices.
    cloud : str
        Folder of the cloud's machines, such as ``aws``.
    source : Source
        Source and date to record with the prices.
    regions : sequence of str
        Regions to read; all if empty.

    Raises
    ------
    InputError
        If the file is not a price catalogue, or none of its prices is usable.
    """
    rows = _read_rows(path)
    hosts = _machines(catalogue, cloud)
    known: dict[str, list[str]] = {}
    for name in hosts:
        known.setdefault(_base(name).lower(), []).append(name)
    unknown = {name for row in rows if (name := row.text(MACHINE)) and name.lower() not in known}
    apart = _apart(rows)
    offers: dict[str, dict[tuple[Purchase, str], list[float]]] = {}
    faults: dict[tuple[str, str], list[int]] = {}
    for row in _taken(rows, regions, str(path)):
        named = known.get(row.text(MACHINE).lower(), ()) if row.text(MACHINE) else ()
        found = [(name, o) for name in named for o in _offers(row, name, hosts[name], cloud, apart)]
        for name, offer in found or [("", _nameless(row))]:
            if isinstance(offer, tuple):
                purchase, price = offer
                by_region = offers.setdefault(name, {})
                by_region.setdefault((purchase, row.text(REGION)), []).append(price / HOUR)
            elif offer:
                faults.setdefault((offer, name), []).append(row.line)
    left_out = tuple(_line(*key, lines) for key, lines in sorted(faults.items()))
    if not offers:
        _fail_useless(path, left_out, unknown, hosts)
    # One price per machine, purchase and region: the range over its zones.
    new = {
        name: tuple(
            Price(purchase=purchase, region=region, low=min(each), high=max(each), source=source)
            for (purchase, region), each in by_region.items()
        )
        for name, by_region in offers.items()
    }
    home = Counter(host.prices[0].region for host in hosts.values() if host.prices)
    machines = {hosts[name].name: _merged(hosts[name].prices, new[name], home) for name in new}
    moved = tuple(
        (hosts[name].name, *pair)
        for name in new
        for pair in _moved(hosts[name].prices, machines[hosts[name].name])
    )
    return Prices(
        machines=machines,
        moved=moved,
        read=sum(map(len, new.values())),
        left_out=left_out,
        unknown=len(unknown),
    )


def _taken(rows: tuple[Row, ...], regions: Sequence[str], origin: str) -> tuple[Row, ...]:
    """Return the rows in `regions`, or all; raise an `InputError` for an unknown region."""
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


def _nameless(row: Row) -> str:
    """Return the problem of a row without a machine name; empty if it is valid.

    Rows without a machine name may price accelerators alone.
    """
    if row.text(MACHINE):
        return ""
    if not row.text(ACCELERATOR):
        return "names neither a machine nor an accelerator"
    return "is cut off" if row.ragged else ""


def _offers(
    row: Row, name: str, host: Host, cloud: str, apart: Mapping[tuple[str, float, str], Row]
) -> Iterator[tuple[Purchase, float] | str]:
    """Yield the prices of a machine in a row [$/h], and the reasons why prices are rejected."""
    fault = _row_fault(row, None if _base(name) != name else host, cloud)
    if fault is not None:
        yield fault
        return
    if cloud == GOOGLE and host.gpu_count:
        whole = _with_accelerators(row, name, host, apart)
        if whole is None:
            yield "is priced without its accelerators"
            return
        row = whole
    here = price_of(host.prices, Purchase.ON_DEMAND, row.text(REGION))
    usual = here or price_of(host.prices, Purchase.ON_DEMAND)
    known = None if usual is None else usual.usual
    for fault, column, purchase in (
        (_price_fault(row, known), PRICE, Purchase.ON_DEMAND),
        (_spot_fault(row), SPOT, Purchase.SPOT),
    ):
        if fault is not None:
            yield fault
        elif (price := row.number(column)) is not None:
            yield purchase, price


def _apart(rows: tuple[Row, ...]) -> dict[tuple[str, float, str], Row]:
    """Return rows that price accelerators alone, as in Google's catalogue.

    Keys are name, count and zone (or region).
    """
    found = {}
    for row in rows:
        count = row.number_or_none(COUNT)
        alone = row.text(ACCELERATOR) and not row.text(MACHINE)
        if alone and count is not None and not row.ragged:
            found[row.text(ACCELERATOR).lower(), count, _place(row)] = row
    return found


def _place(row: Row) -> str:
    return row.text(ZONE) or row.text(REGION)


def _with_accelerators(
    row: Row, name: str, host: Host, apart: Mapping[tuple[str, float, str], Row]
) -> Row | None:
    """Return a row of a Google machine with the price of its accelerators added; None if unknown.

    A price is empty if the machine or the accelerators lack it.
    """
    attached = _ATTACHED.fullmatch(name)
    family = name.rsplit("-", 1)[0]
    called = _accelerators().get(family, "") if attached is None else attached["name"]
    added = apart.get((called.lower(), float(host.gpu_count), _place(row)))
    if added is None:
        # A catalogue without rows for accelerators may include them in machine prices.
        return row if row.text(ACCELERATOR) and not apart else None
    sums = {}
    for column in (PRICE, SPOT):
        prices = row.number_or_none(column), added.number_or_none(column)
        sums[column] = "" if None in prices else repr(sum(filter(None, prices)))
    return replace(row, cells={**row.cells, **sums})


def _merged(
    old: Sequence[Price], new: Sequence[Price], home: Mapping[str, int]
) -> tuple[Price, ...]:
    """Return the old prices with new ones added, replacing those of the same purchase and region.

    The first price of a purchase is its default. New regions come before the old ones if their
    source has a later date, and after them otherwise; `home` counts the default regions of all
    machines, and new prices in a frequent one come first.
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


def _moved(old: Sequence[Price], new: Sequence[Price]) -> Iterator[tuple[Price, Price]]:
    for way in dict.fromkeys(price.purchase for price in old):
        before, after = price_of(old, way), price_of(new, way)
        if before is not None and after is not None and before.region != after.region:
            yield before, after


def _line(reason: str, machine: str, lines: Sequence[int]) -> str:
    """Format the rows of a machine that were left out for one reason."""
    count = len(set(lines))
    where = f"line {lines[0]}" if count == 1 else f"{count} rows, first in line {lines[0]}"
    return f"{machine or 'a row'} {reason} ({where})"


def _fail_useless(
    path: Path, left_out: Sequence[str], unknown: Iterable[str], hosts: Mapping[str, Host]
) -> None:
    """Raise an `InputError` for a file without usable prices, with the reasons."""
    more = len(left_out) - MAX_SHOWN
    if left_out:
        rest = [f"and {more} reasons more"] if more > 0 else []
        hint = "; ".join([*left_out[:MAX_SHOWN], *rest])
    else:
        examples, other = list(unknown)[:3], list(hosts)[:3]
        hint = f"it has {', '.join(examples) or 'no machines'}; profiles are {', '.join(other)}"
    fail(str(path), "has no price that can be used", hint=hint)


@cache
def _accelerators() -> Mapping[str, str]:
    """Return the accelerators of Google's machine families, as named in price lists."""
    names: dict[str, str] = tomllib.loads(_LISTS.read_text(encoding="utf-8"))[GOOGLE][
        "accelerators"
    ]
    return names
