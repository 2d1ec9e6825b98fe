"""The page of a service: its verdict, latencies against the load, rates, memory and cost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from simulator.report import serving as report
from simulator.report.page.axes import axis
from simulator.report.page.environment import rendered
from simulator.report.page.made import Made
from simulator.report.page.scatter import Dot, Scatter
from simulator.results.serving import ServicePrediction, metrics
from simulator.units import SECOND, show

DRAWN: Final = {
    "first_token_s.p99": "Time to the first token against the load, 99th percentile",
    "per_token_s.p99": "Time per token against the load, 99th percentile",
}


OF_BATCHES: Final = {
    "end_to_end_s.p99": "Time to the answer against the load, 99th percentile",
}
"""The same for a model that answers in one pass."""


def as_page(
    prediction: ServicePrediction, loads: Sequence[ServicePrediction], made: Made | None = None
) -> str:
    """A service as one HTML document that loads nothing from elsewhere.

    Parameters
    ----------
    prediction : ServicePrediction
        With its intervals.
    loads : sequence of ServicePrediction
        The same service at other loads, for the drawings; may be none.
    made : Made, optional
        How the page came to be.
    """
    head, *rows = report.latency_rows(prediction) or [()]
    drawn = DRAWN if prediction.service.one_pass is None else OF_BATCHES
    drawings = [(title, drawing(loads, name)) for name, title in drawn.items()]
    return rendered(
        "service.html.j2",
        name=prediction.service.name,
        title=prediction.service.title,
        made=made or Made(),
        verdict=report.verdict(prediction),
        kept=prediction.keeps_limits,
        inputs=report.setting_rows(prediction.service),
        drawings=[(title, chart) for title, chart in drawings if chart is not None],
        tables=[
            ("Rates", list(report.rate_rows(prediction))),
            ("Memory of each device", list(report.memory_rows(prediction))),
            ("Cost", list(report.cost_rows(prediction))),
        ],
        head=head,
        latencies=rows,
        numbers=(1, 2, 3, 4),
        warnings=prediction.warnings,
        assumptions=prediction.assumptions,
    )


def drawing(loads: Sequence[ServicePrediction], name: str) -> Scatter | None:
    """A latency against the load, joined by a line; None where there is nothing to draw."""
    points = list[tuple[float, float]]()
    for one in loads:
        rate, latency = (metrics(one).get(each) for each in ("requests_per_s", name))
        if rate is not None and latency is not None:
            points.append((rate, latency))
    if not points:
        return None
    across = axis([rate for rate, _ in points], "requests/s", None)
    up = axis([latency for _, latency in points], "latency", SECOND)
    dots = tuple(
        Dot(
            x=across.at(rate),
            y=up.at(latency),
            front=True,
            hint=f"{rate:.3g} requests/s: {show(latency, SECOND, 3)}",
        )
        for rate, latency in points
    )
    return Scatter(across=across, up=up, dots=dots, front=dots)
