"""Cost: consistency between the formulas, and limits."""

from __future__ import annotations

import pytest

from simulator.equations import cost


def test_a_dollar_of_steps() -> None:
    """Samples per dollar times the cost of a step is the samples of a step."""
    price, step, batch = 0.01, 0.25, 512
    per_usd = cost.samples_per_usd(batch / step, price)
    assert per_usd * cost.cost_per_step(price, step) == pytest.approx(batch)


def test_the_ratio_and_the_saving_say_the_same() -> None:
    """One minus the cost ratio is the saving between the two costs."""
    before, after = cost.cost_per_step(2.0, 3.0), cost.cost_per_step(3.0, 1.0)
    assert cost.saving(before, after) == pytest.approx(1.0 - cost.cost_ratio(3.0 / 2.0, 1.0 / 3.0))


def test_the_implied_price_undoes_the_ratio() -> None:
    """A price that rose by the implied ratio gives back the cost saving."""
    ratio = cost.implied_price_ratio(time_saving=0.4, cost_saving=0.3)
    assert cost.cost_ratio(ratio, 0.6) == pytest.approx(0.7)


def test_worse_is_a_negative_saving() -> None:
    """Where cost rises the saving is below zero."""
    assert cost.saving(1.0, 1.25) == -0.25


def test_provisioning_is_billed() -> None:
    """Time before the job starts costs as much as time in it."""
    assert cost.cost_to_train(0.01, 3600.0, 600.0) == pytest.approx(42.0)
    assert cost.cost_to_train(0.01, 3600.0) == pytest.approx(36.0)


def test_a_price_of_an_hour() -> None:
    """A cent a second is 36 dollars an hour."""
    assert cost.hourly(0.01) == pytest.approx(36.0)


def test_energy_between_idle_and_busy() -> None:
    """An idle device draws its idle power, a busy one its full power."""
    joules = [cost.energy_per_step(60.0, 400.0, share, 2.0) for share in (0.0, 0.5, 1.0)]
    assert joules == pytest.approx([120.0, 460.0, 800.0])
