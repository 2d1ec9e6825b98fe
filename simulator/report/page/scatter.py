"""Candidates by two metrics, those that none beats joined by a line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from simulator.report.format.named import metric_called
from simulator.report.page.axes import Axis, Tick, axis
from simulator.results.metrics import METRICS

_MIDDLE: Final = 0.5
"""Share of the axis from which on a label stands at the left of its dot."""
_LINE: Final = 0.06
"""Height of a label, as a share of the drawing."""
_COLUMN: Final = 0.0125
"""Width of a letter of it."""
_UNITS: Final = {metric.name: metric.unit for metric in METRICS}


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """A candidate by two metrics in SI units; `hint` says which it is, `label` in a word or two."""

    x: float
    y: float
    front: bool
    hint: str
    label: str = ""
    best: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Dot:
    """A candidate in the scatter, at shares of both axes; `hint` is shown under the pointer.

    `label` is written beside it, on the left where `left`; empty where there is no room. `ends` are
    those of its interval on the upright axis.
    """

    x: float
    y: float
    front: bool
    hint: str
    label: str = ""
    best: bool = False
    left: bool = False
    ends: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Scatter:
    """Candidates by two objectives, the front joined by a line.

    `limit` is a height that may not be passed, `now` what there is at present on the other axis.
    """

    across: Axis
    up: Axis
    dots: tuple[Dot, ...]
    front: tuple[Dot, ...]
    limit: Tick | None = None
    now: Tick | None = None


def scatter(points: Sequence[Point], across: str, up: str) -> Scatter | None:
    """Points by the metrics `across` and `up`; None where there are none."""
    if not points:
        return None
    sides = (
        axis([point.x for point in points], metric_called(across), _UNITS.get(across)),
        axis([point.y for point in points], metric_called(up), _UNITS.get(up)),
    )
    dots = _labelled(
        [
            Dot(
                x=sides[0].at(point.x),
                y=sides[1].at(point.y),
                front=point.front,
                hint=point.hint,
                label=point.label,
                best=point.best,
                left=sides[0].at(point.x) > _MIDDLE,
            )
            for point in points
        ]
    )
    front = sorted((dot for dot in dots if dot.front), key=lambda dot: dot.x)
    return Scatter(across=sides[0], up=sides[1], dots=dots, front=tuple(front))


def _labelled(dots: Sequence[Dot]) -> tuple[Dot, ...]:
    """Dots with the labels that there is room for: the best one's, then along the front."""
    kept: list[Dot] = []
    for dot in sorted(dots, key=lambda dot: (not dot.best, dot.x)):
        if dot.label and dot.front and not any(_overlap(dot, other) for other in kept):
            kept.append(dot)
    return tuple(dot if dot in kept else replace(dot, label="") for dot in dots)


def _overlap(one: Dot, other: Dot) -> bool:
    """Whether their labels would be written over each other."""
    (low, high), (least, most) = _reach(one), _reach(other)
    return abs(one.y - other.y) < _LINE and low < most and least < high


def _reach(dot: Dot) -> tuple[float, float]:
    width = _COLUMN * len(dot.label)
    return (dot.x - width, dot.x) if dot.left else (dot.x, dot.x + width)
