"""Scenarios side by side, for reading and as JSON."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, Final

from simulator.report import goodput
from simulator.report.even import even_text
from simulator.report.format.table import Cell, Table, as_markdown
from simulator.report.labels import (
    bottleneck_called,
    is_share,
    learns,
    limit_called,
    metric_called,
)
from simulator.report.numbers import digits_of, figure, quantity, share_known
from simulator.report.prediction.rows import head
from simulator.report.side_by_side import (
    SAME,
    differences,
    heads,
    input_lines,
    key_rows,
    labelled_heads,
    saved_text,
    times,
    told,
    with_ratios,
)
from simulator.report.text import WIDTH, columns, percent, section, wrapped
from simulator.results.metrics import USD_PER_HOUR, number_at, select
from simulator.results.prediction import Prediction
from simulator.results.price_age import dated_prices, prices_of
from simulator.schema.hardware.price import Purchase
from simulator.studies.compare import (
    Rule,
    Side,
    differing,
    error,
    published_rule,
    rule,
)
from simulator.studies.purchase import cheapest_rent, rent_or_buy

SCHEMA: Final = 1
METRICS: Final = (
    *("step_time_s.mean", "throughput_samples_per_s", "total_time_s", "first_step_s"),
    *("tokens_per_s", "mfu"),
    *("step_split_s.data_stall", "accelerator_utilization", "vcpus_short"),
    *("host_ram_bytes.total", "gpu_memory_bytes.total", "cost.usd_per_h", "cost.usd_per_step"),
    *("cost.samples_per_usd", "cost.usd_to_train", "cost.usd_for_machines"),
    *("cost.storage.usd", "cost.time_to_train_s"),
    "cost.energy_j_per_step",
    *("run.goodput", "run.finish_s.p50", "run.finish_s.p90", "run.usd.p50", "run.usd.p90"),
)
IDLE: Final = 5e-4
"""Share of its time below which a resource does nothing worth a row."""


_UNPRICED: Final = "what the machine costs to buy is not known; owned.capex = '$30k' states it"


def as_text(sides: Sequence[Side]) -> str:
    """The report; the first scenario is what the others are held against."""
    lines = [line for number, side in enumerate(sides, 1) for line in _name(number, side)]
    lines += section("What tells them apart", input_lines(sides))
    lines += section("Predicted; in brackets: times the first", _figures(sides))
    lines += section("Price and performance", _rules(sides))
    lines += section("Rent or buy", _rent_or_buy(sides))
    lines += section("Cheapest to buy, interruptions and all", _cheapest(sides))
    prices = prices_of(side.prediction.scenario for side in sides)
    lines += section("Prices of", [line for text in prices for line in wrapped(text)])
    lines += section("Published beside predicted", _published(sides))
    return "\n".join(lines)


def _name(number: int, side: Side) -> list[str]:
    title, machine, *helpers = head(side.prediction)
    own = f"[{number}] {side.label}: {title.partition(': ')[2] or title}"
    return [
        line
        for text, hang in ((own, "    "), *((f"    {t}", "    ") for t in (machine, *helpers)))
        for line in wrapped(text, hang=hang, width=WIDTH)
    ]


def _figures(sides: Sequence[Side]) -> list[str]:
    return columns([("", *heads(sides)), *_figure_rows(sides)], "<" + ">" * len(sides))


def _figure_rows(sides: Sequence[Side]) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for metric in METRICS:
        values = [number_at(side.prediction, metric) for side in sides]
        if any(values) and not _said_before(metric, sides, values):
            rows.append((_metric_called(metric, sides), *_cells(metric, sides, values)))
    for name in _resources(sides):
        shares = [_busy(side.prediction, name) for side in sides]
        if not any(share is not None and share >= IDLE for share in shares):
            continue
        rows.append(
            (
                f"busy: {bottleneck_called(name)}",
                *("-" if s is None else share_known(s) for s in shares),
            )
        )
    limits = [limit_called(s.prediction.timing.bottleneck, s.prediction.scenario) for s in sides]
    rows.append((metric_called("bottleneck"), *limits))
    rows.append(("fits", *("yes" if side.prediction.fits else "no" for side in sides)))
    return rows


_REPEATS: Final = {
    "cost.usd_for_machines": "cost.usd_to_train",
    "cost.time_to_train_s": "total_time_s",
}
"""Figures that add something to another; where they add nothing, one row is enough."""


def _said_before(metric: str, sides: Sequence[Side], values: Sequence[float | None]) -> bool:
    """Whether a row says nothing more: the bill of a step follows from that of the run."""
    if metric == "step_split_s.data_stall":
        devices = [side.prediction.timing.accelerator_utilization for side in sides]
        return all(device is None for device in devices)
    if metric == "mfu":
        # The figure of people who train language models; others look at what the GPUs wait for.
        return all(number_at(side.prediction, "tokens_per_s") is None for side in sides)
    if metric == "cost.usd_per_step":
        return any(number_at(side.prediction, "cost.usd_to_train") for side in sides)
    other = _REPEATS.get(metric)
    return other is not None and list(values) == [number_at(s.prediction, other) for s in sides]


def _metric_called(metric: str, sides: Sequence[Side]) -> str:
    """A figure in words: owned machines have no rent, and what learns nothing has no steps."""
    if metric == "cost.usd_per_h" and any(
        side.prediction.scenario.cost.purchase is Purchase.OWNED for side in sides
    ):
        return "all machines, not electricity"
    if any(learns(side.prediction.scenario) for side in sides):
        return metric_called(metric)
    return metric_called(metric).replace("step", "batch")


def _cells(metric: str, sides: Sequence[Side], values: Sequence[float | None]) -> Iterator[str]:
    texts = [
        "-" if value is None else _value(metric, value, side.prediction)
        for side, value in zip(sides, values, strict=True)
    ]
    return with_ratios(texts, values, is_share=is_share(metric))


def _value(metric: str, value: float, prediction: Prediction) -> str:
    unit = select(metric)[0].unit
    if is_share(metric):
        return share_known(value)
    if unit == USD_PER_HOUR:
        return figure(value, unit)
    return quantity(value, unit, digits_of(prediction, metric))


def _resources(sides: Sequence[Side]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for s in sides for name in s.prediction.timing.usage))


def _busy(prediction: Prediction, name: str) -> float | None:
    usage = prediction.timing.usage.get(name)
    return None if usage is None else usage.mean


def _rules(sides: Sequence[Side]) -> list[str]:
    lines: list[str] = []
    for number, other in enumerate(sides[1:], start=2):
        for said, found in (
            ("", rule(sides[0], other)),
            (" as published", published_rule(sides[0], other)),
        ):
            if found is not None:
                lines += wrapped(f"[{number}] beside [1]{said}: {_rule_text(found)}")
    return lines


def _rule_text(found: Rule) -> str:
    cost = saved_text(found.saved)
    fast = "as fast" if abs(found.time - 1.0) < SAME else f"{times(1.0 / found.time)} times as fast"
    return f"{times(found.price)} times the price an hour and {fast}: a sample costs {cost}"


def _rent_or_buy(sides: Sequence[Side]) -> list[str]:
    """For every side that is owned: when it is as cheap as the cheapest that is rented."""
    predictions = [side.prediction for side in sides]
    lines: list[str] = []
    for number, owned in enumerate(predictions, start=1):
        cheapest = cheapest_rent(owned, predictions)
        even = None if cheapest is None else rent_or_buy(owned, predictions[cheapest])
        if owned.scenario.cost.purchase is Purchase.OWNED and owned.cost.for_machines is None:
            lines += wrapped(f"[{number}] owned: {_UNPRICED}")
        if cheapest is not None and even is not None:
            lines += wrapped(f"[{number}] owned beside [{cheapest + 1}] rented: {even_text(even)}")
    return lines


def _cheapest(sides: Sequence[Side]) -> list[str]:
    """For every side that tells of interruptions: which way to buy its machines, and how sure."""
    return [
        line
        for number, side in enumerate(sides, start=1)
        if side.prediction.outlook is not None
        for said in goodput.cheapest(side.prediction.outlook.ways)
        for line in wrapped(f"[{number}] {said}")
    ]


def _published(sides: Sequence[Side]) -> list[str]:
    names = dict.fromkeys(name for side in sides for name in side.measured)
    if not names:
        return []
    rows = [("", *(f"{h} {what}" for h in heads(sides) for what in ("published", "ours", "off")))]
    for name in names:
        cells = [cell for side in sides for cell in _beside(side, name)]
        rows.append((name, *cells))
    lines = columns(rows, "<" + ">>>" * len(sides))
    sources = dict.fromkeys(row.source for side in sides for row in side.published)
    return [*lines, *(line for text in sources for line in wrapped(f"source: {text}"))]


def _beside(side: Side, metric: str) -> tuple[str, str, str]:
    known = side.measured.get(metric)
    if known is None:
        return "-", "-", "-"
    ours, off = number_at(side.prediction, metric), error(side, metric)
    shown = ["-" if value is None else _published_figure(metric, value) for value in (known, ours)]
    return shown[0], shown[1], "-" if off is None else f"{100.0 * off:+.1f}%"


def _published_figure(metric: str, value: float) -> str:
    """As precise as the other side of a comparison may be."""
    return percent(value) if is_share(metric) else figure(value, select(metric)[0].unit)


def as_table(sides: Sequence[Side]) -> Table:
    """A row for each figure that one of them has, in SI units, and for each key that differs."""
    rows: list[tuple[Cell, ...]] = [
        ("key", name, "", *(told(side, name) for side in sides)) for name in differing(sides)
    ]
    for metric in METRICS:
        unit = select(metric)[0].unit
        values = [number_at(side.prediction, metric) for side in sides]
        rows.append(("metric", metric, "" if unit is None else unit.symbol, *values))
    for name in _resources(sides):
        shares = [_busy(side.prediction, name) for side in sides]
        rows.append(("metric", f"utilization.{name}", "", *shares))
    rows.append(("metric", "bottleneck", "", *(s.prediction.timing.bottleneck for s in sides)))
    rows.append(("metric", "fits", "", *("yes" if s.prediction.fits else "no" for s in sides)))
    names = labelled_heads(sides)
    kept = tuple(row for row in rows if any(cell is not None for cell in row[3:]))
    return Table(head=("what", "name", "unit", *names), rows=kept)


def as_page(sides: Sequence[Side]) -> str:
    """What tells them apart and what that does, as one Markdown table."""
    rows = (*key_rows(sides), *_figure_rows(sides))
    return as_markdown(Table(head=("", *labelled_heads(sides)), rows=rows))


def as_object(sides: Sequence[Side]) -> dict[str, Any]:
    """The same as plain dictionaries, in SI units."""
    return {
        "schema": SCHEMA,
        "scenarios": [_side_object(sides[0], side) for side in sides],
        "rent_or_buy": [_even_object(sides, side) for side in sides],
        "differences": differences(sides),
    }


def _even_object(sides: Sequence[Side], owned: Side) -> dict[str, float | int | None] | None:
    predictions = [side.prediction for side in sides]
    cheapest = cheapest_rent(owned.prediction, predictions)
    if cheapest is None:
        return None
    even = rent_or_buy(owned.prediction, predictions[cheapest])
    if even is None:
        return None
    return {
        "rented": cheapest + 1,
        "break_even_utilization": even.utilization if even.utilization <= 1.0 else None,
        "payback_s": None if math.isinf(even.payback) else even.payback,
    }


def _side_object(first: Side, side: Side) -> dict[str, Any]:
    timing = side.prediction.timing
    return {
        "label": side.label,
        "scenario": side.prediction.scenario.name,
        "figures": {name: number_at(side.prediction, name) for name in METRICS},
        "prices": list(dated_prices(side.prediction.scenario)),
        "utilization": {str(name): usage.mean for name, usage in timing.usage.items()},
        "bottleneck": timing.bottleneck,
        "fits": side.prediction.fits,
        "beside_first": None if side is first else _rule_object(rule(first, side)),
        "cheapest_chance": {}
        if (found := side.prediction.outlook) is None
        else {
            goodput.way_called(way): way.cheapest for way in found.ways if way.cheapest is not None
        },
        "published": side.measured,
        "published_beside_first": None
        if side is first
        else _rule_object(published_rule(first, side)),
        "sources": list(dict.fromkeys(row.source for row in side.published)),
    }


def _rule_object(found: Rule | None) -> dict[str, float] | None:
    if found is None:
        return None
    return {
        "price_ratio": found.price,
        "time_ratio": found.time,
        "cost_ratio": found.cost,
        "saving": found.saved,
    }
