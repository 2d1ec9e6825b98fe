"""A long run with its interruptions, for reading, as a table and as JSON."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any, Final

from simulator.report.format.table import Cell, Table, as_markdown
from simulator.report.numbers import rough_usd
from simulator.report.text import columns, percent, section, wrapped
from simulator.results.outlook import QUANTILES, USEFUL, Outlook, Way
from simulator.uncertainty.components import P90
from simulator.units import SECOND, Seconds, Usd, show

SCHEMA: Final = 1
DIGITS: Final = 3
SHOWN: Final = (0.5, 0.9)
"""Chances of which ways to buy are compared."""
SEEN: Final = 0.0005
"""Share of the time below which a part is not shown."""


def as_text(found: Outlook) -> str:
    """The report."""
    lines = [
        *wrapped(_verdict(found), hang=""),
        *section(
            "When it ends, and the bill",
            [*columns(list(_ends(found)), "<>>"), *_ranges(found, "In")],
        ),
        *section("Ways to buy", list(_way_lines(found.ways))),
        *section("Stores, in that bill", list(_store_lines(found))),
        *section("Prices of", [line for text in _prices(found) for line in wrapped(text)]),
        *section("Where the time goes", columns(list(_parts(found)), "<>")),
        *section("Checkpoints", [x for text in _checkpoint_lines(found) for x in wrapped(text)]),
        *section("This rests on", [line for note in notes(found) for line in wrapped(note)]),
    ]
    return "\n".join(lines)


def _verdict(found: Outlook) -> str:
    if found.unending:
        return (
            f"{found.name}: {percent(found.unending)} of the drawn runs never end: they are "
            "interrupted faster than they get on."
        )
    often = (
        "no failures are counted"
        if math.isinf(found.between)
        else f"something interrupts it every {_time(found.between)}"
    )
    return (
        f"{found.name}: {percent(found.goodput)} of the time is work that counts (goodput). The "
        f"run takes {_time(found.plain)} if nothing happens; {often} on {found.run.machines} "
        f"machine{'s' if found.run.machines > 1 else ''}."
    )


def _time(value: Seconds) -> str:
    return "never" if math.isinf(value) else show(value, SECOND, DIGITS)


def _ends(found: Outlook) -> Iterator[tuple[str, str, str]]:
    yield "", "ends after", "bill"
    for quantile, time in found.finish.items():
        money = None if found.bill is None else found.bill[quantile]
        within = f"with a chance of {quantile:.0%} within"
        yield within, _time(time), "no price known" if money is None else _money(found, money)
    if found.in_time is not None:
        yield "chance to keep the deadline", percent(found.in_time), ""
    if found.in_budget is not None:
        yield "chance to keep the budget", "", percent(found.in_budget)


def _ranges(found: Outlook, begins: str) -> list[str]:
    return [line for told in _zones(found) for line in wrapped(f"{begins} {told}")]


def _zones(found: Outlook) -> Iterator[str]:
    """How far the end may be off in a zone of which only means of spells are known."""
    told = [
        f"{quantile:.0%} within {_time(low)} to {_time(high)}"
        for quantile, (low, high) in found.finish_range.items()
    ]
    if told:
        yield f"4 of 5 zones with these means: {', '.join(told)}"


def _money(found: Outlook, bill: Usd) -> str:
    """A bill as text; the least it can be where stores charge what is unknown."""
    return f"{'at least ' if found.unpriced else ''}{rough_usd(bill)}"


def _prices(found: Outlook) -> Iterator[str]:
    """Whose prices are in any of the bills, each once."""
    others = (way.outlook.prices for way in found.ways if way.outlook is not None)
    yield from dict.fromkeys([*found.prices, *chain.from_iterable(others)])


def _way_lines(ways: Sequence[Way]) -> Iterator[str]:
    """Each way to buy that can be drawn, how it goes, and what is missing of the others."""
    known = [(way, way.outlook) for way in ways if way.outlook is not None]
    limit = any(found.in_time is not None for _, found in known)
    if known:
        head = ("", "goodput", "ends (50%)", "(90%)", "bill (50%)", "(90%)", "cheapest", "in time")
        rows = [head, *(_way_row(way, found) for way, found in known if found.bill is not None)]
        last = len(head) if limit else len(head) - 1
        yield from columns([row[:last] for row in rows], "<" + ">" * (last - 1))
    for way, found in known:
        yield from _ranges(found, f"{way_called(way)}, in")
    for missing, names in _missing(ways).items():
        yield from wrapped(f"{', '.join(names)}: {missing}")
    if any(way.cheapest for way in ways):
        yield from wrapped(
            "Each life has the same failures and the same doubt of the step in all ways; a price "
            "that moves is drawn from the range seen. Reserved machines are paid for the hours of "
            "the run, not for their term; a capacity block by the day, from 14 days on by the week."
        )


def _way_row(way: Way, found: Outlook) -> tuple[str, ...]:
    """One way to buy as a row."""
    bill = found.bill or {}
    return (
        way_called(way),
        percent(found.goodput),
        *(_time(found.finish[q]) for q in SHOWN),
        *(_money(found, bill[q]) for q in SHOWN),
        "-" if way.cheapest is None else percent(way.cheapest),
        "-" if found.in_time is None else percent(found.in_time),
    )


def cheapest(ways: Sequence[Way]) -> Iterator[str]:
    """Which ways to buy are the cheapest, with which chance; nothing where none is held against."""
    chances = [(way.cheapest, way_called(way)) for way in ways if way.cheapest]
    ranked = [f"{name} ({percent(chance)})" for chance, name in sorted(chances, reverse=True)]
    if ranked:
        yield ", ".join(ranked)


def way_called(way: Way) -> str:
    """A way to buy, in words."""
    return "spot and on-demand" if way.fallback else str(way.purchase)


def _missing(ways: Sequence[Way]) -> dict[str, list[str]]:
    """What is not known of ways to buy, and of which."""
    found: dict[str, list[str]] = {}
    for way in ways:
        if way.missing:
            found.setdefault(way.missing, []).append(way_called(way))
    return found


def _store_lines(found: Outlook) -> Iterator[str]:
    """What of the bill is for stores; nothing where all data lie on drives of the machines."""
    for text in found.unpriced:
        yield from wrapped(f"not known: {text}")
    if found.stores is not None and any(found.stores.values()):
        yield from wrapped(_chances([rough_usd(money) for money in found.stores.values()]))


def _parts(found: Outlook) -> Iterator[tuple[str, str]]:
    for name, share in sorted(found.parts.items(), key=lambda part: -part[1]):
        if share >= SEEN or name == USEFUL:
            yield name, f"{share:.1%}"


def _checkpoint_lines(found: Outlook) -> Iterator[str]:
    saving, known = found.saving, found.intervals
    if math.isinf(saving.interval):
        yield "None is written: each interruption begins the run anew."
        return
    waits = f"Training waits {_time(saving.blocking)}{_between(found)} for each"
    late = f", it is safe after {_time(saving.durable)}" if saving.durable > saving.blocking else ""
    yield f"{waits}{late}; one after every {_time(saving.interval)} of work."
    if known is not None:
        yield (
            f"Best by simulation: every {_time(known.simulated)}; Daly says {_time(known.daly)}, "
            f"Young {_time(known.young)}."
        )


def _between(found: Outlook) -> str:
    """The 80% interval of what training waits, where it is not stated."""
    waits, off = found.saving.blocking, math.exp(P90 * found.write_doubt)
    if not waits or off == 1.0:
        return ""
    return f" ({_time(waits / off)} to {_time(waits * off)} in 4 of 5 cases)"


def notes(found: Outlook) -> Iterator[str]:
    """What the draws rest on."""
    yield from found.notes
    failures = found.run.failures
    if failures is not None and failures.doubt:
        yield (
            f"Rates of failures may be off by a factor of {math.exp(failures.doubt):.2g} either "
            f"way (a standard deviation); quantiles hold that, and the doubt of the step's time."
        )


def rows(found: Outlook) -> list[tuple[str, str]]:
    """A name and what stands beside it: the outlook inside the report of a prediction."""
    parts = [f"{name} {share}" for name, share in _parts(found) if name != USEFUL]
    split = f"; the rest: {', '.join(parts)}" if parts else ""
    told = [("Goodput", f"{percent(found.goodput)} of the time is work that counts{split}")]
    if found.unending:
        told.append(("Never ends", f"{percent(found.unending)} of the drawn runs"))
    often = "none" if math.isinf(found.between) else f"every {_time(found.between)}"
    told += [
        ("Stops", often),
        ("Ends", _chances([_time(time) for time in found.finish.values()])),
    ]
    told += [("Zones", line) for line in _zones(found)]
    if found.bill is not None:
        money = [_money(found, money) for money in found.bill.values()]
        told.append(("Bill", _chances(money)))
    if found.stores is not None and any(found.stores.values()):
        told.append(
            ("Of it stores", _chances([rough_usd(money) for money in found.stores.values()]))
        )
    told += [("Cheapest", line) for line in cheapest(found.ways)]
    told += [("Chance", _kept(found))] if _kept(found) else []
    saving = found.saving
    if not math.isinf(saving.interval):
        waits = f"waits {_time(saving.blocking)}, safe after {_time(saving.durable)}"
        told.append(("Checkpoint", f"every {_time(saving.interval)} of work; {waits}"))
    return told


def _chances(texts: Sequence[str]) -> str:
    """Quantiles in a line."""
    said = [f"{text} ({q:.0%})" for text, q in zip(texts, QUANTILES, strict=True)]
    return f"within {', '.join(said)}"


def _kept(found: Outlook) -> str:
    """Chances of what the run was asked for."""
    asked = (("deadline", found.in_time), ("budget", found.in_budget))
    return ", ".join(f"{percent(p)} to keep the {name}" for name, p in asked if p is not None)


def as_object(found: Outlook) -> dict[str, Any]:
    """The same for programs; what never ends is null."""
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
        "finish_s": {f"p{q * 100:.0f}": _finite(time) for q, time in found.finish.items()},
        "finish_range_s": {
            f"p{q * 100:.0f}": [_finite(low), _finite(high)]
            for q, (low, high) in found.finish_range.items()
        },
        "usd": None
        if found.bill is None
        else {f"p{q * 100:.0f}": _finite(money) for q, money in found.bill.items()},
        "storage_usd": None
        if found.stores is None
        else {f"p{q * 100:.0f}": _finite(money) for q, money in found.stores.items()},
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
    """A way to buy for programs; null what is not known."""
    told = {
        "purchase": str(way.purchase),
        "on_demand_in_gaps": way.fallback,
        "cheapest_chance": way.cheapest,
        "not_known": way.missing or None,
    }
    if way.outlook is None:
        return told
    same = (
        "goodput",
        "finish_s",
        "finish_range_s",
        "usd",
        "prices",
        "deadline_chance",
        "budget_chance",
    )
    figures = as_object(way.outlook)
    return {**told, **{name: figures[name] for name in same}}


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def as_table(found: Outlook) -> Table:
    """Quantiles and parts, one figure a row, in SI units."""
    rows: list[tuple[Cell, ...]] = [("goodput", found.goodput, "")]
    rows += [(f"finish p{q * 100:.0f}", _finite(time), "s") for q, time in found.finish.items()]
    bills = {} if found.bill is None else found.bill
    rows += [(f"bill p{q * 100:.0f}", _finite(money), "$") for q, money in bills.items()]
    rows += [(f"share: {name}", share, "") for name, share in found.parts.items()]
    rows += [
        (f"cheapest: {way_called(way)}", way.cheapest, "")
        for way in found.ways
        if way.cheapest is not None
    ]
    return Table(head=("figure", "value", "unit"), rows=tuple(rows))


def as_page(found: Outlook) -> str:
    """The table as Markdown, with units."""
    rows: list[tuple[Cell, ...]] = [("goodput", percent(found.goodput), "")]
    rows += [(label, time, money) for label, time, money in list(_ends(found))[1:]]
    rows += [(name, share, "") for name, share in _parts(found)]
    return as_markdown(Table(head=("figure", "time or share", "bill"), rows=tuple(rows)))
