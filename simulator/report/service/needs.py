"""How many machines a service needs, at its rate and at higher ones."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any, Final

from simulator.report.format.table import Table, as_markdown
from simulator.report.numbers import quantity, significant
from simulator.report.prediction.json import SCHEMA
from simulator.report.service.text import latencies_of, limits_called, load_called
from simulator.report.text import columns, section, wrapped
from simulator.schema.hardware.naming import short_name
from simulator.schema.serving import Service
from simulator.studies.service_sizing import Need
from simulator.units import HOUR, SECOND, USD_PER_SECOND, show

HEAD: Final = (
    *("requests_per_s", "machines", "machines_in_9_of_10_cases", "usd_per_hour", "headroom"),
    *("highest_requests_per_s",),
    *("first_token_p99_s", "per_token_p99_s", "attainment", "reason"),
)


class NeedsReport:
    """Its methods are those of `report.format.table.Report`.

    `typed` is the service as it was typed.
    """

    def __init__(self, service: Service, typed: str = "") -> None:
        self.service = service
        self.typed = typed or service.name

    def as_text(self, found: Sequence[Need]) -> str:
        """The report."""
        service = self.service
        title = f"{service.name}: {load_called(service)}; {limits_called(service)}"
        refused = [one for one in found[1:] if one.reason and not found[0].reason]
        reasons = [f"{significant(one.rate, 3)} requests/s: {one.reason}" for one in refused]
        return "\n".join(
            [
                *wrapped(title, hang=""),
                "",
                *wrapped(self._verdict(found[0]), hang=""),
                *section("Machines by rate", _lines(service, found)),
                *section("Will not do", [line for one in reasons for line in wrapped(one)]),
                *section("Try it", list(self._trial(found[0]))),
            ]
        )

    def _verdict(self, need: Need) -> str:
        machine = short_name(self.service.group.host.name)
        if need.machines is None:
            return f"No number of {machine} keeps the limits: {need.reason}."
        if need.sure is None:
            sure = "In the worst of ten cases no number of them does."
        elif need.sure > need.machines:
            sure = f"To be sure in nine of ten cases take {need.sure}."
        else:
            sure = "In nine of ten cases that is enough."
        most = ""
        if need.highest is not None:
            most = f", up to {significant(need.highest, 2)} requests/s"
        return f"{need.machines} x {machine} keep the limits{most}. {sure}"

    def _trial(self, need: Need) -> Iterator[str]:
        if need.machines is not None:
            yield from wrapped(f"plan simulate {self.typed} --set hardware.count={need.machines}")

    def as_object(self, found: Sequence[Need]) -> dict[str, Any]:
        """The same for programs, in SI units."""
        rows = [dict(zip(HEAD, row, strict=True)) for row in self.as_table(found).rows]
        return {"schema": SCHEMA, "scenario": self.service.name, "rates": rows}

    def as_table(self, found: Sequence[Need]) -> Table:
        """A row for each rate."""
        return Table(head=HEAD, rows=tuple(_row(one) for one in found))

    def as_page(self, found: Sequence[Need]) -> str:
        """The table as Markdown."""
        return as_markdown(self.as_table(found))


def _row(need: Need) -> tuple[float | int | str | None, ...]:
    told = need.answered
    return (
        need.rate,
        need.machines,
        need.sure,
        None if need.price is None else need.price * HOUR,
        need.headroom,
        need.highest,
        None if told is None else told.first_token.p99,
        None if told is None else told.per_token.p99,
        None if told is None else told.attainment,
        need.reason or None,
    )


def _lines(service: Service, found: Sequence[Need]) -> list[str]:
    latencies = latencies_of(service)
    head = ("requests/s", "machines", "sure with", "an hour", *latencies, "room")
    return columns([head, *(_line(one, latencies.values()) for one in found)], ">" * len(head))


def _line(need: Need, latencies: Collection[str]) -> tuple[str, ...]:
    told = need.answered
    if told is None:
        return (significant(need.rate, 3), "none", "", "", *[""] * len(latencies), "")
    return (
        significant(need.rate, 3),
        str(need.machines),
        "none" if need.sure is None else str(need.sure),
        "" if need.price is None else show(need.price, USD_PER_SECOND, 3),
        *(quantity(getattr(told, name).p99, SECOND, 2) for name in latencies),
        f"{significant(need.headroom or 0.0, 2)}x",
    )
