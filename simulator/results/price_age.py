"""How old the prices are that a bill rests on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date

from simulator.results.cost import listed_price
from simulator.results.ownership import is_owned
from simulator.results.storage_bill import priced
from simulator.schema.hardware.naming import short_name
from simulator.schema.hardware.price import Price
from simulator.schema.scenario import Scenario


@dataclass(frozen=True, slots=True)
class Listed:
    """The price of a machine by the profile of that name."""

    machine: str
    price: Price


def listed_prices(scenario: Scenario) -> Iterator[Listed]:
    """The profiles' prices that a job's machines are billed at; none that the user states."""
    for group in scenario.cluster.groups:
        price = listed_price(scenario, group)
        if price is not None:
            yield Listed(short_name(group.host.name), price)


def dated_prices(scenario: Scenario) -> Iterator[str]:
    """Whose listed prices are in the bill, machines and stores: where each holds, and its date."""
    for one in dict.fromkeys(listed_prices(scenario)):
        price = one.price
        where = "" if price.region == "all" else f" in {price.region}"
        yield f"{one.machine} {price.purchase}{where}, {price.source.date}"
    yield from dict.fromkeys(_bought(scenario))
    yield from priced(scenario)


def prices_of(scenarios: Iterable[Scenario]) -> tuple[str, ...]:
    """The same of several jobs, or of one bought in several ways, each price once."""
    return tuple(dict.fromkeys(price for one in scenarios for price in dated_prices(one)))


def _bought(scenario: Scenario) -> Iterator[str]:
    """Machines that are owned, at the price of their profile."""
    plan = scenario.owned
    for group in scenario.cluster.groups:
        stated = plan is not None and group is scenario.cluster.trainers and plan.capex is not None
        source = group.host.sources.get("capex")
        if is_owned(scenario, group) and source is not None and not stated:
            yield f"{short_name(group.host.name)} to buy, {source.date}"


def older(prices: Iterable[Listed], day: date) -> tuple[Listed, ...]:
    """Those that may have been stated before `day`, each once; an undated one may have been."""
    found = dict.fromkeys(prices)
    return tuple(one for one in found if (one.price.source.oldest or date.min) < day)
