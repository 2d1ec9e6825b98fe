"""A part of the fit: figures that come out of it, what it says of them, how they are shipped."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypeAlias

DATA: Final = Path(__file__).resolve().parents[2] / "simulator" / "data"
"""Where fitted figures are shipped."""
Say: TypeAlias = Callable[[str], None]
"""Called with each line of progress."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a part found.

    `figures` are the fitted values by name; `shipped` those in the package now, under the same
    names. `files` are the texts of the files that hold the fitted ones, by path from `DATA`.
    `lines` say how sure the figures are.
    """

    figures: Mapping[str, float]
    shipped: Mapping[str, float]
    files: Mapping[str, str] = field(default_factory=dict)
    lines: tuple[str, ...] = ()

    @property
    def moved(self) -> dict[str, tuple[float, float]]:
        """Figures that differ from the shipped ones in four significant digits: both values."""
        pairs = {name: (self.shipped[name], value) for name, value in self.figures.items()}
        return {name: pair for name, pair in pairs.items() if _differ(*pair)}


def _differ(old: float, new: float) -> bool:
    return float(f"{old:.4g}") != float(f"{new:.4g}")
