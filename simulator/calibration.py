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


@dataclass(frozen=True, slots=True, kw_only=True)
class Efficiency:
    """Shares of a device's rates that training reaches where nothing was measured on it.

    `matrix` is the share of the datasheet's matrix rate at the precision that runs, `memory` the
    share of the datasheet's memory bandwidth; a measured rate below them is a limit too.
    """

    matrix: float
    memory: float
    source: Source


IDENTITY = Calibration()
PERFECT = Efficiency(
    matrix=1.0,
    memory=1.0,
    source=Source(reference="upper limit: the device's own rates", date="undated", verified=False),
)
