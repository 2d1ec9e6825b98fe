"""The bill of machines that are bought."""

from __future__ import annotations

from dataclasses import replace

import pytest

from simulator.predict import predict
from simulator.reading.hardware.catalogue import Catalogue
from simulator.reading.scenario import load_scenario
from simulator.results.assumptions import assumptions
from simulator.results.energy import missing, standing
from simulator.results.metrics import number_at
from simulator.results.prediction import Prediction
from simulator.schema.scenario import Scenario
from simulator.units import HOUR, YEAR

OWNED = ("cost.purchase=owned", "owned.staff=$500/month")
PLAIN = (
    *OWNED,
    *("owned.capex=$87600", "owned.life=10 years", "owned.network=0%", "owned.interest=0%"),
    *("owned.hosting=$0/h", "owned.staff=$0/h"),
)


def read(*overrides: str) -> Scenario:
    """A shipped scenario on 8 machines that can be bought, with settings."""
    return load_scenario("llama3-70b-megatron", overrides=overrides)


def of(*overrides: str) -> Prediction:
    """What is predicted for it."""
    return predict(read(*overrides))


def test_price_over_life() -> None:
    """$87,600 over ten years are a dollar an hour for each machine, with nothing else to pay."""
    scenario = read(*PLAIN)
    found = standing(scenario, scenario.cluster.trainers)
    assert found is not None
    assert float(found.capital.value) * HOUR == pytest.approx(1.0)


def test_the_network_is_bought_with_the_machines() -> None:
    """A network of 15% of $87,600 makes an hour over ten years cost $1.15."""
    scenario = read(*PLAIN, "owned.network=15%")
    found = standing(scenario, scenario.cluster.trainers)
    assert found is not None
    assert found.capex == pytest.approx(1.15 * 87600.0)
    assert float(found.capital.value) * HOUR == pytest.approx(1.15)


def test_half_used_costs_twice_and_stands_idle() -> None:
    """At half the utilization an hour costs twice as much, and an idle hour's electricity."""
    full, half = (of(*PLAIN, f"owned.utilization={share}") for share in (1.0, 0.5))
    scenario = full.scenario
    found = standing(scenario, scenario.cluster.trainers)
    assert found is not None
    idle = float(found.electricity.value) * scenario.cluster.trainers.count
    assert full.cost.per_second is not None
    assert half.cost.per_second == pytest.approx(2.0 * full.cost.per_second + idle)


def test_that_machines_always_work_is_told_as_a_guess() -> None:
    """Where the file does not say which share of its life a machine works; silent where it does."""
    guessed = {one.what: one for one in assumptions(read("cost.purchase=owned"))}
    told = guessed["owned.utilization (not given)"]
    assert (told.value, told.source.verified) == ("1 of its life", False)
    stated = assumptions(read("cost.purchase=owned", "owned.utilization=0.7"))
    assert not any("owned.utilization" in one.what for one in stated)


def test_electricity_is_on_the_bill_of_owned_machines() -> None:
    """The bill is the price by time worked, and the electricity of the run."""
    found = of(*PLAIN, "energy.tariff=$0.1/kWh", "energy.pue=1.5")
    kwh = number_at(found, "energy.machines_kwh") or 0.0
    assert found.cost.electricity == pytest.approx(kwh * 1.5 * 0.1)
    assert found.cost.per_second is not None
    held = found.cost.per_second * found.cost.time_to_train
    assert found.cost.for_machines == pytest.approx(held + found.cost.electricity)


def test_a_step_pays_for_its_electricity() -> None:
    """The price of a step has the electricity of the step in it."""
    cheap, dear = (of(*PLAIN, f"energy.tariff=${t}/kWh", "energy.pue=1") for t in (0.1, 0.2))
    step = (cheap.cost.energy_per_step or 0.0) / 3.6e6
    assert cheap.cost.per_step is not None
    assert dear.cost.per_step == pytest.approx(cheap.cost.per_step + 0.1 * step)


def test_a_profile_states_what_its_machine_costs() -> None:
    """A DGX H100 at $270,000 (2023-05) over 5 years at 6%, network, room: $1.2 to 2 a GPU-hour.

    An analyst's all-in cost to own is $1.30 to $1.69 (SemiAnalysis AI Cloud TCO model, 2026-04-03).
    """
    found = of("cost.purchase=owned")
    devices = found.scenario.devices
    price = (found.cost.for_machines or 0.0) / found.cost.time_to_train * HOUR / devices
    assert 1.2 < price < 2.0
    sources = {one.what: one.source for one in found.assumptions}
    assert sources["what dgx-h100 costs to buy"].date == "2023-05"
    assert "owned.staff (not given)" in sources


def test_a_machine_under_a_desk_pays_for_no_data_centre() -> None:
    """Neither room nor switches for GeForce boards, unless the scenario says so."""
    bare = ("cost.purchase=owned",)
    host = read().cluster.trainers.host
    desk = replace(host, gpu=Catalogue.default().gpu("rtx-3090"), capex=4000.0)
    for settings, room in ((bare, 0.0), ((*bare, "owned.hosting=$73/month"), 0.1)):
        scenario = read(*settings)
        found = standing(scenario, replace(scenario.cluster.trainers, host=desk))
        assert found is not None
        assert found.capex == 4000.0
        assert found.hosting * HOUR == pytest.approx(room)


def test_what_is_missing_is_named() -> None:
    """A machine whose price to buy nobody knows has no bill, and says which key is missing."""
    scenario = load_scenario("cpu-starved-p4d", overrides=["cost.purchase=owned"])
    assert predict(scenario).cost.for_machines is None
    assert [text for text in missing(scenario) if "owned.capex" in text]


def test_a_stated_price_is_rent() -> None:
    """A price that is stated for the machine stands in for all of it."""
    found = of("cost.purchase=owned", "cost.price=$10/h")
    assert number_at(found, "cost.usd_per_h") == pytest.approx(80.0)
    assert found.cost.electricity is None


def test_interest_makes_it_dearer() -> None:
    """Capital at 6% a year costs more than capital for nothing, and a residual value less."""
    own = [
        of(*PLAIN, f"owned.interest={rate}", f"owned.residual={left}").cost.per_second or 0.0
        for rate, left in (("0%", "0%"), ("6%", "0%"), ("6%", "30%"))
    ]
    assert own[0] < own[2] < own[1]


def test_the_interval_has_the_electricity_in_it() -> None:
    """The middle of the bill's interval is near the bill."""
    found = of(*OWNED)
    ends = found.interval["cost.usd_to_train"]
    assert ends["p10"] < (found.in_all or 0.0) < ends["p90"]


def test_the_life_is_a_time() -> None:
    """Twice the life halves what capital costs by time, without interest."""
    scenario = read(*PLAIN, "owned.life=20 years")
    found = standing(scenario, scenario.cluster.trainers)
    assert found is not None
    assert float(found.capital.value) == pytest.approx(87600.0 / (20.0 * YEAR))
