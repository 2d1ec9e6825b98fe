"""What a traced run writes down: who did what when, and how busy each unit was from when on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from simulator.pipeline.stages.base import Actor, Entry, Slot
from simulator.results.prediction import Sample
from simulator.units import Seconds

COMPUTE = "compute"
COMMUNICATION = "communication"
COPY = "copy"
COPY_BACK = "copy back"
PIN_MEMORY = "pin memory"
MAIN = "main thread"

_LANES = {
    Actor.COPY_ENGINE: COPY,
    Actor.RESULT_ENGINE: COPY_BACK,
    Actor.COMMUNICATION_STREAM: COMMUNICATION,
}


def lane_of(slot: Slot) -> str:
    """The lane of a rank on which a timeline shows a slot of its device."""
    exchanges = slot.entry is Entry.COMMUNICATION
    return _LANES.get(slot.stream, COMMUNICATION if exchanges else COMPUTE)


def shown_on_device(slot: Slot) -> str:
    """What the compute lane shows meanwhile: the slot, or that the device waits for it."""
    if slot.stream is Actor.RESULT_ENGINE:
        return f"waits for {COPY_BACK}"
    works = slot.entry in {Entry.COMPUTE, Entry.BUBBLE}
    return slot.label if works else f"waits for {slot.label}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Noted:
    """A rank's `lane` did `name` from `started` [s] until now, for a step or a batch.

    `machine` is the one it happened on if it is none of those that train.
    """

    rank: int
    lane: str
    name: str
    started: Seconds
    step: int | None = None
    batch: int | None = None
    machine: str = ""


Note: TypeAlias = Callable[[Noted], None]
"""Told of a piece of work that ends now."""


class Meter:
    """Notes how busy units are: the sum of what shares them and of what nothing slows.

    Parameters
    ----------
    names : mapping of str to sequence of str
        The units that each simulated one stands for.

    Examples
    --------
    >>> meter = Meter({"link": ["link", "its twin"]})
    >>> meter.shared(0.0, "link", 0.5)
    >>> meter.fixed(1.0, "link", 0.25)
    >>> [(sample.unit, sample.time, sample.value) for sample in meter.samples][2:]
    [('link', 1.0, 0.75), ('its twin', 1.0, 0.75)]
    """

    def __init__(self, names: Mapping[str, Sequence[str]]) -> None:
        self._names = names
        self._shared: dict[str, float] = {}
        self._fixed: dict[str, float] = {}
        self.samples: list[Sample] = []

    def shared(self, time: Seconds, unit: str, value: float) -> None:
        """Note how busy what shares a unit keeps it from a time on, 0 to 1."""
        self._shared[unit] = value
        self._note(time, unit)

    def fixed(self, time: Seconds, unit: str, value: float) -> None:
        """Note how busy what nothing slows keeps a unit from a time on, 0 to 1."""
        self._fixed[unit] = value
        self._note(time, unit)

    def _note(self, time: Seconds, unit: str) -> None:
        value = self._shared.get(unit, 0.0) + self._fixed.get(unit, 0.0)
        names = self._names.get(unit, (unit,))
        self.samples += [Sample(unit=name, time=time, value=value) for name in names]
