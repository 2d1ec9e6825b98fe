"""Machines that are bought: what is paid for them over their life."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from simulator.uncertainty.provenance import Source
from simulator.units import Seconds, Usd, UsdPerSecond


@dataclass(frozen=True, slots=True, kw_only=True)
class Ownership:
    """How machines are owned.

    `capex` is the price of one machine that trains; None: that of its profile. `network` is what
    switches and cables come to beside it, `residual` what the machine is worth after its `life`,
    both as shares of that price; `interest` is the cost of capital a year. `hosting` and `staff`
    are for one machine; no `hosting`: by its power. `utilization` is the share of its life in which
    it works. `sources` are by the names of the fields that were not stated.
    """

    capex: Usd | None = None
    life: Seconds
    network: float
    residual: float
    interest: float
    hosting: UsdPerSecond | None = None
    hosting_per_watt: UsdPerSecond
    staff: UsdPerSecond | None = None
    utilization: float = 1.0
    sources: Mapping[str, Source] = field(default_factory=dict)
