"""Sections of a scenario about what is paid beside rent, as a file writes them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from simulator.schema.fields import (
    MoneyField,
    Number,
    Percent,
    PriceOrZeroField,
    Section,
    TextField,
    TimeField,
)

PueField = Annotated[float, Number(low=1.0, high=10.0)]


@dataclass(frozen=True, slots=True, kw_only=True)
class EnergySection(Section):
    """Where the electricity comes from; with it, plan tells energy and emissions of the run."""

    pue: PueField | None = None
    """Power of the building over that of its machines (power usage effectiveness); 1.54 by default,
    the average of a survey of data centres of 2025."""
    grid: TextField | None = None
    """What is emitted to make the electricity: an amount such as 400 g/kWh, or a region of a cloud
    such as gcp/us-central1. Emissions are unknown without it."""
    tariff: TextField | None = None
    """Price of electricity: $0.08/kWh, or a place such as us/iowa/industrial. Rent includes it: it
    is on the bill of owned machines only."""


ShareField = Annotated[float, Percent()]
WorkingField = Annotated[float, Number(low=0.01, high=1.0)]


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnedSection(Section):
    """What machines cost that are bought, with cost.purchase = "owned"."""

    capex: MoneyField | None = None
    """Price of one machine that trains, such as $270000; that of its profile by default."""
    life: TimeField | None = None
    """How long it is used before it is written off; 5 years by default."""
    network: ShareField | None = None
    """Switches, cables and insurance beside it, as a share of its price; 12.5% by default, and
    nothing for a machine under a desk."""
    residual: ShareField | None = None
    """What it is worth after its life, as a share of its price; nothing by default."""
    interest: ShareField | None = None
    """Cost of capital a year; 6% by default."""
    hosting: PriceOrZeroField | None = None
    """Room, racks and cooling plant for one machine, electricity apart, such as $1500/month;
    $200 a month for each kW of its highest power by default, and nothing for a machine under a desk
    (desktop = true in the profile of its accelerator)."""
    staff: PriceOrZeroField | None = None
    """Share of the staff that looks after one machine, such as $500/month. No published figure was
    found: it is left out, and said to be, where it is not given."""
    utilization: WorkingField | None = None
    """Share of its life in which it works: what it costs is paid by the hours worked; all of it by
    default."""
