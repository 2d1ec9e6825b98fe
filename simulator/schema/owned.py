"""Machines that are bought: what is paid for them over their life."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated

from simulator.schema.fields import (
    DEPENDS,
    DERIVED,
    MoneyField,
    Number,
    Percent,
    PriceOrZeroField,
    Section,
    TimeField,
)
from simulator.uncertainty.provenance import Source
from simulator.units import UsdPerSecond

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
