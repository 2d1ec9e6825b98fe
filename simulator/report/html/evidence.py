"""The HTML page of a validation, with plots of predicted against measured values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from markupsafe import Markup

from simulator.report.document import grid, notes, section
from simulator.report.evidence import (
    LEGEND,
    WORST_HEAD,
    band_texts,
    over_texts,
    set_sections,
    worst_rows,
)
from simulator.report.html.page import (
    Block,
    Made,
    Page,
    Shown,
    rendered,
    section_blocks,
    soft,
    titled,
)
from simulator.report.plot import COLOURS, dots_of, predicted_against_measured
from simulator.results.metrics import measurable
from simulator.schema.measurement import MeasurementSet, Split
from simulator.validation.scores import Judged
from simulator.validation.validate import Validated

MAX_WORST: Final = 20
"""Rows with the largest errors that are listed for each set."""
OTHERS: Final = "others"


def as_html(found: Validated) -> str:
    """Return the validation as one self-contained HTML document."""
    page = Page(
        name="Accuracy of predictions",
        about=(LEGEND,),
        verdict=" ".join(band_texts(found.bands)) or "Too few test rows to judge the intervals.",
        good=not found.over,
        blocks=(
            *section_blocks(section("Over tolerance", notes(over_texts(found)))),
            *section_blocks(section("Questionable figures", notes(found.warnings))),
            *(block for one in found.sets for block in _set(found, one)),
        ),
    )
    return rendered([page], "plan validate", Made())


def _set(found: Validated, one: MeasurementSet) -> Iterator[Block]:
    first, *others = set_sections(found, one)
    yield from section_blocks([first])
    for metric in one.metrics:
        for split in (Split.TEST, Split.FIT):
            judged = [
                j for j in found.judged if (j.set, j.metric, j.split) == (one.name, metric, split)
            ]
            if judged:
                yield from soft(f"{metric}, {split} rows")
                yield Shown(macro="plotted", what=_plot(judged, metric))
    yield from section_blocks(others, level=3)
    judged = [j for j in found.judged if j.set == one.name]
    worst = grid(WORST_HEAD[1:], [row[1:] for row in worst_rows(judged, MAX_WORST)], "<<<>>>>>")
    yield from titled("Largest errors", worst, level=3)


def _plot(judged: Sequence[Judged], metric: str) -> Markup:
    known = measurable(metric)
    unit = "" if known is None or known.unit is None else known.unit.symbol
    families = list(dict.fromkeys(one.family for one in judged))
    named = families if len(families) <= len(COLOURS) else families[: len(COLOURS) - 1]
    groups = {name: [j for j in judged if j.family == name] for name in named}
    rest = [j for j in judged if j.family not in named]
    if rest:
        groups[OTHERS] = rest
    drawn = predicted_against_measured(
        {name: dots_of(rows) for name, rows in groups.items()},
        metric,
        unit,
        logarithmic=not any(one.absolute for one in judged),
    )
    return Markup(drawn)  # noqa: S704 - drawn here, names escaped by matplotlib
