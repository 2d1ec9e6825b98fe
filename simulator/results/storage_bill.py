"""What stores cost over a run: rent, rates held ready, requests, and bytes that leave a region."""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from typing import TypeAlias, cast

from simulator.equations import cost as equations
from simulator.results.cost import listed_price
from simulator.results.prediction import StorageBill, Timing
from simulator.results.stores import Use, belongs_elsewhere, location_of, uses
from simulator.schema.hardware.naming import short_name
from simulator.schema.hardware.storage import Charges, Scope, Storage
from simulator.schema.scenario import Scenario
from simulator.schema.store_plan import Location
from simulator.terms import Term, product_of, sum_of, term
from simulator.units import (
    BYTE,
    MONTH,
    PER_SECOND,
    USD_PER_BYTE,
    Real,
    Seconds,
    Usd,
    anywhere,
    at_least,
    show,
)

RENT, READY, REQUESTS, EGRESS = "rent", "provisioned", "requests", "egress"
PARTS = (RENT, READY, REQUESTS, EGRESS)
"""What a store is paid for."""
Priced: TypeAlias = tuple[str, Term]


def bill_of_stores(scenario: Scenario, timing: Timing) -> StorageBill:
    """What the stores of a run cost; drives inside machines are paid with the machines.

    Data, prepared copies and kept checkpoints are counted from the first second to the last, rates
    held ready as well; interruptions are left out, as in all figures of the undisturbed run.

    Parameters
    ----------
    scenario : Scenario
        With its stores, what they charge, and how long they hold what they hold.
    timing : Timing
        How long the run takes.
    """
    return bill_of(scenario, uses(scenario), timing.total_time + scenario.cost.provisioning)


def bill_of(scenario: Scenario, used: tuple[Use, ...], billed: Seconds | Real) -> StorageBill:
    """The same of stated use, over the time that machines are billed."""
    time = at_least(scenario.store.kept or 0.0, billed)
    terms: dict[str, Term] = {}
    for one in used:
        for part, price in _charged(scenario, one, time, billed):
            known = terms.get(part)
            terms[part] = price if known is None else _and(known, price)
    missing = [named for one in used for named in _missing(scenario, one)]
    unknown = {part for part, _ in missing}
    found = {part: None if part in unknown else _dollars(terms.get(part)) for part in PARTS}
    charged = [terms[part] for part in PARTS if part in terms]
    whole = reduce(_and, charged) if charged else None
    if whole is not None and not missing:
        terms["total"] = whole
    return StorageBill(
        total=None if missing else _dollars(whole),
        known=_dollars(whole),
        rent=found[RENT],
        provisioned=found[READY],
        requests=found[REQUESTS],
        egress=found[EGRESS],
        missing=tuple(text for _, text in missing),
        notes=tuple(text for one in used for text in _notes(scenario, one, billed)),
        terms=terms,
    )


def _and(one: Term, other: Term) -> Term:
    return sum_of(before=one, further=other)


def _dollars(known: Term | None) -> Usd:
    return 0.0 if known is None else cast("float", known.value)


def _charged(scenario: Scenario, use: Use, time: Real, billed: Real) -> Iterator[Priced]:
    """Everything that is charged for one store at a known price.

    It holds what it holds for so much `time`, and is read as long as machines are `billed` [s].
    """
    store, charges = use.store, use.store.charges
    if store.price is not None:
        size = store.rented(use.held)
        yield RENT, term(equations.rent, size=size, price=store.price, time=time)
    if charges is None:
        return
    for rate, free, price in store.provisioned.values():
        ready = term(equations.provisioned_price, rate=rate, free=free, price=price)
        yield READY, product_of(price=ready, time=time)
    if charges.reads is not None and charges.writes is not None:
        yield (
            REQUESTS,
            term(
                equations.requests_cost,
                reads=use.reads,
                read_price=charges.reads,
                writes=use.writes,
                write_price=charges.writes,
            ),
        )
    yield from _egress(scenario, use, charges, billed)


def _egress(scenario: Scenario, use: Use, charges: Charges, billed: Real) -> Iterator[Priced]:
    """Bytes that leave a region: what is read, and between regions of a cloud what is written."""
    where = location_of(scenario, use.store)
    if where is Location.OTHER_REGION and charges.other_region is not None:
        price = charges.other_region
        yield EGRESS, product_of(price=price, size=use.carried + use.written)
    if where is Location.OTHER_CLOUD and charges.internet:
        yield (
            EGRESS,
            term(
                equations.egress_cost,
                size=use.carried,
                months=billed / MONTH,
                ends=tuple(tier.to for tier in charges.internet if tier.to is not None),
                prices=tuple(tier.value for tier in charges.internet),
            ),
        )


