"""Figures of a sweep: a curve along one axis, a heat map over two, else the Pareto front."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure

from simulator.reading.settings import unit_of
from simulator.report.format.layout import printable
from simulator.report.format.scales import is_wide, scaled
from simulator.report.plot.style import COLOURS, MARKERS, ORDERED, style
from simulator.results.metrics import METRICS
from simulator.schema.goal import Objective, Sense
from simulator.studies.search.findings import Findings
from simulator.studies.search.outcome import Outcome, Status
from simulator.studies.search.scoring import value_of
from simulator.units import Unit, parse

SIZE: Final = (7.0, 5.0)
MOST_LABELS: Final = 24
"""Ticks of a heat map's side that are all named; of more, every second, third, ..."""
MOST_GROUPS: Final = 8
"""Values of a key that get a colour each."""

_UNITS: Final = {metric.name: metric.unit for metric in METRICS}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Scale:
    """Numbers in a unit that suits them, and the label that says which."""

    factor: float
    label: str

    def of(self, value: float) -> float:
        return value / self.factor


def sweep_figure(found: Findings, name: str) -> Figure:
    """What shows a sweep best.

    One numeric key gives a curve of the first two objectives, two give a heat map of the first
    one; else candidates are drawn by the first two objectives.
    """
    keys = tuple(key for key, distinct in found.values.items() if distinct > 1)
    numbers = {key: _numbers(key, found.outcomes) for key in keys}
    with style():
        figure = Figure(figsize=SIZE, layout="constrained")
        axes = figure.add_subplot()
        if keys and None not in numbers.values() and len(keys) == 1:
            title = _curve(figure, axes, found, keys[0])
        elif None not in numbers.values() and len(keys) == 2:  # noqa: PLR2004 - a map has two sides
            title = _heat_map(figure, axes, found, keys)
        else:
            title = _scatter(axes, found)
        axes.set_title(f"{printable(name)}: {title}")
    return figure


def _curve(figure: Figure, axes: Axes, found: Findings, key: str) -> str:
    """The first two objectives along the axis, the second one on a scale of its own."""
    known = [o for o in found.outcomes if o.figures and o.status is not Status.SCREENED]
    along = _numbers(key, known) or {}
    side = _scale(list(along.values()), key, unit_of(key))
    panels = [axes, *([axes.twinx()] if len(found.objectives) > 1 else [])]
    for number, (panel, objective) in enumerate(zip(panels, found.objectives, strict=False)):
        rows = sorted(
            (side.of(along[o.candidate.index]), value, o.status is Status.PREDICTED)
            for o in known
            if (value := value_of(o.figures, objective)) is not None
        )
        height = _scale([value for _, value, _ in rows], objective.metric, _unit(objective))
        _line(panel, [(x, height.of(y), sound) for x, y, sound in rows], height.label, number)
    if is_wide(list(along.values())):
        axes.set_xscale("log")
        axes.set_xticks([side.of(value) for value in sorted(set(along.values()))[:MOST_LABELS]])
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
        axes.minorticks_off()
    axes.set_xlabel(side.label)
    axes.grid(visible=True, linewidth=0.3)
    if known:
        figure.legend(loc="outside lower center", ncols=2, fontsize=8.0)
    return f"along {printable(key)}"


def _line(axes: Axes, rows: Sequence[tuple[float, float, bool]], label: str, number: int) -> None:
    """A curve through those that may run, and crosses for those that may not."""
    colour, dashes = COLOURS[number], "-" if number == 0 else "--"
    fine = [(x, y) for x, y, sound in rows if sound]
    bad = [(x, y) for x, y, sound in rows if not sound]
    for points, marker, dash, name in (
        (fine, MARKERS[number], dashes, label),
        (bad, "x", "none", f"{label}, cannot run"),
    ):
        if points:
            across, up = zip(*points, strict=True)
            axes.plot(
                across, up, marker=marker, markersize=4.0, color=colour, linestyle=dash, label=name
            )
    axes.set_ylabel(label, color=colour)
    axes.set_ylim(bottom=0.0)


