"""One figure for reading, whatever it is measured in."""

from __future__ import annotations

from collections.abc import Mapping

from simulator.metrics import Value
from simulator.report.layout import count, printable
from simulator.units import PER_SECOND, Unit, show


def figure(value: Value, unit: Unit | None) -> str:
    """A metric's value with its unit; a rate of events is a rate of samples.

    Examples
    --------
    >>> from simulator.units import SECOND
    >>> figure(0.192, SECOND), figure(42667.0, PER_SECOND), figure(None, SECOND)
    ('192 ms', '42,667 samples/s', 'does not apply')
    """
    if value is None:
        return "does not apply"
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, Mapping):
        return ", ".join(f"{printable(k)} {figure(v, unit)}" for k, v in value.items() if v)
    if unit is None:
        return count(value) if abs(value) >= 1.0 else f"{value:.4g}"
    return f"{count(value)} samples/s" if unit is PER_SECOND else show(value, unit)
