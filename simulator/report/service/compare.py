"""Services side by side, for reading and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from simulator.report.format.table import Cell, Table, as_markdown
from simulator.report.labels import dated
from simulator.report.numbers import (
    HALF_PERCENT,
    digits_between,
    quantity,
    share_known,
)
from simulator.report.prediction.json import SCHEMA
from simulator.report.service.links import link_called
from simulator.report.service.text import kept_share, setting_rows, verdict
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
from simulator.report.text import columns, labelled, section, wrapped
from simulator.results.metrics import is_utilization, service_figures
from simulator.schema.hardware.link import LinkKind
from simulator.schema.hardware.naming import short_name
from simulator.serving.cost import listed_price
from simulator.studies.compare import Beside, ServiceSide, beside, differing
from simulator.units import BYTE, KILOGRAM, KILOWATT_HOURS, SECOND, USD, WATT, Unit


class Figure(NamedTuple):
    """A figure that is shown: what people call it, its unit, and whether with its interval."""

    called: str
    unit: Unit | None = None
    banded: bool = False
    is_share: bool = False


FIGURES: Final[Mapping[str, Figure]] = {
    "first_token_s.p50": Figure("first token (TTFT) P50", SECOND),
    "first_token_s.p99": Figure("first token (TTFT) P99", SECOND, banded=True),
    "per_token_s.p50": Figure("per token (TPOT) P50", SECOND),
    "per_token_s.p99": Figure("per token (TPOT) P99", SECOND, banded=True),
    "end_to_end_s.p50": Figure("end to end P50", SECOND),
    "end_to_end_s.p99": Figure("end to end P99", SECOND, banded=True),
    "slo.attainment": Figure("within all limits", is_share=True, banded=True),
    "requests_per_s": Figure("requests a second"),
    "output_tokens_per_s": Figure("output tokens a second"),
    "saturation.requests_per_s": Figure("requests a second at saturation", banded=True),
    "saturation.output_tokens_per_s": Figure("output tokens a second at saturation"),
    "saturation.headroom": Figure("load to saturation, times"),
    "gpu_memory_bytes.total": Figure("memory of a device", BYTE),
    "cost.usd_per_hour": Figure("machines an hour", USD),
    "cost.usd_per_million_output_tokens": Figure("a million output tokens", USD, banded=True),
    "cost.usd_per_thousand_requests": Figure("a thousand requests", USD, banded=True),
    "energy.power_w": Figure("power of all machines", WATT),
    "energy.kwh_per_million_output_tokens": Figure(
        "energy of a million output tokens", KILOWATT_HOURS
    ),
    "energy.kwh_per_thousand_requests": Figure("energy of a thousand requests", KILOWATT_HOURS),
    "energy.kg_co2e_per_thousand_requests": Figure("emitted for a thousand requests", KILOGRAM),
}
"""By dotted path, in the order in which people read them."""
_USED: Final = {
    "utilization.cache_mean": "cache in use",
    "utilization.cache_peak": "cache in use at most",
    "utilization.prompts": "busy: replicas for prompts",
    "utilization.answers": "busy: replicas for answers",
}


def as_text(sides: Sequence[ServiceSide]) -> str:
    """The report; the first service is what the others are held against."""
    lines = [line for number, side in enumerate(sides, 1) for line in _head(number, side)]
    lines += section("What tells them apart", input_lines(sides))
    title = "Predicted; in brackets: times the first; below: where four of five cases lie"
    lines += section(title, columns(_rows(sides), "<" + ">" * len(sides)))
    lines += section("Price and performance", list(_beside_lines(sides)))
    warned = (f"[{n}] {text}" for n, side in enumerate(sides, 1) for text in _cautions(side))
    return "\n".join([*lines, *section("Warnings", [x for t in warned for x in wrapped(t)])])


def _head(number: int, side: ServiceSide) -> list[str]:
    """What a service is, and whether it keeps its limits."""
    service = side.prediction.service
    title = f"[{number}] {side.label}" + (f": {service.title}" if service.title else "")
    rows = [row for row in setting_rows(service) if row[0] in {"machines", "load", "limits"}]
    return [
        *wrapped(title, hang="    "),
        *(f"    {line}" for line in labelled(rows, 9, width=94)),
        *(f"    {line}" for line in wrapped(verdict(side.prediction), hang="", width=94)),
    ]


def _cautions(side: ServiceSide) -> tuple[str, ...]:
    """Warnings of a prediction, but for what its verdict says."""
    return () if side.prediction.answered is None else side.prediction.warnings


def _rows(sides: Sequence[ServiceSide]) -> list[tuple[str, ...]]:
    """A row for each figure that one of them has, and one below it with the intervals."""
    rows: list[tuple[str, ...]] = [("", *heads(sides))]
    for name, figure in {**FIGURES, **_utilizations(sides)}.items():
        values = [service_figures(side.prediction).get(name) for side in sides]
        if not any(values):
            continue
        rows.append((figure.called, *_cells(name, figure, sides, values)))
        bands = [_band(name, figure, side) for side in sides]
        if figure.banded and any(bands):
            rows.append(("", *bands))
    rows.append(("keeps its limits", *(_kept(side) for side in sides)))
    return rows


def _utilizations(sides: Sequence[ServiceSide]) -> dict[str, Figure]:
    """Shares of time in which resources are busy, of those that are not idle in all of them."""
    names = dict.fromkeys(
        name
        for side in sides
        for name, share in service_figures(side.prediction).items()
        if is_utilization(name) and (share or 0.0) >= HALF_PERCENT
    )
    return {
        name: Figure(_USED.get(name) or f"busy: {_resource(name)}", is_share=True) for name in names
    }


def _resource(name: str) -> str:
    """A resource by the name of its utilization."""
    resource = name.partition(".")[2]
    joins = resource.partition("_of_")[0] in {LinkKind.NVLINK, LinkKind.PCIE}
    return f"links {link_called(resource)}" if joins else link_called(resource)


def _kept(side: ServiceSide) -> str:
    if not side.prediction.service.slo.limits:
        return "-"
    return "yes" if side.prediction.keeps_limits else "no"


def _cells(
    name: str, figure: Figure, sides: Sequence[ServiceSide], values: Sequence[float | None]
) -> Iterator[str]:
    texts = [
        "-" if value is None else _value(name, figure, side, value)
        for side, value in zip(sides, values, strict=True)
    ]
    return with_ratios(texts, values, is_share=figure.is_share)


def _value(name: str, figure: Figure, side: ServiceSide, value: float) -> str:
    """A figure with no more digits than its interval deserves."""
    if figure.is_share:
        return _share(name, side, value)
    ends = side.prediction.interval.get(name)
    low, high = (None, None) if ends is None else (ends["p10"], ends["p90"])
    digits = 2 if ends is not None and high is None else digits_between(low or 0.0, high or 0.0)
    return quantity(value, figure.unit, digits)


def _share(name: str, side: ServiceSide, share: float) -> str:
    """A share: that of requests is told from all of them."""
    kept = name == "slo.attainment"
    return kept_share(share, side.prediction.service.slo.share) if kept else share_known(share)


def _band(name: str, figure: Figure, side: ServiceSide) -> str:
    """The 80% interval of a figure; nothing where it has none."""
    ends = side.prediction.interval.get(name)
    if ends is None or ends["p10"] == ends["p90"]:
        return ""

    def shown(end: float) -> str:
        return _share(name, side, end) if figure.is_share else quantity(end, figure.unit, 2)

    low, high = ends["p10"] or 0.0, ends["p90"]
    upper = "no end" if high is None else shown(high)
    return "" if shown(low) == upper else f"{shown(low)} to {upper}"


def _beside_lines(sides: Sequence[ServiceSide]) -> Iterator[str]:
    for number, other in enumerate(sides[1:], start=2):
        found = beside(sides[0], other)
        if found is not None:
            lengths = "" if _alike(sides[0], other) else "; their requests are of other lengths"
            yield from wrapped(f"[{number}] beside [1]: {_beside_text(found)}{lengths}")
    prices = dict.fromkeys(text for side in sides for text in _prices(side))
    yield from (line for text in prices for line in wrapped(text))


def _alike(first: ServiceSide, other: ServiceSide) -> bool:
    """Whether requests of both are as long."""
    loads = (side.prediction.service.load for side in (first, other))
    lengths = [(load.prompt, load.output) for load in loads]
    return lengths[0] == lengths[1]


def _beside_text(found: Beside) -> str:
    requests = f"{times(found.requests)} times the requests at saturation"
    if abs(found.requests - 1.0) < SAME:
        requests = "as many requests at saturation"
    if found.price is None or found.saved is None:
        return f"{requests}; a price is not known"
    cost = "the same" if abs(found.saved) < SAME else saved_text(found.saved)
    price = f"{times(found.price)} times the price an hour"
    if abs(found.price - 1.0) < SAME:
        price = "the same price an hour"
    return f"{price} and {requests}: a request of full machines costs {cost}"


def _prices(side: ServiceSide) -> tuple[str, ...]:
    """Which listed price the machines are billed at."""
    service = side.prediction.service
    price = listed_price(service)
    if price is None or service.owned is not None:
        return ()
    name = short_name(service.group.host.name)
    return (f"{name}: {price.purchase} in {price.region}{dated(price)}",)


def as_table(sides: Sequence[ServiceSide]) -> Table:
    """A row for each key that differs and for each figure that one of them has, in SI units."""
    rows: list[tuple[Cell, ...]] = [
        ("key", name, *(told(side, name) for side in sides)) for name in differing(sides)
    ]
    found = [service_figures(side.prediction) for side in sides]
    every = dict.fromkeys(name for one in found for name in one)
    rows += [("metric", name, *(one.get(name) for one in found)) for name in every]
    rows.append(("metric", "keeps_limits", *(_kept(side) for side in sides)))
    names = labelled_heads(sides)
    kept = tuple(row for row in rows if any(cell is not None for cell in row[2:]))
    return Table(head=("what", "name", *names), rows=kept)


def as_page(sides: Sequence[ServiceSide]) -> str:
    """What tells them apart and what that does, as one Markdown table."""
    rows = (*key_rows(sides), *_rows(sides)[1:])
    return as_markdown(Table(head=("", *labelled_heads(sides)), rows=rows))


def as_object(sides: Sequence[ServiceSide]) -> dict[str, Any]:
    """The same as plain dictionaries, in SI units."""
    return {
        "schema": SCHEMA,
        "services": [_side_object(sides[0], side) for side in sides],
        "differences": differences(sides),
    }


def _side_object(first: ServiceSide, side: ServiceSide) -> dict[str, Any]:
    prediction = side.prediction
    found = None if side is first else beside(first, side)
    return {
        "label": side.label,
        "scenario": prediction.service.name,
        "fits": prediction.fits,
        "keeps_limits": prediction.keeps_limits if prediction.service.slo.limits else None,
        "figures": service_figures(prediction),
        "interval": {name: dict(band) for name, band in prediction.interval.items()},
        "prices": list(_prices(side)),
        "beside_first": None
        if found is None
        else {
            "price_ratio": found.price,
            "saturation_ratio": found.requests,
            "cost_ratio": found.cost,
            "saving": found.saved,
        },
        "warnings": list(prediction.warnings),
    }