def _heat_map(figure: Figure, axes: Axes, found: Findings, keys: Sequence[str]) -> str:
    """The first objective over both keys; what cannot run is crossed out, what is blank beaten."""
    objective = found.objectives[0]
    across, up = (_numbers(key, found.outcomes) or {} for key in keys)
    columns, lines = sorted(set(across.values())), sorted(set(up.values()))
    table = np.full((len(lines), len(columns)), math.nan)
    crosses: list[tuple[int, int]] = []
    for outcome in found.outcomes:
        index = outcome.candidate.index
        place = columns.index(across[index]), lines.index(up[index])
        value = value_of(outcome.figures, objective)
        if outcome.status is Status.PREDICTED and value is not None:
            table[place[1], place[0]] = value
        elif outcome.status is not Status.SCREENED:
            crosses.append(place)
    amounts = _scale(table[np.isfinite(table)].tolist(), objective.metric, _unit(objective))
    better = ORDERED if objective.sense is Sense.MAXIMIZE else f"{ORDERED}_r"
    image = axes.imshow(table / amounts.factor, origin="lower", aspect="auto", cmap=better)
    figure.colorbar(image, ax=axes, label=amounts.label)
    if crosses:
        xs, ys = zip(*crosses, strict=True)
        axes.scatter(xs, ys, marker="x", color="black", s=14.0)
    axes.set_xlabel(_ticks(axes.xaxis, columns, keys[0]))
    axes.set_ylabel(_ticks(axes.yaxis, lines, keys[1]))
    blank = "blank: screened out" if found.counts[Status.SCREENED] else ""
    told = "; ".join(note for note in ("x: cannot run" if crosses else "", blank) if note)
    return printable(objective.metric) + (f" ({told})" if told else "")


def _ticks(axis: Axis, values: Sequence[float], key: str) -> str:
    """Name the places of a heat map's side by the key's values; returns its label."""
    side = _scale(values, key, unit_of(key))
    every = 1 + (len(values) - 1) // MOST_LABELS
    shown = range(0, len(values), every)
    axis.set_ticks(list(shown), labels=[f"{side.of(values[place]):g}" for place in shown])
    return side.label


def _scatter(axes: Axes, found: Findings) -> str:
    """Candidates by the first two objectives, coloured by the key with the fewest values."""
    pair = (found.objectives * 2)[:2]
    points = [(o, _point(o, pair)) for o in found.outcomes if o.status is Status.PREDICTED]
    known = [(outcome, point) for outcome, point in points if point is not None]
    sides = [
        _scale([point[n] for _, point in known], objective.metric, _unit(objective))
        for n, objective in enumerate(pair)
    ]
    _dots(axes, found, [(o, (sides[0].of(x), sides[1].of(y))) for o, (x, y) in known])
    front = [point for place in found.front if (point := _point(place.outcome, pair)) is not None]
    if front:
        axes.plot(
            [sides[0].of(x) for x, _ in front],
            [sides[1].of(y) for _, y in front],
            color="black",
            linewidth=1.0,
            marker="o",
            markersize=7.0,
            markerfacecolor="none",
            label="Pareto front",
        )
    axes.set_xlabel(sides[0].label)
    axes.set_ylabel(sides[1].label)
    for n, axis in enumerate((axes.xaxis, axes.yaxis)):
        if is_wide([point[n] for _, point in known]):
            (axes.set_xscale, axes.set_yscale)[n]("log")
            axis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.grid(visible=True, linewidth=0.3)
    if front:
        axes.legend(fontsize=8.0)
    return "candidates that were predicted"


def _dots(axes: Axes, found: Findings, rows: Sequence[tuple[Outcome, tuple[float, float]]]) -> None:
    """Points in the colours of the key with the fewest values, or of one if there are too many."""
    varied = [key for key, distinct in found.values.items() if 1 < distinct <= MOST_GROUPS]
    key = min(varied, key=lambda name: found.values[name], default=None)
    groups: dict[str, list[tuple[float, float]]] = {}
    for outcome, point in rows:
        group = "" if key is None else str(outcome.candidate.settings.get(key, ""))
        groups.setdefault(group, []).append(point)
    for number, (group, points) in enumerate(groups.items()):
        across, up = zip(*points, strict=True)
        axes.scatter(
            across,
            up,
            s=14.0,
            alpha=0.6,
            color=COLOURS[number],
            marker=MARKERS[number],
            label=None if key is None else f"{printable(key)} = {printable(group)}",
        )


def _point(outcome: Outcome, pair: Sequence[Objective]) -> tuple[float, float] | None:
    """Both objectives of a candidate; None if one has no figure."""
    x, y = (value_of(outcome.figures, objective) for objective in pair)
    return None if x is None or y is None else (x, y)


def _numbers(key: str, outcomes: Sequence[Outcome]) -> dict[int, float] | None:
    """The key's value of every candidate in SI units; None if one is no number."""
    unit = unit_of(key)
    found: dict[int, float] = {}
    for outcome in outcomes:
        value = outcome.candidate.settings.get(key)
        if isinstance(value, str) and unit is not None:
            value = parse(value, unit)
        if isinstance(value, bool) or not isinstance(value, int | float):
            return None
        found[outcome.candidate.index] = float(value)
    return found


def _unit(objective: Objective) -> Unit | None:
    return _UNITS.get(objective.metric)


def _scale(values: Sequence[float], name: str, unit: Unit | None) -> _Scale:
    """The prefix that suits the largest value, and the axis label."""
    factor, label = scaled(values, name, unit)
    return _Scale(factor=factor, label=label)
