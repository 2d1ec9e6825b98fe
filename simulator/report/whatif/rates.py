"""A tornado of a metric over the uncertain rates, as text and as JSON."""

from __future__ import annotations

from typing import Any, Final

from simulator.report.numbers import figure
from simulator.report.text import columns, percent, section, wrapped
from simulator.results.metrics import select
from simulator.studies.sensitivity import Bar, Sensitivity

CHART: Final = 36
"""Columns of the widest bar of a tornado."""
NARROW: Final = 0.002
"""Width over the metric below which a rate does not matter."""


def tornado_lines(tornado: Sensitivity | None) -> list[str]:
    """Return the section of a tornado; nothing where none was requested."""
    if tornado is None:
        return []
    base = figure(tornado.base, select(tornado.metric)[0].unit)
    title = f"Tornado: {tornado.metric} is {base}; with one rate at a time at P10 and at P90"
    return section(title, _tornado_lines(tornado))


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


def _quiet(rates: list[Any], found: Sensitivity) -> list[str]:
    texts = [f"does not matter: {', '.join(rates)}"] if rates else []
    if found.correlated:
        texts.append("some of these rates are correlated; a tornado leaves that out")
    return [line for text in texts for line in wrapped(text)]


def tornado_json(found: Sensitivity | None) -> dict[str, Any] | None:
    """Return a tornado as a plain dictionary in SI units."""
    if found is None:
        return None
    return {
        "metric": found.metric,
        "base": found.base,
        "rates": [
            {"rate": one.rate, "log_sd": one.log_sd, "p10": one.slow, "p90": one.fast}
            for one in found.bars
        ],
        "correlated": found.correlated,
    }
