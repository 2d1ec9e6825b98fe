"""Rent or buy: where both cost the same."""

from __future__ import annotations

import pytest

from simulator.predict import predict
from simulator.reading.scenario import load_scenario
from simulator.results.prediction import Prediction
from simulator.studies.purchase import cheapest_rent, rent_or_buy


def of(*overrides: str) -> Prediction:
    """What is predicted for a shipped scenario on machines that can be bought."""
    return predict(load_scenario("llama3-70b-megatron", overrides=overrides), intervals=False)


def test_at_the_break_even_both_cost_the_same() -> None:
    """Owned machines that work just as much as it takes have the bill of the rented ones."""
    rented = of("cost.price=$40/h")
    even = rent_or_buy(of("cost.purchase=owned"), rented)
    assert even is not None
    assert even.utilization < 1.0
    at_it = of("cost.purchase=owned", f"owned.utilization={even.utilization!r}")
    assert at_it.cost.for_machines == pytest.approx(rented.cost.for_machines, rel=1e-3)


def test_cheap_rent_is_never_beaten() -> None:
    """Beside rent of a dollar an hour the price of the machine never comes back."""
    even = rent_or_buy(of("cost.purchase=owned"), of("cost.price=$1/h"))
    assert even is not None
    assert even.utilization > 1.0
    assert even.payback == float("inf")


def test_busier_machines_pay_back_sooner() -> None:
    """The price is back earlier where the machines work more."""
    rented = of("cost.price=$40/h")
    half, full = (
        rent_or_buy(of("cost.purchase=owned", f"owned.utilization={share}"), rented)
        for share in (0.5, 1.0)
    )
    assert half is not None
    assert full is not None
    assert full.payback < half.payback


def test_the_cheapest_rent_is_the_one_to_beat() -> None:
    """Of two rented ones the cheaper counts; what is owned is no rent."""
    owned = of("cost.purchase=owned")
    others = [owned, of("cost.price=$60/h"), of("cost.price=$40/h")]
    assert cheapest_rent(owned, others) == 2
    assert rent_or_buy(owned, owned) is None
