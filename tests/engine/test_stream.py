"""Streams queue and hold each other up, barriers gather, as their docstrings say."""

from collections.abc import Generator

import pytest
from simpy import Environment, Event

from simulator.engine.barrier import Barrier
from simulator.engine.stream import Stream


@pytest.fixture
def env() -> Environment:
    """Return a clock at zero."""
    return Environment()


def test_work_is_done_in_turn(env: Environment) -> None:
    """One thing at a time in the order asked; the queue moves on at once."""
    done: list[tuple[float, float, object]] = []
    stream = Stream(env, on_run=lambda *entry: done.append(entry))
    stream.run(1.0, tag="forward")
    stream.run(2.0, tag="backward")
    stream.run(0.0, tag="mark")
    env.run(until=5.0)
    stream.run(1.0, tag="next")
    env.run()
    assert done == [
        (0.0, 1.0, "forward"),
        (1.0, 3.0, "backward"),
        (3.0, 3.0, "mark"),
        (5.0, 6.0, "next"),
    ]
    assert stream.busy() == 4.0


def test_busy_counts_up_to_now(env: Environment) -> None:
    """A piece of work that is not finished counts as far as it has come."""
    stream = Stream(env)
    stream.run(2.0)
    env.run(until=0.5)
    assert stream.is_busy()
    assert stream.busy() == 0.5


def test_busy_stream_holds_another_up(env: Environment) -> None:
    """Progress is exact through several changes of speed."""
    communication = Stream(env)
    compute = Stream(env, slowed_by=[(communication, 0.25)])
    step = compute.run(4.0)
    env.run(until=1.0)
    communication.run(1.0)
    env.run(until=3.0)
    communication.run(0.5)
    env.run(step)
    assert env.now == pytest.approx(4.0 + 1.5 * (1 - 1 / 1.25))
    assert compute.busy() == env.now


def test_streams_hold_each_other_up(env: Environment) -> None:
    """Both slow while both are busy: 1 s and 2 s at half speed overlap for 2 s."""
    one, two = Stream(env), Stream(env)
    one.slow_by(two, 1.0)
    two.slow_by(one, 1.0)
    short, long = one.run(1.0), two.run(2.0)
    env.run(short)
    assert env.now == 2.0
    env.run(long)
    assert env.now == 3.0


def test_factors_add(env: Environment) -> None:
    """Two busy streams of factors 1 and 2 leave a quarter of the speed."""
    others = Stream(env), Stream(env)
    stream = Stream(env, slowed_by=[(others[0], 1.0), (others[1], 2.0)])
    for other in others:
        other.run(10.0)
    env.run(stream.run(1.0))
    assert env.now == 4.0


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
