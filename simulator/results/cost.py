"""The bill of a job or a service: machines, stores, and the dates of the prices behind it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import date
from functools import reduce
from typing import TYPE_CHECKING, TypeAlias, cast

from simulator.equations import cost as equations
from simulator.equations.cost import upload_requests
from simulator.equations.serving import per_million_tokens
from simulator.equations.storage import operations_per_sample
from simulator.physics.footprint import checkpoint_shares
from simulator.pipeline.run_length import (
    checkpoints,
    lengths,
    preparation,
    samples_of_an_epoch,
)
from simulator.pipeline.stages.base import Phase
from simulator.pipeline.stages.input import bytes_per_file, read_from_store, write_operations
from simulator.records import dataclass
from simulator.results.energy import (
    Billed,
    electricity_by_time,
    electricity_in_a_step,
    electricity_of,
    is_owned,
    joules_per_step,
    owned_price,
    service_energy,
    standing,
)
from simulator.results.prediction import Cost, StorageBill, Timing
from simulator.schema.cost import Location, Price, Purchase, price_of
from simulator.schema.data_loading import CachePolicy, Placement, Preparation
from simulator.schema.machines import Group, short_name
from simulator.schema.scenario import Scenario
from simulator.schema.storage import Charges, Scope, Storage
from simulator.schema.training import Mode
from simulator.terms import Term, product_of, sum_of, term
from simulator.units import (
    BYTE,
    MILLION,
    MONTH,
    PER_SECOND,
    THOUSAND,
    USD_PER_BYTE,
    Bytes,
    PerSecond,
    Real,
    Seconds,
    Usd,
    UsdPerSecond,
    Watts,
    anywhere,
    at_least,
    show,
)

if TYPE_CHECKING:
    from simulator.results.serving import Answered, Saturation, ServiceCost
    from simulator.schema.serving import Service


def bill(scenario: Scenario, timing: Timing) -> Cost:
    """Return the cost of the machines: price, costs per step and of the run, samples per dollar.

    It includes the energy of a step.

    Parameters
    ----------
    scenario : Scenario
        Scenario with the prices of machines; without a price all costs are None.
    timing : Timing
        Times of a step and of the run.
    """
    price, energy = rent(scenario), joules_per_step(scenario, timing)
    terms = {} if price is None else _dollars(scenario, timing, price)
    if energy is not None:
        terms["energy_per_step"] = energy
    known = {name: float(one.value) for name, one in terms.items()}
    return Cost(
        terms=terms,
        per_second=known.get("per_second"),
        per_step=known.get("per_step"),
        samples_per_usd=known.get("samples_per_usd"),
        for_machines=known.get("for_machines"),
        time_to_train=timing.total_time,
        energy_per_step=known.get("energy_per_step"),
        electricity=known.get("electricity"),
    )


def _dollars(scenario: Scenario, timing: Timing, price: Term) -> dict[str, Term]:
    """Return the costs of steps, samples and the run, with their equations."""
    whole = term(
        equations.cost_of_block if is_block(scenario) else equations.cost_to_train,
        price=price,
        time=timing.total_time,
        provisioning=scenario.cost.provisioning,
    )
    found, working = {"per_second": price}, price
    drawn, in_a_step = electricity_of(scenario, timing), electricity_in_a_step(scenario, timing)
    if drawn is not None and in_a_step is not None:
        found["electricity"] = drawn
        whole = sum_of(rent=whole, electricity=drawn)
        working = sum_of(rent=price, electricity=in_a_step)
    step = timing.step_time.mean
    found["per_step"] = term(equations.cost_per_step, price=working, step_time=step)
    found["for_machines"] = whole
    if float(working.value) > 0.0:
        found["samples_per_usd"] = term(
            equations.samples_per_usd, throughput=_epoch_rate(scenario, timing), price=working
        )
    return found


def is_block(scenario: Scenario) -> bool:
    """Return whether the machines are bought as a capacity block, which is billed as a whole."""
    return scenario.cost.purchase is Purchase.CAPACITY_BLOCK


def paid_time(scenario: Scenario, time: Real) -> Real:
    """Return the billed time of a run of length `time`, including provisioning [s]."""
    held = scenario.cost.provisioning + time
    return equations.block_time(held) if is_block(scenario) else held


def _epoch_rate(scenario: Scenario, timing: Timing) -> float:
    """Return the samples of an epoch divided by its time, including start and end [/s]."""
    return float(samples_of_an_epoch(scenario) / timing.epoch_time)


def machines_price(billed: Billed) -> UsdPerSecond | None:
    """Return the price of all machines [$/s]; None if the price of any machine is unknown.

    All groups are billed until the last one ends.
    """
    price = rent(billed)
    return None if price is None else cast("UsdPerSecond", price.value)


def rent(billed: Billed) -> Term | None:
    """Return the price of all machines as a term with its equation [$/s]; None if unknown."""
    total: Term | None = None
    for group in billed.cluster.groups:
        price = _price_of_one(billed, group)
        if price is None:
            return None
        own = product_of(price=price, machines=group.count)
        total = own if total is None else sum_of(groups_before=total, group=own)
    return total


def price_spread(scenario: Scenario) -> UsdPerSecond:
    """Return the difference between highest and lowest price of all machines [$/s].

    It is 0 if no listed price has a range.
    """
    listed = ((group.count, listed_price(scenario, group)) for group in scenario.cluster.groups)
    return sum(count * (one.high - one.low) for count, one in listed if one is not None)


def machine_price(billed: Billed, group: Group) -> UsdPerSecond | None:
    """Return the price of one machine of a group [$/s]: stated, else listed, else None.

    A fluctuating price is the middle of its observed range. The price of an owned machine excludes
    the electricity of its work.
    """
    price = _price_of_one(billed, group)
    return cast("UsdPerSecond", price.value) if isinstance(price, Term) else price


def _price_of_one(billed: Billed, group: Group) -> Term | UsdPerSecond | None:
    if is_owned(billed, group):
        return owned_price(billed, group)
    stated, listed = stated_price(billed, group), listed_price(billed, group)
    return listed.usual if stated is None and listed is not None else stated


def stated_price(billed: Billed, group: Group) -> UsdPerSecond | None:
    """Return the stated price of one machine of a group [$/s]; None if there is none."""
    if group.price is None and group is billed.cluster.trainers:
        return billed.cost.price
    return group.price


def listed_price(billed: Billed, group: Group) -> Price | None:
    """Return the price in the profile that a machine of a group is billed at.

    None if the scenario states a price, or if the profile has none for this purchase and region.
    """
    if stated_price(billed, group) is not None:
        return None
    return price_of(group.host.prices, billed.cost.purchase, billed.cost.region)


UNLIMITED = math.inf
_CARRIED = frozenset({Scope.OBJECT, Scope.NETWORK})
"""Stores that are reached over a network; drives and volumes are where their machines are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """Bytes and requests of a run at one store.

    `held` are stored bytes, `reads` and `writes` the requests of the whole run, `carried` the bytes
    read and `written` the bytes written.
    """

    store: Storage
    held: Bytes = 0.0
    reads: float = 0.0
    writes: float = 0.0
    carried: Bytes = 0.0
    written: Bytes = 0.0


