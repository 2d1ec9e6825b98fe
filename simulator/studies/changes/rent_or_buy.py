"""Rent or buy: how much an owned machine has to work to be as cheap as a rented one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from simulator.equations.cost import break_even_time, break_even_utilization
from simulator.results.ownership import Standing, is_owned, standing
from simulator.results.prediction import Prediction
from simulator.schema.hardware.price import Purchase
from simulator.units import Seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class RentOrBuy:
    """When owning is as cheap as renting for the same work.

    `utilization` is the share of the time in which the owned machines have to work [1]; above 1
    renting is always cheaper. `payback` is when the price of the machines is back at the
    utilization that the scenario `planned` [s]; infinite if never.
    """

    utilization: float
    planned: float
    payback: Seconds


def rent_or_buy(owned: Prediction, rented: Prediction) -> RentOrBuy | None:
    """Compare machines that are bought with machines that are rented for the same job.

    Parameters
    ----------
    owned, rented : Prediction
        The same work on either; they may differ in machines and in time.

    Returns
    -------
    RentOrBuy or None
        None where not all machines of `owned` are owned, `rented` is not, or a price is missing.
    """
    costs, plan = _standing(owned), owned.scenario.owned
    rent, drawn = rented.cost.for_machines, owned.cost.electricity
    if rented.scenario.cost.purchase is Purchase.OWNED or plan is None:
        return None
    if costs is None or rent is None or drawn is None:
        return None
    time = owned.cost.time_to_train
    # Electricity at rest is paid all the time: work adds what is drawn above it.
    at_rest = sum(count * float(one.electricity.value) for count, one in costs)
    spared = rent / time - (drawn / time - at_rest)
    return RentOrBuy(
        utilization=float(break_even_utilization(sum(n * one.price for n, one in costs), spared)),
        planned=plan.utilization,
        payback=float(
            break_even_time(
                sum(count * one.capex for count, one in costs),
                plan.utilization * spared,
                sum(count * one.running for count, one in costs),
            )
        ),
    )


def cheapest_rent(owned: Prediction, others: Sequence[Prediction]) -> int | None:
    """Which of several predictions is the rented one that is the cheapest to beat."""
    found = {
        number: even.utilization
        for number, other in enumerate(others)
        if (even := rent_or_buy(owned, other)) is not None
    }
    return max(found, key=lambda number: found[number]) if found else None


def _standing(prediction: Prediction) -> list[tuple[int, Standing]] | None:
    """Machines of each group, and what one of them costs whether it works or not."""
    scenario, found = prediction.scenario, list[tuple[int, Standing]]()
    for group in scenario.cluster.groups:
        one = standing(scenario, group) if is_owned(scenario, group) else None
        if one is None:
            return None
        found.append((group.count, one))
    return found
