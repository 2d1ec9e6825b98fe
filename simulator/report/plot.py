"""Plots with matplotlib: style, files and SVG, and the figures of predictions and studies."""

from __future__ import annotations

import io
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Final

import matplotlib as mpl
import numpy as np
from matplotlib import figure
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

from simulator.errors import PlanError, UnknownName
from simulator.physics.footprint import HostRam, MemoryFit
from simulator.reading.settings import unit_of
from simulator.records import dataclass
from simulator.report.numbers import is_wide, scaled
from simulator.report.prediction.rows import NEGLIGIBLE, parts
from simulator.report.prediction.verdict import device_word
from simulator.report.text import printable
from simulator.results.metrics import JOB_METRICS, measurable, select
from simulator.results.prediction import Prediction
from simulator.schema.goal import Objective, Sense
from simulator.schema.measurement import Split
from simulator.studies.search.findings import Findings
from simulator.studies.search.outcome import Outcome, Status
from simulator.studies.search.scoring import value_of
from simulator.studies.sensitivity import Sensitivity
from simulator.units import BYTE, PER_SECOND, SECOND, Unit, parse, scale
from simulator.validation.scores import Judged
from simulator.validation.validate import Validated

COLOURS: Final = (
    *("#0072b2", "#d55e00", "#009e73", "#cc79a7"),
    *("#e69f00", "#56b4e9", "#000000", "#8c8c8c"),
)
"""Colours for colour-blind people (Okabe and Ito, https://jfly.uni-koeln.de/color/)."""
MARKERS: Final = "osD^vP*X"
ORDERED: Final = "cividis"
"""Colour map for amounts, also legible in grey and for colour-blind people."""
FORMATS: Final = ("png", "svg", "pdf")
DOTS_PER_INCH: Final = 150.0


class Figure(figure.Figure):
    """A figure that displays itself in a notebook, with any matplotlib backend."""

    def _repr_png_(self) -> bytes:
        return as_bytes(self, Path("figure.png"))


def style() -> AbstractContextManager[None]:
    """Return a context manager that sets the style; output is reproducible byte by byte."""
    return mpl.rc_context(
        {
            "svg.hashsalt": "plan",
            "svg.fonttype": "none",
            "text.parse_math": False,
            "font.size": 9.0,
        }
    )


def as_svg(drawn: figure.Figure, about: str) -> str:
    """Return a figure as an ``<svg>`` element; `about` is its description for screen readers."""
    text = io.StringIO()
    drawn.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
    svg = text.getvalue()
    return svg[svg.index("<svg") :].replace("<svg ", f'<svg role="img" aria-label="{about}" ', 1)


def check_format(path: Path) -> str:
    """Return the format of a file name.

    Raises
    ------
    PlanError
        If the format is not in `FORMATS`.
    """
    kind = path.suffix.lower().removeprefix(".")
    if kind not in FORMATS:
        msg = f"{path}: no figure can be written as '{kind}'; allowed: {', '.join(FORMATS)}"
        raise PlanError(msg)
    return kind


def as_bytes(drawn: figure.Figure, path: Path) -> bytes:
    """Return a figure in the format of the file name `path`.

    Raises
    ------
    PlanError
        As `check_format`.
    """
    kind, content = check_format(path), io.BytesIO()
    dated = {"pdf": {"CreationDate": None}, "svg": {"Date": None}, "png": {}}
    with style():
        drawn.savefig(content, format=kind, dpi=DOTS_PER_INCH, metadata=dated[kind])
    return content.getvalue()


_BAR_WIDTH: Final = 7.0
_BAR_ROW: Final = 0.34
"""Height of a bar with its gap [inch]."""
_BAR_HEAD: Final = 1.1
"""Height of title and axis [inch]."""


def prediction_figure(prediction: Prediction, what: str) -> Figure:
    """Plot one of `FIGURES`.

    Raises
    ------
    UnknownName
        If there is no such figure.
    """
    check_figure(what)
    with style():
        return FIGURES[what](prediction)


