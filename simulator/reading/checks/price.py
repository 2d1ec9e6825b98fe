"""Whether a machine has a price for the way a scenario buys it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from simulator.errors import Problem
from simulator.reading.document import Document
from simulator.reading.service.sections import ServiceFile
from simulator.reading.unresolved import Check, UnresolvedScenario
from simulator.schema.hardware.host import Host
from simulator.schema.hardware.price import Purchase, price_of
from simulator.schema.scenario import CostPlan


def price_problems(
    cost: CostPlan, host: Host | None, problem: Callable[..., Problem]
) -> Iterator[Problem]:
    """What a file asks to buy by name, and the machine's profile has no price for.

    A machine without any price is no mistake: its bill is unknown. One that is owned has no rent.
    """
    if cost.purchase is Purchase.OWNED:
        return
    asked = [key for key in ("region", "purchase") if cost.states(key)]
    if host is None or not host.prices or cost.price is not None or not asked:
        return
    if price_of(host.prices, cost.purchase, cost.region) is not None:
        return
    there = dict.fromkeys(f"{price.purchase} in {price.region}" for price in host.prices)
    wanted = f"{cost.purchase}" if cost.region is None else f"{cost.purchase} in {cost.region}"
    known = f"it has {', '.join(there)}; or state cost.price"
    message = f"finds no price of {host.name} for {wanted}"
    key = "purchase" if "purchase" in asked else "region"
    yield problem(("cost", key), message, hint=known)


def service_price_problems(
    document: Document, file: ServiceFile, host: Host | None
) -> Iterator[Problem]:
    """The same of a service; of machines that are owned, whether it is known what they cost."""
    cost = file.cost
    if cost is None:
        return
    yield from price_problems(cost, host, document.problem)
    if cost.purchase is not Purchase.OWNED or cost.price is not None or host is None:
        return
    if host.capex is None and (file.owned is None or file.owned.capex is None):
        message = f"finds no price to buy {host.name}"
        hint = "state owned.capex, or what one costs by the hour as cost.price"
        yield document.problem(("cost", "purchase"), message, hint=hint)
    elif host.gpu is not None and host.gpu.power is None:
        message = f"needs the power of {host.gpu.name}, and its profile states none"
        hint = "state what a machine costs by the hour as cost.price"
        yield document.problem(("cost", "purchase"), message, hint=hint)


def _trainers(file: UnresolvedScenario) -> Iterator[Problem]:
    yield from price_problems(file.cost, file.host, file.problem)


PRICE_CHECKS: Final[tuple[Check, ...]] = (_trainers,)
