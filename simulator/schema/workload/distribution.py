"""How a per-sample amount varies around its mean."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated

from simulator.schema.fields import REQUIRED, Choice, NumberOrZeroField


class Shape(StrEnum):
    """The family of a distribution of positive amounts."""

    CONSTANT = "constant"
    UNIFORM = "uniform"
    GAMMA = "gamma"
    LOGNORMAL = "lognormal"
    EXPONENTIAL = "exponential"


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """How an amount varies around its mean: of one sample, one device or one step."""

    shape: Annotated[Shape, Choice(Shape)] = field(default=Shape.CONSTANT, metadata=REQUIRED)
    """Family of the distribution."""
    relative_deviation: NumberOrZeroField | None = None
    """Standard deviation as a fraction of the mean; constant and exponential imply it."""

    @property
    def deviation(self) -> float:
        """Standard deviation as a fraction of the mean."""
        if self.relative_deviation is None:
            return 1.0 if self.shape is Shape.EXPONENTIAL else 0.0
        return self.relative_deviation

    @property
    def varies(self) -> bool:
        """Whether two draws can differ."""
        return self.shape is not Shape.CONSTANT and self.deviation > 0.0


CONSTANT = Spread()
