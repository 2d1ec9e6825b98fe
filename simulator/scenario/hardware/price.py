"""What a machine costs by the hour, or to own."""

from __future__ import annotations

from dataclasses import dataclass

from simulator.confidence.provenance import Source
from simulator.units import UsdPerSecond


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """Prices of one machine; a spot price is a range seen, lowest to highest."""

    on_demand: UsdPerSecond
    region: str
    source: Source
    spot_low: UsdPerSecond | None = None
    spot_high: UsdPerSecond | None = None
