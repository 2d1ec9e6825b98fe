"""How good the intervals are, over everything that was held out.

Figures are the (row, metric) pairs of all sets. Interval scores are compared on those with a
relative error: one width cannot serve shares and seconds alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from simulator.uncertainty.measurement import Split
from simulator.validation.scores import (
    Point,
    constant_width,
    coverage,
    interval_score,
    with_width,
)

WHOLE: Final = (0.72, 0.88)
"""Share of all held-out figures that should lie within P10 to P90."""
EACH: Final = (0.65, 0.95)
"""The same in every family of at least `ENOUGH` rows."""
ENOUGH: Final = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One predicted figure: where it belongs, and the point."""

    family: str
    split: Split
    point: Point
    absolute: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Bands:
    """What share of held-out figures lies within P10 to P90, and how the intervals score.

    `constant_score` is that of one relative width for all, fitted on the figures that may be
    fitted to. `off` are families whose coverage lies outside `EACH`.
    """

    figures: int
    coverage: float
    interval_score: float | None
    constant_score: float | None
    off: tuple[tuple[str, float], ...]

    @property
    def holds(self) -> bool:
        """Whether coverage is as it should be, in all and in every family."""
        low, high = WHOLE
        return low <= self.coverage <= high and not self.off


def bands(figures: Sequence[Figure]) -> Bands | None:
    """Judge the intervals of the test figures; None where there are none."""
    known = [f for f in figures if f.point.p10 is not None and f.point.p90 is not None]
    held = [f for f in known if f.split is Split.TEST]
    whole = coverage([f.point for f in held])
    if whole is None:
        return None
    tested = [f.point for f in held if not f.absolute]
    fitted = [f.point for f in known if f.split is Split.FIT and not f.absolute]
    width = constant_width(fitted)
    return Bands(
        figures=len(held),
        coverage=whole,
        interval_score=interval_score(tested),
        constant_score=None if width is None else interval_score(with_width(tested, width)),
        off=tuple(_off(held)),
    )


def _off(held: Sequence[Figure]) -> list[tuple[str, float]]:
    low, high = EACH
    found = []
    for name in dict.fromkeys(figure.family for figure in held):
        own = [figure.point for figure in held if figure.family == name]
        share = coverage(own) or 0.0
        if len(own) >= ENOUGH and not low <= share <= high:
            found.append((name, share))
    return found
