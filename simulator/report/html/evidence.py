"""The HTML report of a validation: one file, tables and predicted-against-measured plots inside."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from markupsafe import Markup

from simulator.report.evidence import (
    HEAD,
    LEGEND,
    TOLERANCE_HEAD,
    band_texts,
    cells,
    tolerance_rows,
)
from simulator.report.html.page import filled
from simulator.report.plot import COLOURS, dots_of, predicted_against_measured
from simulator.results.metrics import measurable
from simulator.schema.measurement import MeasurementSet, Split
from simulator.validation.scores import Judged
from simulator.validation.validate import Validated

TEMPLATE: Final = "evidence.html.j2"
WORST: Final = 20
"""Rows furthest off that are listed for each set."""
OTHERS: Final = "others"


def as_html(found: Validated) -> str:
    """The report as one HTML document that loads nothing from elsewhere."""
    return filled(
        TEMPLATE,
        legend=LEGEND,
        head=HEAD,
        tolerance_head=TOLERANCE_HEAD,
        sets=[_set(found, one) for one in found.sets],
        bands=band_texts(found.bands),
        warnings=found.warnings,
        over=[f"{f.set}, {f.name}, {f.metric}: {'; '.join(f.over)}" for f in found.over],
    )


def _set(found: Validated, one: MeasurementSet) -> dict[str, Any]:
    own = [f for f in (*found.families, *found.totals) if f.set == one.name]
    judged = [j for j in found.judged if j.set == one.name]
    worst = sorted(judged, key=lambda j: -abs(j.error))[:WORST]
    return {
        "name": one.name,
        "title": one.title,
        "source": f"{one.source.reference}, {one.source.date}",
        "note": one.source.note,
        "rows": len(one.rows),
        "metrics": [_metric(found, one, metric) for metric in one.metrics],
        "tolerances": list(tolerance_rows(own)),
        "worst": worst,
        "left": [left for left in found.left if left.set == one.name],
    }


def _metric(found: Validated, one: MeasurementSet, metric: str) -> dict[str, Any]:
    shown = (*found.families, *found.totals)
    families = [f for f in shown if (f.set, f.metric) == (one.name, metric)]
    judged = [j for j in found.judged if (j.set, j.metric) == (one.name, metric)]
    kind = "differences in percentage points" if metric in one.absolute else "relative errors"
    return {
        "name": metric,
        "kind": kind,
        "baseline": str(one.baseline),
        "families": [cells(family) for family in families],
        "plots": [
            (str(split), Markup(_plot([j for j in judged if j.split is split], metric)))  # noqa: S704 - drawn here, names escaped by matplotlib
            for split in (Split.TEST, Split.FIT)
            if any(j.split is split for j in judged)
        ],
    }


def _plot(judged: Sequence[Judged], metric: str) -> str:
    known = measurable(metric)
    unit = "" if known is None or known.unit is None else known.unit.symbol
    families = list(dict.fromkeys(one.family for one in judged))
    few = len(COLOURS) - 1
    named = families if len(families) <= len(COLOURS) else families[:few]
    groups = {name: [j for j in judged if j.family == name] for name in named}
    rest = [j for j in judged if j.family not in named]
    if rest:
        groups[OTHERS] = rest
    return predicted_against_measured(
        {name: dots_of(rows) for name, rows in groups.items()},
        metric,
        unit,
        logarithmic=not any(one.absolute for one in judged),
    )
