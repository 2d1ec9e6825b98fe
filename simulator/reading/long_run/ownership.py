"""How machines are owned: the [owned] section, and what is usual, ``data/ownership.toml``."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Final

from simulator.reading.document import check, read_document
from simulator.reading.hardware.figures import Figure, FractionFigure, PriceFigure, TimeFigure
from simulator.reading.long_run.bill_sections import OwnedSection
from simulator.reading.resolved import Draft, part
from simulator.reading.shipped import DATA
from simulator.schema.hardware.price import Purchase
from simulator.schema.owned import Ownership
from simulator.uncertainty.provenance import Source
from simulator.units import WATT, parse

_FILE: Final = DATA / "ownership.toml"
_KILOWATT: Final = parse("1 kW", WATT)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Usual:
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
    """What the [owned] section says, and what is usual where it says nothing."""
    usual = _usual()
    figures = {name: getattr(usual, name) for name in _NUMBERS}
    stated = {name: getattr(given, name) for name in figures}
    taken = {name: one for name, one in figures.items() if stated[name] is None}
    if given.hosting is None:
        taken["hosting"] = usual.hosting
    values = {
        name: float(one.value) if stated[name] is None else stated[name]
        for name, one in figures.items()
    }
    return Ownership(
        capex=given.capex,
        **values,
        hosting=given.hosting,
        hosting_per_watt=float(usual.hosting.value) / _KILOWATT,
        staff=given.staff,
        sources={name: _source(one) for name, one in taken.items()},
    )


def _source(figure: Figure) -> Source:
    return Source(
        reference=figure.source,
        date=figure.date,
        verified=figure.verified,
        note=figure.note or "",
    )


def _stated(draft: Draft) -> Ownership | None:
    if draft.cost.purchase is not Purchase.OWNED and draft.owned is None:
        return None
    return ownership(draft.owned or OwnedSection())


OWNERSHIP: Final = part(_stated, "cost owned")
"""How a draft's machines are owned; None where nothing is said of it."""
