"""Energy of a run: machines at rest and at work, the building, the grid, the tariff."""

from __future__ import annotations

import pytest

from simulator.equations import energy


def test_machines_at_work_all_the_time_draw_all_the_time() -> None:
    """With no time beside its steps a run draws the power of a step over its whole time."""
    assert energy.run_energy(1000.0, 4000.0, 3600.0, 3600.0) == pytest.approx(5000.0 * 3600.0)


def test_a_run_that_only_waits_draws_power_at_rest() -> None:
    """Without steps only the power at rest counts."""
    assert energy.run_energy(1000.0, 4000.0, 3600.0, 0.0) == pytest.approx(1000.0 * 3600.0)


def test_training_gpt3_emits_what_was_published() -> None:
    """1,287 MWh at 0.429 kg/kWh are 552 t of CO2e (Patterson et al., arXiv 2104.10350, table 4)."""
    assert energy.emissions(1287e3 * 3.6e6, 0.429 / 3.6e6) == pytest.approx(552e3, rel=0.001)


def test_a_bill_of_electricity_grows_with_the_building() -> None:
    """Cooling and losses are paid as the machines themselves are."""
    plain = energy.electricity_cost(3.6e9, 0.08 / 3.6e6)
    cooled = energy.electricity_cost(energy.building_energy(3.6e9, 1.54), 0.08 / 3.6e6)
    assert cooled / plain == pytest.approx(1.54)


def test_energy_between_idle_and_busy() -> None:
    """An idle device draws its idle power, a busy one its full power."""
    joules = [energy.energy_per_step(60.0, 400.0, share, 2.0) for share in (0.0, 0.5, 1.0)]
    assert joules == pytest.approx([120.0, 460.0, 800.0])


def test_energy_is_power_times_time() -> None:
    """400 W for a quarter of a second are 100 J."""
    assert energy.drawn_energy(400.0, 0.25) == 100.0
