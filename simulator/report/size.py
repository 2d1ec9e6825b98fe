"""The least that is enough of a resource, for reading, as a table and as JSON."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, Final

from simulator.report.format.table import Cell, Table, as_markdown
from simulator.report.numbers import quantity, significant
from simulator.report.text import columns, section, wrapped
from simulator.schema.hardware.naming import short_name
from simulator.studies.levers.catalogue import Resource
from simulator.studies.size import Offer, Size, SizeAnswer, Sized
from simulator.units import BYTE, PER_SECOND, PERCENT, USD, USD_PER_SECOND, show

DIGITS: Final = 3
CENT: Final = 0.01
"""Less than that nobody is billed."""
WORKERS: Final = "input.workers"
FEW: Final = 10.0
"""Steps of an epoch below which a row is warned of."""
_LEAST: Final = {
    Resource.CPU: "the least CPU",
    Resource.RAM: "the least RAM",
    Resource.NETWORK: "the slowest network",
    Resource.STORAGE: "the slowest storage",
}


def as_text(found: SizeAnswer) -> str:
    """The report."""
    lines = [_head(found), *_rows(found)]
    table = columns(lines, ">" * (len(lines[0]) - 2) + "<>")
    lost = f"{found.loss * PERCENT:.3g}%"
    least = _LEAST.get(found.resource, f"the least {found.resource}")
    title = f"{found.name}: {least} that loses no more than {lost} of the speed"
    return "\n".join(
        [
            *wrapped(title, hang=""),
            "",
            *table,
            *(line for text in _notes(found) for line in wrapped(text, hang="")),
            *section(_offered(found), _others(found)),
            *section("Try it", _trial(found)),
        ]
    )


def _notes(found: SizeAnswer) -> Iterator[str]:
    """What comes with a size, and that machines are too many for the data."""
    workers = found.rows[0].settings.get(WORKERS)
    if workers is not None:
        yield (
            f"The vCPUs come with workers in proportion, {workers} here for each process. "
            f"What more workers do on the vCPUs there are: plan advise input {found.asked}"
        )
    few = [one.machines for one in found.rows if found.steps / one.machines < FEW]
    if few:
        yield (
            f"On {few[0]} machines an epoch has fewer than {FEW:g} steps: so many are of use "
            "only with more data or smaller batches, and their row says little."
        )


def _names(found: SizeAnswer) -> tuple[str, ...]:
    return tuple(size.knob.name.split("+")[0] for size in found.rows[0].sizes)


def _offered(found: SizeAnswer) -> str:
    things = "Stores" if found.resource is Resource.STORAGE else "Machines"
    return f"Other {things.lower()} of the catalogue that have it (plan hardware list)"


def _others(found: SizeAnswer) -> list[str]:
    """What else the catalogue has, where one number of machines was asked for."""
    if len(found.rows) > 1:
        return []
    others = [one for one in found.offers[0] if one is not _cheapest(found.offers[0])]
    return [f"{short_name(one.name)}  {_price(one, found.rows[0].machines)}" for one in others]


def _cheapest(offers: Sequence[Offer]) -> Offer | None:
    """The first, as they come by price; None where its price, and so that of all, is unknown."""
    best = offers[0] if offers else None
    return None if best is None or best.per_month is best.per_second is None else best


def _head(found: SizeAnswer) -> tuple[str, ...]:
    devices = ("GPUs",) if found.accelerated else ()
    sizes = (name.removeprefix("storage ").removeprefix("network ") for name in _names(found))
    price = "a month" if found.resource is Resource.STORAGE else "price"
    speeds = ("samples/s", "with plenty", "now")
    return ("machines", *devices, *sizes, *speeds, "cheapest that has it", price)


def _rows(found: SizeAnswer) -> Iterator[tuple[str, ...]]:
    for one, offers in zip(found.rows, found.offers, strict=True):
        best, none = _cheapest(offers), "none with a price" if offers else "none known"
        yield (*_row(one, found), *((none, "") if best is None else _bought(best, one)))


def _bought(offer: Offer, row: Sized) -> tuple[str, str]:
    """What to buy for a row and its price: a store for the data, or all of its machines."""
    name = short_name(offer.name)
    if offer.name.startswith("storage/"):
        return name, _price(offer, 1).removesuffix(" a month")
    return f"{row.machines} x {name}", _price(offer, row.machines)


def _row(one: Sized, found: SizeAnswer) -> tuple[str, ...]:
    devices = (f"{one.devices:,}",) if found.accelerated else ()
    sizes = (_size(size) for size in one.sizes)
    speeds = (significant(rate, DIGITS) for rate in (one.speed, one.ample, one.now))
    return (f"{one.machines:,}", *devices, *sizes, *speeds)


def _size(size: Size) -> str:
    """Rounded up: a little less would not be enough."""
    if size.value is None:
        return "any"
    value = _up(size.value)
    if size.knob.unit is None:
        return f"{math.ceil(size.value):,}"
    if size.knob.unit is PER_SECOND:
        return f"{significant(value, DIGITS)}/s"
    return show(value, size.knob.unit, DIGITS)


def _up(value: float) -> float:
    """To `DIGITS` significant digits, upwards."""
    step = 10.0 ** (math.floor(math.log10(value)) - DIGITS + 1)
    return math.ceil(value / step - 1e-9) * step


def _price(one: Offer, machines: int) -> str:
    if one.per_month is not None:
        return f"{quantity(max(one.per_month, CENT), USD, DIGITS)} a month"
    if one.per_second is not None:
        return show(machines * one.per_second, USD_PER_SECOND)
    return "unknown"


def _trial(found: SizeAnswer) -> list[str]:
    """The command with the size that is enough; that any is, where something else limits."""
    one = found.rows[0]
    settings = [f"--set {_option(size)}" for size in one.sizes if size.value is not None]
    count = [f"--set hardware.count={one.machines}"] if found.counted else []
    if not settings:
        return [f"any {found.resource} is enough: something else limits, as plan simulate says"]
    return [f"plan simulate {found.asked} {' '.join([*count, *settings])}"]


def _option(size: Size) -> str:
    """The keys for a size, written as people write them."""
    value, knob = size.value or 0.0, size.knob
    if knob.settings is None:
        return ""
    if knob.unit is not None:
        return f"'{next(iter(knob.settings(value)))}={show(_up(value), knob.unit, DIGITS)}'"
    settings = knob.settings(float(math.ceil(value)))
    return " --set ".join(f"{key}={float(value):g}" for key, value in settings.items())


def as_object(found: SizeAnswer) -> dict[str, Any]:
    """The same for programs, in SI units; null: any size is enough."""
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
    """A store for the data, or one machine."""
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


def as_table(found: SizeAnswer) -> Table:
    """A row for each number of machines, in SI units."""
    rows = [dict(_figures(one)) for one in found.rows]
    cells: list[tuple[Cell, ...]] = [tuple(row.values()) for row in rows]
    return Table(head=tuple(rows[0]), rows=tuple(cells))


def as_page(found: SizeAnswer) -> str:
    """The table as Markdown, with units."""
    return as_markdown(Table(head=_head(found), rows=tuple(_rows(found))))
