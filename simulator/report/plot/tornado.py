"""A tornado: how far each uncertain rate moves a metric, widest bar on top."""

from __future__ import annotations

from typing import Final

from matplotlib.figure import Figure

from simulator.report.plot.style import COLOURS, style
from simulator.results.metrics import select
from simulator.studies.changes.sensitivity import Sensitivity
from simulator.units import PER_SECOND, scale

WIDTH: Final = 7.0
ROW: Final = 0.34
"""Height of a bar with its gap [inch]."""
HEAD: Final = 1.2
"""Height of title, legend and axis [inch]."""


def tornado_figure(found: Sensitivity) -> Figure:
    """Bars from the metric now to where it is with a rate at its P10 and at its P90."""
    unit = select(found.metric)[0].unit
    factor, symbol = (1.0, "") if unit in {None, PER_SECOND} else scale(found.base, unit)
    names = [str(bar.rate) for bar in found.bars]
    rows = range(len(names))
    base = found.base / factor
    with style():
        figure = Figure(figsize=(WIDTH, HEAD + ROW * len(names)), layout="constrained")
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
