"""Predicted against measured values of the rows that nothing was fitted to, as a figure."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from simulator.errors import PlanError
from simulator.report.html.evidence import dots_of
from simulator.report.plot import Panel, evidence_figure
from simulator.results.metrics import measurable
from simulator.uncertainty.measurement import Split
from simulator.validation.validate import Validated

if TYPE_CHECKING:
    from simulator.report.plot import Figure

MOST: Final = 4
"""Metrics that get a panel: those that most rows have."""


def validation_figure(found: Validated) -> Figure:
    """A panel for each of the commonest metrics, a colour for each set of rows.

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
    for metric, _ in Counter(one.metric for one in held_out).most_common(MOST):
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
