"""Jobs on one pool against closed forms of queues."""

from __future__ import annotations

import pytest

from simulator.long_run.campaign import campaign
from simulator.schema.long_run import Order, PooledJob

HOUR = 3600.0


@pytest.mark.parametrize("load", [0.3, 0.6])
def test_constant_times(load: float) -> None:
    """M/D/1: comings at random wait rho s / (2 (1 - rho)) in the mean."""
    job = PooledJob(name="a", machines=1, takes=(HOUR,), count=4000, every=HOUR / load, random=True)
    found = campaign([job], machines=1, draws=10)
    assert found.jobs[0].wait == pytest.approx(load * HOUR / (2.0 * (1.0 - load)), rel=0.06)
    assert found.busy == pytest.approx(load, rel=0.03)


def test_two_classes() -> None:
    """M/D/1 with priorities, nobody stopped (Cobham): W0/(1-r1) and W0/((1-r1)(1-r1-r2))."""
    usual = {"machines": 1, "takes": (HOUR,), "count": 6000, "every": HOUR / 0.3, "random": True}
    jobs = [
        PooledJob(name="urgent", priority=0, **usual),  # type: ignore[arg-type] # fields by name
        PooledJob(name="other", priority=1, **usual),  # type: ignore[arg-type] # fields by name
    ]
    left = 0.6 * HOUR / 2.0
    urgent, other = campaign(jobs, machines=1, order=Order.PRIORITY, draws=10).jobs
    assert urgent.wait == pytest.approx(left / 0.7, rel=0.08)
    assert other.wait == pytest.approx(left / (0.7 * 0.4), rel=0.10)
    first, second = campaign(jobs, machines=1, order=Order.FIFO, draws=10).jobs
    assert first.wait == pytest.approx(second.wait, rel=0.05)


def test_counted_by_hand() -> None:
    """Two of three machines for 2 h, then two again: the second waits, the small one behind it."""
    big = PooledJob(name="big", machines=2, takes=(2 * HOUR,), count=2)
    small = PooledJob(name="small", machines=1, takes=(HOUR,), start=60.0)
    found = campaign([big, small], machines=3, price=1.0 / HOUR, draws=10)
    assert found.jobs[0].waits[0.9] == 2 * HOUR
    assert found.jobs[1].wait == 2 * HOUR - 60.0
    assert found.ends[0.5] == 4 * HOUR
    assert found.usd is not None
    assert found.usd[0.5] == pytest.approx(12.0)
    assert [one.usd for one in found.jobs] == [pytest.approx(8.0), pytest.approx(1.0)]
    assert found.busy == pytest.approx(9.0 / 12.0)
