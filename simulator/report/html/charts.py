"""Data of charts: axes with ticks, scatter plots, scaling curves, bars and stacks."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from simulator.physics.footprint import HostRam, MemoryFit
from simulator.pipeline.program import LINES
from simulator.records import dataclass
from simulator.report.labels import metric_called, resource_called
from simulator.report.numbers import digits_of, is_wide, quantity, scaled, share_known, significant
from simulator.report.prediction.rows import DIGITS, parts
from simulator.report.prediction.verdict import marks, part_labels
from simulator.results.metrics import JOB_METRICS
from simulator.results.prediction import Prediction, Usage
from simulator.schema.goal import Plain
from simulator.studies.search.findings import Findings
from simulator.studies.search.outcome import Outcome, Status
from simulator.units import BYTE, SECOND, Bytes, Seconds, Unit, show

ROOM: Final = 0.04
"""Margin at both ends of an axis, as a fraction."""
STEPS: Final = (1.0, 2.0, 5.0, 10.0)
MOST_TICKS: Final = 7


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    """A labelled value at a fraction of the axis."""

    at: float
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """An axis from `low` to `high`, in the unit of its label; `factor` is that unit in SI."""

    label: str
    low: float
    high: float
    factor: float
    logarithmic: bool
    ticks: tuple[Tick, ...] = ()

    def at(self, value: float) -> float:
        """Return the position of a value in SI units, a fraction of the axis."""
        return _share(value / self.factor, self.low, self.high, logarithmic=self.logarithmic)


def axis(values: Sequence[float], name: str, unit: Unit | None) -> Axis:
    """Return an axis that contains the values, with a margin.

    Parameters
    ----------
    values : sequence of float
        Values in SI units; at least one of them finite.
    name : str
        Name of the quantity.
    unit : Unit, optional
        Unit of the quantity.
    """
    factor, label = scaled(values, name, unit)
    known = [value / factor for value in values]
    low, high = min(known), max(known)
    logarithmic = is_wide(known)
    if logarithmic:
        room = (high / low) ** ROOM
        low, high = low / room, high * room
    else:
        room = ROOM * (high - low) or 0.5 * abs(high) or 1.0
        low, high = low - room, high + room
    ticks = tuple(
        Tick(at=_share(value, low, high, logarithmic=logarithmic), text=_text(value, label))
        for value in _named(low, high, logarithmic=logarithmic)
    )
    return Axis(
        label=label, low=low, high=high, factor=factor, logarithmic=logarithmic, ticks=ticks
    )


def _text(value: float, label: str) -> str:
    """Format a value of an axis, with thousands separators, and a dollar sign for money."""
    plain = f"{value:,.10g}"
    return f"${plain}" if label.endswith("[$]") else plain


def _share(value: float, low: float, high: float, *, logarithmic: bool) -> float:
    if logarithmic:
        return math.log(value / low) / math.log(high / low)
    return (value - low) / (high - low)


def _named(low: float, high: float, *, logarithmic: bool) -> list[float]:
    """Return round values between the ends, for ticks.

    Examples
    --------
    >>> _named(0.3, 5.2, logarithmic=False)
    [1.0, 2.0, 3.0, 4.0, 5.0]
    >>> _named(0.3, 52.0, logarithmic=True)
    [0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0]
    """
    if logarithmic:
        first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
        powers = [10.0**power for power in range(first, last + 1)]
        every = [
            step * power for power in powers for step in STEPS[:3] if low <= step * power <= high
        ]
        only = [power for power in powers if low <= power <= high]
        return every if len(every) <= MOST_TICKS or len(only) < 2 else only  # noqa: PLR2004 - an axis names two values at least
    rough = (high - low) / MOST_TICKS
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(s * power for s in STEPS if s * power >= rough)
    return [round(i * step, 12) for i in range(math.ceil(low / step), math.floor(high / step) + 1)]


_MIDDLE: Final = 0.5
"""Fraction of the axis from which a label is to the left of its dot."""
_LINE: Final = 0.06
"""Height of a label, as a share of the drawing."""
_COLUMN: Final = 0.0125
"""Width of a letter of a label, as a share of the drawing."""
_UNITS: Final = {metric.name: metric.unit for metric in JOB_METRICS}


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """A candidate with two metrics in SI units; `hint` is its description, `label` a short one."""

    x: float
    y: float
    front: bool
    hint: str
    label: str = ""
    best: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Dot:
    """A candidate in a scatter plot, at fractions of both axes; `hint` is its tooltip.

    `label` is written to the right, or to the left if `left`; empty if there is no room. `ends` are
    the ends of its interval on the vertical axis.
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
    """A scatter plot of candidates by two objectives, with a line through the Pareto front.

    `limit` is a limit on the vertical axis, `now` the present value on the horizontal axis.
    """

    across: Axis
    up: Axis
    dots: tuple[Dot, ...]
    front: tuple[Dot, ...]
    limit: Tick | None = None
    now: Tick | None = None


