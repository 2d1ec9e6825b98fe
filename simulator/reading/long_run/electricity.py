"""Figures of grids and tariffs, ``data/electricity.toml``, and what a scenario makes of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Annotated, Final

from simulator.errors import InputError, Problem, UnitError
from simulator.memo import cached
from simulator.reading.document import Document, check, read_document
from simulator.reading.long_run.bill_sections import EnergySection, PueField
from simulator.reading.shipped import DATA
from simulator.reading.unresolved import UnresolvedScenario
from simulator.schema.energy import EnergyPlan
from simulator.schema.fields import nearest_hint
from simulator.schema.figures import SOURCED, NameFigure, Sourceable
from simulator.schema.hardware.price import Purchase
from simulator.uncertainty.provenance import Source
from simulator.units import KILOGRAM_PER_JOULE, USD_PER_JOULE, Unit, parse

_FILE: Final = DATA / "electricity.toml"
_STAND_IN: Final = "us/east-north-central/industrial"
"""Tariff of owned machines where a scenario names none."""
_STATED: Final = Source(reference="stated by the scenario", date="its own")


PueFigure = Annotated[PueField, SOURCED]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Electricity(Sourceable):
    """The file data/electricity.toml."""

    pue: dict[str, PueFigure]
    """World: where a scenario says nothing."""
    grid: dict[str, NameFigure]
    """Emissions by region."""
    tariff: dict[str, NameFigure]
    """Prices by place and kind of customer."""


@cache
def _electricity() -> _Electricity:
    return check(_Electricity, read_document(_FILE))


def energy_plan(document: Document, given: EnergySection) -> EnergyPlan:
    """What the [energy] section of a scenario says.

    Raises
    ------
    InputError
        If `grid` or `tariff` is neither an amount nor a name that is known.
    """
    known = _electricity()
    grid = _amount(document, "grid", given.grid, known.grid, KILOGRAM_PER_JOULE)
    tariff = _amount(document, "tariff", given.tariff, known.tariff, USD_PER_JOULE)
    found = {
        "pue": _STATED if given.pue is not None else known.sources["pue.world"],
        **{name: source for name, (_, source) in (("grid", grid), ("tariff", tariff)) if source},
    }
    return EnergyPlan(
        pue=known.pue["world"] if given.pue is None else given.pue,
        grid=grid[0],
        tariff=tariff[0],
        sources=found,
    )


def _amount(
    document: Document, key: str, text: str | None, known: Mapping[str, str], unit: Unit
) -> tuple[float | None, Source | None]:
    """An amount with its unit, or the figure that a name stands for, with its source."""
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


def energy_of(file: UnresolvedScenario) -> EnergyPlan | None:
    """Return where the electricity of the machines comes from; None where nothing is stated.

    Raises
    ------
    InputError
        As `energy_plan` does.
    """
    owned = file.cost.purchase is Purchase.OWNED or file.owned is not None
    if file.energy is None and not owned:
        return None
    return electricity(file.document, file.energy, owned=owned)


@cached(most=1000, ignore=(Document,))
def electricity(document: Document, given: EnergySection | None, *, owned: bool) -> EnergyPlan:
    """What a file says of electricity; with a tariff that stands in where machines are owned.

    Raises
    ------
    InputError
        As `energy_plan` does.
    """
    plan = energy_plan(document, given or EnergySection())
    return _with_tariff(plan) if owned and plan.tariff is None else plan


def _with_tariff(plan: EnergyPlan) -> EnergyPlan:
    """The plan with a tariff that stands in: whoever owns machines pays for electricity."""
    known = _electricity()
    note = f"{_STAND_IN} stands in for energy.tariff, which is not given"
    source = replace(known.sources[f"tariff.{_STAND_IN}"], verified=False, note=note)
    return replace(
        plan,
        tariff=parse(known.tariff[_STAND_IN], USD_PER_JOULE),
        sources={**plan.sources, "tariff": source},
    )


def _mistakes(file: UnresolvedScenario) -> Iterator[Problem]:
    try:
        energy_of(file)
    except InputError as error:
        yield from error.problems


ENERGY_CHECKS: Final = (_mistakes,)
