"""Prices of rented machines, owned machines, electricity, and the stores of a bill."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field
from enum import StrEnum
from typing import Annotated, Final

from simulator.records import dataclass
from simulator.schema.fields import (
    DEPENDS,
    DERIVED,
    Choice,
    CountField,
    MoneyField,
    Number,
    Percent,
    PriceOrZeroField,
    Section,
    TextField,
    TimeField,
)
from simulator.schema.provenance import Source
from simulator.units import KilogramsPerJoule, UsdPerJoule, UsdPerSecond

MOST_IN_BLOCKS: Final = 256
"""Most machines that a customer has in capacity blocks at a time: 64 a block, 256 in all (Amazon
EC2 User Guide, "Capacity Blocks for ML")."""


class Purchase(StrEnum):
    """A way to buy machine hours."""

    ON_DEMAND = "on-demand"
    RESERVED_1Y = "reserved-1y"
    RESERVED_3Y = "reserved-3y"
    SPOT = "spot"
    CAPACITY_BLOCK = "capacity-block"
    OWNED = "owned"


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """A price of a machine [$/s]: the lowest and highest seen, which are often the same."""

    purchase: Purchase
    region: str
    low: UsdPerSecond
    high: UsdPerSecond
    source: Source

    @property
    def usual(self) -> UsdPerSecond:
        """Middle of the range of prices seen."""
        return self.low if self.low == self.high else 0.5 * (self.low + self.high)


def price_of(
    prices: Iterable[Price], purchase: Purchase, region: str | None = None
) -> Price | None:
    """Return the first price for a purchase type and, if given, a region; None if there is none."""
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
"""Other words for the ways to buy, of clouds and in everyday use."""

PurchaseField = Annotated[Purchase, Choice(Purchase, also=_BOUGHT)]


PueField = Annotated[float, Number(low=1.0, high=10.0)]


@dataclass(frozen=True, slots=True, kw_only=True)
class EnergyPlan(Section):
    """Source of the electricity; with it, plan reports energy and emissions of the run.

    `emissions` are those per energy, `price` is that of electricity; None if unknown. `figures` are
    the sources of power usage effectiveness, grid and tariff, by key.
    """

    pue: PueField = field(default=1.0, metadata=DEPENDS)
    """Power of the building over that of its machines (power usage effectiveness); 1.54 by default,
    the average of a survey of data centres of 2025."""
    grid: TextField | None = None
    """Emissions of the electricity: an amount such as 400 g/kWh, or a region of a cloud such as
    gcp/us-central1. Emissions are unknown without it."""
    tariff: TextField | None = None
    """Price of electricity: $0.08/kWh, or a place such as us/iowa/industrial. Rent includes it: it
    is on the bill of owned machines only."""

    emissions: KilogramsPerJoule | None = field(default=None, metadata=DERIVED)
    price: UsdPerJoule | None = field(default=None, metadata=DERIVED)
    figures: Mapping[str, Source] = field(default_factory=dict, metadata=DERIVED)


ShareField = Annotated[float, Percent()]
WorkingField = Annotated[float, Number(low=0.01, high=1.0)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ownership(Section):
    """Costs of machines that are bought, with cost.purchase = "owned".

    `hosting_per_watt` is used if `hosting` is not stated; `assumed` are the sources of values that
    are not stated, by key.
    """

    capex: MoneyField | None = None
    """Price of one machine that trains, such as $270000; the price in its profile by default."""
    life: TimeField = field(default=0.0, metadata=DEPENDS)
    """Time of use until it is written off; 5 years by default."""
    network: ShareField = field(default=0.0, metadata=DEPENDS)
    """Switches, cables and insurance in addition, as a share of its price; 12.5% by default, and 0
    for a machine under a desk."""
    residual: ShareField = field(default=0.0, metadata=DEPENDS)
    """Value after its life, as a share of its price; 0 by default."""
    interest: ShareField = field(default=0.0, metadata=DEPENDS)
    """Cost of capital per year; 6% by default."""
    hosting: PriceOrZeroField | None = None
    """Room, racks and cooling plant for one machine, without electricity, such as $1500/month; by
    default $200 a month for each kW of its highest power, and 0 for a machine under a desk (desktop
    = true in the profile of its accelerator)."""
    staff: PriceOrZeroField | None = None
    """Cost of the staff for one machine, such as $500/month. There is no published value: if not
    given, it is left out, and the report says so."""
    utilization: WorkingField = field(default=1.0, metadata=DEPENDS)
    """Share of its life in which it is used: its cost is divided among the hours used; 1 by
    default."""

    hosting_per_watt: UsdPerSecond = field(default=0.0, metadata=DERIVED)
    assumed: Mapping[str, Source] = field(default_factory=dict, metadata=DERIVED)


class Location(StrEnum):
    """Location of a store as seen from its machines: bytes that leave its region cost money."""

    SAME_REGION = "same-region"
    OTHER_REGION = "other-region"
    OTHER_CLOUD = "other-cloud"


@dataclass(frozen=True, slots=True, kw_only=True)
class StorePlan(Section):
    """Use and location of the store that holds data and checkpoints, for its price."""

    location: Annotated[Location, Choice(Location)] | None = None
    """Location as seen from the machines: in the same region, in another region of the cloud, or in
    another cloud; bytes that leave its region cost money. By default in another cloud where its
    profile and that of the machines name different clouds, else in the same region."""
    kept: TimeField | None = None
    """Time for which it holds data and checkpoints, such as 90 d; by default as long as the
    machines are billed, which is the minimum."""
    checkpoints: CountField = 2
    """Number of checkpoints it holds at a time: the last one, and the one being written."""


DURING_THE_RUN: Final = StorePlan()
"""Default store plan: the store holds data only during the run."""
