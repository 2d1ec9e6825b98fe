"""The HTML page of a sweep: numbers of candidates, charts, heat map, best candidates."""

from __future__ import annotations

import math
import shlex
from collections.abc import Collection, Mapping, Sequence
from typing import Final

from simulator.reading.settings import unit_of
from simulator.records import dataclass
from simulator.report import sweep as report
from simulator.report.document import Code, Table
from simulator.report.html.charts import Point, Scatter, scaling, scatter
from simulator.report.html.page import (
    Block,
    Made,
    Page,
    Shown,
    Tile,
    rendered,
    section_blocks,
    shown,
    tiles,
    titled,
)
from simulator.report.html.prediction import in_full
from simulator.report.labels import bottleneck_called, is_share, key_called, metric_called, said
from simulator.report.numbers import figure, metric_figure, quantity
from simulator.report.prediction.rows import DIGITS
from simulator.report.text import printable
from simulator.results.metrics import JOB_METRICS, USD_PER_HOUR
from simulator.results.prediction import Prediction
from simulator.schema.goal import Objective, Sense
from simulator.studies.search.findings import Findings
from simulator.studies.search.outcome import Outcome, Status
from simulator.studies.search.scoring import value_of
from simulator.units import PER_SECOND, Unit, parse, show
from simulator.validation.local_coverage import Neighbourhood