def scatter(points: Sequence[Point], across: str, up: str) -> Scatter | None:
    """Return points by the metrics `across` and `up`; None if there are no points."""
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
    """Return dots with labels where there is room: first the best one, then along the front."""
    kept: list[Dot] = []
    for dot in sorted(dots, key=lambda dot: (not dot.best, dot.x)):
        if dot.label and dot.front and not any(_overlap(dot, other) for other in kept):
            kept.append(dot)
    return tuple(dot if dot in kept else replace(dot, label="") for dot in dots)


def _overlap(one: Dot, other: Dot) -> bool:
    """Return True if the labels of two dots would overlap."""
    (low, high), (least, most) = _reach(one), _reach(other)
    return abs(one.y - other.y) < _LINE and low < most and least < high


def _reach(dot: Dot) -> tuple[float, float]:
    width = _COLUMN * len(dot.label)
    return (dot.x - width, dot.x) if dot.left else (dot.x, dot.x + width)


MACHINES: Final = "hardware.count"
RATES: Final = ("tokens_per_s", "throughput_samples_per_s")
"""Metrics to plot; the first that is available is used."""
_CROWDED, _CROWDED_NARROW = 0.05, 0.2
"""Share of the axis below which two labels would overlap, and on a narrow page."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """A number of machines: its position as fractions of both axes, and its efficiency as a label.

    A narrow page does not show the label if `minor`.
    """

    x: float
    y: float
    label: str
    hint: str
    minor: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Scaling:
    """Throughput over the number of machines; `ideal` is the height of linear scaling at both ends.

    `rows` are machines, throughput and efficiency as texts.
    """

    across: Axis
    up: Axis
    marks: tuple[Mark, ...]
    ideal: tuple[float, float]
    rows: tuple[tuple[str, str, str], ...]


def scaling(found: Findings) -> Scaling | None:
    """Return the scaling curve of the best candidate; None without a second number of machines.

    All other keys have the values of the best candidate. The ideal line is the
    throughput of the fewest machines in proportion to their number.
    """
    metric, rates = _rates(found)
    if len(rates) < 2:  # noqa: PLR2004 - one number of machines shows no growth
        return None
    counts = sorted(rates)
    first = rates[counts[0]] / counts[0]
    ideal = [first * count for count in counts]
    sides = (
        _of_counts(counts),
        axis([*rates.values(), *ideal], metric_called(metric), _UNITS.get(metric)),
    )
    unit = _UNITS.get(metric)
    texts = [
        (f"{count:,}", quantity(rates[count], unit, DIGITS), f"{rates[count] / top:.0%}")
        for count, top in zip(counts, ideal, strict=True)
    ]
    marks = [
        Mark(
            x=sides[0].at(count),
            y=sides[1].at(rates[count]),
            label=share,
            hint=f"{number} machines: {rate}, {share} of the ideal",
        )
        for count, (number, rate, share) in zip(counts, texts, strict=True)
    ]
    return Scaling(
        across=sides[0],
        up=sides[1],
        marks=_with_room(marks),
        ideal=(sides[1].at(ideal[0]), sides[1].at(ideal[-1])),
        rows=tuple(texts),
    )


def _of_counts(counts: Sequence[int]) -> Axis:
    """Return the axis of the number of machines, with ticks at the numbers that were predicted."""
    across = axis([float(count) for count in counts], "machines", None)
    places = {count: across.at(count) for count in counts}
    shown: list[int] = []
    for count in reversed(counts):
        if not shown or places[shown[-1]] - places[count] >= _CROWDED:
            shown.append(count)
    ticks = (Tick(at=places[count], text=f"{count:,}") for count in reversed(shown))
    return replace(across, ticks=tuple(ticks))


def _with_room(marks: Sequence[Mark]) -> tuple[Mark, ...]:
    """Return marks with the labels that fit; the first and last label are kept."""
    wide, narrow = (_apart(marks, room) for room in (_CROWDED, _CROWDED_NARROW))
    return tuple(
        replace(mark, label=mark.label if mark.x in wide else "", minor=mark.x not in narrow)
        for mark in marks
    )


def _apart(marks: Sequence[Mark], room: float) -> set[float]:
    """Return the positions of the first and last mark, and of others at least `room` apart."""
    kept = {marks[0].x, marks[-1].x}
    for mark in marks:
        if all(abs(mark.x - x) >= room for x in kept):
            kept.add(mark.x)
    return kept


def _rates(found: Findings) -> tuple[str, dict[int, float]]:
    """Return the plotted metric and its value for each number of machines, all else being equal."""
    if found.values.get(MACHINES, 0) < 2 or not found.front:  # noqa: PLR2004 - as above
        return "", {}
    kept = _others(found.front[0].outcome)
    alike = [o for o in found.outcomes if o.status is Status.PREDICTED and _others(o) == kept]
    for metric in RATES:
        rates: dict[int, float] = {}
        for outcome in alike:
            value, count = outcome.figures.get(metric), outcome.settings.get(MACHINES)
            if isinstance(value, float) and isinstance(count, int) and math.isfinite(value):
                rates[count] = value
        if rates:
            return metric, rates
    return "", {}


def _others(outcome: Outcome) -> dict[str, Plain]:
    """Return the settings of a candidate except the number of machines."""
    settings = outcome.settings
    return {key: value for key, value in settings.items() if key != MACHINES}


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
"""Number of distinguishable colours in one drawing."""
IDLE: Final = 0.01
"""Utilization below which a resource has no bar."""
LEAST: Final = 0.001
"""Share of a step below which a part of it is not drawn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """A bar from `start` to `start + length`, fractions of the width of the drawing.

    `tone` is the number of its colour, `value` the text next to it, `note` a longer text.
    """

    label: str
    start: float
    length: float
    value: str
    tone: int
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stack:
    """A stacked bar of the items of a memory, with a mark at its capacity."""

    title: str
    verdict: str
    bars: tuple[Bar, ...]
    capacity: float
    whole: str
    limit: str


