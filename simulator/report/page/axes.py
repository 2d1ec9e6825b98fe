"""An axis of a drawing: where a value lies between its ends, and which values are named."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from simulator.report.format.scales import is_wide, scaled
from simulator.units import Unit

ROOM: Final = 0.04
"""Part of the axis that is left free at both ends."""
STEPS: Final = (1.0, 2.0, 5.0, 10.0)
MOST_TICKS: Final = 7


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    """A named value, at a share of the axis."""

    at: float
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """An axis from `low` to `high`, in the unit of its label."""

    label: str
    low: float
    high: float
    factor: float
    logarithmic: bool
    ticks: tuple[Tick, ...] = ()

    def at(self, value: float) -> float:
        """Where a value in SI units lies, 0 to 1."""
        return _share(value / self.factor, self.low, self.high, logarithmic=self.logarithmic)


def axis(values: Sequence[float], name: str, unit: Unit | None) -> Axis:
    """The axis that shows some values, with room around them.

    Parameters
    ----------
    values : sequence of float
        In SI units; at least one of them finite.
    name : str
        What they are.
    unit : Unit, optional
        What they are measured in.
    """
    factor, label = scaled(values, name, unit)
    known = [value / factor for value in values]
    low, high = min(known), max(known)
    logarithmic = is_wide(known)
    if logarithmic:
        room = (high / low) ** ROOM
        low, high = low / room, high * room
    else:
        room = ROOM * (high - low) or 0.5 * abs(high) or 1.0
        low, high = low - room, high + room
    ticks = tuple(
        Tick(at=_share(value, low, high, logarithmic=logarithmic), text=_text(value, label))
        for value in _named(low, high, logarithmic=logarithmic)
    )
    return Axis(
        label=label, low=low, high=high, factor=factor, logarithmic=logarithmic, ticks=ticks
    )


def _text(value: float, label: str) -> str:
    """A value of an axis: thousands are set apart, money has its sign."""
    plain = f"{value:,.10g}"
    return f"${plain}" if label.endswith("[$]") else plain


def _share(value: float, low: float, high: float, *, logarithmic: bool) -> float:
    if logarithmic:
        return math.log(value / low) / math.log(high / low)
    return (value - low) / (high - low)


def _named(low: float, high: float, *, logarithmic: bool) -> list[float]:
    """Round values between the ends.

    Examples
    --------
    >>> _named(0.3, 5.2, logarithmic=False)
    [1.0, 2.0, 3.0, 4.0, 5.0]
    >>> _named(0.3, 52.0, logarithmic=True)
    [0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0]
    """
    if logarithmic:
        first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
        powers = [10.0**power for power in range(first, last + 1)]
        every = [
            step * power for power in powers for step in STEPS[:3] if low <= step * power <= high
        ]
        only = [power for power in powers if low <= power <= high]
        return every if len(every) <= MOST_TICKS or len(only) < 2 else only  # noqa: PLR2004 - an axis names two values at least
    rough = (high - low) / MOST_TICKS
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(s * power for s in STEPS if s * power >= rough)
    return [round(i * step, 12) for i in range(math.ceil(low / step), math.floor(high / step) + 1)]