MOST_DOTS: Final = 4000
"""Maximum number of candidates to plot, in addition to the Pareto front."""
LONGEST_LABEL: Final = 28
"""Longest label of a candidate in the drawing, in characters."""
SHADES: Final = 9
"""Colours of a heat map, from the worst to the best."""
MOST_NAMES, MOST_NAMES_NARROW = 20, 8
"""Maximum number of named columns of a heat map, and on a narrow page."""
ROOM, ROOM_NARROW = 90, 26
"""Characters that fit below a heat map, and on a narrow page."""
_UNITS: Final = {metric.name: metric.unit for metric in JOB_METRICS}
_PAIR: Final = 2
_FIRST: Final = {
    ("total_time_s", Sense.MINIMIZE): "Shortest run",
    ("cost.usd_to_train", Sense.MINIMIZE): "Cheapest run",
}
"""Names of the best candidate, by objective."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """A cell of the heat map: `shade` from 0, the worst; None if there is no value."""

    column: int
    line: int
    shade: int | None
    hint: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """An entry of the legend of a heat map: a shade and its range of values."""

    shade: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HeatMap:
    """An objective over two keys; `scale` lists the shades, best first.

    `crowded` selects vertical column names: ``steep`` on all pages, ``dense`` on narrow pages,
    empty on none.
    """

    title: str
    across: str
    up: str
    columns: tuple[str, ...]
    lines: tuple[str, ...]
    cells: tuple[Cell, ...]
    scale: tuple[Key, ...]
    crowded: str


def as_page(
    found: Findings,
    name: str,
    best: tuple[Prediction, Neighbourhood | None] | None = None,
    made: Made | None = None,
) -> str:
    """Return a sweep as one self-contained HTML document.

    Parameters
    ----------
    found : Findings
        Results of the sweep.
    name : str
        Name of the scenario.
    best : pair, optional
        Prediction of the best candidate, and measured runs similar to it.
    made : Made, optional
        Origin of the page.
    """
    how = made or Made()
    growth, dots, heat = scaling(found), _scatter(found), _heat_map(found)
    page = Page(
        name=name,
        about=(f"Candidates: {report.fates_text(found)}",),
        verdict=_verdict(found),
        good=bool(found.front),
        blocks=(
            *([tiles(_tiles(found))] if found.front else []),
            *titled("Scaling", shown("scaling", growth)),
            *titled("Candidates by both objectives", shown("scatter", dots)),
            *(titled(_title(heat), Shown(macro="heat_map", what=heat)) if heat else []),
            *titled("Best candidates", _table(found) if found.front else None),
            *section_blocks(report.rejections(found)),
            *_best(found, best, how.asked[0] if how.asked else shlex.quote(name)),
        ),
    )
    return rendered([page], f"{name}: sweep", how)


def _title(heat: HeatMap) -> str:
    return f"{heat.title[:1].upper()}{heat.title[1:]} by {heat.across} and {heat.up}"


def _best(
    found: Findings, best: tuple[Prediction, Neighbourhood | None] | None, asked: str
) -> list[Block]:
    """Return the blocks of the best candidate, or its command; empty if none can run."""
    if not found.front:
        return []
    settings = found.front[0].outcome.settings
    options = (f"--set {shlex.quote(f'{key}={value}')}" for key, value in settings.items())
    command = f"plan report {asked} {' '.join(options)}"
    if best is not None:
        return in_full(*best, command)
    text = "All of the best one, with what it rests on and where that is from:"
    return [Shown(macro="text", what=text), Code(lines=(command,))]


def _table(found: Findings) -> Table:
    """Return a table of the best candidates, without empty columns."""
    table = report.best_candidates(found)
    kept = [i for i in range(len(table.head)) if any(row[i] is not None for row in table.rows)]
    names = [table.head[i] for i in kept]
    rows = tuple(
        tuple(_cell(row[i], name) for i, name in zip(kept, names, strict=True))
        for row in table.rows
    )
    head = tuple(key_called(metric_called(name)) for name in names)
    return Table(head=head, rows=rows, align=report.sides_of(rows))


def _tiles(found: Findings) -> list[Tile]:
    """Return the metrics of the best candidate by the first objective as tiles."""
    if not found.front:
        return []
    best = found.front[0].outcome
    names = dict.fromkeys((*(o.metric for o in found.objectives), *report.MAIN_METRICS))
    return [
        Tile(name=metric_called(name), value=_cell(value, name))
        for name in names
        if (value := best.figures.get(name)) is not None and not isinstance(value, Mapping)
    ]


def _verdict(found: Findings) -> str:
    """Describe the best candidate by the first objective."""
    if not found.front:
        return "No candidate can run."
    best, objective = found.front[0].outcome, found.objectives[0]
    value = value_of(best.figures, objective)
    shown = "" if value is None else f" ({_short_figure(value, _UNITS.get(objective.metric))})"
    others = len(found.front) - 1
    rest = f" {_better(others)} in {_other(found)}." if others else ""
    told_best = report.objective_text(objective).capitalize()
    first = _FIRST.get((objective.metric, objective.sense), told_best)
    return f"{first}{shown}: {_settings(best)}.{rest}"


def _better(others: int) -> str:
    return "1 other is better" if others == 1 else f"{others:,} others are better"


def _other(found: Findings) -> str:
    """Return the metric in which others beat the best candidate by the first objective."""
    rest = found.objectives[1:]
    return metric_called(rest[0].metric) if len(rest) == 1 else "something else"


def _short_figure(value: float, unit: Unit | None) -> str:
    """Format a value to three digits, the precision of a prediction."""
    return figure(value, unit) if unit == USD_PER_HOUR else quantity(value, unit, DIGITS)


def _settings(outcome: Outcome) -> str:
    return ", ".join(said(key, value) for key, value in outcome.settings.items())


def _cell(value: object, name: str) -> str:
    if isinstance(value, float) and is_share(name):
        return metric_figure(name, value)
    if name == "bottleneck":
        return bottleneck_called(str(value))
    if isinstance(value, float) and name in _UNITS:
        return _short_figure(value, _UNITS[name])
    if isinstance(value, float) or (isinstance(value, int) and name in _UNITS):
        return figure(value, _UNITS.get(name))
    return "" if value is None else printable(str(value))


def _scatter(found: Findings) -> Scatter | None:
    """Return predicted candidates by the first two objectives; None if there is only one."""
    if len(found.objectives) < _PAIR:
        return None
    pair = found.objectives[:_PAIR]
    front = {place.outcome.candidate.index for place in found.front}
    values = [(o, [value_of(o.figures, objective) for objective in pair]) for o in found.outcomes]
    known = [
        (o, x, y)
        for o, (x, y) in values
        if o.status is Status.PREDICTED and x is not None and y is not None
    ]
    every = 1 + len(known) // MOST_DOTS
    points = [
        Point(
            x=x,
            y=y,
            front=o.candidate.index in front,
            hint=_hint(o, pair),
            label=_label(o, found),
            best=bool(found.front) and o is found.front[0].outcome,
        )
        for i, (o, x, y) in enumerate(known)
        if i % every == 0 or o.candidate.index in front
    ]
    return scatter(points, pair[0].metric, pair[1].metric)


def _label(outcome: Outcome, found: Findings) -> str:
    """Return a short label with the values that distinguish a candidate."""
    label = ""
    for key, number in found.values.items():
        value = outcome.settings.get(key)
        plain = str(value).rpartition("/")[2] if isinstance(value, str) else ""
        text = plain or said(key, value)
        longer = f"{label}, {text}" if label else text
        if number > 1 and len(longer) <= LONGEST_LABEL:
            label = longer
    return printable(label)


def _hint(outcome: Outcome, objectives: Sequence[Objective]) -> str:
    values = ((o.metric, value_of(outcome.figures, o)) for o in objectives)
    texts = [f"{metric_called(name)} {figure(value, _UNITS.get(name))}" for name, value in values]
    return f"{_settings(outcome)}: {', '.join(texts)}"


def _heat_map(found: Findings) -> HeatMap | None:
    """Return the first objective over the two keys that vary; None for another number of keys."""
    keys = [key for key, distinct in found.values.items() if distinct > 1]
    if len(keys) != _PAIR:
        return None
    objective = found.objectives[0]
    columns, lines = (_ordered(key, found.outcomes) for key in keys)
    values = {
        o.candidate.index: value
        for o in found.outcomes
        if o.status is Status.PREDICTED and (value := value_of(o.figures, objective)) is not None
    }
    cells = tuple(
        Cell(
            column=columns.index(o.candidate.settings[keys[0]]),
            line=lines.index(o.candidate.settings[keys[1]]),
            shade=_shade(values.get(o.candidate.index), values.values(), objective),
            hint=_hint(o, [objective]) if o.candidate.index in values else _why_not(o),
        )
        for o in found.outcomes
    )
    names = tuple(printable(str(value)) for value in columns)
    return HeatMap(
        title=metric_called(printable(objective.metric)),
        across=key_called(keys[0]),
        up=key_called(keys[1]),
        columns=names,
        lines=tuple(printable(str(value)) for value in lines),
        cells=cells,
        scale=tuple(
            Key(shade=shade, text=_range(shade, values.values(), objective))
            for shade in sorted({c.shade for c in cells if c.shade is not None}, reverse=True)
        ),
        crowded=_crowded(names),
    )


def _crowded(names: Sequence[str]) -> str:
    """Return the pages on which column names overlap: ``steep`` (all), ``dense`` (narrow), none."""
    longest = max(map(len, names), default=0)
    if longest * min(len(names), MOST_NAMES) > ROOM:
        return "steep"
    return "dense" if longest * min(len(names), MOST_NAMES_NARROW) > ROOM_NARROW else ""


def _why_not(outcome: Outcome) -> str:
    return printable(f"{_settings(outcome)}: {outcome.status}; {outcome.reason}".rstrip("; "))


def _ordered(key: str, outcomes: Sequence[Outcome]) -> list[object]:
    """Return the values of a key, sorted by size if they are numbers or quantities."""
    values = dict.fromkeys(o.candidate.settings[key] for o in outcomes)
    unit = unit_of(key)

    def size(value: object) -> float:
        if isinstance(value, str) and unit is not None:
            return parse(value, unit)
        return float(value) if isinstance(value, int | float) else 0.0

    return sorted(values, key=size)


def _shade(value: float | None, values: Collection[float], objective: Objective) -> int | None:
    """Return a shade from 0, the worst, to `SHADES` - 1, the best, on a logarithmic scale."""
    known = [v for v in values if v > 0.0]
    if value is None or value <= 0.0:
        return None
    low, high = math.log(min(known)), math.log(max(known))
    part = (math.log(value) - low) / (high - low) if high > low else 1.0
    good = part if objective.sense is Sense.MAXIMIZE else 1.0 - part
    return min(SHADES - 1, int(good * SHADES))


def _range(shade: int, values: Collection[float], objective: Objective) -> str:
    """Return the range of values of a shade; the best and the worst are marked."""
    known = [v for v in values if v > 0.0]
    low, high = min(known), max(known)
    ends = (shade / SHADES, (shade + 1) / SHADES)
    parts = ends if objective.sense is Sense.MAXIMIZE else tuple(1.0 - end for end in ends[::-1])
    first, last = (_short(low * (high / low) ** part, objective) for part in parts)
    mark = {0: ", the worst", SHADES - 1: ", the best"}.get(shade, "") if high > low else ""
    return (first if first == last else f"{first} to {last}") + mark


def _short(value: float, objective: Objective) -> str:
    """Format a value with its unit to three digits."""
    unit = _UNITS.get(objective.metric)
    return figure(value, unit) if unit in {None, PER_SECOND} else show(value, unit, DIGITS)
