"""The page of one prediction: verdict, step, resources, timeline, memory, cost, evidence."""

from __future__ import annotations

from dataclasses import dataclass

from markupsafe import Markup

from simulator.report.evidence_near import about, apart, score_lines
from simulator.report.layout import percent, printable
from simulator.report.page.bars import busy, stack, waterfall
from simulator.report.page.environment import rendered
from simulator.report.page.timeline import Timeline, timeline
from simulator.report.plot.evidence import Dots, predicted_against_measured
from simulator.report.rows import band, cost_rows, head, run_rows
from simulator.report.verdict import device_word, verdict
from simulator.results import Prediction
from simulator.studies.nearest import Neighbourhood
from simulator.units import SECOND, USD, show


@dataclass(frozen=True, slots=True, kw_only=True)
class Tile:
    """One of the few figures at the top."""

    name: str
    value: str
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceRow:
    """A measured row near the scenario."""

    name: str
    split: str
    distance: str
    error: str
    apart: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """The measured rows nearest the scenario, and how wrong the model is there."""

    about: str
    rows: tuple[EvidenceRow, ...]
    scores: tuple[str, ...]
    plot: Markup | None


def as_page(prediction: Prediction, near: Neighbourhood | None = None) -> str:
    """The prediction as one HTML document that loads nothing from elsewhere.

    Parameters
    ----------
    prediction : Prediction
        With a trace, if the page shall show a timeline.
    near : Neighbourhood, optional
        Measured rows like the scenario; without them the page says nothing about errors.
    """
    scenario, timing = prediction.scenario, prediction.timing
    fits = [("Host RAM of one machine", prediction.host_ram)]
    memory = [] if prediction.memory is None else [prediction.memory]
    stacks = [stack(title, fit) for title, fit in fits]
    stacks += [stack(f"Memory of one {device_word(prediction)}", fit) for fit in memory]
    hidden = timing.communication.hidden
    return rendered(
        "prediction.html.j2",
        name=printable(scenario.name),
        title=printable(scenario.title),
        setting=printable("; ".join(head(prediction)[1:])),
        verdict=printable(verdict(prediction)),
        fits=prediction.fits,
        tiles=tiles(prediction),
        waterfall=waterfall(prediction),
        hidden=f"{show(hidden, SECOND)} of communication hides under compute." if hidden else "",
        busy=busy(prediction),
        timeline=_timeline(prediction),
        stacks=stacks,
        run=run_rows(prediction),
        cost=cost_rows(prediction),
        evidence=None if near is None else _evidence(near),
        warnings=[printable(line) for line in prediction.warnings],
        assumptions=sorted(prediction.assumptions, key=lambda one: one.source.verified),
    )


def _timeline(prediction: Prediction) -> Timeline | None:
    timing = prediction.timing
    if timing.trace is None:
        return None
    return timeline(timing.trace, timing.step_time.mean)


def tiles(prediction: Prediction) -> list[Tile]:
    """The few figures that say most."""
    timing, cost = prediction.timing, prediction.cost
    found = [
        Tile(
            name="step",
            value=show(timing.step_time.mean, SECOND),
            note=band(prediction, "step_time_s.mean").removeprefix(", "),
        ),
        Tile(
            name="whole run",
            value=show(timing.total_time, SECOND),
            note=band(prediction, "total_time_s").removeprefix(", "),
        ),
    ]
    if cost.to_train is not None:
        note = band(prediction, "cost.usd_to_train").removeprefix(", ")
        found.append(Tile(name="bill", value=show(cost.to_train, USD), note=note))
    if timing.accelerator_utilization is not None:
        found.append(
            Tile(
                name=f"{device_word(prediction)}s compute",
                value=percent(timing.accelerator_utilization),
                note="of the time",
            )
        )
    next_ = "" if timing.next_bottleneck is None else f"next: {timing.next_bottleneck}"
    found.append(Tile(name="bottleneck", value=timing.bottleneck, note=next_))
    return found


def _evidence(near: Neighbourhood) -> Evidence:
    rows = tuple(
        EvidenceRow(
            name=printable(f"{one.set}: {one.row.id}"),
            split=str(one.row.split),
            distance=f"{one.distance:.1f}",
            error=f"{one.judged[0].error:+.1%}" if one.judged else "",
            apart=printable(apart(one)),
        )
        for one in near.rows
    )
    return Evidence(about=about(near), rows=rows, scores=tuple(score_lines(near)), plot=_plot(near))


def _plot(near: Neighbourhood) -> Markup | None:
    """Predicted over measured values of the metric that most of the rows have."""
    judged = [one for row in near.rows for one in row.judged if not one.absolute]
    names = [one.metric for one in judged]
    if not names:
        return None
    metric = max(dict.fromkeys(names), key=names.count)
    shown = [one for one in judged if one.metric == metric]
    points = {
        split: [one.point for one in shown if one.split is split]
        for split in dict.fromkeys(one.split for one in shown)
    }
    dots = {
        f"{split} rows": Dots(
            measured=[p.measured for p in own],
            predicted=[p.predicted for p in own],
            low=[p.predicted if p.p10 is None else p.p10 for p in own],
            high=[p.predicted if p.p90 is None else p.p90 for p in own],
        )
        for split, own in points.items()
    }
    return Markup(predicted_against_measured(dots, metric, ""))  # noqa: S704 - drawn here, names escaped by matplotlib
