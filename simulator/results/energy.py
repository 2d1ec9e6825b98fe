"""Energy and emissions of a run: what all machines that are billed draw while they are held."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from simulator.equations.energy import building_energy, electricity_cost, emissions, run_energy
from simulator.pipeline.run_length import lengths
from simulator.results.ownership import electricity_by_time, is_owned
from simulator.results.power import Draw, draws
from simulator.results.prediction import Energy, Timing
from simulator.schema.energy import EnergyPlan
from simulator.schema.hardware.naming import short_name
from simulator.schema.scenario import Scenario
from simulator.terms import Term, term
from simulator.units import at_most


def energy_of(scenario: Scenario, timing: Timing) -> Energy:
    """What the machines of a run draw, its building too where the scenario tells of it.

    Machines are held from the first billed second to the last, and work in steps; at all other
    times (provisioning, start-up, evaluation of which nothing is known) they draw what they do at
    rest. Interruptions are left out, as in all figures of the undisturbed run.

    Parameters
    ----------
    scenario : Scenario
        Says which machines are billed, and where their electricity comes from.
    timing : Timing
        How long steps and the run take, and how busy devices and processors are.
    """
    missing = tuple(_missing(scenario))
    found = draws(scenario, timing)
    if found is None:
        return Energy(missing=missing)
    machines = _of_machines(scenario, timing, found)
    terms = {"of_machines": machines}
    if scenario.energy is not None:
        terms |= _of_building(scenario.energy, machines)
    known = {name: cast("float", one.value) for name, one in terms.items()}
    return Energy(
        power=sum(draw.mean for draw in found),
        of_machines=known["of_machines"],
        of_building=known.get("of_building"),
        emitted=known.get("emitted"),
        price=known.get("price"),
        missing=missing,
        terms=terms,
    )


def electricity_of(scenario: Scenario, timing: Timing) -> Term | None:
    """What the electricity of owned machines costs in the whole run; None where none is owned.

    Rent has the electricity of rented machines in it.
    """
    plan, found = scenario.energy, _of_owned(scenario, timing)
    if plan is None or plan.tariff is None or found is None:
        return None
    return _of_building(plan, _of_machines(scenario, timing, found))["price"]


def electricity_in_a_step(scenario: Scenario, timing: Timing) -> Term | None:
    """What the same costs by time while steps are taken [$/s]."""
    plan, found = scenario.energy, _of_owned(scenario, timing)
    if plan is None or plan.tariff is None or found is None:
        return None
    return electricity_by_time(plan, sum(draw.mean for draw in found))


def _of_owned(scenario: Scenario, timing: Timing) -> tuple[Draw, ...] | None:
    owned = [group for group in scenario.cluster.groups if is_owned(scenario, group)]
    return draws(scenario, timing, owned) if owned else None


def _of_machines(scenario: Scenario, timing: Timing, found: tuple[Draw, ...]) -> Term:
    steps = lengths(scenario).total_steps * timing.step_time.mean
    idle = sum(draw.idle for draw in found)
    return term(
        run_energy,
        idle_power=idle,
        added_power=sum(draw.mean for draw in found) - idle,
        time=timing.total_time + scenario.cost.provisioning,
        worked=at_most(timing.total_time, steps),
    )


def _of_building(plan: EnergyPlan, machines: Term) -> dict[str, Term]:
    building = term(building_energy, energy=machines, pue=plan.pue)
    terms = {"of_building": building}
    if plan.grid is not None:
        terms["emitted"] = term(emissions, energy=building, grid=plan.grid)
    if plan.tariff is not None:
        terms["price"] = term(electricity_cost, energy=building, tariff=plan.tariff)
    return terms


def _missing(scenario: Scenario) -> Iterator[str]:
    """Figures without which something that the scenario asks for stays unknown.

    A scenario that tells what electricity costs asks for its price, and for emissions where it
    names a grid.
    """
    for group in scenario.cluster.groups:
        gpu = group.host.gpu
        if gpu is not None and gpu.power is None and not gpu.emulated:
            yield f"the power of {short_name(gpu.name)}: its profile states none"
    plan = scenario.energy
    if plan is not None and plan.grid is None and plan.tariff is None:
        yield "energy.grid, for the emissions: an amount in g/kWh, or the region of a cloud"
