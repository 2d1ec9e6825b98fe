"""Streams queue, barriers gather, as their docstrings say."""

from collections.abc import Generator

import pytest
from simpy import Environment, Event

from simulator.engine.machine import Stream
from simulator.engine.rank import Barrier


@pytest.fixture
def env() -> Environment:
    """Return a clock at zero."""
    return Environment()


def test_work_is_done_in_turn(env: Environment) -> None:
    """One thing at a time in the order asked; the queue moves on at once."""
    done: list[tuple[float, str]] = []
    stream = Stream(env)

    def ask(seconds: float, name: str) -> None:
        stream.run(seconds).callbacks.append(lambda _: done.append((env.now, name)))

    ask(1.0, "forward")
    ask(2.0, "backward")
    ask(0.0, "mark")
    env.run(until=5.0)
    ask(1.0, "next")
    env.run()
    assert done == [(1.0, "forward"), (3.0, "backward"), (3.0, "mark"), (6.0, "next")]
    assert stream.busy() == 4.0


def test_busy_counts_up_to_now(env: Environment) -> None:
    """A piece of work that is not finished counts as far as it has come."""
    stream = Stream(env)
    stream.run(2.0)
    env.run(until=0.5)
    assert stream.busy() == 0.5


def test_busy_is_told_when_it_changes(env: Environment) -> None:
    """The listener hears of turning busy and idle, not of each piece of work."""
    told: list[tuple[float, object, float]] = []
    stream = Stream(env, on_change=lambda *entry: told.append(entry), unit="gpu0")
    stream.run(1.0)
    stream.run(1.0)
    env.run()
    assert told == [(0, "gpu0", 1.0), (2.0, "gpu0", 0.0)]


def test_barrier_opens_for_the_last_of_each_step(env: Environment) -> None:
    """All parties pass together at the time of the slowest, step after step."""
    barrier = Barrier(env, 3)
    passed: list[tuple[float, int]] = []

    def rank(number: int) -> Generator[Event, None, None]:
        for step in (1.0, 2.0):
            yield env.timeout(step * number)
            yield barrier.wait()
            passed.append((env.now, number))

    for number in (1, 2, 3):
        env.process(rank(number))
    env.run()
    assert passed == [(3.0, 1), (3.0, 2), (3.0, 3), (9.0, 1), (9.0, 2), (9.0, 3)]
    assert barrier.waiting == 0


def test_barrier_without_parties_is_refused(env: Environment) -> None:
    """A barrier nobody comes to is an error."""
    with pytest.raises(ValueError, match="parties"):
        Barrier(env, 0)
