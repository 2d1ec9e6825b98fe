"""What measured runs told of a service: its factors, and how far its figures are off now."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import numpy as np

from simulator.calibration.service_factors import (
    FACTORS,
    SPREADS,
    CalibratedService,
    Seen,
)
from simulator.report.format.table import Table, as_markdown
from simulator.report.prediction.json import SCHEMA
from simulator.report.text import columns, section, wrapped
from simulator.results.metrics import measurable
from simulator.uncertainty.components import P90
from simulator.units import show

_TOLD: Final = 0.8
"""Share of what was unsure of a factor above which runs have told little of it."""
_HEAD: Final = ("run", "figure", "measured", "before", "fitted")
"""Standard deviations from the middle to the ends of an interval that holds 80%."""


class ServiceCalibrationReport:
    """Its methods are those of `report.format.table.Report`."""

    def as_text(self, found: CalibratedService) -> str:
        """The report."""
        before, after = _error(found, "before"), _error(found, "fitted")
        runs = len({one.row for one in found.seen})
        title = (
            f"Fitted to {len(found.seen)} figures of {runs} runs: they are {after:.1%} off on "
            f"average, where they were {before:.1%} off."
        )
        note = (
            "Runs that were fitted say little of others: keep some back, and look at them with "
            "plan validate."
        )
        return "\n".join(
            [
                *wrapped(title, hang=""),
                *section("How much faster its parts are", columns(list(_factors(found)), "<><<")),
                *section("Runs", columns([_HEAD, *_runs(found)], "<<>>>")),
                "",
                *wrapped(note, hang=""),
            ]
        )

    def as_object(self, found: CalibratedService) -> Mapping[str, Any]:
        """The figures in SI units."""
        return {
            "schema": SCHEMA,
            "factors": {
                name: {"value": getattr(found.factors, name), "log_sd": found.deviations[name]}
                for name in FACTORS
            },
            "runs": [
                dict(zip(_HEAD, (one.row, one.metric, *_values(one)), strict=True))
                for one in found.seen
            ],
        }

    def as_table(self, found: CalibratedService) -> Table:
        """A line for each measured figure."""
        rows = tuple((one.row, one.metric, *_values(one)) for one in found.seen)
        return Table(head=_HEAD, rows=rows)

    def as_page(self, found: CalibratedService) -> str:
        """The Markdown, with units."""
        return as_markdown(Table(head=_HEAD, rows=tuple(_runs(found))))


def _error(found: CalibratedService, which: str) -> float:
    return float(np.mean([abs(getattr(one, which) / one.measured - 1.0) for one in found.seen]))


def _factors(found: CalibratedService) -> Iterator[tuple[str, ...]]:
    for name in FACTORS:
        value, sd = getattr(found.factors, name), found.deviations[name]
        low, high = (value * np.exp(side * P90 * sd) for side in (-1.0, 1.0))
        little = sd > _TOLD * SPREADS[name]
        said = "the runs tell little of it" if little else ""
        yield f"calibration.{name}", f"{value:.3g}", f"{low:.2g} to {high:.2g}", said


def _runs(found: CalibratedService) -> Iterator[tuple[str, ...]]:
    for one in found.seen:
        yield one.row, one.metric, *(_shown(one, value) for value in _values(one))


def _values(one: Seen) -> tuple[float, float, float]:
    return one.measured, one.before, one.fitted


def _shown(one: Seen, value: float) -> str:
    metric = measurable(one.metric)
    unit = None if metric is None else metric.unit
    return f"{value:.4g}" if unit is None else show(value, unit)
