"""Results of a measurement: readings with units and notes, and warnings."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Final, TypeAlias

from simulator.records import dataclass
from simulator.units import Seconds, Unit

SHARE: Final = Unit("", "a share")
COUNT: Final = Unit("", "a count")

Say: TypeAlias = Callable[[str], None]
"""Function called with a line of progress."""


class Unmeasurable(Exception):  # noqa: N818 - says what is the case; the figure is left out
    """A quantity that a device or a tool cannot measure on this machine; the text is the reason."""


@dataclass(frozen=True, slots=True)
class Reading:
    """One measured value in SI units; `key` is unique within its `device`."""

    device: str
    key: str
    value: float
    unit: Unit
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """Readings of one device; `warnings` list values left out or questionable."""

    readings: tuple[Reading, ...] = ()
    warnings: tuple[str, ...] = ()

    def get(self, key: str) -> Reading | None:
        """Return the reading `key`; None if it was not measured."""
        return next((reading for reading in self.readings if reading.key == key), None)


def joined(parts: Iterable[Found]) -> Found:
    """Merge the readings and warnings of several devices, in order."""
    listed = list(parts)
    return Found(
        readings=tuple(reading for part in listed for reading in part.readings),
        warnings=tuple(warning for part in listed for warning in part.warnings),
    )


def repeat(action: Callable[[], object], seconds: Seconds) -> tuple[int, Seconds]:
    """Call `action` for `seconds`, at least once; return number and time of calls [s]."""
    count, start = 0, time.perf_counter()
    while count == 0 or time.perf_counter() - start < seconds:
        action()
        count += 1
    return count, time.perf_counter() - start
