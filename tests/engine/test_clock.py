"""The clock: steps that wait for events, and what they raise."""

from __future__ import annotations

from collections.abc import Generator

import pytest
from simpy import Event

from simulator.engine.sharing import Clock


def test_steps_wait_for_one_event_after_another_and_end_as_an_event() -> None:
    """What has happened already is not waited for again, and whoever waits for the end gets it."""
    clock = Clock()
    seen: list[float] = []

    def steps() -> Generator[Event, object, str]:
        early = clock.timeout(1.0)
        yield clock.timeout(2.0)
        yield early
        seen.append(clock.now)
        return "done"

    ended = clock.process(steps())
    clock.run_until(ended)
    assert (seen, ended.value) == ([2.0], "done")


def test_what_a_step_raises_comes_out_of_the_run() -> None:
    """A bug in an actor is not swallowed."""
    clock = Clock()

    def steps() -> Generator[Event, object, None]:
        yield clock.timeout(1.0)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        clock.run_until(clock.process(steps()))


def test_a_run_that_nothing_can_end_says_so() -> None:
    """An event that nobody lets happen is no reason to wait for ever."""
    clock = Clock()
    with pytest.raises(RuntimeError, match="a process still waits"):
        clock.run_until(Event(clock))
