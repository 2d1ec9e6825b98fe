"""A campaign for reading, as a table and as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from simulator.long_run.campaign import CampaignOutlook, Queued
from simulator.report.format.table import Cell, Table, as_markdown
from simulator.report.numbers import rough_usd
from simulator.report.text import columns, percent, section, wrapped
from simulator.units import SECOND, show

SCHEMA: Final = 1
DIGITS: Final = 3
_HEAD: Final = ("job", "runs", "machines", "mean wait", "wait 90%", "ends 50%", "ends 90%", "cost")


def as_text(found: CampaignOutlook) -> str:
    """The report."""
    said = (
        f"{found.machines} machines, next in turn is {_turn(found)}: all has ended within "
        f"{_time(found.ends[0.5])} with a chance of 50%, {_time(found.ends[0.9])} with 90%. Jobs "
        f"hold the machines {percent(found.busy)} of that time."
    )
    bill = (
        "No price is known: say pool.price."
        if found.usd is None
        else (
            f"The pool costs {rough_usd(found.usd[0.5])} (50%), "
            f"{rough_usd(found.usd[0.9])} (90%) until then; what no job holds is paid too."
        )
    )
    rows = [_HEAD, *_rows(found)]
    lines = columns(rows, "<>>>>>>>")
    return "\n".join([*wrapped(said, hang=""), *wrapped(bill, hang=""), *section("Jobs", lines)])


def _turn(found: CampaignOutlook) -> str:
    return "who came first" if found.order.value == "fifo" else "the most urgent"


def _time(value: float) -> str:
    return show(value, SECOND, DIGITS)


def _rows(found: CampaignOutlook) -> Iterator[tuple[str, ...]]:
    for one in found.jobs:
        cost = "unknown" if one.usd is None else rough_usd(one.usd)
        times = (one.wait, one.waits[0.9], one.ends[0.5], one.ends[0.9])
        yield (one.job.name, str(one.job.count), str(one.job.machines), *map(_time, times), cost)


def as_object(found: CampaignOutlook) -> dict[str, Any]:
    """The same for programs."""
    return {
        "schema": SCHEMA,
        "machines": found.machines,
        "order": found.order.value,
        "busy": found.busy,
        "ends_s": _named(found.ends),
        "usd": None if found.usd is None else _named(found.usd),
        "jobs": [_job(one) for one in found.jobs],
    }


def _named(values: Any) -> dict[str, float]:  # noqa: ANN401 - quantiles of any unit
    return {f"p{q * 100:.0f}": value for q, value in values.items()}


def _job(one: Queued) -> dict[str, Any]:
    return {
        "name": one.job.name,
        "runs": one.job.count,
        "machines": one.job.machines,
        "mean_wait_s": one.wait,
        "wait_s": _named(one.waits),
        "ends_s": _named(one.ends),
        "usd": one.usd,
    }


def as_table(found: CampaignOutlook) -> Table:
    """A job a row, in SI units."""
    rows: list[tuple[Cell, ...]] = [
        (
            one.job.name,
            one.job.count,
            one.job.machines,
            one.wait,
            one.ends[0.5],
            one.ends[0.9],
            one.usd,
        )
        for one in found.jobs
    ]
    head = ("job", "runs", "machines", "mean_wait_s", "ends_p50_s", "ends_p90_s", "usd")
    return Table(head=head, rows=tuple(rows))


def as_page(found: CampaignOutlook) -> str:
    """The table as Markdown, with units."""
    return as_markdown(Table(head=_HEAD, rows=tuple(_rows(found))))
