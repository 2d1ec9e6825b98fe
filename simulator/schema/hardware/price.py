"""What a machine costs by the hour, by how and where its hours are bought."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Final

from simulator.schema.fields import Choice
from simulator.uncertainty.provenance import Source
from simulator.units import UsdPerSecond

MOST_IN_BLOCKS: Final = 256
"""Machines that a customer has in capacity blocks at a time: 64 a block, 256 in all (Amazon EC2
User Guide, "Capacity Blocks for ML")."""


class Purchase(StrEnum):
    """Ways to buy machine hours."""

    ON_DEMAND = "on-demand"
    RESERVED_1Y = "reserved-1y"
    RESERVED_3Y = "reserved-3y"
    SPOT = "spot"
    CAPACITY_BLOCK = "capacity-block"
    OWNED = "owned"


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """One price of a machine [$/s]: a range seen, lowest to highest; most ranges are one number."""

    purchase: Purchase
    region: str
    low: UsdPerSecond
    high: UsdPerSecond
    source: Source

    @property
    def usual(self) -> UsdPerSecond:
        """The middle of the range seen."""
        return self.low if self.low == self.high else 0.5 * (self.low + self.high)


def price_of(
    prices: Iterable[Price], purchase: Purchase, region: str | None = None
) -> Price | None:
    """Return the first price for what is bought so, and there if a region is given.

    None without one.
    """
    return next(
        (p for p in prices if p.purchase is purchase and region in (None, p.region)),
        None,
    )


_BOUGHT: Final = (
    ("buy", "owned"),
    ("bought", "owned"),
    ("own", "owned"),
    ("rent", "on-demand"),
    ("ondemand", "on-demand"),
    ("preemptible", "spot"),
)
"""Words of clouds and of people for the ways to buy."""

PurchaseField = Annotated[Purchase, Choice(Purchase, also=_BOUGHT)]