def check_figure(what: str) -> None:
    """Check before a long simulation that a figure exists.

    Raises
    ------
    UnknownName
        If there is no such figure.
    """
    if what not in FIGURES:
        msg = f"there is no figure '{what}'; allowed: {', '.join(FIGURES)}"
        raise UnknownName(msg)


def step(prediction: Prediction) -> Figure:
    """Plot the mean step as a waterfall of its exposed parts."""
    mean = prediction.timing.step_time.mean
    found = [(n, t) for n, t in parts(prediction.timing.split) if t > NEGLIGIBLE * mean]
    factor, symbol = scale(mean, SECOND)
    figure, axes = _bars(len(found))
    before = 0.0
    for row, (_, time) in enumerate(found):
        axes.barh(row, time / factor, left=before / factor, color=COLOURS[row % len(COLOURS)])
        axes.annotate(
            f"{time / mean:.1%}",
            ((before + time) / factor, row),
            xytext=(3, 0),
            textcoords="offset points",
            va="center",
        )
        before += time
    _name_rows(axes, [name.replace("_", " ") for name, _ in found])
    axes.set_xlim(0.0, 1.12 * mean / factor)
    axes.set_xlabel(f"time from the start of a step [{symbol}]")
    axes.set_title(f"{prediction.scenario.name}: the mean step")
    return figure


def utilization(prediction: Prediction) -> Figure:
    """Plot the utilization of each resource; the bottleneck has its own colour."""
    timing = prediction.timing
    found = sorted(timing.usage.items(), key=lambda entry: -entry[1].mean)
    figure, axes = _bars(len(found))
    for row, (name, usage) in enumerate(found):
        colour = COLOURS[1] if name == timing.bottleneck else COLOURS[0]
        axes.barh(row, 100.0 * usage.mean, color=colour)
        axes.annotate(
            f"{usage.total:.4g} of {usage.units}",
            (100.0 * usage.mean, row),
            xytext=(3, 0),
            textcoords="offset points",
            va="center",
        )
    _name_rows(axes, [str(name) for name, _ in found])
    axes.set_xlim(0.0, 125.0)
    axes.set_xticks(range(0, 101, 20))
    axes.set_xlabel("busy [%]")
    axes.set_title(f"{prediction.scenario.name}: {timing.bottleneck} is the bottleneck")
    return figure


def memory(prediction: Prediction) -> Figure:
    """Plot the items of host RAM and GPU memory with their capacity."""
    fits: list[tuple[str, HostRam | MemoryFit]] = [("host RAM", prediction.host_ram)]
    if prediction.memory is not None:
        fits.append((f"{device_word(prediction)} memory", prediction.memory))
    figure = Figure(figsize=(_BAR_WIDTH, 1.7 * len(fits)), layout="constrained")
    for number, (title, fit) in enumerate(fits, start=1):
        axes = figure.add_subplot(len(fits), 1, number)
        _stack(axes, title, fit)
    return figure


def _stack(axes: Axes, title: str, fit: HostRam | MemoryFit) -> None:
    factor, symbol = scale(max(fit.total, fit.capacity), BYTE)
    before = 0.0
    for number, (name, size) in enumerate(fit.items.items()):
        axes.barh(
            0,
            size / factor,
            left=before / factor,
            color=COLOURS[number % len(COLOURS)],
            hatch="" if number < len(COLOURS) else "//",
            label=name.replace("_", " "),
        )
        before += size
    axes.axvline(fit.capacity / factor, color="black", linestyle="--", linewidth=1.0)
    axes.set_yticks([])
    axes.set_xlim(0.0, 1.05 * max(fit.total, fit.capacity) / factor)
    axes.set_xlabel(f"[{symbol}]; dashed: capacity")
    axes.set_title(f"{title}: fits: {fit.known_verdict or 'not known'}")
    axes.legend(fontsize=6.5, ncols=3, loc="center left", bbox_to_anchor=(1.0, 0.5))


