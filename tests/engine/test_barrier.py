"""How late the last party of a barrier is, with those it stands for."""

from __future__ import annotations

from collections.abc import Generator

import pytest
from simpy import Environment, Event

from simulator.engine.rank import Barrier


def meet(arrivals: list[float], standing_for: int) -> tuple[float, float]:
    """When a barrier of these arrivals opens [s], and its lag behind the mean arrival [s]."""
    env = Environment()
    barrier = Barrier(env, len(arrivals), standing_for)
    opened: list[float] = []

    def party(when: float) -> Generator[Event, object, None]:
        yield env.timeout(when)
        yield barrier.wait()
        opened.append(env.now)

    for when in arrivals:
        env.process(party(when))
    env.run()
    return opened[0], barrier.lag


@pytest.mark.parametrize("standing_for", [3, 100])
def test_the_lag_is_how_much_later_than_the_mean_the_barrier_opens(standing_for: int) -> None:
    """Also where it waits for more than came: the wait for those is part of the lag."""
    opened, lag = meet([1.0, 2.0, 6.0], standing_for)
    assert lag == pytest.approx(opened - 3.0)


def test_a_barrier_that_stands_for_more_opens_later() -> None:
    """The latest of a hundred is expected after the latest of three."""
    assert meet([1.0, 2.0, 6.0], 100)[0] > meet([1.0, 2.0, 6.0], 3)[0] == 6.0
