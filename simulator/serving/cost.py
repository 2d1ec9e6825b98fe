"""What the machines of a service cost, and a million of its tokens."""

from __future__ import annotations

from simulator.equations.serving import per_million_tokens
from simulator.results.price_age import Listed
from simulator.results.serving import Answered, Saturation, ServiceCost
from simulator.scenario.hardware.price import Price, price_of
from simulator.scenario.serving import Service
from simulator.units import MILLION, THOUSAND, PerSecond, Usd, UsdPerSecond


def rent_of(service: Service) -> UsdPerSecond | None:
    """Price of all machines of a service together [$/s]; None where it is not known."""
    each, listed = service.cost.price, listed_price(service)
    if listed is not None:
        each = listed.usual
    return None if each is None else each * service.group.count


def listed_prices(service: Service) -> tuple[Listed, ...]:
    """The profile's price that the machines are billed at, with their name; none that is stated."""
    price = listed_price(service)
    return () if price is None else (Listed(service.group.host.name, price),)


def listed_price(service: Service) -> Price | None:
    """The catalogue's price that the machines are billed at; None where the file states one."""
    plan = service.cost
    if plan.price is not None:
        return None
    return price_of(service.group.host.prices, plan.purchase, plan.region)


def cost_of(service: Service, told: Answered | None, saturation: Saturation | None) -> ServiceCost:
    """What the machines cost at the rates of the run; at saturation where it has none.

    Under autoscaling the machines that were there on average count.
    """
    price, found = rent_of(service), told or saturation
    if price is None or found is None or not found.output_rate:
        return ServiceCost(per_second=price)
    if told is not None and service.serving.autoscaling is not None:
        price *= told.replicas / service.serving.replicas
    output, requests = found.output_rate, found.request_rate
    prompts = requests * service.load.prompt.mean if told is None else told.prompt_rate

    def per(rate: PerSecond) -> Usd:
        return float(per_million_tokens(price, rate))

    return ServiceCost(
        per_second=price,
        per_million_output_tokens=per(output),
        per_million_tokens=per(output + prompts),
        per_thousand_requests=per(requests) * THOUSAND / MILLION,
    )