def _bars(rows: int) -> tuple[Figure, Axes]:
    figure = Figure(figsize=(_BAR_WIDTH, _BAR_HEAD + _BAR_ROW * rows), layout="constrained")
    return figure, figure.add_subplot()


def _name_rows(axes: Axes, names: list[str]) -> None:
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    axes.grid(visible=True, axis="x", linewidth=0.3)
    axes.set_axisbelow(True)


FIGURES: Final[Mapping[str, Callable[[Prediction], Figure]]] = {
    "step": step,
    "utilization": utilization,
    "memory": memory,
}


_TORNADO_HEAD: Final = 1.2
"""Height of title, legend and axis [inch]."""


def tornado_figure(found: Sensitivity) -> Figure:
    """Plot a tornado chart: for each rate, bars to the metric with the rate at P10 and P90."""
    unit = select(found.metric)[0].unit
    factor, symbol = (1.0, "") if unit in {None, PER_SECOND} else scale(found.base, unit)
    names = [str(bar.rate) for bar in found.bars]
    rows = range(len(names))
    base = found.base / factor
    with style():
        figure = Figure(
            figsize=(_BAR_WIDTH, _TORNADO_HEAD + _BAR_ROW * len(names)), layout="constrained"
        )
        axes = figure.add_subplot()
        ends = {
            "slow (P10)": [bar.slow / factor - base for bar in found.bars],
            "fast (P90)": [bar.fast / factor - base for bar in found.bars],
        }
        for colour, (label, widths) in zip(COLOURS[1::-1], ends.items(), strict=True):
            axes.barh(rows, widths, left=base, color=colour, label=label)
        axes.axvline(base, color="black", linewidth=0.8)
        axes.set_yticks(rows, names)
        axes.invert_yaxis()
        axes.grid(visible=True, axis="x", linewidth=0.3)
        axes.set_axisbelow(True)
        axes.set_xlabel(f"{found.metric} [{symbol}]" if symbol else found.metric)
        axes.set_title(f"{found.prediction.scenario.name}: what moves {found.metric}")
        axes.legend(fontsize=8.0)
    return figure


SWEEP_SIZE: Final = (7.0, 5.0)
MOST_LABELS: Final = 24
"""Maximum number of labelled ticks on a side of a heat map."""
MOST_GROUPS: Final = 8
"""Maximum number of values of a key with a colour each."""

_UNITS: Final = {metric.name: metric.unit for metric in JOB_METRICS}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Scale:
    """A unit for an axis: its value in SI units, and the label of the axis."""

    factor: float
    label: str

    def of(self, value: float) -> float:
        return value / self.factor


def sweep_figure(found: Findings, name: str) -> Figure:
    """Plot a sweep.

    One numeric key that varies gives a curve of the first two objectives, two give a heat map of
    the first objective; otherwise candidates are plotted by the first two objectives.
    """
    keys = tuple(key for key, distinct in found.values.items() if distinct > 1)
    numbers = {key: _numbers(key, found.outcomes) for key in keys}
    with style():
        figure = Figure(figsize=SWEEP_SIZE, layout="constrained")
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
    """Plot the first two objectives over a key, with an axis for each; return the title."""
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
    """Plot a curve through the candidates that can run, and crosses for the others."""
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
    """Plot the first objective over both keys, with crosses for candidates that cannot run.

    Returns the title.
    """
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
    """Label one side of a heat map with the values of a key; return the label of the axis."""
    side = _scale(values, key, unit_of(key))
    every = 1 + (len(values) - 1) // MOST_LABELS
    shown = range(0, len(values), every)
    axis.set_ticks(list(shown), labels=[f"{side.of(values[place]):g}" for place in shown])
    return side.label


