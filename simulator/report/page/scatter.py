"""Candidates by two metrics, those that none beats joined by a line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from simulator.report.page.axes import Axis, axis
from simulator.results.metrics import METRICS

_UNITS: Final = {metric.name: metric.unit for metric in METRICS}


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """A candidate by two metrics in SI units; `hint` says which it is."""

    x: float
    y: float
    front: bool
    hint: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Dot:
    """A candidate in the scatter, at shares of both axes; `hint` is shown under the pointer."""

    x: float
    y: float
    front: bool
    hint: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Scatter:
    """Candidates by two objectives, the front joined by a line."""

    across: Axis
    up: Axis
    dots: tuple[Dot, ...]
    front: tuple[Dot, ...]


def scatter(points: Sequence[Point], across: str, up: str) -> Scatter | None:
    """Points by the metrics `across` and `up`; None where there are none."""
    if not points:
        return None
    sides = (
        axis([point.x for point in points], across, _UNITS.get(across)),
        axis([point.y for point in points], up, _UNITS.get(up)),
    )
    dots = tuple(
        Dot(x=sides[0].at(point.x), y=sides[1].at(point.y), front=point.front, hint=point.hint)
        for point in points
    )
    front = sorted((dot for dot in dots if dot.front), key=lambda dot: dot.x)
    return Scatter(across=sides[0], up=sides[1], dots=dots, front=tuple(front))
