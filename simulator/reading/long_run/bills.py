"""Owned machines and electricity: the sections [owned] and [energy], and their defaults.

Defaults are those of ``data/ownership.toml`` and ``data/electricity.toml``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Annotated, Final

from simulator.errors import InputError, UnitError
from simulator.memo import cached
from simulator.reading.document import Document, check, read_document
from simulator.reading.shipped import DATA
from simulator.records import dataclass
from simulator.schema.cost import EnergyPlan, Ownership, PueField
from simulator.schema.fields import (
    SOURCED,
    FractionFigure,
    NameFigure,
    PriceFigure,
    Sourceable,
    TimeFigure,
    nearest_hint,
)
from simulator.schema.provenance import Source
from simulator.units import KILOGRAM_PER_JOULE, USD_PER_JOULE, WATT, Unit, parse

_OWNERSHIP: Final = DATA / "ownership.toml"
_KILOWATT: Final = parse("1 kW", WATT)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Usual(Sourceable):
    """The file data/ownership.toml."""

    life: TimeFigure
    """Time of use of a machine."""
    network: FractionFigure
    """Switches, cables and insurance, over the price of the machine."""
    residual: FractionFigure
    """Value at the end, over the price of the machine."""
    interest: FractionFigure
    """Cost of capital per year."""
    hosting: PriceFigure
    """Price of hosting per kilowatt."""
    utilization: FractionFigure
    """Share of its life in which a machine is used."""


_NUMBERS: Final = ("life", "network", "residual", "interest", "utilization")


@cache
def _usual() -> _Usual:
    return check(_Usual, read_document(_OWNERSHIP))


@cached()
def ownership(stated: Ownership) -> Ownership:
    """Return the costs of owned machines, with defaults for keys that are not stated."""
    usual = _usual()
    values = {name: getattr(usual, name) for name in _NUMBERS if not stated.states(name)}
    assumed = [name for name in (*_NUMBERS, "hosting") if not stated.states(name)]
    return replace(
        stated,
        **values,
        hosting_per_watt=usual.hosting / _KILOWATT,
        assumed={name: usual.sources[name] for name in assumed},
    )


_ELECTRICITY: Final = DATA / "electricity.toml"
_STAND_IN: Final = "us/east-north-central/industrial"
"""Default tariff of owned machines."""
_STATED: Final = Source(reference="stated by the scenario", date="its own")


PueFigure = Annotated[PueField, SOURCED]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Electricity(Sourceable):
    """The file data/electricity.toml."""

    pue: dict[str, PueFigure]
    """Power usage effectiveness by region; "world" is the default."""
    grid: dict[str, NameFigure]
    """Emissions by region."""
    tariff: dict[str, NameFigure]
    """Prices by place and type of customer."""


@cache
def _electricity() -> _Electricity:
    return check(_Electricity, read_document(_ELECTRICITY))


def energy_plan(document: Document, given: EnergyPlan) -> EnergyPlan:
    """Read the [energy] section of a scenario.

    Raises
    ------
    InputError
        If `grid` or `tariff` is neither an amount nor a name that is known.
    """
    known = _electricity()
    grid = _amount(document, "grid", given.grid, known.grid, KILOGRAM_PER_JOULE)
    tariff = _amount(document, "tariff", given.tariff, known.tariff, USD_PER_JOULE)
    found = {
        "pue": _STATED if given.states("pue") else known.sources["pue.world"],
        **{name: source for name, (_, source) in (("grid", grid), ("tariff", tariff)) if source},
    }
    return EnergyPlan(
        sources=given.sources,
        pue=given.pue if given.states("pue") else known.pue["world"],
        grid=given.grid,
        tariff=given.tariff,
        emissions=grid[0],
        price=tariff[0],
        figures=found,
    )


def _amount(
    document: Document, key: str, text: str | None, known: Mapping[str, str], unit: Unit
) -> tuple[float | None, Source | None]:
    """Return an amount with its unit, or the figure of a known name, with its source.

    `key` is the key of the ``[energy]`` section, `text` its value; (None, None) if it is not
    stated.
    """
    if text is None:
        return None, None
    if text in known:
        return parse(known[text], unit), _electricity().sources[f"{key}.{text}"]
    try:
        value = parse(text, unit)
    except UnitError as error:
        if text[:1].isdigit() or text.startswith("$"):
            raise InputError((document.problem(("energy", key), str(error)),)) from None
        hint = nearest_hint(text, tuple(known))
        message = f"is neither an amount such as '{known[min(known)]}' nor a known name"
        raise InputError((document.problem(("energy", key), message, hint=hint),)) from None
    if value < 0.0:
        raise InputError((document.problem(("energy", key), "is negative"),))
    return value, _STATED


@cached(most=1000, ignore=(Document,))
def electricity(document: Document, given: EnergyPlan | None, *, owned: bool) -> EnergyPlan:
    """Return the electricity of a file; owned machines have a default tariff.

    Raises
    ------
    InputError
        As `energy_plan` does.
    """
    plan = energy_plan(document, given or EnergyPlan())
    return _with_tariff(plan) if owned and plan.price is None else plan


def _with_tariff(plan: EnergyPlan) -> EnergyPlan:
    """Return the plan with the default tariff if it has none, as owners pay for electricity."""
    known = _electricity()
    note = f"{_STAND_IN} is used: energy.tariff is not given"
    source = replace(known.sources[f"tariff.{_STAND_IN}"], verified=False, note=note)
    return replace(
        plan,
        price=parse(known.tariff[_STAND_IN], USD_PER_JOULE),
        figures={**plan.figures, "tariff": source},
    )
