"""Where the electricity of the machines comes from, and what the building adds to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from simulator.schema.fields import Number, Section, TextField
from simulator.uncertainty.provenance import Source
from simulator.units import KilogramsPerJoule, UsdPerJoule

PueField = Annotated[float, Number(low=1.0, high=10.0)]


@dataclass(frozen=True, slots=True, kw_only=True)
class EnergySection(Section):
    """Source of the electricity; with it, plan reports energy and emissions of the run."""

    pue: PueField | None = None
    """Power of the building over that of its machines (power usage effectiveness); 1.54 by default,
    the average of a survey of data centres of 2025."""
    grid: TextField | None = None
    """What is emitted to make the electricity: an amount such as 400 g/kWh, or a region of a cloud
    such as gcp/us-central1. Emissions are unknown without it."""
    tariff: TextField | None = None
    """Price of electricity: $0.08/kWh, or a place such as us/iowa/industrial. Rent includes it: it
    is on the bill of owned machines only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EnergyPlan:
    """Figures of the building and its grid.

    `pue` is the building's power over that of its machines. `grid` is what is emitted to make the
    electricity, `tariff` what it costs; None: not known. `sources` are by the names of the fields.
    """

    pue: float
    grid: KilogramsPerJoule | None = None
    tariff: UsdPerJoule | None = None
    sources: dict[str, Source]
