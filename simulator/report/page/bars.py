"""Bars of a report: the parts of a step, busy resources, what fills a memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from simulator.compute.footprint import HostRam, MemoryFit
from simulator.report.layout import percent
from simulator.report.named import parts_called
from simulator.report.rows import NEGLIGIBLE, parts
from simulator.report.verdict import marks
from simulator.results.prediction import Prediction
from simulator.units import BYTE, SECOND, show

TONES: Final[Mapping[str, int]] = {
    "data_stall": 1,
    "h2d": 5,
    "compute": 0,
    "communication": 2,
    "bubble": 3,
    "checkpoint": 4,
    "other": 7,
}
"""Colour of each part of a step, by its number in the style sheet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """A bar from `start` to `start + length`, both as shares of the drawing's width.

    `tone` is the number of its colour, `value` what is written beside it, `note` more to say.
    """

    label: str
    start: float
    length: float
    value: str
    tone: int
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stack:
    """Bars one after another on one line, with a mark where the capacity ends."""

    title: str
    verdict: str
    bars: tuple[Bar, ...]
    capacity: float
    whole: str
    limit: str


def waterfall(prediction: Prediction) -> tuple[Bar, ...]:
    """The mean step as exposed parts, each beginning where the one before it ends."""
    step, names = prediction.timing.step_time.mean, parts_called(prediction.scenario)
    drawn, before = [], 0.0
    for name, length in parts(prediction.timing.split):
        share = length / step if step else 0.0
        if share > NEGLIGIBLE:
            drawn.append(
                Bar(
                    label=names[name],
                    start=before,
                    length=share,
                    value=show(length, SECOND),
                    tone=TONES[name],
                    note=percent(share),
                )
            )
        before += share
    return tuple(drawn)


def busy(prediction: Prediction) -> tuple[Bar, ...]:
    """How busy each resource is, busiest first."""
    timing = prediction.timing
    marked = marks(prediction)
    ordered = sorted(timing.usage.items(), key=lambda entry: -entry[1].mean)
    return tuple(
        Bar(
            label=str(name),
            start=0.0,
            length=min(1.0, usage.mean),
            value=percent(usage.mean),
            tone=1 if name == timing.bottleneck else 0,
            note=f"{usage.total:.4g} of {usage.units}"
            + (f", {marked[name]}" if name in marked else ""),
        )
        for name, usage in ordered
    )


def stack(title: str, fit: MemoryFit | HostRam) -> Stack:
    """What a memory holds, against its capacity."""
    whole = max(fit.total, fit.capacity)
    drawn, before = [], 0.0
    sizes = [(name, size) for name, size in fit.items.items() if size > 0.0]
    for number, (name, size) in enumerate(sizes):
        share = size / whole
        drawn.append(
            Bar(
                label=name.replace("_", " "),
                start=before,
                length=share,
                value=show(size, BYTE),
                tone=number % len(TONES),
                note=percent(size / fit.capacity),
            )
        )
        before += share
    return Stack(
        title=title,
        verdict=str(fit.verdict),
        bars=tuple(drawn),
        capacity=fit.capacity / whole,
        whole=show(fit.total, BYTE),
        limit=show(fit.capacity, BYTE),
    )