def location_of(scenario: Scenario, store: Storage) -> Location:
    """Return the location of a store relative to its machines: stated, else by their clouds."""
    if scenario.store.location is not None:
        return scenario.store.location
    far = store.scope in _CARRIED and bool(foreign_cloud(scenario, store))
    return Location.OTHER_CLOUD if far else Location.SAME_REGION


def foreign_cloud(scenario: Scenario, store: Storage) -> str:
    """Return the cloud of machines that use a store of another cloud; empty if none do."""
    if not store.clouds:
        return ""
    using = (
        group.host.cloud
        for group in scenario.cluster.groups
        if store.name in {one.name for one in (group.storage, group.origin) if one is not None}
    )
    return next((cloud for cloud in using if cloud and cloud not in store.clouds), "")


def belongs_elsewhere(scenario: Scenario, store: Storage) -> str:
    """Return a text that a store belongs to another cloud; empty if it does not."""
    cloud = foreign_cloud(scenario, store)
    if not cloud:
        return ""
    return f"{short_name(store.name)} belongs to {store.clouds[0]}, the machines to {cloud}"


def data_stores(scenario: Scenario) -> tuple[Storage, ...]:
    """Return the stores that hold the data at the start of a run, for trainers or helpers."""
    job, trainers = scenario.job, scenario.cluster.trainers
    staged = job.dataset.placement is Placement.STAGE
    preloaded = job.dataset.cache is CachePolicy.PRELOADED
    if job.remote is None or staged or preloaded:
        return (trainers.origin or trainers.storage,)
    helpers = (g for g in scenario.cluster.groups if g.name == job.remote.name)
    return tuple(group.origin or group.storage for group in helpers)


