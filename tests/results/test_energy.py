"""Energy and emissions of a run."""

from __future__ import annotations

from dataclasses import replace

import pytest

from simulator.predict import predict
from simulator.reading.scenario import load_scenario
from simulator.results.energy import draws, energy_of
from simulator.results.metrics import number_at
from simulator.results.prediction import Prediction
from simulator.units import KILOWATT_HOUR

PLACE = ("energy.grid=gcp/us-central1", "energy.tariff=us/iowa/industrial")


def of(*overrides: str, name: str = "cpu-starved-p4d") -> Prediction:
    """What is predicted for a shipped scenario."""
    return predict(load_scenario(name, overrides=overrides))


def test_energy_is_power_over_time() -> None:
    """A run's energy lies between all machines at rest and at work for all of its time."""
    found = of()
    drawn = draws(found.scenario, found.timing)
    assert drawn is not None
    idle, full = sum(d.idle for d in drawn), sum(d.full for d in drawn)
    kwh = number_at(found, "energy.machines_kwh")
    hours = found.timing.total_time / 3600.0
    assert kwh is not None
    assert idle * hours / 1000.0 < kwh < full * hours / 1000.0


def test_every_machine_billed_counts() -> None:
    """Two machines that help for the whole run draw at least what they do at rest."""
    found = of(name="cpu-fed-heterogeneous")
    alone = replace(
        found.scenario,
        cluster=replace(found.scenario.cluster, groups=(found.scenario.cluster.trainers,)),
    )
    less = energy_of(alone, found.timing).of_machines
    assert less is not None
    assert found.energy.of_machines is not None
    drawn = draws(found.scenario, found.timing)
    helpers = sum(d.idle for d in drawn or () if d.part.startswith("data: "))
    assert helpers > 0.0
    assert found.energy.of_machines - less >= helpers * found.timing.total_time * (1.0 - 1e-9)


def test_the_building_the_grid_and_the_tariff() -> None:
    """Energy times 1.54 (world average of 2025), 412.72 g/kWh in Iowa, 6.04 cents a kWh there."""
    found = of(*PLACE)
    own = number_at(found, "energy.machines_kwh") or 0.0
    assert number_at(found, "energy.kwh") == pytest.approx(1.54 * own)
    assert number_at(found, "energy.kg_co2e") == pytest.approx(1.54 * own * 0.41272)
    assert number_at(found, "energy.usd") == pytest.approx(1.54 * own * 0.0604)
    assert {a.source.date for a in found.assumptions if "grid" in a.what} == {"2024"}


def test_its_own_figures_win() -> None:
    """A stated PUE, grid and tariff are taken as they are."""
    found = of("energy.pue=1.1", "energy.grid=8 g/kWh", "energy.tariff=$0.2/kWh")
    own = number_at(found, "energy.machines_kwh") or 0.0
    assert number_at(found, "energy.kg_co2e") == pytest.approx(1.1 * own * 0.008)
    assert number_at(found, "energy.usd") == pytest.approx(1.1 * own * 0.2)


def test_rent_includes_electricity() -> None:
    """Of rented machines electricity is told, and not billed a second time."""
    assert of(*PLACE).cost.for_machines == of().cost.for_machines


def test_an_unknown_grid_is_named() -> None:
    """Emissions stay unknown without a grid, and the key that is missing is named."""
    found = of("energy.pue=1.2")
    assert found.energy.emitted is None
    assert any("energy.grid" in text for text in found.energy.missing)


def test_who_asks_what_electricity_costs_hears_nothing_of_the_grid() -> None:
    """A tariff, given or stood in for of owned machines, does not ask for emissions."""
    assert of("energy.tariff=$0.2/kWh").energy.missing == ()
    assert of("cost.purchase=owned", "owned.capex=$200000").energy.missing == ()


def test_energy_of_the_building_is_not_told_unasked() -> None:
    """Without [energy] nothing is made up about the building."""
    found = of()
    assert found.energy.of_building is None
    assert found.energy.missing == ()


def test_equations_give_what_is_told() -> None:
    """Each figure of the run is what its recorded equation gives."""
    found = of(*PLACE)
    assert set(found.energy.terms) == {"of_machines", "of_building", "emitted", "price"}
    for name, one in found.energy.terms.items():
        assert one.again() == pytest.approx(getattr(found.energy, name))


def test_a_slower_run_takes_more_energy() -> None:
    """The interval of the energy has the times of the run in it."""
    ends = of(*PLACE).interval["energy.kwh"]
    assert ends["p10"] < ends["p50"] < ends["p90"]


def test_time_before_the_job_draws_power() -> None:
    """Machines that wait for half an hour before the job draw their power at rest."""
    before, after = of(), of("cost.provisioning=30 min")
    drawn = draws(before.scenario, before.timing)
    assert drawn is not None
    added = number_at(after, "energy.machines_kwh") or 0.0
    added -= number_at(before, "energy.machines_kwh") or 0.0
    assert added == pytest.approx(sum(d.idle for d in drawn) * 1800.0 / KILOWATT_HOUR, rel=1e-6)
