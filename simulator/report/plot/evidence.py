"""Predicted against measured values."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

from simulator.report.plot.style import COLOURS, MARKERS, Figure, as_svg, style

BAND: Final = 0.1
"""Half-width of the shaded band around a perfect prediction, as a share."""
_MARGIN: Final = 1.3
SIZE: Final = (6.0, 5.2)
"""Of one pair of axes [inch]."""
NARROW: Final = 100.0
"""Ratio of the ends of a logarithmic axis below which more than powers of ten are named."""
SUBDIVIDED: Final = (1.0, 2.0, 5.0)
PANELS: Final = 2
"""Panels beside one another."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dots:
    """Points of one kind: measured and predicted values, and the intervals of the latter."""

    measured: Sequence[float]
    predicted: Sequence[float]
    low: Sequence[float] = ()
    high: Sequence[float] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """What one pair of axes shows: groups of dots, the quantity and its unit."""

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
    size: tuple[float, float] = SIZE,
) -> str:
    """A scatter of predicted over measured values as SVG.

    Parameters
    ----------
    groups : mapping of str to Dots
        By the name in the legend; each has a colour and a marker of its own.
    quantity, unit : str
        What the axes show, and in what.
    logarithmic : bool
        Whether the axes are; not for shares.
    size : tuple of float
        Width and height [inch].

    Returns
    -------
    str
        An ``<svg>`` element with a description for those who cannot see it.
    """
    count = sum(len(dots.measured) for dots in groups.values())
    with style():
        figure = Figure(figsize=size, layout="constrained")
        panel = Panel(groups=groups, quantity=quantity, unit=unit, logarithmic=logarithmic)
        _panel(figure.add_subplot(), panel)
        return as_svg(figure, f"predicted against measured {quantity}, {count} rows")


def evidence_figure(panels: Sequence[Panel]) -> Figure:
    """One panel beside the other, two in a row."""
    rows, across = math.ceil(len(panels) / PANELS), min(PANELS, len(panels))
    with style():
        size = (SIZE[0] * max(1, across), SIZE[1] * max(1, rows))
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
    """Equal axes, the line of perfect predictions and a band around it, and a legend."""
    values = [v for dots in groups.values() for v in (*dots.measured, *dots.predicted)]
    known = [v for v in values if math.isfinite(v) and (v > 0.0 or not logarithmic)]
    low, high = (min(known), max(known)) if known else (0.1, 1.0)
    if logarithmic:
        axes.set_xscale("log")
        axes.set_yscale("log")
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_locator(LogLocator(subs=SUBDIVIDED if high < NARROW * low else (1.0,)))
            # matplotlib's own labels of a log axis are formulas, which stay unread here
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