def data_rent(scenario: Scenario) -> UsdPerSecond:
    """Return the rent of the stores that hold the data [$/s]; an unknown price counts as 0.

    It includes provisioned rates. Local drives are paid with the machine.
    """
    size = scenario.job.stored_total
    rented = (store for store in data_stores(scenario) if store.scope is not Scope.LOCAL)
    return sum((store.standing(size) or 0.0 for store in rented), 0.0)


def rent_of_data(scenario: Scenario) -> Real:
    """Return the rent of the data as given, without copies [$/s]; accepts arrays of candidates."""
    dataset = scenario.job.dataset
    rented = (store for store in data_stores(scenario) if store.scope is not Scope.LOCAL)
    prices: list[Real] = [store.price for store in rented if store.price is not None]
    return dataset.total_bytes * sum(prices, 0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreActivity:
    """Activity of a run at a store: number of `checkpoints` written and of `loads` of a checkpoint.

    `again` is the ratio of all work to useful work.
    """

    checkpoints: float
    loads: float = 0.0
    again: float = 1.0


def uses(scenario: Scenario, activity: StoreActivity | None = None) -> tuple[Use, ...]:
    """Return the uses of stores outside the machines, by default of a run without interruptions."""
    known = (
        StoreActivity(checkpoints=float(checkpoints(scenario))) if activity is None else activity
    )
    parts = (
        *_data(scenario),
        *_epochs(scenario, known.again),
        *_placement(scenario),
        *_results(scenario, known),
    )
    outside = [one for one in parts if one.store.scope is not Scope.LOCAL]
    names = dict.fromkeys(one.store.name for one in outside)
    return tuple(_together([one for one in outside if one.store.name == name]) for name in names)


def _together(parts: Sequence[Use]) -> Use:
    return Use(
        store=parts[0].store,
        held=sum(one.held for one in parts),
        reads=sum(one.reads for one in parts),
        writes=sum(one.writes for one in parts),
        carried=sum(one.carried for one in parts),
        written=sum(one.written for one in parts),
    )


def _data(scenario: Scenario) -> Iterator[Use]:
    """Yield the uses by the data and by its prepared copies."""
    job = scenario.job
    given = job.dataset.total_bytes
    prepared = job.input.where is Preparation.BEFOREHAND and job.mode is not Mode.PREPARE
    for store in data_stores(scenario):
        yield Use(store=store, held=given)
        if prepared:
            yield Use(store=store, held=job.stored_total)
    if prepared:
        raw = read_from_store(preparation(scenario), Phase.COLD)
        share = job.dataset.samples / job.train.batch_size
        store = scenario.cluster.trainers.storage
        written = write_operations(job.dataset, job.stored_bytes, store)
        yield Use(
            store=store,
            reads=float(raw.operations * share),
            carried=float(raw.amount * share),
            writes=float(written * job.dataset.samples),
            written=float(job.stored_total),
        )


def _epochs(scenario: Scenario, again: float) -> Iterator[Use]:
    """Yield the reads by epochs and evaluation passes that miss all caches.

    If trainers and helpers both prepare batches, all reads are attributed to helpers.
    """
    job = scenario.job
    view = scenario if job.remote is None else replace(scenario, at=job.remote.name)
    epochs, once = lengths(scenario).epochs, float(samples_of_an_epoch(scenario))
    evaluated = 0.0
    if job.train.evaluation is not None:
        passes = job.train.epochs // job.train.evaluation.every_epochs
        evaluated = passes * job.train.evaluation.samples
    read = {
        Phase.COLD: once * min(1.0, epochs),
        Phase.WARM: once * max(0.0, epochs - 1.0) + evaluated,
    }
    for phase, samples in read.items():
        demand, batches = read_from_store(view, phase), again * samples / job.train.batch_size
        yield Use(
            store=view.site.storage,
            reads=float(demand.operations * batches),
            carried=float(demand.amount * batches),
        )


def _placement(scenario: Scenario) -> Iterator[Use]:
    """Yield the reads that copy the data to the training machines."""
    job, group = scenario.job, scenario.cluster.trainers
    if job.dataset.placement is Placement.STREAM:
        return
    store = group.origin or group.storage
    each = operations_per_sample(
        job.stored_bytes,
        bytes_per_file(job.dataset, job.stored_bytes),
        store.operation_size or UNLIMITED,
        sequential=True,
    )
    yield Use(
        store=store,
        reads=float(each * job.dataset.samples * group.count),
        carried=float(job.stored_total * group.count),
    )


def _results(scenario: Scenario, activity: StoreActivity) -> Iterator[Use]:
    """Yield the writes of a run: checkpoints, or prepared samples."""
    job, store = scenario.job, scenario.cluster.trainers.storage
    if job.mode is Mode.PREPARE:
        samples = float(samples_of_an_epoch(scenario) * lengths(scenario).epochs)
        size = float(job.input.output_bytes_per_sample) * samples
        each = write_operations(job.dataset, job.input.output_bytes_per_sample, store)
        yield Use(store=store, held=size, writes=float(each * samples), written=size)
        return
    if job.model is not None and activity.checkpoints > 0.0:
        yield _of_checkpoints(scenario, activity)


def _of_checkpoints(scenario: Scenario, activity: StoreActivity) -> Use:
    """Return the use of a store by checkpoints."""
    shares, group = checkpoint_shares(scenario), scenario.cluster.trainers
    store, share, whole = group.storage, float(shares.device.value), float(shares.whole)
    number, part = activity.checkpoints, store.operation_size or UNLIMITED
    # All machines read at once, each what its own processes hold.
    readers, read = float(shares.processes) * group.count, float(shares.machine.value) * group.count
    return Use(
        store=store,
        held=min(number, scenario.store.checkpoints) * whole,
        writes=float(number * upload_requests(share, part)) * whole / share,
        written=number * whole,
        reads=activity.loads * readers * max(1.0, math.ceil(share / part)),
        carried=activity.loads * read,
    )


RENT, READY, REQUESTS, EGRESS = "rent", "provisioned", "requests", "egress"
PARTS = (RENT, READY, REQUESTS, EGRESS)
"""Parts of the bill of a store."""
Priced: TypeAlias = tuple[str, Term]


def bill_of_stores(scenario: Scenario, timing: Timing) -> StorageBill:
    """Return the bill of the stores of a run without interruptions, local drives excluded.

    Data, prepared copies, kept checkpoints and provisioned rates are billed for the whole run.

    Parameters
    ----------
    scenario : Scenario
        Scenario with stores, their charges, and the time for which data is kept.
    timing : Timing
        Times of the run.
    """
    used = uses(scenario, StoreActivity(checkpoints=timing.checkpoints))
    return bill_of(scenario, used, timing.total_time + scenario.cost.provisioning)


def bill_of(scenario: Scenario, used: tuple[Use, ...], billed: Seconds | Real) -> StorageBill:
    """Return the bill of stores for the uses `used`; `billed`: paid time of the machines [s]."""
    time = at_least(scenario.store.kept or 0.0, billed)
    terms: dict[str, Term] = {}
    for one in used:
        for part, price in _charged(scenario, one, time, billed):
            known = terms.get(part)
            terms[part] = price if known is None else _and(known, price)
    missing = [named for one in used for named in _missing(scenario, one)]
    unknown = {part for part, _ in missing}
    found = {part: None if part in unknown else _usd_of(terms.get(part)) for part in PARTS}
    charged = [terms[part] for part in PARTS if part in terms]
    whole = reduce(_and, charged) if charged else None
    if whole is not None and not missing:
        terms["total"] = whole
    return StorageBill(
        total=None if missing else _usd_of(whole),
        known=_usd_of(whole),
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


def _usd_of(known: Term | None) -> Usd:
    return 0.0 if known is None else cast("float", known.value)


def _charged(scenario: Scenario, use: Use, time: Real, billed: Real) -> Iterator[Priced]:
    """Yield the charges of one store with a known price, each with the part of the bill.

    Stored bytes are billed for `time` [s]; reads are spread over the `billed` time of the machines
    [s].
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
    metered = (charges.read_bytes, use.carried), (charges.written_bytes, use.written)
    for charge, moved in metered:
        if charge is not None:
            yield REQUESTS, product_of(price=charge, size=moved)
    yield from _egress(scenario, use, charges, billed)


def _egress(scenario: Scenario, use: Use, charges: Charges, billed: Real) -> Iterator[Priced]:
    """Yield the charges for egress to another region or another cloud."""
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
    """Yield the unknown prices of a store: part of the bill and a text for the user."""
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
    """Yield texts on prices of a store that may differ from those paid."""
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
    """Return whether one region is the other or contains it: us-east-1 is in us."""
    return one.startswith(other) or other.startswith(one)


def elsewhere(scenario: Scenario) -> tuple[str, ...]:
    """Return warnings about stores in another cloud, unless the scenario states their location."""
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
    """Describe the assumptions about a store in another cloud."""
    if location_of(scenario, store) is not Location.OTHER_CLOUD:
        return "the machines cannot reach it; its rates and prices are used for another store"
    tiers = () if store.charges is None else store.charges.internet
    if not tiers:
        return "the bill leaves out what leaving its cloud costs, at a price that no source states"
    price = f"{show(tiers[0].value, USD_PER_BYTE)}{' at first' if len(tiers) > 1 else ''}"
    return f"bytes that leave its cloud are on the bill at {price}; store.location says otherwise"


def priced(scenario: Scenario) -> tuple[str, ...]:
    """Describe the stores in the bill that have a price, with region and date of the price."""
    stores = (one.store for one in uses(scenario))
    return tuple(_place_and_date(store) for store in stores if store.price is not None)


def _place_and_date(store: Storage) -> str:
    region = "" if store.charges is None else f" in {store.charges.region}"
    source = store.sources.get("price")
    return f"{short_name(store.name)}{region}" + ("" if source is None else f", {source.date}")


@dataclass(frozen=True, slots=True)
class Listed:
    """Price of a machine from its profile, with the name of the machine."""

    machine: str
    price: Price


def listed_prices(billed: Billed) -> Iterator[Listed]:
    """Yield the prices from profiles that the machines of a job or a service are billed at."""
    for group in billed.cluster.groups:
        price = listed_price(billed, group)
        if price is not None:
            yield Listed(short_name(group.host.name), price)


def dated_prices(scenario: Scenario) -> Iterator[str]:
    """Describe the listed prices of machines and stores in the bill, with region and date."""
    for one in dict.fromkeys(listed_prices(scenario)):
        price = one.price
        where = "" if price.region == "all" else f" in {price.region}"
        yield f"{one.machine} {price.purchase}{where}, {price.source.date}"
    yield from dict.fromkeys(_bought(scenario))
    yield from priced(scenario)


def prices_of(scenarios: Iterable[Scenario]) -> tuple[str, ...]:
    """Describe the listed prices in the bills of several jobs, each price once."""
    return tuple(dict.fromkeys(price for one in scenarios for price in dated_prices(one)))


def _bought(scenario: Scenario) -> Iterator[str]:
    """Describe owned machines that are billed at the purchase price of their profile."""
    plan = scenario.owned
    for group in scenario.cluster.groups:
        stated = plan is not None and group is scenario.cluster.trainers and plan.capex is not None
        source = group.host.sources.get("capex")
        if is_owned(scenario, group) and source is not None and not stated:
            yield f"{short_name(group.host.name)} to buy, {source.date}"


def older(prices: Iterable[Listed], day: date) -> tuple[Listed, ...]:
    """Return the prices that may be older than `day`, including undated ones, each once."""
    found = dict.fromkeys(prices)
    return tuple(one for one in found if (one.price.source.oldest or date.min) < day)


def service_price(service: Service, drawn: Watts | None = None) -> UsdPerSecond | None:
    """Return the price of all machines of a service [$/s]; None if unknown.

    For owned machines it includes electricity at the power `drawn`, or at idle power by default.
    """
    price, owned = machines_price(service), standing(service, service.group)
    if price is None or service.energy is None or service.owned is None or owned is None:
        return price
    at_rest = service.group.count * float(owned.electricity.value)
    spent = at_rest if drawn is None else float(electricity_by_time(service.energy, drawn).value)
    return price + spent


def service_cost(
    service: Service, told: Answered | None, saturation: Saturation | None
) -> ServiceCost:
    """Return the costs of machines, tokens and requests of a service.

    Rates are those of the simulated run if it is given, else those at saturation. Under
    autoscaling, rented machines are billed at their average number; owned ones are always paid.
    """
    from simulator.results.serving import ServiceCost  # noqa: PLC0415 - no job needs it

    found, owned = told or saturation, service.owned is not None
    drawn = service_energy(service, told, saturation).power if owned else None
    price = service_price(service, drawn)
    stores = None if found is None else bill_of_store(service, found.request_rate)
    if price is None or found is None or not found.output_rate:
        return ServiceCost(per_second=price, stores=stores)
    if told is not None and service.serving.autoscaling is not None and not owned:
        price *= told.replicas / service.serving.replicas
    output, requests = found.output_rate, found.request_rate
    prompts = requests * service.load.prompt.mean if told is None else told.prompt_rate
    paid = price if stores is None else price + stores.known * requests / _all(service)

    def per(rate: PerSecond) -> Usd:
        return float(per_million_tokens(paid, rate))

    return ServiceCost(
        per_second=price,
        stores=stores,
        per_million_output_tokens=per(output),
        per_million_tokens=per(output + prompts),
        per_thousand_requests=per(requests) * THOUSAND / MILLION,
    )


def bill_of_store(service: Service, rate: PerSecond) -> StorageBill | None:
    """Return the bill of the store that holds the requests, if they are processed at `rate` [/s].

    Reads and writes are those of the job that reads the requests; the store is rented until the
    last answer. None if no store holds the requests.
    """
    job = service.reading
    return None if job is None or not rate else bill_of(job, uses(job), _all(service) / rate)


def _all(service: Service) -> float:
    """Return the number of requests in the store, of which the simulated load may be a part."""
    return 1.0 if service.reading is None else float(service.reading.job.dataset.samples)
