"""How the rate of a job grows with its machines, beside growth in proportion to them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from simulator.report.format.named import metric_called
from simulator.report.format.rounded import quantity
from simulator.report.page.axes import Axis, Tick, axis
from simulator.report.prediction.rows import DIGITS
from simulator.results.metrics import METRICS
from simulator.schema.goal import Plain
from simulator.studies.search.findings import Findings
from simulator.studies.search.outcome import Outcome, Status

MACHINES: Final = "hardware.count"
RATES: Final = ("tokens_per_s", "throughput_samples_per_s")
"""Rates that are drawn: the first that the candidates have."""
_UNITS: Final = {metric.name: metric.unit for metric in METRICS}
_CROWDED, _CROWDED_NARROW = 0.05, 0.2
"""Share of the axis below which two labels would overlap, and on a narrow page."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """A number of machines: its place at shares of both axes, and the share of the ideal rate.

    A narrow page has no room for the label of a `minor` one.
    """

    x: float
    y: float
    label: str
    hint: str
    minor: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Scaling:
    """Rates over machines; `ideal` is the height of the ideal line at both ends of the marks.

    `rows` are machines, rate and efficiency, as texts.
    """

    across: Axis
    up: Axis
    marks: tuple[Mark, ...]
    ideal: tuple[float, float]
    rows: tuple[tuple[str, str, str], ...]


def scaling(found: Findings) -> Scaling | None:
    """The rate for each number of machines, all else as in the best candidate.

    None where no two numbers can be compared. Ideal is what the fewest machines do, times as many.
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
    """The axis of machines, which names the numbers of them that were predicted."""
    across = axis([float(count) for count in counts], "machines", None)
    places = {count: across.at(count) for count in counts}
    shown: list[int] = []
    for count in reversed(counts):
        if not shown or places[shown[-1]] - places[count] >= _CROWDED:
            shown.append(count)
    ticks = (Tick(at=places[count], text=f"{count:,}") for count in reversed(shown))
    return replace(across, ticks=tuple(ticks))


def _with_room(marks: Sequence[Mark]) -> tuple[Mark, ...]:
    """Marks with the labels that there is room for; the first and the last always have theirs."""
    wide, narrow = (_apart(marks, room) for room in (_CROWDED, _CROWDED_NARROW))
    return tuple(
        replace(mark, label=mark.label if mark.x in wide else "", minor=mark.x not in narrow)
        for mark in marks
    )


def _apart(marks: Sequence[Mark], room: float) -> set[float]:
    """Places of the first mark, the last one, and others at least so far from those kept."""
    kept = {marks[0].x, marks[-1].x}
    for mark in marks:
        if all(abs(mark.x - x) >= room for x in kept):
            kept.add(mark.x)
    return kept


def _rates(found: Findings) -> tuple[str, dict[int, float]]:
    """The rate that is drawn, for each number of machines that differ in nothing else."""
    if found.values.get(MACHINES, 0) < 2 or not found.front:  # noqa: PLR2004 - as above
        return "", {}
    kept = _others(found.front[0].outcome)
    alike = [o for o in found.outcomes if o.status is Status.PREDICTED and _others(o) == kept]
    for metric in RATES:
        rates: dict[int, float] = {}
        for outcome in alike:
            value, count = outcome.figures.get(metric), outcome.candidate.settings.get(MACHINES)
            if isinstance(value, float) and isinstance(count, int) and math.isfinite(value):
                rates[count] = value
        if rates:
            return metric, rates
    return "", {}


def _others(outcome: Outcome) -> dict[str, Plain]:
    """The settings of a candidate but for how many machines it has."""
    settings = outcome.candidate.settings
    return {key: value for key, value in settings.items() if key != MACHINES}
