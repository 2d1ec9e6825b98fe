"""Rows A8, A13 and A16 to A18: bills of groups of machines, through a prediction.

The steps are those the source measured, so the dollars are exact.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from mission.clusters import (
    A6,
    A7,
    A11,
    A12,
    Mechanisms,
    Row,
    from_row,
    pytorch,
    stopwatch,
    tensorflow,
)
from support.theory import implied_price_ratio

from simulator.equations.cost import saving
from simulator.results.cost import bill
from simulator.results.prediction import Prediction
from simulator.schema.scenario import CostPlan
from simulator.units import HOUR


def bill_of(row: Row) -> Prediction:
    """The machines of a row at its measured step."""
    if row in (A6, A7):
        return stopwatch(row, tensorflow(1e-3, row.step, together=row == A7))
    return stopwatch(row, pytorch(1e-3, Mechanisms(), together=row == A12))


def price(found: Prediction) -> float:
    """Price of all machines [$/s]."""
    assert found.cost.per_second is not None
    return found.cost.per_second


def saved(before: Prediction, after: Prediction) -> float:
    """Part of the cost of a step that is saved."""
    assert before.cost.per_step is not None
    assert after.cost.per_step is not None
    return float(saving(before.cost.per_step, after.cost.per_step))


def test_a8_cost_of_a_step() -> None:
    """$0.0020100 alone, $0.0010758 together (printed in cents, E4): 46.48% saved."""
    alone, together = bill_of(A6), bill_of(A7)
    assert alone.cost.per_step == pytest.approx(0.0020100, abs=5e-8)
    assert together.cost.per_step == pytest.approx(0.0010758, abs=5e-8)
    assert saved(alone, together) == pytest.approx(0.4648, abs=5e-5)


def test_a13_cost_of_a_step() -> None:
    """$0.0012676 alone, $0.00028934 together: 77.17% saved."""
    alone, together = bill_of(A11), bill_of(A12)
    assert alone.cost.per_step == pytest.approx(0.0012676, abs=5e-8)
    assert together.cost.per_step == pytest.approx(0.00028934, abs=5e-9)
    assert saved(alone, together) == pytest.approx(0.7717, abs=5e-5)


def test_a16_what_a_quoted_saving_implies() -> None:
    """40% less time for 30% less money: 1.1667 times the price; two c5 make it 1.195 times."""
    assert implied_price_ratio(0.4, 0.3) == pytest.approx(1.1667, abs=5e-5)
    assert price(bill_of(A7)) / price(bill_of(A6)) == pytest.approx(1.195, abs=5e-4)


def test_a17_prices() -> None:
    """$37.688 and $45.032 an hour, $3.825 and $5.661: a c5.18xlarge is $3.672, a 9xlarge half."""
    hourly = [price(bill_of(row)) * HOUR for row in (A6, A7, A11, A12)]
    assert hourly == pytest.approx([37.688, 45.032, 3.825, 5.661])
    assert (hourly[1] - hourly[0]) / 2 == pytest.approx(3.672)
    assert hourly[3] - hourly[2] == pytest.approx(1.836)


def test_a18_the_cost_ratio() -> None:
    """(price2 / price1) x (t2 / t1), for predicted steps as for measured ones."""
    alone, together = from_row(A6, together=False), from_row(A6, together=True)
    times = together.timing.step_time.mean / alone.timing.step_time.mean
    prices = price(together) / price(alone)
    assert 1.0 - saved(alone, together) == pytest.approx(prices * times)
    assert saved(alone, together) == pytest.approx(0.4648, abs=0.06)


def test_every_group_is_billed_to_the_end() -> None:
    """All machines, from launch to the end of the run: ten minutes of start count for each."""
    found = bill_of(A7)
    waiting = replace(found.scenario, cost=CostPlan(provisioning=600.0))
    later = bill(waiting, found.timing)
    assert found.cost.for_machines == pytest.approx(price(found) * found.timing.total_time)
    assert later.for_machines == pytest.approx(price(found) * (found.timing.total_time + 600.0))
