"""What the machines of a service cost, and a million of its tokens."""

from __future__ import annotations

from simulator.equations.serving import per_million_tokens
from simulator.results.ownership import electricity_by_time, standing_of, working_price
from simulator.results.prediction import StorageBill
from simulator.results.price_age import Listed
from simulator.results.serving import Answered, Saturation, ServiceCost
from simulator.results.storage_bill import bill_of
from simulator.results.stores import uses
from simulator.schema.hardware.naming import short_name
from simulator.schema.hardware.price import Price, price_of
from simulator.schema.owned import Ownership
from simulator.schema.serving import Service
from simulator.serving.energy import energy_of
from simulator.units import MILLION, THOUSAND, PerSecond, Usd, UsdPerSecond, Watts


def price_of_all(service: Service, drawn: Watts | None = None) -> UsdPerSecond | None:
    """Price of all machines of a service together [$/s]; None where it is not known.

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
    """What owned machines cost by the time they work, electricity included."""
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
    """The profile's price that the machines are billed at, with their name; none that is stated."""
    price = listed_price(service)
    return () if price is None else (Listed(short_name(service.group.host.name), price),)


def listed_price(service: Service) -> Price | None:
    """The catalogue's price that the machines are billed at; None where the file states one."""
    plan = service.cost
    if plan.price is not None:
        return None
    return price_of(service.group.host.prices, plan.purchase, plan.region)


def cost_of(service: Service, told: Answered | None, saturation: Saturation | None) -> ServiceCost:
    """What the machines cost at the rates of the run; at saturation where it has none.

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
    """The bill of the store that requests lie in, for all of them answered at a rate.

    What is read and written is that of the job that does so; the store is rented until the last
    answer. None where they lie in none.
    """
    job = service.reading
    return None if job is None or not rate else bill_of(job, uses(job), _all(service) / rate)


def _all(service: Service) -> float:
    """Requests that lie in the store of a service, whose load may be a part of them."""
    return 1.0 if service.reading is None else float(service.reading.job.dataset.samples)
