"""Money: hand-calculated costs of steps, runs, owned machines and stores."""

from __future__ import annotations

import math

import numpy as np
import pytest

from simulator.equations import cost
from simulator.equations.cost import (
    egress_cost,
    provisioned_price,
    rent,
    requests_cost,
    upload_requests,
)


def test_a_dollar_of_steps() -> None:
    """Samples per dollar times the cost of a step is the samples of a step."""
    price, step, batch = 0.01, 0.25, 512
    per_usd = cost.samples_per_usd(batch / step, price)
    assert per_usd * cost.cost_per_step(price, step) == pytest.approx(batch)


def test_the_ratio_and_the_saving_say_the_same() -> None:
    """One minus the cost ratio is the saving between the two costs."""
    before, after = cost.cost_per_step(2.0, 3.0), cost.cost_per_step(3.0, 1.0)
    assert cost.saving(before, after) == pytest.approx(1.0 - cost.cost_ratio(3.0 / 2.0, 1.0 / 3.0))


def test_worse_is_a_negative_saving() -> None:
    """Where cost rises the saving is below zero."""
    assert cost.saving(1.0, 1.25) == -0.25


def test_provisioning_is_billed() -> None:
    """Time before the job starts costs as much as time in it."""
    assert cost.cost_to_train(0.01, 3600.0, 600.0) == pytest.approx(42.0)
    assert cost.cost_to_train(0.01, 3600.0) == pytest.approx(36.0)


def test_a_capacity_block_is_paid_whole() -> None:
    """A dollar an hour: a second costs a day, 14 days and a second three weeks; never less."""
    times = np.array([1.0, 86400.0, 14 * 86400.0, 14 * 86400.0 + 1.0])
    found = cost.cost_of_block(1 / 3600, times)
    np.testing.assert_allclose(found, [24.0, 24.0, 14 * 24.0, 21 * 24.0])
    assert cost.cost_of_block(1 / 3600, 86400.0, 60.0) == pytest.approx(48.0)
    assert np.isinf(cost.block_time(np.inf))


def test_capital_pays_back() -> None:
    """Equal yearly payments with interest are worth the price, less what is left at the end."""
    year, rate, years = 365 * 86400.0, 0.07, 6
    paid = cost.capital_cost(100e3, 20e3, rate, years * year) * year
    worth = sum(paid / (1.0 + rate) ** n for n in range(1, years + 1))
    assert worth == pytest.approx(100e3 - 20e3 / (1.0 + rate) ** years)


def test_capital_without_interest_is_the_limit() -> None:
    """Almost no interest costs almost what none does."""
    none, little = (cost.capital_cost(1e5, 1e4, rate, 1e8) for rate in (0.0, 1e-9))
    assert little == pytest.approx(none, rel=1e-6)


def test_an_owned_machine_is_paid_for_while_it_rests() -> None:
    """What is paid all the time is shared out over the hours worked, with electricity at rest."""
    assert cost.owned_price(7.0, 2.0, 1.0, 0.5, 1.0) == pytest.approx(10.0)
    assert cost.owned_price(7.0, 2.0, 1.0, 0.5, 0.5) == pytest.approx(2.0 * 10.0 + 0.5)
    shares = np.array([0.25, 0.5, 1.0])
    yearly = shares * cost.owned_price(7.0, 2.0, 1.0, 0.5, shares)
    assert yearly == pytest.approx(10.0 + 0.5 * (1.0 - shares))


def test_break_even_is_where_both_cost_the_same() -> None:
    """At the utilization of the break-even, owning costs what renting does."""
    standing, rent, electricity = 12.0, 22.0, 2.0
    share = cost.break_even_utilization(standing, rent - electricity)
    assert standing + share * electricity == pytest.approx(share * rent)


def test_cheap_rent_is_never_beaten() -> None:
    """Where rent spares nothing, buying never pays."""
    assert cost.break_even_utilization(1.0, 0.0) == float("inf")
    assert cost.break_even_time(1e5, 1.0, 2.0) == float("inf")


