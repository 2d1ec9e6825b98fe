"""The [energy] section: amounts, names of regions, and mistakes in them."""

from __future__ import annotations

import pytest

from simulator.errors import InputError
from simulator.reading.scenario import load_scenario
from simulator.units import KILOWATT_HOUR


def test_a_region_has_its_figure_and_source() -> None:
    """The name of a region stands for its figure, with source and date."""
    plan = load_scenario("cpu-starved-p4d", overrides=["energy.grid=aws/eu-north-1"]).energy
    assert plan is not None
    assert plan.emissions == pytest.approx(0.008 / KILOWATT_HOUR)
    assert "cloud-carbon-coefficients" in plan.figures["grid"].reference
    assert plan.pue == 1.54


def test_without_the_section_nothing_is_known() -> None:
    """A scenario that says nothing of electricity has no plan for it."""
    assert load_scenario("cpu-starved-p4d").energy is None


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("energy.grid=gcp/us-centrall1", "did you mean 'gcp/us-central1'?"),
        ("energy.grid=400", "has no unit"),
        ("energy.grid=-4 g/kWh", "is negative"),
        ("energy.tariff=$0.08", "measures dollars"),
        ("energy.tariff=us/iowa", "us/iowa/"),
        ("energy.pue=0.9", "is out of range"),
        ("energy.tarif=$0.08/kWh", "did you mean 'energy.tariff'?"),
    ],
)
def test_mistakes_are_told(setting: str, said: str) -> None:
    """A slip is told with the key and what is allowed."""
    with pytest.raises(InputError) as error:
        load_scenario("cpu-starved-p4d", overrides=[setting])
    assert said in str(error.value)
