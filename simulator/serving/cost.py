"""Power and energy of the machines of a service, and the cost of its tokens and requests."""

from __future__ import annotations

from collections.abc import Iterator

from simulator.equations.cost import building_energy, drawn_energy, emissions
from simulator.equations.serving import per_million_tokens
from simulator.results.cost import Listed, bill_of, uses
from simulator.results.energy import (
    draws_at,
    electricity_by_time,
    is_known,
    standing_of,
    working_price,
)
from simulator.results.prediction import StorageBill
from simulator.results.serving import Answered, Saturation, ServiceCost, ServiceEnergy
from simulator.schema.cost import EnergyPlan, Ownership, Price, price_of
from simulator.schema.machines import short_name
from simulator.schema.serving import Service
from simulator.units import (
    MILLION,
    THOUSAND,
    Joules,
    Kilograms,
    PerSecond,
    Usd,
    UsdPerSecond,
    Watts,
)


def energy_of(
    service: Service, told: Answered | None, saturation: Saturation | None
) -> ServiceEnergy:
    """Return the power of all machines at the rates of the run, or at saturation.

    Accelerators that no replica uses stand idle. Under autoscaling the machines that were there on
    average count.
    """
    found = told or saturation
    if found is None or not found.output_rate or not is_known(service.group):
        return ServiceEnergy()
    serving = service.serving
    there = 1.0 if told is None else told.replicas / serving.replicas
    accelerators, processors = _busy(service, told)
    drawn = draws_at(service.group, accelerators=accelerators, processors=processors)
    power = there * sum(draw.mean for draw in drawn)
    requests = found.request_rate
    prompts = requests * service.load.prompt.mean if told is None else told.prompt_rate

    def of(many: float, rate: PerSecond) -> Joules:
        return float(drawn_energy(power, many / rate))

    return ServiceEnergy(
        power=power,
        per_million_output_tokens=of(MILLION, found.output_rate),
        per_million_tokens=of(MILLION, found.output_rate + prompts),
        per_thousand_requests=of(THOUSAND, requests),
        emitted_per_thousand_requests=_emitted(service.electricity, of(THOUSAND, requests)),
    )


def _emitted(plan: EnergyPlan | None, energy: Joules) -> Kilograms | None:
    """Return the emissions for an energy at the plugs [kg]; None if the grid is unknown."""
    if plan is None or plan.grid is None:
        return None
    return float(emissions(building_energy(energy, plan.pue), plan.grid))


def _busy(service: Service, told: Answered | None) -> tuple[float, float]:
    """Return the busy shares of all accelerators and of all processors.

    At saturation all replicas compute. Without accelerators processors do; with them, processors
    are busy only with requests before their batches.
    """
    group, devices = service.group, sum(count * busy for count, busy in _kinds(service, told))
    used = min(1.0, devices / (group.count * group.gpus_per_host))
    if group.host.gpu is None:
        return 0.0, used
    return used, 0.0 if told is None else told.host_busy


def _kinds(service: Service, told: Answered | None) -> Iterator[tuple[int, float]]:
    """Return the devices of each kind of replica and their busy share."""
    serving, before = service.serving, service.serving.prefill
    of = {} if told is None else told.busy_of
    yield serving.replicas * serving.tensor, 1.0 if told is None else told.busy
    if before is not None:
        yield before.replicas * before.tensor, of.get("prompts", 1.0)


def price_of_all(service: Service, drawn: Watts | None = None) -> UsdPerSecond | None:
    """Return the price of all machines of a service [$/s]; None if unknown.

    That of machines that are owned has the electricity of the power `drawn` in it; of what they
    draw at rest, the least, where none is given.
    """
    each, listed = service.cost.price, listed_price(service)
    if service.owned is not None:
        return _owned(service, service.owned, drawn)
    if listed is not None:
        each = listed.usual
    return None if each is None else each * service.group.count


def _owned(service: Service, plan: Ownership, drawn: Watts | None) -> UsdPerSecond | None:
    """Return the cost of owned machines while they work, electricity included."""
    group, energy = service.group, service.electricity
    if energy is None:
        return None
    paid = group.host.capex if plan.capex is None else plan.capex
    one = standing_of(group, plan, energy, paid)
    if one is None:
        return None
    at_rest = group.count * float(one.electricity.value)
    spent = at_rest if drawn is None else float(electricity_by_time(energy, drawn).value)
    return group.count * float(working_price(one, plan).value) + spent


def listed_prices(service: Service) -> tuple[Listed, ...]:
    """Return the listed price of the machines with their name; none if the file states a price."""
    price = listed_price(service)
    return () if price is None else (Listed(short_name(service.group.host.name), price),)


def listed_price(service: Service) -> Price | None:
    """Return the listed price of the machines; None if the file states a price."""
    plan = service.cost
    if plan.price is not None:
        return None
    return price_of(service.group.host.prices, plan.purchase, plan.region)


def cost_of(service: Service, told: Answered | None, saturation: Saturation | None) -> ServiceCost:
    """Return the cost of machines, tokens and requests at the rates of the run, or at saturation.

    Under autoscaling the machines that were there on average count; owned ones stay.
    """
    found, owned = told or saturation, service.owned is not None
    price = price_of_all(service, energy_of(service, told, saturation).power if owned else None)
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
    """Return the bill of the store of requests, for all of them at a rate.

    What is read and written is that of the job that does so; the store is rented until the last
    answer. None where they lie in none.
    """
    job = service.reading
    return None if job is None or not rate else bill_of(job, uses(job), _all(service) / rate)


def _all(service: Service) -> float:
    """Return the number of requests in the store, of which the load may be a part."""
    return 1.0 if service.reading is None else float(service.reading.job.dataset.samples)
