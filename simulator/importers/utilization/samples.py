"""Collects samples of devices from logs of any layout, and checks each of them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from simulator import units
from simulator.errors import Problem
from simulator.importers.result import Quantity, Series, Utilization

PERCENT: Final = 0.01
MEBIBYTE: Final = units.parse("1 MiB", units.BYTE)
_ROOM: Final = 1.02
"""How far a share may lie above the whole, for rounding."""
_SHARES: Final = frozenset(
    {
        Quantity.GPU_BUSY,
        Quantity.GPU_ENGINE,
        Quantity.TENSOR,
        Quantity.DEVICE_MEMORY_BUSY,
        Quantity.DEVICE_MEMORY_SHARE,
        Quantity.CPU_BUSY,
        Quantity.HOST_MEMORY_SHARE,
    }
)
_LARGEST_COUNTER: Final = units.parse("1 PB", units.BYTE)
"""No byte count or rate of a device comes near it; drivers fill missing samples with such."""


@dataclass(slots=True)
class Samples:
    """Samples of one file: rows by device, each a value by quantity.

    `problems` collects what is wrong with single samples.
    """

    origin: str
    problems: list[Problem] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    rows: dict[str, list[dict[Quantity, float]]] = field(default_factory=dict)
    interval: float | None = None

    def fault(
        self, message: str, *, line: int | None = None, found: str | None = None, hint: str = ""
    ) -> None:
        """Note a problem."""
        self.problems.append(
            Problem(origin=self.origin, line=line, message=message, found=found, hint=hint or None)
        )

    def checked(
        self, quantity: Quantity, text: str, factor: float, *, line: int | None, name: str
    ) -> float:
        """A sample in SI units; NaN, with a problem, if it is no number or impossible."""
        try:
            value = float(text)
        except ValueError:
            self.fault(f"has no number under {name}", line=line, found=repr(text[:40]))
            return math.nan
        if not math.isfinite(value):
            return math.nan
        if value < 0.0:
            self.fault(f"has {name} below zero", line=line, found=text)
            return math.nan
        value *= factor
        if quantity in _SHARES and value > _ROOM:
            hint = "is it in percent?" if factor == 1.0 else ""
            most = f"{1.0 / factor:g}"
            self.fault(f"has {name} above {most}, the whole", line=line, found=text, hint=hint)
            return math.nan
        return math.nan if value > _LARGEST_COUNTER else value

    def add(self, device: str, row: Mapping[Quantity, float]) -> None:
        """One sample of a device: what was seen at one time."""
        self.rows.setdefault(device, []).append(dict(row))

    def utilization(self) -> Utilization:
        """All samples as series; those of quantities that were never seen are left out."""
        found = []
        for device, rows in self.rows.items():
            seen = dict.fromkeys(quantity for row in rows for quantity in row)
            for quantity in seen:
                values = np.array([row.get(quantity, math.nan) for row in rows])
                if np.isfinite(values).any():
                    found.append(Series(quantity=quantity, device=device, values=values))
        return Utilization(
            series=tuple(found), interval=self.interval, warnings=tuple(self.warnings)
        )


def typical_step(times: Iterable[float]) -> float | None:
    """The median time between samples [s]; None for fewer than two."""
    found: NDArray[np.float64] = np.diff(np.array(list(times)))
    steps = found[found > 0.0]
    return float(np.median(steps)) if len(steps) else None
