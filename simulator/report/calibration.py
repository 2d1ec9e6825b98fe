"""The report of ``plan calibrate``: parameters, intervals, errors, identifiability."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any, Final

import numpy as np

from simulator.calibration.calibrate import Calibrated, Estimate, Tried, error_statistics
from simulator.calibration.fitting import Residual
from simulator.calibration.service_factors import FACTORS, SPREADS, CalibratedService
from simulator.reading.keys import numeric_key
from simulator.report.document import Cell, Document, Notes, Row, Rows, Table, grid, notes, section
from simulator.report.numbers import figure, joined
from simulator.report.text import percent, printable
from simulator.results.metrics import measurable
from simulator.schema.uncertainty import P90
from simulator.units import show
from simulator.version import __version__

SCHEMA: Final = 1
MAX_TRIED: Final = 4
"""Maximum number of tried factors to list."""
CLOSE: Final = 2.0
"""Difference of two costs below which both factors are plausible."""
MAX_WORST: Final = 5
"""Maximum number of rows to list, those with the largest errors."""
_STAGES: Final = (
    ("before", "at the start"),
    ("fitted", "fitted"),
    ("held_out", "held out"),
)


def document(
    calibrated: Calibrated,
    worst: int = MAX_WORST,
    tried: Sequence[Tried] = (),
    written: str | None = None,
) -> Document:
    """Return a calibration as a document.

    Parameters
    ----------
    calibrated : Calibrated
        The calibration.
    worst : int
        Number of rows to list, those with the largest errors.
    tried : sequence of Tried
        Factors fitted one at a time, of which the first is the one fitted in `calibrated`.
    written : str, optional
        Path of the overlay that was written.
    """
    samples = calibrated.samples
    rows = _count(samples.envelope.rows, "row")
    configurations = _count(samples.envelope.configurations, "configuration")
    use = f"wrote {written}; use it with: plan simulate SCENARIO --calibration {written}"
    return Document(
        title=f"Calibration on {rows} of {configurations} in {', '.join(samples.sets)}",
        sections=(
            *section("What explains these runs, each factor alone", *_tried(tried)),
            *section("Parameters", grid(_HEAD, map(_row, calibrated.estimates), "<<<<<")),
            *section("Notes", notes(_notes(calibrated))),
            *section("Relative errors (predicted / measured - 1)", _errors(calibrated)),
            *section("Not identified by these rows", notes(_unknown(calibrated))),
            *section("Largest errors as fitted", _worst(calibrated, worst)),
            *section("Fitted on", Rows(rows=tuple(_range(calibrated)))),
            *section("", notes([use if written else ""])),
        ),
        data=lambda: {
            **as_object(calibrated),
            "written": written,
            "tried": _tried_object(tried),
        },
        table=lambda: _table(calibrated),
    )


def _tried(tried: Sequence[Tried]) -> tuple[Table | None, Notes]:
    """Return a table of the factors fitted one at a time with errors, best first, and notes."""
    rows = [
        (
            one.kind.name,
            f"x{one.factor:.3g}",
            f"{percent(one.error)} mean error",
            "taken" if one is tried[0] else "",
        )
        for one in tried[:MAX_TRIED]
    ]
    texts = []
    if len(tried) > 1 and tried[1].cost - tried[0].cost < CLOSE:
        first, second = (one.kind.name for one in tried[:2])
        texts.append(
            f"{second} explains them nearly as well as {first}; add a run in which they differ, or "
            f"use --fit {second}"
        )
    return grid(("factor", "rates", "", ""), rows, "<><<"), notes(texts)


def _tried_object(tried: Sequence[Tried]) -> list[dict[str, Any]]:
    return [
        {"factor": one.kind.name, "value": one.factor, "mean_error": one.error, "cost": one.cost}
        for one in tried
    ]


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


_HEAD: Final = ("", "value", "80% interval", "start", "bounds")


def _row(one: Estimate) -> tuple[str, ...]:
    key, given = numeric_key(one.parameter.key), one.parameter
    band = (
        "" if one.p10 is None or one.p90 is None else f"{key.show(one.p10)} to {key.show(one.p90)}"
    )
    bounds = f"{key.show(given.low)} to {key.show(given.high)}"
    interval = _stands(one) or band or "unknown"
    return (given.key, key.show(one.value), interval, key.show(given.start), bounds)


_SIDES: Final = {"low": "lower", "high": "upper"}


def _notes(calibrated: Calibrated) -> list[str]:
    texts = []
    for one in calibrated.estimates:
        key, side = one.parameter.key, _SIDES.get(one.at_bound or "")
        if not one.identified:
            texts.append(f"{key} has no effect on these rows and keeps its start value.")
        elif side is not None:
            why = f" ({one.parameter.why})" if one.parameter.why else ""
            texts.append(
                f"{key} is at its {side} bound{why}: the rows pull it beyond, "
                "so something else is probably missing."
            )
    known = [one for one in calibrated.estimates if one.identified and not one.at_bound]
    if known and all(one.log_sd is None for one in known):
        texts.append("No intervals: more configurations than parameters are needed.")
    if not calibrated.folds:
        texts.append("Not cross-validated: rows of at least two configurations are needed.")
    if calibrated.all_rows:
        texts.append("Rows held out for testing were fitted, too: none is left to test on.")
    return texts


def _errors(calibrated: Calibrated) -> Table | None:
    rows: list[tuple[str, ...]] = []
    for which, name in _STAGES:
        found = error_statistics(calibrated.residuals, which)
        if not found:
            continue
        note = f"{calibrated.folds} folds by configuration" if which == "held_out" else ""
        rows.append((name, *map(percent, found.values()), note))
    return grid(("", "mean", "median", "p90", "largest", ""), rows, "<>>>><")


def _unknown(calibrated: Calibrated) -> list[str]:
    known = calibrated.identifiability
    texts = [
        f"{first} and {second} (correlation {correlation:+.3f}): only their "
        "combination is identified. Fix one, or add rows in which only one of them matters."
        for first, second, correlation in known.correlated
    ]
    pairs = [{first, second} for first, second, _ in known.correlated]
    for weights, effect in known.faint:
        if len(weights) > 1 and set(weights) not in pairs:
            terms = " ".join(f"{w:+.2f} {name}" for name, w in weights.items())
            texts.append(f"{terms} (effect {effect:.2g}): almost no effect on any row.")
    return texts


def _worst(calibrated: Calibrated, worst: int) -> Table | None:
    ordered = sorted(calibrated.residuals, key=lambda one: -abs(_log(one)))
    rows = [
        (
            printable(one.row),
            one.metric,
            f"measured {_figure(one.measured, one.metric)}",
            f"fitted {_figure(one.fitted, one.metric)}",
            f"{100.0 * (one.fitted / one.measured - 1.0):+.1f}%",
        )
        for one in ordered[:worst]
    ]
    return grid((), rows, "<<<<>")


def _log(one: Residual) -> float:
    return math.log(one.fitted / one.measured)


def _figure(value: float, metric: str) -> str:
    known = measurable(metric)
    return figure(value, None if known is None else known.unit)


def _range(calibrated: Calibrated) -> list[Row]:
    reach = calibrated.samples.envelope
    return [
        ("accelerators", ", ".join(reach.gpus) or "none"),
        ("machines", ", ".join(reach.machines)),
        ("accelerators per job", _span(reach.devices)),
        ("batch size per device", _span(reach.batch_size)),
        ("predictions", f"{calibrated.predictions:,}"),
    ]


def _span(ends: Sequence[int]) -> str:
    low, high = ends
    return f"{low}" if low == high else f"{low} to {high}"


def _table(calibrated: Calibrated) -> Table:
    """Return a row for each parameter, in SI units."""
    head = ("parameter", "value", "unit", "p10", "p90", "start", "low", "high", "stands")
    return Table(head=head, rows=tuple(_cells(one) for one in calibrated.estimates))


def _cells(one: Estimate) -> tuple[Cell, ...]:
    found, unit = _estimate(one), numeric_key(one.parameter.key).unit
    known = (found["value"], "" if unit is None else unit.symbol, found["p10"], found["p90"])
    bounds = (found["start"], found["low"], found["high"])
    return (one.parameter.key, *known, *bounds, _stands(one))


def _stands(one: Estimate) -> str:
    if not one.identified:
        return "not identified"
    return f"at its {_SIDES[one.at_bound]} bound" if one.at_bound else ""


def as_object(calibrated: Calibrated) -> dict[str, Any]:
    """Return the calibration as a JSON-serializable dict."""
    known, samples = calibrated.identifiability, calibrated.samples
    return {
        "schema": SCHEMA,
        "version": __version__,
        "sets": list(samples.sets),
        "rows": len(samples.rows),
        "configurations": len(samples.distinct),
        "all_rows": calibrated.all_rows,
        "folds": calibrated.folds,
        "predictions": calibrated.predictions,
        "parameters": [_estimate(one) for one in calibrated.estimates],
        "log_covariance": [list(row) for row in calibrated.covariance],
        "errors": {
            which: error_statistics(calibrated.residuals, which) or None for which, _ in _STAGES
        },
        "identifiability": {
            "effects": list(known.effects),
            "correlations": [list(row) for row in known.correlations],
            "alike": [
                {"first": first, "second": second, "correlation": correlation}
                for first, second, correlation in known.correlated
            ],
            "faint": [{"weights": weights, "effect": e} for weights, e in known.faint],
        },
        "residuals": [asdict(one) for one in calibrated.residuals],
    }


def _estimate(one: Estimate) -> dict[str, Any]:
    key = numeric_key(one.parameter.key)

    def number(text: str | None) -> float | None:
        return None if text is None else key.value(text)

    return {
        "key": one.parameter.key,
        "value": number(one.value),
        "p10": number(one.p10),
        "p90": number(one.p90),
        "text": one.value,
        "log_sd": one.log_sd,
        "start": number(one.parameter.start),
        "low": number(one.parameter.low),
        "high": number(one.parameter.high),
        "at_bound": one.at_bound,
        "identified": one.identified,
    }


LITTLE: Final = 0.8
"""Ratio of posterior to prior deviation above which a factor is not identified."""
_RUN_HEAD: Final = ("run", "figure", "measured", "before", "fitted")


def service_document(found: CalibratedService) -> Document:
    """Return the calibration of a service as a document: factors, and errors before and after."""
    before, after = _mean_error(found, "before"), _mean_error(found, "fitted")
    runs = len({one.row for one in found.seen})
    title = (
        f"Fitted to {len(found.seen)} figures of {runs} runs: mean error {after:.1%}, before: "
        f"{before:.1%}."
    )
    advice = "Hold some runs back and check them with plan validate: fitted runs prove little."
    return Document(
        verdict=(title,),
        sections=(
            *section("Speed of its parts (factors)", grid((), _factors(found), "<><<")),
            *section("Runs", grid(_RUN_HEAD, map(_run_row, found.seen), "<<>>>")),
            *section("", notes([advice])),
        ),
        data=lambda: {
            "schema": SCHEMA,
            "factors": {
                name: {"value": getattr(found.factors, name), "log_sd": found.deviations[name]}
                for name in FACTORS
            },
            "runs": [
                dict(zip(_RUN_HEAD, (one.row, one.metric, *_values(one)), strict=True))
                for one in found.seen
            ],
        },
        table=lambda: Table(
            head=_RUN_HEAD,
            rows=tuple((one.row, one.metric, *_values(one)) for one in found.seen),
        ),
    )


def _mean_error(found: CalibratedService, which: str) -> float:
    return float(np.mean([abs(getattr(one, which) / one.measured - 1.0) for one in found.seen]))


def _factors(found: CalibratedService) -> Iterator[tuple[str, ...]]:
    for name in FACTORS:
        value, sd = getattr(found.factors, name), found.deviations[name]
        low, high = (value * np.exp(side * P90 * sd) for side in (-1.0, 1.0))
        said = "not identified by these runs" if sd > LITTLE * SPREADS[name] else ""
        yield f"calibration.{name}", f"{value:.3g}", joined(f"{low:.2g}", f"{high:.2g}"), said


def _run_row(one: Residual) -> tuple[str, ...]:
    metric = measurable(one.metric)
    unit = None if metric is None else metric.unit
    shown = (f"{v:.4g}" if unit is None else show(v, unit) for v in _values(one))
    return (one.row, one.metric, *shown)


def _values(one: Residual) -> tuple[float, float, float]:
    return one.measured, one.before, one.fitted
