"""How an axis is scaled and named: the unit of its largest value, and whether it is wide."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Final

from simulator.report.format.layout import printable
from simulator.results.service_metrics import TOKEN_PER_SECOND
from simulator.units import MILLION, PER_SECOND, THOUSAND, Unit, scale

WIDE: Final = 30.0
"""Ratio of the largest to the smallest value from which on an axis is logarithmic."""


_SPOKEN: Final = (TOKEN_PER_SECOND,)
"""Units that no prefix is put before."""
_MANY: Final = ((MILLION, " [millions]"), (THOUSAND, " [thousands]"), (1.0, ""))


def is_wide(values: Iterable[float]) -> bool:
    """Whether values are shown on a logarithmic axis."""
    known = [value for value in values if math.isfinite(value)]
    return bool(known) and min(known) > 0.0 and max(known) > WIDE * min(known)


def scaled(values: Iterable[float], name: str, unit: Unit | None) -> tuple[float, str]:
    """What to divide values by, and the label of their axis with the unit they are then in.

    Examples
    --------
    >>> from simulator.units import SECOND
    >>> scaled([0.002, 0.004], "step", SECOND)
    (0.001, 'step [ms]')
    >>> scaled([4e4, 5e6], "tokens a second", TOKEN_PER_SECOND)
    (1000000.0, 'tokens a second [millions]')
    """
    if unit is None:
        return 1.0, printable(name)
    if unit is PER_SECOND:
        return 1.0, f"{printable(name)} [/s]"
    largest = max((abs(value) for value in values if math.isfinite(value)), default=0.0)
    if unit in _SPOKEN:
        factor, many = next((f, m) for f, m in _MANY if largest >= f or f == 1.0)
        return factor, f"{printable(name)}{many}"
    factor, symbol = scale(largest, unit)
    return factor, f"{printable(name)} [{symbol}]"
