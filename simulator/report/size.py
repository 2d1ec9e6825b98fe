"""The report of ``plan size``: the smallest sufficient amount of a resource."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from simulator.report.document import Cell, Code, Document, Notes, Table, grid, notes, section
from simulator.report.numbers import quantity, significant
from simulator.schema.machines import short_name
from simulator.studies.levers.catalogue import Resource
from simulator.studies.size import Offer, Size, SizeAnswer, Sized
from simulator.units import BYTE, PER_SECOND, PERCENT, USD, USD_PER_SECOND, show

if TYPE_CHECKING:
    from simulator.schema.serving import Service
    from simulator.studies.service_sizing import Need

DIGITS: Final = 3
CENT: Final = 0.01
"""Smallest price that is shown [$]."""
WORKERS: Final = "input.workers"
MIN_STEPS: Final = 10.0
"""Number of steps per epoch below which a warning is given."""
_SMALLEST: Final = {
    Resource.CPU: "CPU",
    Resource.RAM: "RAM",
    Resource.NETWORK: "network",
    Resource.STORAGE: "storage",
}


def document(found: SizeAnswer | tuple[Service, Sequence[Need]], typed: str = "") -> Document:
    """Return the smallest sufficient amount for each number of machines as a document.

    `typed` is the scenario with its options as command-line arguments.
    """
    if not isinstance(found, SizeAnswer):
        from simulator.report.service_sizing import needs_document

        return needs_document(*found, typed)
    what = _SMALLEST.get(found.resource, str(found.resource))
    head, loss = _head(found), f"{found.loss * PERCENT:.3g}"
    return Document(
        title=f"{found.name}: smallest {what} with at most {loss}% loss of speed",
        sections=(
            *section(
                "", grid(head, _rows(found), ">" * (len(head) - 2) + "<>"), notes(_notes(found))
            ),
            *section(_offered(found), grid((), _others(found), "<>")),
            *section("Try it", _trial(found)),
        ),
        data=lambda: _object(found),
        table=lambda: _table(found),
    )


def _notes(found: SizeAnswer) -> Iterator[str]:
    what = _SMALLEST.get(found.resource, str(found.resource))
    yield (
        f"samples/s: at this size, with unlimited {what}, and now; cheapest offer: of the "
        "sufficient ones"
    )
    workers = found.rows[0].settings.get(WORKERS)
    if workers is not None:
        yield (
            f"Workers grow in proportion to the vCPUs, {workers} per process here. To find the "
            f"best number on the present vCPUs: plan advise input {found.asked}"
        )
    few = [row.machines for row in found.rows if found.steps / row.machines < MIN_STEPS]
    if few:
        yield (
            f"On {few[0]} machines an epoch has fewer than {MIN_STEPS:g} steps: use more data or "
            "smaller batches before you trust that row."
        )


def _names(found: SizeAnswer) -> tuple[str, ...]:
    return tuple(size.knob.name.split("+")[0] for size in found.rows[0].sizes)


def _offered(found: SizeAnswer) -> str:
    things = "Stores" if found.resource is Resource.STORAGE else "Machines"
    return f"Other sufficient {things.lower()} (plan hardware list)"


def _others(found: SizeAnswer) -> list[tuple[str, str]]:
    """Return the other offers with their prices; empty for several numbers of machines."""
    if len(found.rows) > 1:
        return []
    best = _cheapest(found.offers[0])
    others = [offer for offer in found.offers[0] if offer is not best]
    return [(short_name(offer.name), _price(offer, found.rows[0].machines)) for offer in others]


def _cheapest(offers: Sequence[Offer]) -> Offer | None:
    """Return the first offer; None if there is no offer or no price is known."""
    best = offers[0] if offers else None
    return None if best is None or best.per_month is best.per_second is None else best


def _head(found: SizeAnswer) -> tuple[str, ...]:
    devices = ("GPUs",) if found.accelerated else ()
    sizes = (name.removeprefix("storage ").removeprefix("network ") for name in _names(found))
    price = "per month" if found.resource is Resource.STORAGE else "price"
    speeds = ("samples/s", "unlimited", "now")
    return ("machines", *devices, *sizes, *speeds, "cheapest offer", price)


def _rows(found: SizeAnswer) -> Iterator[tuple[str, ...]]:
    for one, offers in zip(found.rows, found.offers, strict=True):
        best, none = _cheapest(offers), "price unknown" if offers else "none"
        yield (*_row(one, found), *((none, "") if best is None else _bought(best, one)))


def _bought(offer: Offer, row: Sized) -> tuple[str, str]:
    name = short_name(offer.name)
    if offer.name.startswith("storage/"):
        return name, _price(offer, 1).removesuffix(" per month")
    return f"{row.machines} x {name}", _price(offer, row.machines)


def _row(one: Sized, found: SizeAnswer) -> tuple[str, ...]:
    devices = (f"{one.devices:,}",) if found.accelerated else ()
    sizes = (_size(size) for size in one.sizes)
    speeds = (significant(rate, DIGITS) for rate in (one.speed, one.ample, one.now))
    return (f"{one.machines:,}", *devices, *sizes, *speeds)


def _size(size: Size) -> str:
    """Format a size, rounded up so that it is sufficient."""
    if size.value is None:
        return "any"
    value = _up(size.value)
    if size.knob.unit is None:
        return f"{math.ceil(size.value):,}"
    if size.knob.unit is PER_SECOND:
        return f"{significant(value, DIGITS)}/s"
    return show(value, size.knob.unit, DIGITS)


def _up(value: float) -> float:
    """Round a value up to `DIGITS` significant digits."""
    step = 10.0 ** (math.floor(math.log10(value)) - DIGITS + 1)
    return math.ceil(value / step - 1e-9) * step


def _price(one: Offer, machines: int) -> str:
    if one.per_month is not None:
        return f"{quantity(max(one.per_month, CENT), USD, DIGITS)} per month"
    if one.per_second is not None:
        return show(machines * one.per_second, USD_PER_SECOND)
    return "unknown"


def _trial(found: SizeAnswer) -> Code | Notes:
    row = found.rows[0]
    settings = [f"--set {_option(size)}" for size in row.sizes if size.value is not None]
    count = [f"--set hardware.count={row.machines}"] if found.counted else []
    if not settings:
        return notes([f"any {found.resource} is enough: see the bottleneck in plan simulate"])
    return Code(lines=(f"plan simulate {found.asked} {' '.join([*count, *settings])}",))


def _option(size: Size) -> str:
    """Format the settings for a size as values of ``--set``."""
    value, knob = size.value or 0.0, size.knob
    if knob.settings is None:
        return ""
    if knob.unit is not None:
        return f"'{next(iter(knob.settings(value)))}={show(_up(value), knob.unit, DIGITS)}'"
    settings = knob.settings(float(math.ceil(value)))
    return " --set ".join(f"{key}={float(value):g}" for key, value in settings.items())


def _object(found: SizeAnswer) -> dict[str, Any]:
    return {
        "schema": 1,
        "scenario": found.name,
        "resource": str(found.resource),
        "loss": found.loss,
        "machines": [
            dict(_figures(one)) | {"offers": [_offer_object(offer) for offer in offers]}
            for one, offers in zip(found.rows, found.offers, strict=True)
        ],
        "offers": [_offer_object(one) for one in found.offers[0]],
    }


def _offer_object(one: Offer) -> dict[str, Any]:
    """Return an offer of a store or machine as a JSON-serializable dict."""
    return {"name": one.name, "usd_per_month": one.per_month, "usd_per_s": one.per_second}


def _figures(one: Sized) -> Iterator[tuple[str, Any]]:
    yield "machines", one.machines
    yield "gpus", one.devices
    for size in one.sizes:
        unit = size.knob.unit
        name = size.knob.name.split("+")[0].replace(" ", "_").lower()
        suffix = "" if unit is None else "_bytes" if unit is BYTE else "_per_s"
        yield f"{name}{suffix}", size.value
    yield "samples_per_s", one.speed
    yield "samples_per_s_with_plenty", one.ample
    yield "samples_per_s_as_it_is", one.now


def _table(found: SizeAnswer) -> Table:
    """Return a row for each number of machines, in SI units."""
    rows = [dict(_figures(one)) for one in found.rows]
    cells: list[tuple[Cell, ...]] = [tuple(row.values()) for row in rows]
    return Table(head=tuple(rows[0]), rows=tuple(cells))