def _missing(scenario: Scenario, use: Use) -> Iterator[tuple[str, str]]:
    """Prices without which a part of the bill of a store is not known."""
    store, charges, named = use.store, use.store.charges, short_name(use.store.name)
    if store.price is None:
        yield RENT, f"the rent of {named}: its profile states no price"
    asked = store.scope is Scope.OBJECT and use.reads + use.writes > 0.0
    if asked and (charges is None or charges.reads is None or charges.writes is None):
        yield REQUESTS, f"what {named} charges for requests: its profile states no price"
    if charges is not None:
        for text in charges.unpriced:
            yield REQUESTS, f"what {named} charges for {text}: no source states a price"
    yield from _missing_egress(scenario, use)


def _missing_egress(scenario: Scenario, use: Use) -> Iterator[tuple[str, str]]:
    store, charges, named = use.store, use.store.charges, short_name(use.store.name)
    where = location_of(scenario, store)
    stated = {
        Location.SAME_REGION: True,
        Location.OTHER_REGION: charges is not None and charges.other_region is not None,
        Location.OTHER_CLOUD: charges is not None and bool(charges.internet),
    }
    if use.carried > 0.0 and not stated[where]:
        text = f"what {named} charges for bytes that leave: its profile states no price"
        yield EGRESS, text
    if use.written > 0.0 and where is Location.OTHER_CLOUD:
        yield EGRESS, f"what the cloud of the machines charges for bytes written to {named}"


def _notes(scenario: Scenario, use: Use, billed: Real) -> Iterator[str]:
    """How the prices that were used may not be those that will be paid."""
    store, charges, named = use.store, use.store.charges, short_name(use.store.name)
    if charges is None:
        return
    here = listed_price(scenario, scenario.cluster.trainers)
    same = location_of(scenario, store) is Location.SAME_REGION
    if same and here is not None and not _alike(here.region, charges.region):
        yield f"prices of {named} are those of {charges.region}, not of {here.region}"
    if charges.by_capacity and store.capacity is not None and use.held > store.capacity:
        held, room = show(use.held, BYTE), show(store.capacity, BYTE)
        yield f"{held} are to lie on {named}, which has {room}: the rent is for all of it"
    if charges.rent_to is not None and store.rented(use.held) > charges.rent_to:
        end = show(charges.rent_to, BYTE)
        yield f"the rent of {named} is at most that: above {end} a byte is cheaper"
    if charges.operations_to is not None and _ready(store) > charges.operations_to:
        end = show(charges.operations_to, PER_SECOND)
        yield f"operations of {named} cost at most that: above {end} they are cheaper"
    yield from _beyond_tiers(scenario, use, charges, billed)


def _beyond_tiers(scenario: Scenario, use: Use, charges: Charges, billed: Real) -> Iterator[str]:
    if location_of(scenario, use.store) is not Location.OTHER_CLOUD or not charges.internet:
        return
    end = charges.internet[-1].to
    if end is not None and anywhere(use.carried / at_least(1.0, billed / MONTH) > end):
        name, size = use.store.name, show(end, BYTE)
        yield f"bytes that leave {name} cost at most that: above {size} a month they are cheaper"


def _ready(store: Storage) -> float:
    return store.provisioned["operations"][0] if "operations" in store.provisioned else 0.0


def _alike(one: str, other: str) -> bool:
    """Whether one region is the other, or a part of it: us-east-1 is in us."""
    return one.startswith(other) or other.startswith(one)


def elsewhere(scenario: Scenario) -> tuple[str, ...]:
    """What to know of stores of another cloud than the machines', where the file says nothing."""
    if scenario.store.location is not None:
        return ()
    groups = scenario.cluster.groups
    stores = {one.name: one for g in groups for one in (g.origin, g.storage) if one is not None}
    return tuple(
        f"{far}: {_of_another(scenario, store)}"
        for store in stores.values()
        if (far := belongs_elsewhere(scenario, store))
    )


def _of_another(scenario: Scenario, store: Storage) -> str:
    """What follows from a store's being in another cloud."""
    if location_of(scenario, store) is not Location.OTHER_CLOUD:
        return "these do not reach it, and its rates and prices stand in for those of another store"
    tiers = () if store.charges is None else store.charges.internet
    if not tiers:
        return "the bill leaves out what leaving its cloud costs, at a price that no source states"
    price = f"{show(tiers[0].value, USD_PER_BYTE)}{' at first' if len(tiers) > 1 else ''}"
    return f"bytes that leave its cloud are on the bill at {price}; store.location says otherwise"


def priced(scenario: Scenario) -> tuple[str, ...]:
    """The stores that have prices, each with where these hold and when they were read."""
    stores = (one.store for one in uses(scenario))
    return tuple(_place_and_date(store) for store in stores if store.price is not None)


def _place_and_date(store: Storage) -> str:
    region = "" if store.charges is None else f" in {store.charges.region}"
    source = store.sources.get("price")
    return f"{short_name(store.name)}{region}" + ("" if source is None else f", {source.date}")