def _scatter(axes: Axes, found: Findings) -> str:
    """Plot candidates by the first two objectives, coloured by the key with fewest values.

    Returns the title.
    """
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
    """Plot points in the colours of the key with the fewest values."""
    varied = [key for key, distinct in found.values.items() if 1 < distinct <= MOST_GROUPS]
    key = min(varied, key=lambda name: found.values[name], default=None)
    groups: dict[str, list[tuple[float, float]]] = {}
    for outcome, point in rows:
        group = "" if key is None else str(outcome.settings.get(key, ""))
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
    """Return both objectives of a candidate; None if one of them has no value."""
    x, y = (value_of(outcome.figures, objective) for objective in pair)
    return None if x is None or y is None else (x, y)


def _numbers(key: str, outcomes: Sequence[Outcome]) -> dict[int, float] | None:
    """Return the value of a key in SI units by candidate index; None if not all are numeric."""
    unit = unit_of(key)
    found: dict[int, float] = {}
    for outcome in outcomes:
        value = outcome.settings.get(key)
        if isinstance(value, str) and unit is not None:
            value = parse(value, unit)
        if isinstance(value, bool) or not isinstance(value, int | float):
            return None
        found[outcome.candidate.index] = float(value)
    return found


def _unit(objective: Objective) -> Unit | None:
    return _UNITS.get(objective.metric)


def _scale(values: Sequence[float], name: str, unit: Unit | None) -> _Scale:
    """Return the unit and label of an axis for these values."""
    factor, label = scaled(values, name, unit)
    return _Scale(factor=factor, label=label)


