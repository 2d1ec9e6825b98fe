"""The page of one prediction: verdict, step, resources, timeline, memory, cost, evidence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from markupsafe import Markup

from simulator.confidence.provenance import Assumption
from simulator.report.called import batch_called
from simulator.report.evidence_near import about, apart, headline, score_lines
from simulator.report.layout import percent, printable
from simulator.report.page.bars import Bar, Stack, busy, stack, waterfall
from simulator.report.page.environment import rendered
from simulator.report.page.timeline import Timeline, timeline
from simulator.report.plot.evidence import Dots, predicted_against_measured
from simulator.report.rows import Row, band, cost_rows, head, hidden_exchange, run_rows
from simulator.report.verdict import device_word, marks, verdict
from simulator.results.prediction import Prediction
from simulator.studies.measured_here import widened
from simulator.studies.nearest import Neighbourhood
from simulator.units import SECOND, USD, show

PLOT: Final = (4.4, 4.0)
"""Width and height of the plot of evidence [inch]: its text can be read on a phone."""


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """All that a page says of one prediction, ready to be written."""

    setting: str
    verdict: str
    fits: bool
    tiles: tuple[Tile, ...]
    waterfall: tuple[Bar, ...]
    hidden: str
    busy: tuple[Bar, ...]
    timeline: Timeline | None
    stacks: tuple[Stack, ...]
    run: tuple[Row, ...]
    cost: tuple[Row, ...]
    evidence: Evidence | None
    warnings: tuple[str, ...]
    assumptions: tuple[Assumption, ...]
    next_steps: tuple[str, ...] = ()


def as_page(
    prediction: Prediction,
    near: Neighbourhood | None = None,
    next_steps: Sequence[str] = (),
) -> str:
    """The prediction as one HTML document that loads nothing from elsewhere.

    Parameters
    ----------
    prediction : Prediction
        With a trace, if the page shall show a timeline.
    near : Neighbourhood, optional
        Measured rows like the scenario; without them the page says nothing about errors.
    next_steps : sequence of str
        What to do next, one text each.
    """
    scenario = prediction.scenario
    return rendered(
        "prediction.html.j2",
        name=printable(scenario.name),
        title=printable(scenario.title),
        shown=replace(shown(prediction, near), next_steps=tuple(map(printable, next_steps))),
    )


def shown(prediction: Prediction, near: Neighbourhood | None = None) -> Shown:
    """What any page says of a prediction; parameters as for `as_page`."""
    hidden = hidden_exchange(prediction.timing)
    said = verdict(prediction)
    if near is not None:
        said = f"{said} {headline(prediction, near)}".rstrip()
        prediction = widened(prediction, near)
    return Shown(
        setting=printable("; ".join(head(prediction)[1:])),
        verdict=printable(said),
        fits=prediction.fits,
        tiles=tuple(tiles(prediction)),
        waterfall=waterfall(prediction),
        hidden=f"{hidden}." if hidden else "",
        busy=busy(prediction),
        timeline=_timeline(prediction),
        stacks=_stacks(prediction),
        run=tuple(run_rows(prediction)),
        cost=tuple(cost_rows(prediction)),
        evidence=None if near is None else _evidence(near),
        warnings=tuple(printable(line) for line in prediction.warnings),
        assumptions=tuple(sorted(prediction.assumptions, key=lambda one: one.source.verified)),
    )


def _stacks(prediction: Prediction) -> tuple[Stack, ...]:
    ram = stack("Host RAM of one machine", prediction.host_ram)
    if prediction.memory is None:
        return (ram,)
    return ram, stack(f"Memory of one {device_word(prediction)}", prediction.memory)


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
            name=batch_called(prediction.scenario),
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
    said = marks(prediction)[timing.bottleneck]
    notes = [] if said == "bottleneck" else [said]
    notes += [] if timing.next_bottleneck is None else [f"next: {timing.next_bottleneck}"]
    found.append(Tile(name="bottleneck", value=timing.bottleneck, note="; ".join(notes)))
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
    return Markup(predicted_against_measured(dots, metric, "", size=PLOT))  # noqa: S704 - drawn here, names escaped by matplotlib
