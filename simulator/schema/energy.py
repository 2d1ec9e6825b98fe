"""Where the electricity of the machines comes from, and what the building adds to it."""

from __future__ import annotations

from dataclasses import dataclass

from simulator.uncertainty.provenance import Source
from simulator.units import KilogramsPerJoule, UsdPerJoule


@dataclass(frozen=True, slots=True, kw_only=True)
class EnergyPlan:
    """What is known of the building and its grid.

    `pue` is the building's power over that of its machines. `grid` is what is emitted to make the
    electricity, `tariff` what it costs; None: not known. `sources` are by the names of the fields.
    """

    pue: float
    grid: KilogramsPerJoule | None = None
    tariff: UsdPerJoule | None = None
    sources: dict[str, Source]
