"""Prices of rented machines, owned machines, electricity, and the stores of a bill."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated, Final

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


PueField = Annotated[float, Number(low=1.0, high=10.0)]


@dataclass(frozen=True, slots=True, kw_only=True)
class EnergyPlan(Section):
    """Source of the electricity; with it, plan reports energy and emissions of the run.

    `emissions` is what is emitted to make the electricity, `price` what it costs; None: not known.
    `figures` are the sources of all three, by key.
    """

    pue: PueField = field(default=1.0, metadata=DEPENDS)
    """Power of the building over that of its machines (power usage effectiveness); 1.54 by default,
    the average of a survey of data centres of 2025."""
    grid: TextField | None = None
    """What is emitted to make the electricity: an amount such as 400 g/kWh, or a region of a cloud
    such as gcp/us-central1. Emissions are unknown without it."""
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

    `hosting_per_watt` counts where `hosting` is not stated, `assumed` are the sources of values
    that are not stated, by key.
    """

    capex: MoneyField | None = None
    """Price of one machine that trains, such as $270000; that of its profile by default."""
    life: TimeField = field(default=0.0, metadata=DEPENDS)
    """How long it is used before it is written off; 5 years by default."""
    network: ShareField = field(default=0.0, metadata=DEPENDS)
    """Switches, cables and insurance in addition, as a share of its price; 12.5% by default, and
    nothing for a machine under a desk."""
    residual: ShareField = field(default=0.0, metadata=DEPENDS)
    """What it is worth after its life, as a share of its price; nothing by default."""
    interest: ShareField = field(default=0.0, metadata=DEPENDS)
    """Cost of capital a year; 6% by default."""
    hosting: PriceOrZeroField | None = None
    """Room, racks and cooling plant for one machine, electricity apart, such as $1500/month;
    $200 a month for each kW of its highest power by default, and nothing for a machine under a desk
    (desktop = true in the profile of its accelerator)."""
    staff: PriceOrZeroField | None = None
    """Share of the staff that looks after one machine, such as $500/month. No published figure was
    found: it is left out, and said to be, where it is not given."""
    utilization: WorkingField = field(default=1.0, metadata=DEPENDS)
    """Share of its life in which it works: what it costs is paid by the hours worked; all of it by
    default."""

    hosting_per_watt: UsdPerSecond = field(default=0.0, metadata=DERIVED)
    assumed: Mapping[str, Source] = field(default_factory=dict, metadata=DERIVED)


class Location(StrEnum):
    """Where a store is, as its machines see it: bytes that leave its region are paid for."""

    SAME_REGION = "same-region"
    OTHER_REGION = "other-region"
    OTHER_CLOUD = "other-cloud"


@dataclass(frozen=True, slots=True, kw_only=True)
class StorePlan(Section):
    """What is paid for the store that holds data and checkpoints."""

    location: Annotated[Location, Choice(Location)] | None = None
    """Where it is, as seen from the machines: in the same region, in another region of the cloud,
    or in another cloud; bytes that leave its region are paid for. By default in another cloud where
    its profile and that of the machines name different ones, else in the same region."""
    kept: TimeField | None = None
    """How long it holds data and checkpoints, such as 90 d; as long as the machines are billed by
    default, which is the least."""
    checkpoints: CountField = 2
    """How many checkpoints it holds at a time: the last one, and the one that is written."""


DURING_THE_RUN: Final = StorePlan()
"""What holds where a scenario says nothing: the store holds data during the run."""