def waterfall(prediction: Prediction) -> tuple[Bar, ...]:
    """Return the mean step as a waterfall of its exposed parts.

    Compute is split into forward, backward and other passes if it has several.
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
    """Return the exposed parts of a step: label, time and colour."""
    timing, names = prediction.timing, part_labels(prediction)
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
    """Return a bar for the utilization of each resource, busiest first, except below `IDLE`."""
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
    """Return a sentence with the resources that `busy` leaves out; empty if there are none."""
    marked = marks(prediction)
    names = [
        resource_called(str(name), prediction.scenario)
        for name, usage in prediction.timing.usage.items()
        if usage.mean < IDLE and name not in marked
    ]
    return f"Busy for less than {IDLE:.0%}: {', '.join(names)}." if names else ""


def _busy_notes(usage: Usage, said: str) -> list[str]:
    """Return notes on a resource: units in use, and `said`, its remark from the verdict."""
    many = [f"{significant(usage.total, 3)} of {usage.units:,}"] if usage.units > 1 else []
    return [*many, *([said] if said else [])]


def stack(title: str, fit: MemoryFit | HostRam) -> Stack:
    """Return a stacked bar of the items of a memory and its capacity."""
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
    """Return the items by size, at most one per colour; the last one sums up smaller items."""
    sizes = sorted(((n, s) for n, s in items.items() if s > 0.0), key=lambda item: -item[1])
    shown, rest = sizes[:COLOURS], sizes[COLOURS:]
    if rest:
        rest.insert(0, shown.pop())
        shown.append((f"{len(rest)} smaller items", sum(size for _, size in rest)))
    return shown
