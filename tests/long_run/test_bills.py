"""Bills of long runs, counted by hand."""

from __future__ import annotations

import numpy as np
import pytest

from simulator.long_run.attempts import SimulatedRuns
from simulator.long_run.forecast import bills
from simulator.results.prediction import CAPACITY
from simulator.schema.cost import Purchase
from simulator.schema.long_run import Failures, LongRun, Restart, Saving, Spares

HOUR = 3600.0
RESTART = Restart(detection=0.0, replacement=0.0, start=0.0, load=0.0)
BY_THE_HOUR = {Purchase.ON_DEMAND, Purchase.SPOT}


def drawn(
    *,
    away: float = 0.0,
    capacity: float = 0.0,
    elsewhere: float = 0.0,
    finish: float = 10 * HOUR,
) -> SimulatedRuns:
    """A life of 10 h."""
    parts = {CAPACITY: np.array([capacity])}
    one = np.array([finish])
    return SimulatedRuns(
        finish=one,
        parts=parts,
        interruptions={},
        away=np.array([away]),
        elsewhere=np.array([elsewhere]),
    )


def run(spares: int) -> LongRun:
    """A job on four machines."""
    found = Spares(count=spares, repair=HOUR)
    failures = Failures(per_machine=1e-6, per_job=0.0, restart=RESTART, doubt=0.0, spares=found)
    saving = Saving(interval=HOUR, blocking=0.0, durable=0.0)
    return LongRun(work=9 * HOUR, machines=4, saving=saving, failures=failures)


def usd(
    purchase: Purchase, life: SimulatedRuns, spares: int = 0, provisioning: float = 0.0
) -> float:
    """The bill at a dollar for an hour of a machine."""
    price = 4.0 / HOUR
    told = {"price": price, "purchase": purchase, "provisioning": provisioning}
    return float(bills(run(spares), life, **told)[0])  # type: ignore[arg-type] # by name


def test_machines_away_are_paid_where_they_are_reserved_or_owned() -> None:
    """Four machines for 10 h, one of them away for 3 h: 37 or 40 machine-hours."""
    found = {one: usd(one, drawn(away=3 * HOUR)) for one in Purchase}
    del found[Purchase.CAPACITY_BLOCK]
    hours = {one: 37.0 if one in BY_THE_HOUR else 40.0 for one in found}
    assert found == pytest.approx(hours)


@pytest.mark.parametrize(("hours", "days"), [(10, 1), (24, 1), (25, 2), (14 * 24, 14), (337, 21)])
def test_a_capacity_block_is_paid_whole(hours: float, days: int) -> None:
    """Four machines: whole days, beyond 14 of them whole weeks, whatever is away meanwhile."""
    life = drawn(finish=hours * HOUR, away=3 * HOUR)
    assert usd(Purchase.CAPACITY_BLOCK, life) == pytest.approx(4 * days * 24)


def test_spares_are_paid_as_long_as_they_stand_by() -> None:
    """Four machines and two spares for 10 h and half an hour before, 3 h of one away."""
    on_demand = usd(Purchase.ON_DEMAND, drawn(away=3 * HOUR), 2, provisioning=HOUR / 2)
    owned = usd(Purchase.OWNED, drawn(away=3 * HOUR), 2, provisioning=HOUR / 2)
    assert (on_demand, owned) == pytest.approx((60.0, 63.0))


def test_nothing_is_paid_while_no_spot_machine_can_be_had() -> None:
    """Of 10 h, 4 h without any machine."""
    assert usd(Purchase.SPOT, drawn(capacity=4 * HOUR)) == pytest.approx(24.0)


def test_a_run_without_end_has_a_bill_without_end() -> None:
    """Whatever was away meanwhile."""
    assert np.isinf(usd(Purchase.SPOT, drawn(away=HOUR, finish=np.inf)))


def test_machines_on_demand_cost_their_own_price() -> None:
    """Of 10 h on four machines, 3 h at three dollars in place of one."""
    told = {"price": 4.0 / HOUR, "on_demand": 12.0 / HOUR, "purchase": Purchase.SPOT}
    found = bills(run(0), drawn(elsewhere=3 * HOUR), **told)  # type: ignore[arg-type] # by name
    assert float(found[0]) == pytest.approx(28.0 + 36.0)
