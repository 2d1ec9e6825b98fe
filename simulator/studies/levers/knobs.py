"""Knobs: amounts of resources and settings, with the keys for any other amount."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from simulator.physics.device_time import measured_times
from simulator.schema.scenario import Job, Scenario
from simulator.studies.levers.lever import Knob, Read, Settings


def times(value: float, *factors: tuple[str, float]) -> tuple[tuple[str, float], ...]:
    """Return steps of a value by factors."""
    return tuple((name, value * factor) for name, factor in factors)


TENTH_MORE: Final = ("+10%", 1.1)
TWICE: Final = ("x2", 2.0)
HALF: Final = ("x0.5", 0.5)


def quantity_key(key: str, symbol: str) -> Callable[[float], Settings]:
    """Return a function that gives a key for a value in the unit `symbol`."""
    return lambda value: {key: f"{value!r} {symbol}"}


def whole_key(key: str) -> Callable[[float], Settings]:
    """Return a function that gives a key for a whole number."""
    return lambda value: {key: round(value)}


def count_knob(name: str, key: str, value: int, *, free: bool, limits: bool) -> Knob:
    """Return the knob of a count: one more, and twice as many where there are several."""
    return Knob(
        name=name,
        value=value,
        settings=whole_key(key),
        whole=True,
        least=1.0,
        free=free,
        limits=limits,
        steps=(("+1", value + 1), *(times(value, TWICE) if value > 1 else ())),
    )


def turned(read: Read, knob: Knob, value: float) -> Scenario:
    """Return the scenario with a knob at `value`.

    Only measured step times have no key to scale them; they are scaled here.

    Raises
    ------
    PlanError
        If there is no such scenario, or it is refused.
    """
    if knob.settings is not None:
        return read(knob.settings(value))
    scenario = read({})
    return replace(
        scenario, jobs=tuple(_faster_steps(scenario, job, value) for job in scenario.jobs)
    )


def _faster_steps(scenario: Scenario, job: Job, speed: float) -> Job:
    """The job with what was measured of its step taking less time."""
    measured = measured_times(scenario)
    if measured is None:
        return job
    seconds = tuple(time / speed for time in measured.seconds)
    return replace(job, step_times=replace(measured, seconds=seconds))
