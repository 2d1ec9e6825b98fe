"""How a metric hangs on the rates in doubt: a tornado in text, Sobol indices, and both as JSON."""

from __future__ import annotations

from typing import Any, Final

from simulator.report.numbers import figure
from simulator.report.text import bar, columns, percent, section, wrapped
from simulator.results.metrics import select
from simulator.studies.changes.sensitivity import Bar, Sensitivity, Share

CHART: Final = 36
"""Columns of the widest bar of a tornado."""
NARROW: Final = 0.002
"""Width over the metric, and share of the variance, below which a rate does not matter."""


def rates_lines(tornado: Sensitivity | None, sobol: Sensitivity | None) -> list[str]:
    """A section for each; nothing for one that was not asked for."""
    lines: list[str] = []
    if tornado is not None:
        base = figure(tornado.base, select(tornado.metric)[0].unit)
        title = f"Tornado: {tornado.metric} is {base}; with one rate at a time at P10 and at P90"
        lines += section(title, _tornado_lines(tornado))
    if sobol is not None:
        title = f"Sobol indices: part of the variance of {sobol.metric} that is due to each rate"
        lines += section(title, _sobol_lines(sobol))
    return lines


def _tornado_lines(found: Sensitivity) -> list[str]:
    wide = [one for one in found.bars if _matters(found, one)]
    ends = [end for one in wide for end in (one.slow, one.fast)]
    low, high = min((found.base, *ends)), max((found.base, *ends))
    unit = select(found.metric)[0].unit
    rows = [("rate", "known to", "slow", "", "fast")] if wide else []
    rows += [
        (
            one.rate,
            f"+-{percent(one.log_sd)}",
            figure(one.slow, unit),
            _drawn(one, found.base, low, high),
            figure(one.fast, unit),
        )
        for one in wide
    ]
    return [*columns(rows, "<>><<"), *_quiet([b.rate for b in found.bars if b not in wide], found)]


def _matters(found: Sensitivity, one: Bar) -> bool:
    return one.width > NARROW * abs(found.base)


def _drawn(one: Bar, base: float, low: float, high: float) -> str:
    """A bar from one end to the other, with a stroke where the metric is now."""
    span = high - low

    def place(value: float) -> int:
        return round(CHART * (value - low) / span)

    start, middle, end = (
        place(v) for v in (min(one.slow, one.fast), base, max(one.slow, one.fast))
    )
    cells = ["#" if start <= i < end else " " for i in range(CHART + 1)]
    cells[middle] = "|"
    return "".join(cells)


def _sobol_lines(found: Sensitivity) -> list[str]:
    shown = [share for share in found.shares if share.total > NARROW]
    rows = [("rate", "known to", "alone", "in all", "")] if shown else []
    rows += [
        (
            share.rate,
            f"+-{percent(share.log_sd)}",
            percent(max(0.0, share.first)),
            percent(share.total),
            bar(share.total, width=CHART),
        )
        for share in shown
    ]
    quiet = [share.rate for share in found.shares if share not in shown]
    lines = [*columns(rows, "<>>><"), *_quiet(quiet, found)]
    return lines or [f"no rate in doubt moves {found.metric}"]


def _quiet(rates: list[Any], found: Sensitivity) -> list[str]:
    texts = [f"does not matter: {', '.join(rates)}"] if rates else []
    if found.correlated:
        texts.append("some of these rates go together, which one at a time leaves out")
    return [line for text in texts for line in wrapped(text)]


def rates_json(tornado: Sensitivity | None, sobol: Sensitivity | None) -> dict[str, Any]:
    """Both as plain dictionaries, in SI units; None for one that was not asked for."""
    return {
        "tornado": None if tornado is None else _tornado_object(tornado),
        "sobol": None if sobol is None else _sobol_object(sobol),
    }


def _tornado_object(found: Sensitivity) -> dict[str, Any]:
    return {
        "metric": found.metric,
        "base": found.base,
        "rates": [
            {"rate": one.rate, "log_sd": one.log_sd, "p10": one.slow, "p90": one.fast}
            for one in found.bars
        ],
        "correlated": found.correlated,
    }


def _sobol_object(found: Sensitivity) -> dict[str, Any]:
    return {
        "metric": found.metric,
        "base": found.base,
        "rates": [_share_object(share) for share in found.shares],
        "correlated": found.correlated,
    }


def _share_object(share: Share) -> dict[str, Any]:
    return {
        "rate": share.rate,
        "log_sd": share.log_sd,
        "first_order": share.first,
        "total": share.total,
    }
