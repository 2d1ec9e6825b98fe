"""What is known to be wrong in published catalogues of prices, row by row.

Each rule is an error that was seen in SkyPilot's catalogues of 2025 and 2026, or in the price lists
behind them: placeholders, spot prices that are no offers, hosts priced without their accelerators,
local zones listed among those of a region.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Final

from simulator.importers.prices.rows import (
    COUNT,
    MACHINE,
    MEMORY,
    PRICE,
    REGION,
    SPOT,
    THREADS,
    ZONE,
    OddNumber,
    Row,
)
from simulator.schema.hardware.host import Host
from simulator.units import BYTE, HOUR, UsdPerSecond, parse

GIB: Final = parse("1 GiB", BYTE)
SPOT_FLOOR: Final = 0.1
"""Share of the price on demand below which AWS lists no spot price; a price of just that share is
no offer (SkyPilot's AWS catalogue, read 2026)."""
FAR: Final = 5.0
"""Ratio to the price known so far from which on a price is taken for a mistake: catalogues that
price a Google host without its accelerators are off by 9 (a3-highgpu-1g, 1.18 for 11.06)."""
PLACEHOLDER: Final = 700.0
"""What SkyPilot's Google catalogue writes for accelerators whose price it does not know [$/h]."""

_SAME: Final = 1e-6
_RAM_AGREES: Final = 0.1
_AWS_ZONE: Final = re.compile(r"[a-z]+-[a-z]+(?:-[a-z]+)?-\d+[a-z]|[a-z]+\d+-az\d+")
_RETIRED: Final = re.compile(r"_Promo$", re.IGNORECASE)


def faults(row: Row, host: Host | None, cloud: str) -> Iterator[str]:
    """Why a row cannot price its machine at all; nothing for a sound one.

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
        yield "is of a local zone, which is no zone of the region"
    if host is not None:
        yield from _another_machine(row, host)


def _another_machine(row: Row, host: Host) -> Iterator[str]:
    """Where the row describes another machine than the profile of that name."""
    try:
        threads, count, ram = row.number(THREADS), row.number(COUNT), row.number(MEMORY)
    except OddNumber as odd:
        yield str(odd)
        return
    if threads and not math.isclose(threads, host.cpu.threads):
        yield f"has {threads:g} vCPUs, its profile {host.cpu.threads:g}"
    if count is not None and not math.isclose(count, host.gpu_count):
        yield f"has {count:g} accelerators, its profile {host.gpu_count}"
    if ram and not math.isclose(ram * GIB, host.ram, rel_tol=_RAM_AGREES):
        yield f"has {ram:g} GiB of RAM, its profile {host.ram / GIB:g}"


def price_fault(row: Row, known: UsdPerSecond | None) -> str | None:
    """Why the price on demand of a row cannot be used; None where it can.

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
    if price == PLACEHOLDER:
        return f"has {PLACEHOLDER:.2f}, a placeholder, for its price"
    if known and not 1.0 / FAR < price / (known * HOUR) < FAR:
        return f"is ${price:g}/h, far from the ${known * HOUR:.4g}/h known"
    return None


def spot_fault(row: Row) -> str | None:
    """Why the spot price of a row is no offer; None where it is one, or there is none at all."""
    try:
        spot, price = row.number(SPOT), row.number(PRICE)
    except OddNumber as odd:
        return str(odd) if SPOT in str(odd) else None
    if spot is None:
        return None
    if spot == 0.0:
        return "has a spot price of zero"
    if spot == PLACEHOLDER:
        return f"has {PLACEHOLDER:.2f}, a placeholder, for its spot price"
    return None if not price else _beside(spot, price)


def _beside(spot: float, price: float) -> str | None:
    if math.isclose(spot, price, rel_tol=_SAME):
        return "has the price on demand for its spot price: no offer"
    if spot > price:
        return "has a spot price above the one on demand"
    if math.isclose(spot, SPOT_FLOOR * price, rel_tol=_SAME):
        return "has a tenth of the price on demand for its spot price: a floor, no offer"
    return None
