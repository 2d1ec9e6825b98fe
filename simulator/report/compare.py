"""The report of ``plan compare``: differences, metrics and prices of jobs or services."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, Final, TypeAlias

from simulator.pipeline.stages.base import Resource
from simulator.report import goodput
from simulator.report.document import (
    Cell,
    Document,
    Item,
    Row,
    Section,
    Table,
    grid,
    notes,
    section,
)
from simulator.report.labels import (
    SERVICE_FIGURES,
    ServiceFigure,
    bottleneck_called,
    dated,
    is_share,
    learns,
    limit_called,
    link_called,
    metric_called,
    setting_called,
)
from simulator.report.numbers import (
    HALF_PERCENT,
    digits_between,
    digits_of,
    figure,
    interval,
    joined,
    quantity,
    share_known,
    significant,
)
from simulator.report.prediction import service as services
from simulator.report.prediction.job import SCHEMA
from simulator.report.prediction.rows import setting_rows
from simulator.report.prediction.service import kept_share
from simulator.report.text import percent
from simulator.results.cost import dated_prices, listed_price, prices_of
from simulator.results.metrics import (
    USD_PER_HOUR,
    is_utilization,
    number_at,
    select,
    service_figures,
)
from simulator.results.prediction import Prediction
from simulator.results.serving import ServicePrediction
from simulator.schema.cost import Purchase
from simulator.schema.machines import LinkKind, short_name
from simulator.studies.compare import (
    PricePerformance,
    ServiceRatio,
    Side,
    differing,
    error,
    price_performance,
    published_price_performance,
    service_ratio,
)
from simulator.studies.purchase import RentOrBuy, cheapest_rent, rent_or_buy
from simulator.units import HOUR, MONTH

CLOSE: Final = 0.1
"""Distance from one below which a ratio gets three digits."""
SAME: Final = 5e-4
"""Relative difference below which two values are displayed as equal."""
IDLE: Final = 5e-4
"""Utilization below which a resource is not listed."""
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
_REPEATS: Final = {
    "cost.usd_for_machines": "cost.usd_to_train",
    "cost.time_to_train_s": "total_time_s",
}
"""Metrics that include another one; left out if both are equal."""
_UNPRICED: Final = "purchase price unknown; set it, such as owned.capex = '$30k'"


_USED: Final = {
    "utilization.cache_mean": "KV cache used",
    "utilization.cache_peak": "KV cache used, peak",
    "utilization.prompts": "busy: prefill replicas",
    "utilization.answers": "busy: decode replicas",
}

JobSide: TypeAlias = Side[Prediction]
ServiceSide: TypeAlias = Side[ServicePrediction]


def document(sides: Sequence[Side[Any]]) -> Document:
    """Return a comparison of jobs, or of services, as a document; ratios are to the first one."""
    of_services = [side for side in sides if isinstance(side.prediction, ServicePrediction)]
    of_jobs = [side for side in sides if isinstance(side.prediction, Prediction)]
    if of_services:
        return Document(
            question=tuple(_service_rows(of_services)),
            sections=_service_sections(of_services),
            data=lambda: _services_object(of_services),
            table=lambda: _services_table(of_services),
        )
    return Document(
        question=tuple(_job_rows(of_jobs)),
        sections=_job_sections(of_jobs),
        data=lambda: _jobs_object(of_jobs),
        table=lambda: _jobs_table(of_jobs),
    )


def _heads(sides: Sequence[Side[Any]]) -> list[str]:
    return [f"[{number}]" for number in range(1, len(sides) + 1)]


def _labelled_heads(sides: Sequence[Side[Any]]) -> tuple[str, ...]:
    labels = [side.label for side in sides]
    return tuple(f"[{number}] {label}" for number, label in enumerate(labels, start=1))


def _text(side: Side[Any], name: str) -> str | None:
    """Return the value of a key as text; None if the scenario does not have the key."""
    value = side.inputs.get(name)
    return None if value is None else value.text


def _differences(sides: Sequence[Side[Any]]) -> Item | None:
    names = differing(sides)
    if not names:
        return notes(["none: all keys have the same values"])
    lines = []
    for name in names:
        texts = (_text(side, name) for side in sides)
        lines.append((name, *("-" if t is None else setting_called(name, t) for t in texts)))
    return grid(("", *_heads(sides)), lines, "<" * (len(sides) + 1))


def _keys_object(sides: Sequence[Side[Any]]) -> dict[str, list[str | None]]:
    return {name: [_text(side, name) for side in sides] for name in differing(sides)}


def with_ratios(
    texts: Sequence[str], values: Sequence[float | None], *, is_share: bool
) -> Iterator[str]:
    """Yield the text of each side; those that differ from the first side with their ratio to it.

    Parameters
    ----------
    texts, values : sequences
        Text and value of each side; no ratio is shown if the value is None.
    is_share : bool
        True for shares of a whole, which are shown without ratios.

    Examples
    --------
    >>> list(with_ratios(["2 s", "4 s", "-"], [2.0, 4.0, None], is_share=False))
    ['2 s', '4 s (x2)', '-']
    """
    first = values[0]
    for number, (text, value) in enumerate(zip(texts, values, strict=True)):
        ratio = value / first if number and value is not None and first else None
        changed = ratio is not None and abs(ratio - 1.0) > SAME and not is_share
        yield f"{text} (x{times(ratio)})" if changed and ratio is not None else text


def times(ratio: float) -> str:
    """Format a ratio to two digits; to three if it is close to 1."""
    return significant(ratio, 3 if abs(ratio - 1.0) < CLOSE else 2)


def saved_text(saved: float) -> str:
    """Describe a relative saving.

    Examples
    --------
    >>> saved_text(0.25), saved_text(-0.25), saved_text(-1.0)
    ('25% less', '25% more', '2 times as much')
    """
    if abs(saved) < SAME:
        return "the same"
    if saved <= -1.0:
        return f"{times(1.0 - saved)} times as much"
    return f"{share_known(abs(saved))} {'less' if saved > 0.0 else 'more'}"


def _ratio_of(ratio: float, what: str, equal: str) -> str:
    return equal if abs(ratio - 1.0) < SAME else f"{times(ratio)}x {what}"


def even_text(even: RentOrBuy) -> str:
    """Describe the break-even of buying over renting."""
    if even.utilization > 1.0:
        return "renting is cheaper at any utilization"
    hours = even.utilization * MONTH / HOUR
    payback = f"payback {even.payback / MONTH:.2g} months"
    if math.isinf(even.payback):
        payback = "no payback"
    return (
        f"buying is cheaper above {even.utilization:.0%} utilization, {hours:.0f} h per month; "
        f"{payback} at {even.planned:.0%} utilization (owned.utilization)"
    )


def _job_rows(sides: Sequence[JobSide]) -> Iterator[Row]:
    for number, side in enumerate(sides, start=1):
        scenario = side.prediction.scenario
        settings = dict(setting_rows(scenario))
        machines = [text for name, text in settings.items() if name == "Machine" or name[0] == "+"]
        title = f"{side.label}: {scenario.title}" if scenario.title else side.label
        yield f"[{number}]", title
        yield "", "; ".join(machines)


def _job_sections(sides: Sequence[JobSide]) -> tuple[Section, ...]:
    prices = prices_of(side.prediction.scenario for side in sides)
    sources = dict.fromkeys(row.source for side in sides for row in side.published)
    return (
        *section("Differences", _differences(sides)),
        *section(
            "Predicted (xN: ratio to [1])",
            grid(("", *_heads(sides)), _figure_rows(sides), "<" + ">" * len(sides)),
        ),
        *section("Price and performance", notes(_rules(sides))),
        *section("Rent or buy", notes(_rent_or_buy(sides))),
        *section("Cheapest purchase, with interruptions", notes(_cheapest(sides))),
        *section("Prices", notes(prices)),
        *section(
            "Published and predicted",
            _published(sides),
            notes(f"source: {text}" for text in sources),
        ),
    )


def _figure_rows(sides: Sequence[JobSide]) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for metric in METRICS:
        values = [number_at(side.prediction, metric) for side in sides]
        if any(values) and not _said_before(metric, sides, values):
            rows.append((_metric_called(metric, sides), *_cells(metric, sides, values)))
    known = all(s.prediction.timing.accelerator_utilization is not None for s in sides)
    for name in _resources(sides):
        shares = [_busy(side.prediction, name) for side in sides]
        said = known and name == Resource.GPU  # the utilization of the accelerators
        if not said and any(share is not None and share >= IDLE for share in shares):
            texts = ("-" if share is None else share_known(share) for share in shares)
            rows.append((f"busy: {bottleneck_called(name)}", *texts))
    limits = [limit_called(s.prediction.timing.bottleneck, s.prediction.scenario) for s in sides]
    rows.append((metric_called("bottleneck"), *limits))
    rows.append(("fits", *("yes" if side.prediction.fits else "no" for side in sides)))
    return rows


def _said_before(metric: str, sides: Sequence[JobSide], values: Sequence[float | None]) -> bool:
    """Return True if a metric repeats another row, or does not apply to these jobs."""
    if metric == "step_split_s.data_stall":
        devices = [side.prediction.timing.accelerator_utilization for side in sides]
        return all(device is None for device in devices)
    if metric == "mfu":
        # MFU is shown for language models only
        return all(number_at(side.prediction, "tokens_per_s") is None for side in sides)
    if metric == "cost.usd_per_step":
        return any(number_at(side.prediction, "cost.usd_to_train") for side in sides)
    other = _REPEATS.get(metric)
    return other is not None and list(values) == [number_at(s.prediction, other) for s in sides]


def _metric_called(metric: str, sides: Sequence[JobSide]) -> str:
    """Return the label of a metric; it has no rent for owned machines, no steps for inference."""
    if metric == "cost.usd_per_h" and any(
        side.prediction.scenario.cost.purchase is Purchase.OWNED for side in sides
    ):
        return "hourly cost"
    if any(learns(side.prediction.scenario) for side in sides):
        return metric_called(metric)
    return metric_called(metric).replace("step", "batch")


def _cells(metric: str, sides: Sequence[JobSide], values: Sequence[float | None]) -> Iterator[str]:
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


def _resources(sides: Sequence[JobSide]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for s in sides for name in s.prediction.timing.usage))


def _busy(prediction: Prediction, name: str) -> float | None:
    usage = prediction.timing.usage.get(name)
    return None if usage is None else usage.mean


def _rules(sides: Sequence[JobSide]) -> Iterator[str]:
    for number, other in enumerate(sides[1:], start=2):
        for source, found in (
            ("", price_performance(sides[0], other)),
            (", as published", published_price_performance(sides[0], other)),
        ):
            if found is not None:
                price = _ratio_of(found.price, "the price", "same price")
                speed = _ratio_of(1.0 / found.time, "the speed", "equal speed")
                cost = saved_text(found.saved)
                yield f"[{number}] vs [1]{source}: {price} at {speed}: cost per sample {cost}"


def _rent_or_buy(sides: Sequence[JobSide]) -> Iterator[str]:
    """Yield the break-even of each owned side with the cheapest rented side."""
    predictions = [side.prediction for side in sides]
    for number, owned in enumerate(predictions, start=1):
        cheapest = cheapest_rent(owned, predictions)
        even = None if cheapest is None else rent_or_buy(owned, predictions[cheapest])
        if owned.scenario.cost.purchase is Purchase.OWNED and owned.cost.for_machines is None:
            yield f"[{number}] owned: {_UNPRICED}"
        if cheapest is not None and even is not None:
            yield f"[{number}] owned vs [{cheapest + 1}] rented: {even_text(even)}"


def _cheapest(sides: Sequence[JobSide]) -> Iterator[str]:
    for number, side in enumerate(sides, start=1):
        if side.prediction.outlook is not None:
            for text in goodput.cheapest(side.prediction.outlook.ways):
                yield f"[{number}] {text}"


def _published(sides: Sequence[JobSide]) -> Item | None:
    names = dict.fromkeys(name for side in sides for name in side.measured)
    head = ("", *(f"{h} {what}" for h in _heads(sides) for what in ("published", "plan", "error")))
    lines = [
        (metric_called(name), *(cell for side in sides for cell in _errors(side, name)))
        for name in names
    ]
    return grid(head, lines, "<" + ">>>" * len(sides))


def _errors(side: JobSide, metric: str) -> tuple[str, str, str]:
    known = side.measured.get(metric)
    if known is None:
        return "-", "-", "-"
    ours, off = number_at(side.prediction, metric), error(side, metric)
    shown = ["-" if value is None else _published_figure(metric, value) for value in (known, ours)]
    return shown[0], shown[1], "-" if off is None else f"{100.0 * off:+.1f}%"


def _published_figure(metric: str, value: float) -> str:
    return percent(value) if is_share(metric) else figure(value, select(metric)[0].unit)


def _jobs_table(sides: Sequence[JobSide]) -> Table:
    """Return a row for each key that differs and for each metric, in SI units."""
    rows: list[tuple[Cell, ...]] = [
        ("key", name, "", *(_text(side, name) for side in sides)) for name in differing(sides)
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
    names = _labelled_heads(sides)
    kept = tuple(row for row in rows if any(cell is not None for cell in row[3:]))
    return Table(head=("what", "name", "unit", *names), rows=kept)


def _jobs_object(sides: Sequence[JobSide]) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "scenarios": [_job_object(sides[0], side) for side in sides],
        "rent_or_buy": [_even_object(sides, side) for side in sides],
        "differences": _keys_object(sides),
    }


def _even_object(sides: Sequence[JobSide], owned: JobSide) -> dict[str, float | int | None] | None:
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


def _job_object(first: JobSide, side: JobSide) -> dict[str, Any]:
    timing = side.prediction.timing
    return {
        "label": side.label,
        "scenario": side.prediction.scenario.name,
        "figures": {name: number_at(side.prediction, name) for name in METRICS},
        "prices": list(dated_prices(side.prediction.scenario)),
        "utilization": {str(name): usage.mean for name, usage in timing.usage.items()},
        "bottleneck": timing.bottleneck,
        "fits": side.prediction.fits,
        "beside_first": None if side is first else _rule_object(price_performance(first, side)),
        "cheapest_chance": {}
        if (found := side.prediction.outlook) is None
        else {
            goodput.way_called(way): way.cheapest for way in found.ways if way.cheapest is not None
        },
        "published": side.measured,
        "published_beside_first": None
        if side is first
        else _rule_object(published_price_performance(first, side)),
        "sources": list(dict.fromkeys(row.source for row in side.published)),
    }


def _rule_object(found: PricePerformance | None) -> dict[str, float] | None:
    if found is None:
        return None
    return {
        "price_ratio": found.price,
        "time_ratio": found.time,
        "cost_ratio": found.cost,
        "saving": found.saved,
    }


def _service_rows(sides: Sequence[ServiceSide]) -> Iterator[Row]:
    for number, side in enumerate(sides, start=1):
        service = side.prediction.service
        yield f"[{number}]", f"{side.label}: {service.title}" if service.title else side.label
        settings = dict(services.setting_rows(service))
        for name in ("Machines", "Load", "SLO"):
            yield "", settings.get(name, "")
        yield "", services.verdict(side.prediction)


def _service_sections(sides: Sequence[ServiceSide]) -> tuple[Section, ...]:
    warned = (f"[{n}] {text}" for n, side in enumerate(sides, 1) for text in _cautions(side))
    return (
        *section("Differences", _differences(sides)),
        *section(
            "Predicted (xN: ratio to [1]; below: 80% interval)",
            grid(("", *_heads(sides)), _service_figures(sides), "<" + ">" * len(sides)),
        ),
        *section("Price and performance", notes(_service_rules(sides))),
        *section("Warnings", notes(warned)),
    )


def _cautions(side: ServiceSide) -> tuple[str, ...]:
    """Return the warnings of a prediction; none if overloaded, as its verdict states that."""
    return () if side.prediction.answered is None else side.prediction.warnings


def _service_figures(sides: Sequence[ServiceSide]) -> list[tuple[str, ...]]:
    """Return a row for each metric, and a row below with the 80% intervals."""
    lines: list[tuple[str, ...]] = []
    for name, shown in {**SERVICE_FIGURES, **_utilizations(sides)}.items():
        values = [service_figures(side.prediction).get(name) for side in sides]
        if not any(values):
            continue
        texts = [
            "-" if value is None else _service_value(name, shown, side, value)
            for side, value in zip(sides, values, strict=True)
        ]
        lines.append((shown.label, *with_ratios(texts, values, is_share=shown.is_share)))
        bands = [_band(name, shown, side) for side in sides]
        if shown.banded and any(bands):
            lines.append(("", *bands))
    return [*lines, ("meets its SLO", *(_kept(side) for side in sides))]


def _utilizations(sides: Sequence[ServiceSide]) -> dict[str, ServiceFigure]:
    """Return the utilization metrics of resources that are not idle on every side."""
    names = dict.fromkeys(
        name
        for side in sides
        for name, share in service_figures(side.prediction).items()
        if is_utilization(name) and (share or 0.0) >= HALF_PERCENT
    )
    return {
        name: ServiceFigure(_USED.get(name) or f"busy: {_resource(name)}", is_share=True)
        for name in names
    }


def _resource(name: str) -> str:
    resource = name.partition(".")[2]
    joins = resource.partition("_of_")[0] in {LinkKind.NVLINK, LinkKind.PCIE}
    return f"links {link_called(resource)}" if joins else link_called(resource)


def _kept(side: ServiceSide) -> str:
    if not side.prediction.service.slo.limits:
        return "-"
    return "yes" if side.prediction.keeps_limits else "no"


def _service_value(name: str, shown: ServiceFigure, side: ServiceSide, value: float) -> str:
    if shown.is_share:
        return _share(name, side, value)
    ends = side.prediction.interval.get(name)
    low, high = (None, None) if ends is None else (ends["p10"], ends["p90"])
    digits = 2 if ends is not None and high is None else digits_between(low or 0.0, high or 0.0)
    return quantity(value, shown.unit, digits)


def _share(name: str, side: ServiceSide, share: float) -> str:
    kept = name == "slo.attainment"
    return kept_share(share, side.prediction.service.slo.share) if kept else share_known(share)


def _band(name: str, shown: ServiceFigure, side: ServiceSide) -> str:
    """Return the 80% interval of a metric; an empty string if it has none."""
    ends = side.prediction.interval.get(name)
    if ends is None or ends["p10"] == ends["p90"]:
        return ""
    low, high = ends["p10"] or 0.0, ends["p90"]
    if shown.is_share and high is not None:
        return joined(_share(name, side, low), _share(name, side, high))
    return interval(low, high, shown.unit, 2)


def _service_rules(sides: Sequence[ServiceSide]) -> Iterator[str]:
    for number, other in enumerate(sides[1:], start=2):
        found = service_ratio(sides[0], other)
        if found is not None:
            loads = (side.prediction.service.load for side in (sides[0], other))
            lengths = [(load.prompt, load.output) for load in loads]
            other_lengths = "" if lengths[0] == lengths[1] else "; the request lengths differ"
            yield f"[{number}] vs [1]: {_service_rule(found)}{other_lengths}"
    yield from dict.fromkeys(text for side in sides for text in _prices(side))


def _service_rule(found: ServiceRatio) -> str:
    requests = _ratio_of(found.requests, "the capacity", "equal capacity")
    if found.price is None or found.saved is None:
        return f"{requests}; a price is unknown"
    price = _ratio_of(found.price, "the price", "same price")
    return f"{price} at {requests}: cost per request at full load {saved_text(found.saved)}"


def _prices(side: ServiceSide) -> tuple[str, ...]:
    """Return a note on the listed price of the machines; empty if there is none."""
    service = side.prediction.service
    price = listed_price(service, service.group)
    if price is None or service.owned is not None:
        return ()
    name = short_name(service.group.host.name)
    where = "" if price.region == "all" else f" in {price.region}"
    return (f"{name}: {price.purchase}{where}{dated(price)}",)


def _services_table(sides: Sequence[ServiceSide]) -> Table:
    """Return a row for each key that differs and for each metric, in SI units."""
    rows: list[tuple[Cell, ...]] = [
        ("key", name, *(_text(side, name) for side in sides)) for name in differing(sides)
    ]
    found = [service_figures(side.prediction) for side in sides]
    every = dict.fromkeys(name for one in found for name in one)
    rows += [("metric", name, *(one.get(name) for one in found)) for name in every]
    rows.append(("metric", "keeps_limits", *(_kept(side) for side in sides)))
    names = _labelled_heads(sides)
    kept = tuple(row for row in rows if any(cell is not None for cell in row[2:]))
    return Table(head=("what", "name", *names), rows=kept)


def _services_object(sides: Sequence[ServiceSide]) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "services": [_service_object(sides[0], side) for side in sides],
        "differences": _keys_object(sides),
    }


def _service_object(first: ServiceSide, side: ServiceSide) -> dict[str, Any]:
    prediction = side.prediction
    found = None if side is first else service_ratio(first, side)
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
