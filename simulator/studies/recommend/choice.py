"""A choice: a candidate on a machine, with its figures as the goal counts them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from simulator.results.metrics import Value
from simulator.schema.goal import Plain
from simulator.studies.recommend.machines import Machine
from simulator.studies.search.outcome import Outcome, Status

TIME = "total_time_s"
MONEY = "cost.usd_to_train"
"""The two axes of the front."""
PREPARES: Final = "input.where"
"""A remedy that sets this changes what the loader does, which the user must want: it is told of,
but not taken."""
_BOUGHT: Final = (
    *("hardware.machine", "hardware.count", "remote.machine", "remote.count"),
    "remote.storage",
    *("hardware.storage", "data.placement", "cost.purchase"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """A candidate with what became of it.

    `figures` are those of the outcome with lost work and restarts in them where the machine is
    bought as spot capacity, and with the copy of the data where it needs one (`copied`). `value` is
    the goal's (None: it has none), `broken` the limits it does not keep.
    """

    machine: Machine
    outcome: Outcome
    count: int = 1
    figures: Mapping[str, Value] = field(default_factory=dict)
    value: float | None = None
    broken: tuple[str, ...] = ()
    idea: str = ""
    copied: bool = False

    @property
    def settings(self) -> Mapping[str, Plain]:
        """What sets it apart from the scenario."""
        return self.outcome.candidate.settings

    @property
    def index(self) -> int:
        """Its place in the search."""
        return self.outcome.candidate.index

    @property
    def is_predicted(self) -> bool:
        """Whether its figures come from a prediction."""
        return self.outcome.status is Status.PREDICTED

    @property
    def is_sound(self) -> bool:
        """Whether it was predicted, keeps every limit and has a value."""
        return self.is_predicted and not self.broken and self.value is not None

    @property
    def hardware(self) -> tuple[object, ...]:
        """What is bought: two choices that differ only in settings of the program are alike."""
        named: dict[str, Plain] = {
            "hardware.machine": self.machine.name,
            "hardware.count": self.count,
        }
        return hardware_of({**self.settings, **named})

    @property
    def kind(self) -> tuple[object, ...]:
        """The machines it is about, in whatever number and wherever the data lie."""
        keys = ("remote.machine", "cost.purchase")
        return (self.machine.name, *(self.settings.get(key) for key in keys))


def hardware_of(settings: Mapping[str, Plain]) -> tuple[object, ...]:
    """What is bought with a candidate, whatever its program is set to."""
    return tuple(settings.get(key) for key in _BOUGHT)


def number(figures: Mapping[str, Value], name: str) -> float | None:
    """A finite figure by its name; None where there is none."""
    value = figures.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if math.isfinite(value) else None
