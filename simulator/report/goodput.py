"""The reports of ``plan goodput`` and ``plan campaign``: long runs, alone and on a shared pool."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

from simulator.report.document import (
    Cell,
    Columns,
    Document,
    Row,
    Table,
    grid,
    notes,
    record,
    section,
    tabled,
)
from simulator.report.document import rows as rows_of
from simulator.report.numbers import interval, joined, rough_usd
from simulator.report.text import percent
from simulator.results.prediction import QUANTILES, USEFUL, Outlook, Way
from simulator.schema.uncertainty import P90
from simulator.units import SECOND, Seconds, Usd, show

if TYPE_CHECKING:
    from simulator.long_run.campaign import CampaignOutlook, Queued

SCHEMA: Final = 1
DIGITS: Final = 3
COMPARED: Final = (0.5, 0.9)
"""Quantiles by which purchase options are compared."""
MIN_SHARE: Final = 0.0005
"""Share of the time below which a part is not shown."""


def document(found: Outlook) -> Document:
    """Return the outlook of a long run as a document."""
    return Document(
        verdict=(_verdict(found),),
        sections=(
            *section(
                "Finish and bill",
                grid(("probability", "finish", "cost"), _quantiles(found), "<>>"),
                rows_of(_kept(found)),
                notes(_zones(found, "")),
            ),
            *section("Ways to buy", _ways(found.ways), notes(_way_notes(found.ways))),
            *section("Storage (part of the bill)", notes(_storage(found))),
            *section("Prices", notes(_prices(found))),
            *section("Where the time goes", grid((), _parts(found), "<>")),
            *section("Checkpoints", notes(_checkpoints(found))),
            *section("Assumptions", notes(notes_of(found))),
        ),
        data=lambda: as_object(found),
        table=lambda: _table(found),
    )


def _verdict(found: Outlook) -> str:
    if found.unending:
        return (
            f"{found.name}: {percent(found.unending)} of the simulated runs never finish: they are "
            "interrupted faster than they make progress."
        )
    machines = f"{found.run.machines} machine{'s' if found.run.machines > 1 else ''}"
    are = "are" if found.run.machines > 1 else "is"
    often = (
        "no failures are modeled"
        if math.isinf(found.between)
        else f"{machines} {are} interrupted every {_time(found.between)}"
    )
    return (
        f"{found.name}: goodput {percent(found.goodput)}. The run takes {_time(found.plain)} "
        f"without interruptions; {often}."
    )


def _time(value: Seconds) -> str:
    return "never" if math.isinf(value) else show(value, SECOND, DIGITS)


def _quantiles(found: Outlook) -> Iterator[tuple[str, str, str]]:
    for quantile, time in found.finish.items():
        money = None if found.bill is None else found.bill[quantile]
        bill = "price unknown" if money is None else _money(found, money)
        yield f"{quantile:.0%}", _time(time), bill


def _kept(found: Outlook) -> list[Row]:
    chances = (("deadline met", found.in_time), ("budget met", found.in_budget))
    return [(name, f"{percent(p)} probability") for name, p in chances if p is not None]


_NAMES: Final = {0.5: "median"}


def _zones(found: Outlook, where: str) -> Iterator[str]:
    """Yield the 80% range of the finish over zones, if only mean outage times of zones are known.

    `where` is the purchase option, as the start of the sentence.
    """
    ends = [
        f"{_NAMES.get(quantile, f'{quantile:.0%}')} {joined(_time(low), _time(high))}"
        for quantile, (low, high) in found.finish_range.items()
    ]
    if ends:
        lead = f"{where}: finish" if where else "Finish"
        yield f"{lead} over zones with such outages (80% range): {', '.join(ends)}"


def _money(found: Outlook, bill: Usd) -> str:
    return f"{'at least ' if found.unpriced else ''}{rough_usd(bill)}"


def _prices(found: Outlook) -> Iterator[str]:
    others = (way.outlook.prices for way in found.ways if way.outlook is not None)
    yield from dict.fromkeys([*found.prices, *chain.from_iterable(others)])


def _ways(ways: Sequence[Way]) -> Table | None:
    """Return a table of the purchase options that can be simulated."""
    known = [(way, way.outlook) for way in ways if way.outlook is not None]
    deadline = any(found.in_time is not None for _, found in known)
    head = ("", "goodput", "finish (50%)", "(90%)", "bill (50%)", "(90%)", "cheapest", "in time")
    last = len(head) if deadline else len(head) - 1
    lines = [_way_row(way, found)[:last] for way, found in known if found.bill is not None]
    return grid(head[:last], lines, "<" + ">" * (last - 1))


def _way_row(way: Way, found: Outlook) -> tuple[str, ...]:
    bill = found.bill or {}
    return (
        way_called(way),
        percent(found.goodput),
        *(_time(found.finish[q]) for q in COMPARED),
        *(_money(found, bill[q]) for q in COMPARED),
        "-" if way.cheapest is None else percent(way.cheapest),
        "-" if found.in_time is None else percent(found.in_time),
    )


def _way_notes(ways: Sequence[Way]) -> Iterator[str]:
    for way in ways:
        if way.outlook is not None:
            yield from _zones(way.outlook, way_called(way))
    unknown: dict[str, list[str]] = {}
    for way in ways:
        if way.missing:
            unknown.setdefault(way.missing, []).append(way_called(way))
    for missing, names in unknown.items():
        yield f"{', '.join(names)}: {missing}"
    if any(way.cheapest for way in ways):
        yield (
            "All options see the same simulated failures; a price that moves is drawn from its "
            "range. Reserved machines are billed for the hours of the run, not for their term; a "
            "capacity block by the day, from 14 days on by the week."
        )


def cheapest(ways: Sequence[Way]) -> Iterator[str]:
    """Yield one line with the probability of each purchase option to be the cheapest, if known."""
    chances = [(way.cheapest, way_called(way)) for way in ways if way.cheapest]
    ranked = [f"{name} ({percent(chance)})" for chance, name in sorted(chances, reverse=True)]
    if ranked:
        yield ", ".join(ranked)


def way_called(way: Way) -> str:
    """Return the label of a purchase option."""
    return "spot and on-demand" if way.fallback else str(way.purchase)


def _storage(found: Outlook) -> Iterator[str]:
    for text in found.unpriced:
        yield f"unknown: {text}"
    if found.stores is not None and any(found.stores.values()):
        yield _chances([rough_usd(money) for money in found.stores.values()])


def _parts(found: Outlook) -> Iterator[tuple[str, str]]:
    for name, share in sorted(found.parts.items(), key=lambda part: -part[1]):
        if share >= MIN_SHARE or name == USEFUL:
            yield name, f"{share:.1%}"


def _checkpoints(found: Outlook) -> Iterator[str]:
    saving, known = found.saving, found.intervals
    if math.isinf(saving.interval):
        yield "None are written: each interruption restarts the run."
        return
    between = _between(found)
    late = (
        f", and is durable after {_time(saving.durable)}"
        if saving.durable > saving.blocking
        else ""
    )
    yield (
        f"Each checkpoint blocks training for {_time(saving.blocking)}{between}{late}; one is "
        f"written every {_time(saving.interval)} of work."
    )
    if known is not None:
        yield (
            f"Best interval: {_time(known.simulated)} by simulation, {_time(known.daly)} by Daly's "
            f"formula, {_time(known.young)} by Young's."
        )


def _between(found: Outlook) -> str:
    """Return the 80% interval of the blocking time of a checkpoint; empty if the time is stated."""
    waits, off = found.saving.blocking, math.exp(P90 * found.write_doubt)
    if not waits or off == 1.0:
        return ""
    return f" (80% interval {interval(waits / off, waits * off, SECOND, DIGITS)})"


def notes_of(found: Outlook) -> Iterator[str]:
    """Yield the assumptions of the simulated runs."""
    yield from found.notes
    failures = found.run.failures
    if failures is not None and failures.doubt:
        yield (
            f"Failure rates are known to a factor of {math.exp(failures.doubt):.2g} (1 sigma); the "
            "quantiles include that and the uncertainty of the step time."
        )


def rows(found: Outlook) -> list[Row]:
    """Return the outlook as labelled rows of the report of ``plan simulate``."""
    parts = [f"{name} {share}" for name, share in _parts(found) if name != USEFUL]
    rest = f"; rest: {', '.join(parts)}" if parts else ""
    lines = [("Goodput", f"{percent(found.goodput)} of the time is useful work{rest}")]
    if found.unending:
        lines.append(("Unfinished", f"{percent(found.unending)} of simulated runs never finish"))
    often = "none" if math.isinf(found.between) else f"every {_time(found.between)}"
    lines += [
        ("Interrupted", often),
        ("Finish", _chances([_time(time) for time in found.finish.values()])),
    ]
    lines += [("Zones", text) for text in _zones(found, "")]
    if found.bill is not None:
        lines.append(("Bill", _chances([_money(found, bill) for bill in found.bill.values()])))
    if found.stores is not None and any(found.stores.values()):
        lines.append(("Storage", _chances([rough_usd(bill) for bill in found.stores.values()])))
    lines += [("Cheapest", text) for text in cheapest(found.ways)]
    lines += [(name.capitalize(), text) for name, text in _kept(found)]
    saving = found.saving
    if not math.isinf(saving.interval):
        waits = f"waits {_time(saving.blocking)}, durable after {_time(saving.durable)}"
        lines.append(("Checkpoint", f"every {_time(saving.interval)} of work; {waits}"))
    return lines


def _chances(texts: Sequence[str]) -> str:
    """Join the texts of the quantiles, each with its probability."""
    names = (_NAMES.get(q, f"{q:.0%}") for q in QUANTILES)
    return ", ".join(f"{text} ({name})" for text, name in zip(texts, names, strict=True))


def as_object(found: Outlook) -> dict[str, Any]:
    """Return the outlook as a JSON-serializable dict; null: never, or unknown."""
    known = found.intervals
    return {
        "schema": SCHEMA,
        "scenario": found.name,
        "seed": found.seed,
        "machines": found.run.machines,
        "work_s": found.plain,
        "goodput": found.goodput,
        "unending_share": found.unending,
        "between_interruptions_s": _finite(found.between),
        "interruptions": {cause.name.lower(): count for cause, count in found.causes.items()},
        "finish_s": _named(found.finish),
        "finish_range_s": {
            f"p{q * 100:.0f}": [_finite(low), _finite(high)]
            for q, (low, high) in found.finish_range.items()
        },
        "usd": _named(found.bill),
        "storage_usd": _named(found.stores),
        "storage_not_known": list(found.unpriced),
        "prices": list(found.prices),
        "parts": dict(found.parts),
        "checkpoint": {
            "blocking_s": found.saving.blocking,
            "write_log_sd": found.write_doubt,
            "durable_s": found.saving.durable,
            "interval_s": _finite(found.saving.interval),
            "best_interval_s": None if known is None else known.simulated,
            "daly_interval_s": None if known is None else known.daly,
            "young_interval_s": None if known is None else known.young,
        },
        "deadline_chance": found.in_time,
        "budget_chance": found.in_budget,
        "ways_to_buy": [_way_object(way) for way in found.ways],
        "notes": list(found.notes),
    }


def _way_object(way: Way) -> dict[str, Any]:
    known = {
        "purchase": str(way.purchase),
        "on_demand_in_gaps": way.fallback,
        "cheapest_chance": way.cheapest,
        "not_known": way.missing or None,
    }
    if way.outlook is None:
        return known
    figures = as_object(way.outlook)
    times = ("goodput", "finish_s", "finish_range_s")
    bills = ("usd", "prices", "deadline_chance", "budget_chance")
    return {**known, **{name: figures[name] for name in (*times, *bills)}}


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _table(found: Outlook) -> Table:
    """Return quantiles and shares, one value per row, in SI units."""
    lines: list[tuple[Cell, ...]] = [("goodput", found.goodput, "")]
    lines += [(f"finish p{q * 100:.0f}", _finite(time), "s") for q, time in found.finish.items()]
    bills = {} if found.bill is None else found.bill
    lines += [(f"bill p{q * 100:.0f}", _finite(money), "$") for q, money in bills.items()]
    lines += [(f"share: {name}", share, "") for name, share in found.parts.items()]
    lines += [
        (f"cheapest: {way_called(way)}", way.cheapest, "")
        for way in found.ways
        if way.cheapest is not None
    ]
    return Table(head=("figure", "value", "unit"), rows=tuple(lines))


_QUEUED: Final[Columns[Queued]] = {
    "job": lambda one: one.job.name,
    "runs": lambda one: str(one.job.count),
    "machines": lambda one: str(one.job.machines),
    "mean wait": lambda one: _time(one.wait),
    "wait (90%)": lambda one: _time(one.waits[0.9]),
    "finish (50%)": lambda one: _time(one.ends[0.5]),
    "finish (90%)": lambda one: _time(one.ends[0.9]),
    "cost": lambda one: "unknown" if one.usd is None else rough_usd(one.usd),
}
_QUEUED_OBJECT: Final[Columns[Queued]] = {
    "name": lambda one: one.job.name,
    "runs": lambda one: one.job.count,
    "machines": lambda one: one.job.machines,
    "mean_wait_s": lambda one: one.wait,
    "wait_s": lambda one: _named(one.waits),
    "ends_s": lambda one: _named(one.ends),
    "usd": lambda one: one.usd,
}
_QUEUED_ROW: Final[Columns[Queued]] = {
    "job": lambda one: one.job.name,
    "runs": lambda one: one.job.count,
    "machines": lambda one: one.job.machines,
    "mean_wait_s": lambda one: one.wait,
    "ends_p50_s": lambda one: one.ends[0.5],
    "ends_p90_s": lambda one: one.ends[0.9],
    "usd": lambda one: one.usd,
}


def campaign_document(found: CampaignOutlook) -> Document:
    """Return the outlook of a campaign as a document."""
    order = "first come, first served" if found.order.value == "fifo" else "by priority"
    said = (
        f"{found.machines} machines, {order}: all jobs finish within {_time(found.ends[0.5])} (50% "
        f"probability), {_time(found.ends[0.9])} (90%). Utilization {percent(found.busy)}."
    )
    bill = "Price unknown: set pool.price."
    if found.usd is not None:
        bill = (
            f"The pool costs {rough_usd(found.usd[0.5])} (50%), {rough_usd(found.usd[0.9])} (90%) "
            "until then, idle machines included."
        )
    return Document(
        verdict=(said, bill),
        sections=section("Jobs", tabled(_QUEUED, found.jobs, "<>>>>>>>")),
        data=lambda: {
            "schema": SCHEMA,
            "machines": found.machines,
            "order": found.order.value,
            "busy": found.busy,
            "ends_s": _named(found.ends),
            "usd": _named(found.usd),
            "jobs": [record(_QUEUED_OBJECT, one) for one in found.jobs],
        },
        table=lambda: tabled(_QUEUED_ROW, found.jobs),
    )


def _named(values: Mapping[float, float] | None) -> dict[str, float | None] | None:
    """Return quantiles by name such as ``p50``; None if infinite or unknown."""
    if values is None:
        return None
    return {f"p{q * 100:.0f}": _finite(value) for q, value in values.items()}
