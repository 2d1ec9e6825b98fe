"""Named factors fitted to or read from evidence; the identity by default."""

from __future__ import annotations

from dataclasses import dataclass

from simulator.provenance import Source


@dataclass(frozen=True, slots=True, kw_only=True)
class Factor:
    """A named multiplier on a rate (above 1: faster), with where it came from."""

    name: str
    value: float
    source: Source


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """The factors a prediction applies, by name."""

    factors: tuple[Factor, ...] = ()

    def value(self, name: str) -> float:
        """The factor called `name`, 1.0 where none was fitted."""
        return next((f.value for f in self.factors if f.name == name), 1.0)


IDENTITY = Calibration()
