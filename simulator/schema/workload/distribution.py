"""How a per-sample amount varies around its mean."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Shape(StrEnum):
    """The family of a distribution of positive amounts."""

    CONSTANT = "constant"
    UNIFORM = "uniform"
    GAMMA = "gamma"
    LOGNORMAL = "lognormal"
    EXPONENTIAL = "exponential"


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """A distribution's family and its standard deviation as a fraction of the mean."""

    shape: Shape = Shape.CONSTANT
    relative_deviation: float = 0.0

    @property
    def varies(self) -> bool:
        """Whether two draws can differ."""
        return self.shape is not Shape.CONSTANT and self.relative_deviation > 0.0


CONSTANT = Spread()
