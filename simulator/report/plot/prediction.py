"""Figures of one prediction: where a step goes, how busy what is, what fills the memories."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from matplotlib.axes import Axes

from simulator.errors import UnknownName
from simulator.physics.footprint import HostRam, MemoryFit
from simulator.report.plot.style import COLOURS, Figure, style
from simulator.report.prediction.rows import NEGLIGIBLE, parts
from simulator.report.prediction.verdict import device_word
from simulator.results.prediction import Prediction
from simulator.units import BYTE, SECOND, scale

WIDTH: Final = 7.0
ROW: Final = 0.34
"""Height of a bar with its gap [inch]."""
HEAD: Final = 1.1
"""Height of title and axis [inch]."""


def prediction_figure(prediction: Prediction, what: str) -> Figure:
    """One of `FIGURES`, by its name.

    Raises
    ------
    UnknownName
        If there is no such figure.
    """
    check_figure(what)
    with style():
        return FIGURES[what](prediction)


def check_figure(what: str) -> None:
    """Refuse a name that no figure has, before a long run rather than after it.

    Raises
    ------
    UnknownName
        If there is no such figure.
    """
    if what not in FIGURES:
        msg = f"there is no figure '{what}'; allowed: {', '.join(FIGURES)}"
        raise UnknownName(msg)


def step(prediction: Prediction) -> Figure:
    """The mean step as a waterfall of its exposed parts."""
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
    """How busy each resource is, the bottleneck in its own colour."""
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
    """What host RAM and an accelerator's memory hold, against what there is."""
    fits: list[tuple[str, HostRam | MemoryFit]] = [("host RAM", prediction.host_ram)]
    if prediction.memory is not None:
        fits.append((f"{device_word(prediction)} memory", prediction.memory))
    figure = Figure(figsize=(WIDTH, 1.7 * len(fits)), layout="constrained")
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
    figure = Figure(figsize=(WIDTH, HEAD + ROW * rows), layout="constrained")
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
