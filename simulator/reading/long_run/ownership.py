"""How machines are owned: the [owned] section, and what is usual, ``data/ownership.toml``."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Final

from simulator.memo import cached
from simulator.reading.document import check, read_document
from simulator.reading.long_run.bill_sections import OwnedSection
from simulator.reading.shipped import DATA
from simulator.schema.figures import FractionFigure, PriceFigure, Sourceable, TimeFigure
from simulator.schema.hardware.price import Purchase
from simulator.schema.owned import Ownership
from simulator.schema.scenario import CostPlan
from simulator.units import WATT, parse

_FILE: Final = DATA / "ownership.toml"
_KILOWATT: Final = parse("1 kW", WATT)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Usual(Sourceable):
    """The file data/ownership.toml."""

    life: TimeFigure
    """How long a machine is used."""
    network: FractionFigure
    """What surrounds it, over its price."""
    residual: FractionFigure
    """What it is worth at the end, over its price."""
    interest: FractionFigure
    """Cost of capital a year."""
    hosting: PriceFigure
    """Room for each kilowatt."""
    utilization: FractionFigure
    """Share of its life in which a machine works."""


_NUMBERS: Final = ("life", "network", "residual", "interest", "utilization")


@cache
def _usual() -> _Usual:
    return check(_Usual, read_document(_FILE))


def ownership(given: OwnedSection) -> Ownership:
    """Return what the [owned] section says, and what is usual where it says nothing."""
    usual = _usual()
    values = {
        name: getattr(usual if getattr(given, name) is None else given, name) for name in _NUMBERS
    }
    assumed = [name for name in (*_NUMBERS, "hosting") if getattr(given, name) is None]
    return Ownership(
        capex=given.capex,
        **values,
        hosting=given.hosting,
        hosting_per_watt=usual.hosting / _KILOWATT,
        staff=given.staff,
        sources={name: usual.sources[name] for name in assumed},
    )


@cached()
def ownership_of(cost: CostPlan, owned: OwnedSection | None) -> Ownership | None:
    """Return how the machines of a job are owned; None where nothing is said of it."""
    if cost.purchase is not Purchase.OWNED and owned is None:
        return None
    return ownership(owned or OwnedSection())