BAND: Final = 0.1
"""Half-width of the shaded band around a perfect prediction, as a share."""
_MARGIN: Final = 1.3
PANEL_SIZE: Final = (6.0, 5.2)
"""Width and height of one pair of axes [inch]."""
_NARROW_AXIS: Final = 100.0
"""Ratio of the ends of a logarithmic axis below which more than powers of ten are named."""
SUBDIVIDED: Final = (1.0, 2.0, 5.0)
PANELS: Final = 2
"""Panels in a row."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dots:
    """Points of one group: measured values, and predicted values with their intervals."""

    measured: Sequence[float]
    predicted: Sequence[float]
    low: Sequence[float] = ()
    high: Sequence[float] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """The content of one pair of axes: groups of points, the quantity and its unit."""

    groups: Mapping[str, Dots]
    quantity: str
    unit: str
    logarithmic: bool = True


def predicted_against_measured(
    groups: Mapping[str, Dots],
    quantity: str,
    unit: str,
    *,
    logarithmic: bool = True,
    size: tuple[float, float] = PANEL_SIZE,
) -> str:
    """Return a scatter plot of predicted over measured values as SVG.

    Parameters
    ----------
    groups : mapping of str to Dots
        Points by name in the legend; each group has its own colour and marker.
    quantity, unit : str
        Quantity on the axes, and its unit.
    logarithmic : bool
        True for logarithmic axes; shares have linear ones.
    size : tuple of float
        Width and height [inch].

    Returns
    -------
    str
        An ``<svg>`` element with a description for screen readers.
    """
    count = sum(len(dots.measured) for dots in groups.values())
    with style():
        figure = Figure(figsize=size, layout="constrained")
        panel = Panel(groups=groups, quantity=quantity, unit=unit, logarithmic=logarithmic)
        _panel(figure.add_subplot(), panel)
        return as_svg(figure, f"predicted against measured {quantity}, {count} rows")


def evidence_figure(panels: Sequence[Panel]) -> Figure:
    """Plot the panels, two in a row."""
    rows, across = math.ceil(len(panels) / PANELS), min(PANELS, len(panels))
    with style():
        size = (PANEL_SIZE[0] * max(1, across), PANEL_SIZE[1] * max(1, rows))
        figure = Figure(figsize=size, layout="constrained")
        for number, panel in enumerate(panels, start=1):
            _panel(figure.add_subplot(rows, across, number), panel)
        return figure


def _panel(axes: Axes, panel: Panel) -> None:
    for number, (name, dots) in enumerate(panel.groups.items()):
        _draw(axes, name, dots, number)
    _frame(axes, panel.groups, logarithmic=panel.logarithmic)
    label = f"{panel.quantity} [{panel.unit}]" if panel.unit else panel.quantity
    axes.set_xlabel(f"measured {label}")
    axes.set_ylabel(f"predicted {label}")


def _draw(axes: Axes, name: str, dots: Dots, number: int) -> None:
    colour = COLOURS[number % len(COLOURS)]
    marker = MARKERS[number % len(MARKERS)]
    if dots.low and dots.high:
        ends = [
            [max(0.0, p - low) for p, low in zip(dots.predicted, dots.low, strict=True)],
            [max(0.0, high - p) for p, high in zip(dots.predicted, dots.high, strict=True)],
        ]
        axes.errorbar(
            dots.measured,
            dots.predicted,
            yerr=ends,
            fmt="none",
            ecolor=colour,
            alpha=0.35,
            linewidth=0.8,
        )
    axes.scatter(
        dots.measured, dots.predicted, s=16.0, color=colour, marker=marker, alpha=0.8, label=name
    )


def _frame(axes: Axes, groups: Mapping[str, Dots], *, logarithmic: bool) -> None:
    """Draw equal axes, the diagonal with a band around it, and a legend."""
    values = [v for dots in groups.values() for v in (*dots.measured, *dots.predicted)]
    known = [v for v in values if math.isfinite(v) and (v > 0.0 or not logarithmic)]
    low, high = (min(known), max(known)) if known else (0.1, 1.0)
    if logarithmic:
        axes.set_xscale("log")
        axes.set_yscale("log")
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_locator(
                LogLocator(subs=SUBDIVIDED if high < _NARROW_AXIS * low else (1.0,))
            )
            # matplotlib's default labels of a log axis are math text, which is not parsed here
            axis.set_major_formatter(StrMethodFormatter("{x:g}"))
            axis.set_minor_formatter(NullFormatter())
        low, high = low / _MARGIN, high * _MARGIN
    else:
        low, high = min(0.0, low), max(1.0, high)
    ends = [low, high]
    axes.plot(ends, ends, color="black", linewidth=0.8)
    axes.fill_between(
        ends,
        [(1.0 - BAND) * end for end in ends],
        [(1.0 + BAND) * end for end in ends],
        color="black",
        alpha=0.08,
        linewidth=0.0,
        label=f"within {BAND:.0%}",
    )
    axes.set_xlim(low, high)
    axes.set_ylim(low, high)
    axes.grid(visible=True, which="major", linewidth=0.3)
    axes.legend(fontsize=8.0, framealpha=0.9)


def dots_of(judged: Sequence[Judged]) -> Dots:
    """Return the measured values of rows, and the predicted values with their intervals."""
    points = [one.point for one in judged]
    return Dots(
        measured=[p.measured for p in points],
        predicted=[p.predicted for p in points],
        low=[p.predicted if p.p10 is None else p.p10 for p in points],
        high=[p.predicted if p.p90 is None else p.p90 for p in points],
    )


MAX_PANELS: Final = 4
"""Maximum number of panels, for the most frequent metrics."""


def validation_figure(found: Validated) -> Figure:
    """Plot predicted over measured values: a panel for each of the most frequent metrics.

    Raises
    ------
    PlanError
        If no row held out for testing was predicted.
    """
    held_out = [one for one in found.judged if one.split is Split.TEST]
    if not held_out:
        msg = "--plot shows rows held out for testing, and there are none"
        raise PlanError(msg)
    panels = []
    for metric, _ in Counter(one.metric for one in held_out).most_common(MAX_PANELS):
        rows = [one for one in held_out if one.metric == metric]
        known = measurable(metric)
        sets = dict.fromkeys(one.set for one in rows)
        panels.append(
            Panel(
                groups={name: dots_of([one for one in rows if one.set == name]) for name in sets},
                quantity=metric,
                unit="" if known is None or known.unit is None else known.unit.symbol,
                logarithmic=not any(one.absolute for one in rows),
            )
        )
    return evidence_figure(panels)
