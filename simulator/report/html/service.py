"""The HTML page of a service: verdict, latencies against load, rates, memory and cost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from simulator.report.document import Actions, notes, rows, section
from simulator.report.html.charts import Axis, Dot, Scatter, Tick, axis
from simulator.report.html.page import (
    Made,
    Page,
    Shown,
    Tile,
    rendered,
    section_blocks,
    shown,
    tiles,
    titled,
)
from simulator.report.numbers import bracketed, interval, quantity, significant
from simulator.report.prediction import service as report
from simulator.results.metrics import service_figures
from simulator.results.serving import ServicePrediction
from simulator.units import PERCENT, SECOND, USD, show

Band = Mapping[str, float | None]
DRAWN: Final = {
    "first_token_s.at_slo": "Time to the first token against the load",
    "per_token_s.at_slo": "Time per token against the load",
}
"""Titles of the drawings by metric: the quantile of requests that the SLO limits."""


PRICES: Final = {
    "1M output tokens": "cost.usd_per_million_output_tokens",
    "1,000 requests": "cost.usd_per_thousand_requests",
}
"""Price metrics by label; the first known one is shown."""
DIGITS: Final = 2
TALL: Final = 3.0
"""Multiple of the highest drawn value above which a limit is not drawn, to not flatten the rest."""
OF_BATCHES: Final = {"end_to_end_s.at_slo": "Time to the answer against the load"}
"""Drawings for a model that answers in one pass."""


def as_page(
    prediction: ServicePrediction,
    loads: Sequence[ServicePrediction],
    made: Made | None = None,
    next_steps: Sequence[str] = (),
) -> str:
    """Return a service as one self-contained HTML document.

    Parameters
    ----------
    prediction : ServicePrediction
        The prediction with its intervals.
    loads : sequence of ServicePrediction
        The same service at other loads, for the drawings; may be empty.
    made : Made, optional
        Origin of the page.
    next_steps : sequence of str
        Recommended actions, one text each; if empty, the section is left out.
    """
    service = prediction.service
    drawn = DRAWN if service.one_pass is None else OF_BATCHES
    quantile = report.slo_quantile(service).replace("p", "P")
    drawings = [
        (f"{title}, {quantile} and its 80% interval", drawing(loads, name, prediction))
        for name, title in drawn.items()
    ]
    steps = (Actions(texts=tuple(next_steps)),) if next_steps else ()
    page = Page(
        name=service.name,
        title=service.title,
        verdict=report.verdict(prediction),
        good=prediction.keeps_limits,
        blocks=(
            tiles(_tiles(prediction)),
            *titled("Do next", *steps, place="next"),
            *titled("Settings", rows(report.setting_rows(service)), place="asked"),
            *section_blocks(section("Latency", report.latency_table(prediction))),
            *(block for title, chart in drawings for block in titled(title, shown("line", chart))),
            *section_blocks(
                (
                    *section("Rates", rows(report.rate_rows(prediction))),
                    *section(report.memory_title(prediction), rows(report.memory_rows(prediction))),
                    *section("Cost", rows(report.cost_rows(prediction))),
                    *section("Energy", rows(report.energy_rows(prediction))),
                    *section("Warnings", notes(prediction.warnings)),
                )
            ),
            *titled(
                "Assumptions and sources",
                Shown(macro="assumptions", what=prediction.assumptions),
            ),
        ),
    )
    return rendered([page], f"{service.name}: service", made or Made())


def _tiles(prediction: ServicePrediction) -> Iterator[Tile]:
    """Yield the key values as tiles: latencies with their limits, capacity, price."""
    service, values = prediction.service, service_figures(prediction)
    for called, name in report.latencies_of(service).items():
        latency, limit = values.get(f"{name}_s.at_slo"), service.slo.limits.get(name)
        if latency is not None:
            share = f"{significant(PERCENT * service.slo.share, 3)}%"
            note = "" if limit is None else f"limit {show(limit, SECOND)} for {share}"
            yield Tile(name=called, value=quantity(latency, SECOND, DIGITS), note=note)
    if prediction.saturation is not None:
        rate, more = prediction.saturation.request_rate, prediction.saturation.headroom
        note = "" if more is None else f"{significant(more, DIGITS)}x your load"
        note += report.within_slo(prediction.saturation)
        value = f"{significant(rate, DIGITS)} requests/s"
        yield Tile(name="capacity", value=value, note=note)
    for called, name in PRICES.items():
        price = values.get(name)
        if price is not None:
            yield Tile(name=called, value=quantity(price, USD, DIGITS))
            return


def _between(band: Band) -> str:
    low, high = band.get("p10"), band.get("p90")
    return "" if low is None else bracketed(interval(low, high, SECOND, DIGITS))


def _ends(band: Band, up: Axis) -> tuple[float, float] | None:
    """Return the ends of an interval as fractions of the axis; unbounded ones end with the axis."""
    low, high = band.get("p10"), band.get("p90")
    if low is None:
        return None
    return max(0.0, up.at(low)), 1.0 if high is None else min(1.0, up.at(high))


def drawing(
    loads: Sequence[ServicePrediction], name: str, own: ServicePrediction | None = None
) -> Scatter | None:
    """Return a latency over the load as a line chart; None if there are no values.

    Vertical lines are 80% intervals. `own` is the service at its own load, which is marked together
    with its limit.
    """
    points = list[tuple[float, float, Band]]()
    for one in loads:
        rate, latency = (service_figures(one).get(each) for each in ("requests_per_s", name))
        if rate is not None and latency is not None:
            points.append((rate, latency, one.interval.get(name, {})))
    if not points:
        return None
    across = axis([rate for rate, _, _ in points], "requests/s", None)
    limit = None if own is None else own.service.slo.limits.get(name.partition("_s.")[0])
    highest = max(latency for _, latency, _ in points)
    if limit is not None and limit > TALL * highest:
        limit = None
    heights = [latency for _, latency, _ in points] + ([] if limit is None else [limit])
    up = axis([0.0, *heights], "latency", SECOND)
    dots = tuple(
        Dot(
            x=across.at(rate),
            y=up.at(latency),
            front=True,
            hint=f"{rate:.3g} requests/s: {show(latency, SECOND, 3)}{_between(band)}",
            ends=_ends(band, up),
        )
        for rate, latency, band in points
    )
    rate = None if own is None else service_figures(own).get("requests_per_s")
    return Scatter(
        across=across,
        up=up,
        dots=dots,
        front=dots,
        limit=None if limit is None else Tick(at=up.at(limit), text=f"limit {show(limit, SECOND)}"),
        now=None if rate is None else Tick(at=across.at(rate), text="now"),
    )
