"""Cost: consistency between the formulas, and limits."""

from __future__ import annotations

import numpy as np
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


def test_energy_between_idle_and_busy() -> None:
    """An idle device draws its idle power, a busy one its full power."""
    joules = [cost.energy_per_step(60.0, 400.0, share, 2.0) for share in (0.0, 0.5, 1.0)]
    assert joules == pytest.approx([120.0, 460.0, 800.0])


def test_rare_interruptions_cost_checkpoints_only() -> None:
    """Almost never interrupted, a run takes its work and one checkpoint an interval."""
    time = cost.time_with_interruptions(36_000.0, 1e-12, 3600.0, 60.0, 600.0)
    assert time == pytest.approx(36_000.0 + 10 * 60.0, rel=1e-6)


def test_expected_time_is_that_of_simulated_runs() -> None:
    """Runs interrupted at random, segment by segment, take in the mean what the formula says."""
    rng = np.random.default_rng(7)
    rate, interval, write, restart = 1 / 7200.0, 1800.0, 120.0, 300.0
    drawn = [_segment(rng, rate, interval + write, restart) for _ in range(40_000)]
    told = cost.time_with_interruptions(interval, rate, interval, write, restart)
    assert np.mean(drawn) == pytest.approx(told, rel=0.02)


def _segment(rng: np.random.Generator, rate: float, length: float, restart: float) -> float:
    """Time until one segment is done; an interruption loses it, and restarts fail too."""
    spent, needed = 0.0, length
    while (until := rng.exponential(1.0 / rate)) < needed:
        spent += until
        needed = restart + length
    return spent + needed


@pytest.mark.parametrize("write", [5.0, 60.0, 900.0])
def test_no_other_interval_is_clearly_better(write: float) -> None:
    """Half and twice the best interval take longer; the best of many is within 0.1%."""
    rate = 1 / 36_000.0
    best = float(cost.best_checkpoint_interval(rate, write))
    took = cost.time_with_interruptions(1e6, rate, best, write, 300.0)
    others = cost.time_with_interruptions(1e6, rate, best * np.geomspace(0.1, 10, 400), write, 300)
    assert took < cost.time_with_interruptions(1e6, rate, best * 2, write, 300.0)
    assert took < cost.time_with_interruptions(1e6, rate, best / 2, write, 300.0)
    assert took <= 1.001 * np.min(others)


def test_a_checkpoint_longer_than_the_peace_is_written_once_in_it() -> None:
    """Beyond twice the mean time between interruptions the interval is that time."""
    assert cost.best_checkpoint_interval(1 / 60.0, 600.0) == pytest.approx(60.0)


def test_energy_is_power_times_time() -> None:
    """400 W for a quarter of a second are 100 J."""
    assert cost.drawn_energy(400.0, 0.25) == 100.0


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
