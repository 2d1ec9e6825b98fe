"""Type of a lever, a change that a user can make, and of the amounts that it varies."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Final, Generic, TypeAlias, TypeVar

from simulator.errors import PlanError
from simulator.physics.device_time import measured_times
from simulator.records import dataclass
from simulator.schema.goal import Goal
from simulator.schema.machines import Host
from simulator.schema.scenario import Job, Scenario
from simulator.schema.serving import Service
from simulator.studies.baseline import Baseline, Machine
from simulator.studies.levers import Settings
from simulator.units import Unit

Read: TypeAlias = Callable[[Settings], Scenario]
"""Reads the scenario of a study with some keys set; raises what reading a scenario raises."""
SPEED: Final = Unit("x", "times as fast")
"""Unit of a speed relative to that described in the scenario, which is 1."""


@dataclass(frozen=True, slots=True)
class Change:
    """One change to a scenario: its name, the `settings` that make it, and a note on requirements.

    `log_sd` is the uncertainty of the change itself, in addition to that of the job's rates: the
    standard deviation of the logarithm of its effect on the part that it changes. `kind` is that of
    the lever by default.
    """

    name: str
    settings: Settings
    note: str = ""
    log_sd: float = 0.0
    kind: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Knob:
    """An amount that can be varied: `value` now, in `unit` (None: a count).

    `settings` returns the keys for a value; None if no key sets it. `whole`: only integers, from
    `least`. `multiple`: amounts that exist are multiples of it, if above 0. `free`: a setting
    without a price. `steps` are the names and values that a what-if
    tries. `limits`: its value can change the bottleneck of a job.
    """

    name: str
    value: float
    settings: Callable[[float], Settings] | None
    unit: Unit | None = None
    whole: bool = False
    least: float = 0.0
    multiple: float = 0.0
    free: bool = False
    limits: bool = True
    steps: tuple[tuple[str, float], ...] = ()

    def available(self, value: float) -> float:
        """Return the smallest amount that exists and is not less than `value`."""
        return value if self.multiple == 0.0 else self.multiple * math.ceil(value / self.multiple)


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """A job for which changes are proposed.

    `starved`: it waits for data; `cramped`: it probably does not fit into memory, so changes are
    proposed that help only in combination.
    """

    baseline: Baseline
    starved: bool
    cramped: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceSituation:
    """A service for which changes are proposed, with other machines to try, in this order.

    `reads`: it waits for inputs of requests to be read.
    """

    service: Service
    hosts: tuple[Host, ...] = ()
    reads: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchPoint:
    """A partial candidate that a search extends: a machine and the settings so far."""

    baseline: Baseline
    goal: Goal
    machine: Machine
    point: Settings

    def sets(self, beginning: str) -> bool:
        """Return whether a key that starts with `beginning` is set."""
        return any(key.startswith(beginning) for key in self.point)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shortage:
    """A CPU-bound job, with machines within the limits and possible helpers."""

    baseline: Baseline
    offered: tuple[Machine, ...]
    helpers: tuple[Machine, ...]


class UnfitError(PlanError):
    """Error for a machine on which the scenario cannot run unchanged."""


Given = TypeVar("Given")
"""`Situation` for levers of jobs, `ServiceSituation` for those of services."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lever(Generic[Given]):
    """A change that a user can make, as an entry of the list of levers.

    `keys` are the keys of a scenario that it sets. Of all levers of one `kind`, by default its
    name, only the best change is recommended. `applies` returns whether its changes are useful. Up
    to four functions return its values for a scenario; None if a lever has no such values:

    - `changes`: single changes to propose;
    - `knobs`: its current amount, with settings for any other amount;
    - `candidates`: settings that a search adds to a partial candidate;
    - `relief`: settings that a search tries for a CPU-bound job;
    - `variants`: changed services by name, for a what-if.
    """

    name: str
    keys: tuple[str, ...] = ()
    kind: str = ""
    applies: Callable[[Given], bool] | None = None
    changes: Callable[[Given], Iterator[Change]] | None = None
    knobs: Callable[[Scenario], Iterator[Knob]] | None = None
    candidates: Callable[[SearchPoint], Iterator[Settings]] | None = None
    relief: Callable[[Shortage], Iterator[Settings]] | None = None
    variants: Callable[[Service], Iterator[tuple[str, Service]]] | None = None


JobLever: TypeAlias = Lever[Situation]
ServiceLever: TypeAlias = Lever[ServiceSituation]


def times(value: float, *factors: tuple[str, float]) -> tuple[tuple[str, float], ...]:
    """Return named multiples of a value, from named factors."""
    return tuple((name, value * factor) for name, factor in factors)


TENTH_MORE: Final = ("+10%", 1.1)
TWICE: Final = ("x2", 2.0)
HALF: Final = ("x0.5", 0.5)


def quantity_knob(
    name: str,
    key: str,
    unit: Unit,
    value: float | None,
    *factors: tuple[str, float],
    more: Sequence[tuple[str, float]] = (),
) -> Iterator[Knob]:
    """Yield the amount that a key states, unless it is None.

    Parameters
    ----------
    name, key : str
        Name in reports, and key of the scenario.
    unit : Unit
        Unit of the value and of the key.
    value : float, optional
        Current value.
    factors : tuple of str and float
        Names and factors of the changes that a what-if tries.
    more : sequence of tuple of str and float
        Names and values of further changes.
    """
    if value is not None:
        yield Knob(
            name=name,
            value=value,
            unit=unit,
            settings=lambda changed: {key: f"{changed!r} {unit.symbol}"},
            steps=(*times(value, *factors), *more),
        )


def speed_knob(
    name: str, settings: Callable[[float], Settings] | None, *factors: tuple[str, float]
) -> Iterator[Knob]:
    """Yield a speed relative to that described in the scenario, which is 1."""
    yield Knob(name=name, value=1.0, unit=SPEED, settings=settings, steps=times(1.0, *factors))


def whole_key(key: str) -> Callable[[float], Settings]:
    """Return a function that maps a number, rounded to an integer, to ``{key: number}``."""
    return lambda value: {key: round(value)}


def calibrated_knob(
    name: str, factor: str, scenario: Scenario, *factors: tuple[str, float]
) -> Iterator[Knob]:
    """Yield a relative speed that is set by a factor of ``[calibration]``."""
    now = scenario.calibration.value(factor)
    return speed_knob(name, lambda faster: {f"calibration.{factor}": faster * now}, *factors)


def count_knob(
    name: str, key: str, value: int | None, *, free: bool = False, limits: bool = True
) -> Iterator[Knob]:
    """Yield a count unless it is None; a what-if tries one more, and twice as many if above 1."""
    if value is None:
        return
    yield Knob(
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
    """Return the scenario with an amount changed to `value`.

    Measured step times are not set by a key; they are scaled here.

    Raises
    ------
    PlanError
        If the scenario is invalid or refused.
    """
    if knob.settings is not None:
        return read(knob.settings(value))
    scenario = read({})
    return replace(
        scenario, jobs=tuple(_faster_steps(scenario, job, value) for job in scenario.jobs)
    )


def _faster_steps(scenario: Scenario, job: Job, speed: float) -> Job:
    """Return the job with its measured step times divided by `speed`."""
    measured = measured_times(scenario)
    if measured is None:
        return job
    seconds = tuple(time / speed for time in measured.seconds)
    return replace(job, step_times=replace(measured, seconds=seconds))
