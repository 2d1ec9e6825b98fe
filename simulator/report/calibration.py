"""The report of a calibration: values, intervals, what the rows cannot tell, and what is left."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any, Final

from simulator.calibration.calibrate import Calibrated, Estimate, Residual, Tried, error_statistics
from simulator.reading.keys import numeric_key
from simulator.report.format.table import Cell, Table, as_markdown
from simulator.report.numbers import figure
from simulator.report.text import (
    INDENT,
    WIDTH,
    columns,
    percent,
    printable,
    section,
    wrapped,
)
from simulator.results.metrics import measurable
from simulator.version import __version__

SCHEMA: Final = 1
SHOWN: Final = 4
"""Factors that were tried and are listed."""
ALIKE: Final = 2.0
"""Difference of two costs below which neither is much likelier."""
WORST: Final = 5
"""Rows listed as farthest off."""
_STAGES: Final = (
    ("before", "at the start"),
    ("fitted", "fitted"),
    ("held_out", "held out"),
)


def as_text(calibrated: Calibrated, worst: int = WORST, tried: Sequence[Tried] = ()) -> str:
    """The report as plain text; `worst` rows farthest off are listed.

    `tried` are factors that were fitted alone to find the one that is fitted here.
    """
    samples = calibrated.samples
    title = (
        f"Calibration on {_count(samples.envelope.rows, 'row')} of "
        f"{_count(samples.envelope.configurations, 'configuration')} in {', '.join(samples.sets)}"
    )
    lines = [
        *wrapped(title, hang="", width=WIDTH),
        *section("What explains these runs, each factor alone", tried_lines(tried)),
        *section("Parameters", columns([_HEAD, *map(_row, calibrated.estimates)], "<<<<<")),
        *section("Notes", _notes(calibrated)),
        *section("Errors, |predicted / measured - 1|", _errors(calibrated)),
        *section("What the rows cannot tell", _unknown(calibrated)),
        *section("Farthest off as fitted", _worst(calibrated, worst)),
        *section("Fitted on", _range(calibrated)),
    ]
    return "\n".join(lines)


def tried_lines(tried: Sequence[Tried]) -> list[str]:
    """The factors that were tried, the likeliest first: how much faster, and what that leaves."""
    if not tried:
        return []
    rows = [
        (
            one.kind.name,
            f"x{one.factor:.3g}",
            f"{percent(one.error)} off on average",
            "taken" if one is tried[0] else "",
        )
        for one in tried[:SHOWN]
    ]
    lines = columns([("factor", "rates", "", ""), *rows], "<><<")
    if len(tried) > 1 and tried[1].cost - tried[0].cost < ALIKE:
        first, second = (one.kind.name for one in tried[:2])
        lines += wrapped(
            f"{second} explains them nearly as well as {first}: a run in which they would differ "
            f"tells them apart; --fit {second} takes it instead"
        )
    return lines


def tried_object(tried: Sequence[Tried]) -> list[dict[str, Any]]:
    """The same for programs."""
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
        key, side = one.parameter.key, _SIDES.get(one.at_bound)
        if not one.identified:
            texts.append(f"{key} has no effect on these rows: it stays at its start.")
        elif side is not None:
            why = f" ({one.parameter.why})" if one.parameter.why else ""
            texts.append(
                f"{key} stands at its {side} bound{why}: the rows pull it past "
                "it, so something else is probably missing."
            )
    known = [one for one in calibrated.estimates if one.identified and not one.at_bound]
    if known and all(one.log_sd is None for one in known):
        texts.append("No intervals: there are no more configurations than parameters.")
    if not calibrated.folds:
        texts.append("Not cross-validated: that takes rows of at least two configurations.")
    if calibrated.all_rows:
        texts.append("Rows held out for testing were fitted to: nothing is left to test on.")
    return [line for text in texts for line in wrapped(text)]


def _errors(calibrated: Calibrated) -> list[str]:
    rows: list[tuple[str, ...]] = [("", "mean", "median", "p90", "largest", "")]
    for which, name in _STAGES:
        found = error_statistics(calibrated.residuals, which)
        if found is None:
            continue
        cells = (found.mean, found.median, found.p90, found.largest)
        note = f"{calibrated.folds} folds by configuration" if which == "held_out" else ""
        rows.append((name, *map(percent, cells), note))
    return columns(rows, "<>>>><")


def _unknown(calibrated: Calibrated) -> list[str]:
    known = calibrated.identifiability
    texts = [
        f"{pair.first} and {pair.second} (correlation {pair.correlation:+.3f}): the rows only know "
        "a combination of them. Fix one, or add rows in which only one of them matters."
        for pair in known.alike
    ]
    pairs = [{pair.first, pair.second} for pair in known.alike]
    for direction in known.faint:
        if len(direction.weights) > 1 and set(direction.weights) not in pairs:
            terms = " ".join(f"{w:+.2f} {name}" for name, w in direction.weights.items())
            texts.append(f"{terms} (effect {direction.effect:.2g}): hardly changes any row.")
    return [line for text in texts for line in wrapped(text)]


def _worst(calibrated: Calibrated, worst: int) -> list[str]:
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
    return columns(rows, "<<<<>")


def _log(one: Residual) -> float:
    return math.log(one.fitted / one.measured)


def _figure(value: float, metric: str) -> str:
    known = measurable(metric)
    return figure(value, None if known is None else known.unit)


def _range(calibrated: Calibrated) -> list[str]:
    reach = calibrated.samples.envelope
    rows = [
        ("accelerators", ", ".join(reach.gpus) or "none"),
        ("machines", ", ".join(reach.machines)),
        ("accelerators of a job", _span(reach.devices)),
        ("batch size of a device", _span(reach.batch_size)),
        ("predictions made", f"{calibrated.predictions:,}"),
    ]
    names = columns([(name,) for name, _ in rows], "<")
    wide = max(map(len, names)) + len(INDENT)
    return [
        line
        for name, (_, text) in zip(names, rows, strict=True)
        for line in wrapped(f"{name:{wide}}{text}", hang=" " * wide)
    ]


def _span(ends: tuple[int, int]) -> str:
    low, high = ends
    return f"{low}" if low == high else f"{low} to {high}"


def as_table(calibrated: Calibrated) -> Table:
    """A row for each parameter; values are in SI units."""
    head = ("parameter", "value", "unit", "p10", "p90", "start", "low", "high", "stands")
    return Table(head=head, rows=tuple(_cells(one) for one in calibrated.estimates))


def _cells(one: Estimate) -> tuple[Cell, ...]:
    found, unit = _estimate(one), numeric_key(one.parameter.key).unit
    known = (found["value"], "" if unit is None else unit.symbol, found["p10"], found["p90"])
    bounds = (found["start"], found["low"], found["high"])
    return (one.parameter.key, *known, *bounds, _stands(one))


def as_page(calibrated: Calibrated) -> str:
    """The parameters as Markdown, values as people write them."""
    head = ("parameter", *_HEAD[1:])
    return as_markdown(Table(head=head, rows=tuple(map(_row, calibrated.estimates))))


def _stands(one: Estimate) -> str:
    if not one.identified:
        return "not identified"
    return f"at its {_SIDES[one.at_bound]} bound" if one.at_bound else ""


def as_object(calibrated: Calibrated) -> dict[str, Any]:
    """The calibration as plain dictionaries, lists, strings and numbers."""
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
        "errors": {which: _error_object(calibrated, which) for which, _ in _STAGES},
        "identifiability": {
            "effects": list(known.effects),
            "correlations": [list(row) for row in known.correlations],
            "alike": [
                {"first": p.first, "second": p.second, "correlation": p.correlation}
                for p in known.alike
            ],
            "faint": [{"weights": d.weights, "effect": d.effect} for d in known.faint],
        },
        "residuals": [_residual(one) for one in calibrated.residuals],
    }


def as_json(calibrated: Calibrated, **more: object) -> str:
    """The calibration as JSON text, with `more` keys."""
    tree = {**as_object(calibrated), **more}
    return json.dumps(tree, indent=2, ensure_ascii=False, allow_nan=False)


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
        "at_bound": one.at_bound or None,
        "identified": one.identified,
    }


def _error_object(calibrated: Calibrated, which: str) -> dict[str, float] | None:
    found = error_statistics(calibrated.residuals, which)
    if found is None:
        return None
    return {
        "mean": found.mean,
        "median": found.median,
        "p90": found.p90,
        "largest": found.largest,
    }


def _residual(one: Residual) -> dict[str, Any]:
    return {
        "row": one.row,
        "configuration": one.configuration,
        "metric": one.metric,
        "measured": one.measured,
        "before": one.before,
        "fitted": one.fitted,
        "held_out": one.held_out,
    }
