"""What machines cost that are bought: price, interest, room, staff, electricity."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from simulator.equations import cost as equations
from simulator.equations.energy import building_energy, electricity_cost
from simulator.results.power import draws_at, is_known
from simulator.schema.energy import EnergyPlan
from simulator.schema.hardware.cluster import Group
from simulator.schema.hardware.naming import short_name
from simulator.schema.hardware.price import Purchase
from simulator.schema.owned import Ownership
from simulator.schema.scenario import Scenario
from simulator.terms import Term, term
from simulator.units import Usd, UsdPerSecond, Watts


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """What one owned machine costs whether it works or not.

    `capex` is paid at the start, with its share of the network; `capital`, `hosting`, `staff` and
    `electricity` (of the machine at rest, with its part of the building) are by time.
    """

    capex: Usd
    capital: Term
    hosting: UsdPerSecond
    staff: UsdPerSecond
    electricity: Term

    @property
    def running(self) -> UsdPerSecond:
        """All of it but the price of the machine [$/s]."""
        return self.hosting + self.staff + float(self.electricity.value)

    @property
    def price(self) -> UsdPerSecond:
        """All of it [$/s]."""
        return float(self.capital.value) + self.running


def is_owned(scenario: Scenario, group: Group) -> bool:
    """Whether a group's machines are bought: a price stated for them is rent."""
    own = group is scenario.cluster.trainers and scenario.cost.price is not None
    return scenario.cost.purchase is Purchase.OWNED and group.price is None and not own


def standing(scenario: Scenario, group: Group) -> Standing | None:
    """What one machine of a group costs to own; None where a figure is missing for it."""
    plan, energy = scenario.owned, scenario.energy
    if plan is None or energy is None:
        return None
    return standing_of(group, plan, energy, capex_of(scenario, group))


def standing_of(
    group: Group, plan: Ownership, energy: EnergyPlan, paid: Usd | None
) -> Standing | None:
    """The same of a machine whose price to buy is `paid`."""
    watts = _power(group)
    if energy.tariff is None or paid is None or watts is None:
        return None
    rest, most = watts
    usual = in_a_rack(group)
    network = plan.network if usual or plan.states("network") else 0.0
    with_network = paid * (1.0 + network)
    capital = term(
        equations.capital_cost,
        capex=with_network,
        residual=paid * plan.residual,
        interest=plan.interest,
        life=plan.life,
    )
    room = most * plan.hosting_per_watt if usual else 0.0
    hosting = room if plan.hosting is None else plan.hosting
    return Standing(
        capex=with_network,
        capital=capital,
        hosting=hosting,
        staff=plan.staff or 0.0,
        electricity=electricity_by_time(energy, rest),
    )


def in_a_rack(group: Group) -> bool:
    """Whether the machines of a group stand in a data centre unless somebody says otherwise."""
    gpu = group.host.gpu
    return gpu is None or not gpu.desktop


def electricity_by_time(plan: EnergyPlan, power: Watts) -> Term:
    """What machines of such a power pay for electricity, with their part of the building [$/s]."""
    building = term(building_energy, energy=power, pue=plan.pue)
    return term(electricity_cost, energy=building, tariff=plan.tariff or 0.0)


def owned_price(scenario: Scenario, group: Group) -> Term | None:
    """What one machine of a group costs by the time it works, that time's electricity apart."""
    found = standing(scenario, group)
    if found is None or scenario.owned is None:
        return None
    return working_price(found, scenario.owned)


def working_price(found: Standing, plan: Ownership) -> Term:
    """The same of a machine of which this is known."""
    return term(
        equations.owned_price,
        capital=found.capital,
        hosting=found.hosting,
        staff=found.staff,
        standing=found.electricity,
        utilization=plan.utilization,
    )


def capex_of(scenario: Scenario, group: Group) -> Usd | None:
    """Price of one machine of a group to buy: the scenario's own, else its profile's."""
    plan = scenario.owned
    stated = plan is not None and group is scenario.cluster.trainers and plan.capex is not None
    return plan.capex if stated and plan is not None else group.host.capex


def missing(scenario: Scenario) -> Iterator[str]:
    """Figures without which machines that are owned have no bill, and what is left out of it."""
    for group in scenario.cluster.groups:
        if not is_owned(scenario, group):
            continue
        if capex_of(scenario, group) is None:
            trains = group is scenario.cluster.trainers
            key = "owned.capex" if trains else "remote.price"
            yield f"what {short_name(group.host.name)} costs to buy: state {key}"
        if _power(group) is None:
            machine = short_name(group.host.name)
            yield f"the power of {machine}: its accelerator's profile states none"


def _power(group: Group) -> tuple[Watts, Watts] | None:
    """Power of one machine of a group at rest, and at most [W]."""
    host = group.host
    if not is_known(group):
        return None
    found = draws_at(
        replace(group, count=1, gpus_per_host=host.gpu_count), accelerators=0.0, processors=0.0
    )
    most = sum(draw.full for draw in found) if host.power is None else host.power
    return sum(draw.idle for draw in found), most
