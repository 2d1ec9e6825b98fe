"""Bars of a report: the parts of a step, busy resources, what fills a memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from simulator.physics.footprint import HostRam, MemoryFit
from simulator.pipeline.ledger import LINES
from simulator.report.format.named import parts_called, resource_called
from simulator.report.format.rounded import digits_of, quantity, share_known, significant
from simulator.report.prediction.rows import DIGITS, parts
from simulator.report.prediction.verdict import marks
from simulator.results.prediction import Prediction, Usage
from simulator.units import BYTE, SECOND, Bytes, Seconds, show

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
PASSES: Final[Mapping[str, int]] = {"forward": 0, "backward": 8, "optimizer": 6}
"""Colour of each pass of computing."""
COLOURS: Final = 8
"""Colours that can be told from one another in one drawing."""
IDLE: Final = 0.01
"""Share below which a resource is only named."""
LEAST: Final = 0.001
"""Share of a step below which a part of it is not drawn."""


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
    """The mean step as exposed parts, each beginning where the one before it ends.

    Computing is drawn as its forward, backward and other passes where it has several.
    """
    step = prediction.timing.step_time.mean
    digits = digits_of(prediction, "step_time_s.mean")
    drawn, before = [], 0.0
    for label, length, tone in _pieces(prediction):
        share = length / step if step else 0.0
        if share > LEAST:
            drawn.append(
                Bar(
                    label=label,
                    start=before,
                    length=share,
                    value=quantity(length, SECOND, digits),
                    tone=tone,
                    note=share_known(share),
                )
            )
        before += share
    return tuple(drawn)


def _pieces(prediction: Prediction) -> list[tuple[str, Seconds, int]]:
    """The exposed parts of a step with what they are called and their colours."""
    timing, names = prediction.timing, parts_called(prediction.scenario)
    found = []
    for name, length in parts(timing.split):
        passes = {
            line: timing.ledger[line]
            for line, entry in LINES.items()
            if entry.value == name and timing.ledger.get(line, 0.0) > 0.0
        }
        if name == "compute" and len(passes) > 1:
            found += [
                (f"{names[name].partition(' ')[0]} {line}", time, PASSES.get(line, TONES[name]))
                for line, time in passes.items()
            ]
        else:
            found.append((names[name], length, TONES[name]))
    return found


def busy(prediction: Prediction) -> tuple[Bar, ...]:
    """How busy each resource is, busiest first; those that do next to nothing are left out."""
    timing = prediction.timing
    marked = marks(prediction)
    ordered = sorted(timing.usage.items(), key=lambda entry: -entry[1].mean)
    return tuple(
        Bar(
            label=resource_called(str(name), prediction.scenario),
            start=0.0,
            length=min(1.0, usage.mean),
            value=share_known(usage.mean),
            tone=1 if name == timing.bottleneck else 0,
            note="; ".join(_busy_notes(usage, marked.get(name, ""))),
        )
        for name, usage in ordered
        if usage.mean >= IDLE or name in marked
    )


def idle(prediction: Prediction) -> str:
    """Resources that `busy` leaves out, in a sentence; empty where there is none."""
    marked = marks(prediction)
    names = [
        resource_called(str(name), prediction.scenario)
        for name, usage in prediction.timing.usage.items()
        if usage.mean < IDLE and name not in marked
    ]
    return f"Busy for less than {IDLE:.0%}: {', '.join(names)}." if names else ""


def _busy_notes(usage: Usage, said: str) -> list[str]:
    """How many of several units that is, and what the verdict says of the resource."""
    many = [f"{significant(usage.total, 3)} of {usage.units:,}"] if usage.units > 1 else []
    return [*many, *([said] if said else [])]


def stack(title: str, fit: MemoryFit | HostRam) -> Stack:
    """What a memory holds, against its capacity."""
    whole = max(fit.total, fit.capacity)
    drawn, before = [], 0.0
    for number, (name, size) in enumerate(_largest(fit.items)):
        share = size / whole
        drawn.append(
            Bar(
                label=name.replace("_", " "),
                start=before,
                length=share,
                value=show(size, BYTE, DIGITS),
                tone=number,
                note=share_known(size / fit.capacity),
            )
        )
        before += share
    return Stack(
        title=title,
        verdict="not known" if fit.known_verdict is None else str(fit.known_verdict),
        bars=tuple(drawn),
        capacity=fit.capacity / whole,
        whole=show(fit.total, BYTE, DIGITS),
        limit=show(fit.capacity, BYTE, DIGITS),
    )


def _largest(items: Mapping[str, Bytes]) -> list[tuple[str, Bytes]]:
    """Items by size, as many as there are colours; the last one is the sum of all smaller ones."""
    sizes = sorted(((n, s) for n, s in items.items() if s > 0.0), key=lambda item: -item[1])
    shown, rest = sizes[:COLOURS], sizes[COLOURS:]
    if rest:
        rest.insert(0, shown.pop())
        shown.append((f"{len(rest)} smaller items", sum(size for _, size in rest)))
    return shown