def test_what_the_rent_has_in_it_is_free() -> None:
    """Nothing is paid below the free rate, and only what is above it beyond."""
    assert provisioned_price(3000.0, 3000.0, 2.0) == 0.0
    assert provisioned_price(100.0, 3000.0, 2.0) == 0.0
    assert provisioned_price(3001.5, 3000.0, 2.0) == pytest.approx(3.0)


def test_keeping_data_costs_size_times_time() -> None:
    """A gigabyte at 1e-14 $ a byte and second costs a dollar in 1e5 seconds."""
    assert rent(1e9, 1e-14, np.array([1e5, 2e5])) == pytest.approx([1.0, 2.0])


def test_requests_are_paid_by_kind() -> None:
    """A million reads at 40 cents, a thousand writes at half a cent."""
    assert requests_cost(1e6, 4e-7, 1e3, 5e-6) == pytest.approx(0.405)


def test_an_upload_in_parts_is_begun_and_completed() -> None:
    """One request for what fits a part, n + 2 for n parts, one without a limit."""
    assert upload_requests(16e6, 16e6) == 1.0
    assert upload_requests(16e6 + 1.0, 16e6) == 4.0
    assert upload_requests(5e12, math.inf) == 1.0
    assert upload_requests(0.0, 16e6) == 1.0


def test_each_tier_counts_for_what_lies_in_it() -> None:
    """60 TB in a month at 0.09 to 10 TB, 0.085 to 50 TB and 0.07 above: 900 + 3,400 + 700 $."""
    ends, prices = (10e12, 50e12), (9e-11, 8.5e-11, 7e-11)
    assert egress_cost(60e12, 1.0, ends, prices) == pytest.approx(5000.0)
    # Half as much in each of two months, and all of it in a month that is not over.
    assert egress_cost(60e12, 2.0, ends, prices) == pytest.approx(2 * (900.0 + 1700.0))
    assert egress_cost(60e12, 0.1, ends, prices) == egress_cost(60e12, 1.0, ends, prices)


def test_beyond_the_last_end_the_last_price_holds() -> None:
    """What no tier is stated for is paid as in the last one, an upper bound where prices fall."""
    assert egress_cost(30e12, 1.0, (10e12, 20e12), (9e-11, 8e-11)) == pytest.approx(2500.0)


def test_machines_at_work_all_the_time_draw_all_the_time() -> None:
    """With no time beside its steps a run draws the power of a step over its whole time."""
    assert cost.run_energy(1000.0, 4000.0, 3600.0, 3600.0) == pytest.approx(5000.0 * 3600.0)


def test_a_run_that_only_waits_draws_power_at_rest() -> None:
    """Without steps only the power at rest counts."""
    assert cost.run_energy(1000.0, 4000.0, 3600.0, 0.0) == pytest.approx(1000.0 * 3600.0)


def test_training_gpt3_emits_what_was_published() -> None:
    """1,287 MWh at 0.429 kg/kWh are 552 t of CO2e (Patterson et al., arXiv 2104.10350, table 4)."""
    assert cost.emissions(1287e3 * 3.6e6, 0.429 / 3.6e6) == pytest.approx(552e3, rel=0.001)


def test_a_bill_of_electricity_grows_with_the_building() -> None:
    """Cooling and losses are paid as the machines themselves are."""
    plain = cost.electricity_cost(3.6e9, 0.08 / 3.6e6)
    cooled = cost.electricity_cost(cost.building_energy(3.6e9, 1.54), 0.08 / 3.6e6)
    assert cooled / plain == pytest.approx(1.54)


def test_energy_between_idle_and_busy() -> None:
    """An idle device draws its idle power, a busy one its full power."""
    joules = [cost.energy_per_step(60.0, 400.0, share, 2.0) for share in (0.0, 0.5, 1.0)]
    assert joules == pytest.approx([120.0, 460.0, 800.0])


def test_energy_is_power_times_time() -> None:
    """400 W for a quarter of a second are 100 J."""
    assert cost.drawn_energy(400.0, 0.25) == 100.0
