"""The page of one prediction: verdict, step, resources, timeline, memory, cost, evidence."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from markupsafe import Markup

from simulator.report import goodput
from simulator.report.document import Row
from simulator.report.evidence import about, apart, headline, score_texts
from simulator.report.html.charts import Bar, Stack, busy, idle, stack, waterfall
from simulator.report.html.page import Made, rendered
from simulator.report.html.timeline import Timeline, timeline
from simulator.report.labels import batch_called, batches_called, limit_called
from simulator.report.numbers import GUESSES, digits_of, known, quantity, share_known
from simulator.report.plot import Dots, predicted_against_measured
from simulator.report.prediction.rows import (
    bill_in_all,
    cost_rows,
    hidden_exchange,
    run_rows,
    token_rows,
)
from simulator.report.prediction.settings import setting_rows
from simulator.report.prediction.verdict import device_word, marks, verdict
from simulator.report.text import printable
from simulator.results.metrics import number_at, select
from simulator.results.prediction import Prediction
from simulator.schema.training import Mode
from simulator.uncertainty.provenance import Assumption
from simulator.units import USD_PER_SECOND
from simulator.validation.local_coverage import Neighbourhood, widened

FEW: Final = 3
"""Measured rows from which on a drawing of them says more than the table."""
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
    """The measured rows near the scenario, and how wrong the model is there."""

    about: str
    rows: tuple[EvidenceRow, ...]
    scores: tuple[str, ...]
    plot: Markup | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """All that a page says of one prediction, ready to be written."""

    verdict: str
    fits: bool
    tiles: tuple[Tile, ...]
    inputs: tuple[Row, ...]
    batch: str
    waterfall: tuple[Bar, ...]
    hidden: str
    busy: tuple[Bar, ...]
    idle: str
    timeline: Timeline | None
    stacks: tuple[Stack, ...]
    run: tuple[Row, ...]
    tokens: tuple[Row, ...]
    cost: tuple[Row, ...]
    long_run: tuple[Row, ...]
    evidence: Evidence | None
    warnings: tuple[str, ...]
    assumptions: tuple[Assumption, ...]
    next_steps: tuple[str, ...] = ()


def as_page(
    prediction: Prediction,
    near: Neighbourhood | None = None,
    next_steps: Sequence[str] = (),
    made: Made | None = None,
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
    made : Made, optional
        How the page came to be; without it the page says which seed and version it is of.
    """
    scenario = prediction.scenario
    return rendered(
        "prediction.html.j2",
        name=printable(scenario.name),
        title=printable(scenario.title),
        made=made or Made(seed=prediction.seed),
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
        verdict=printable(said),
        fits=prediction.fits,
        tiles=tuple(tiles(prediction)),
        inputs=_inputs(prediction),
        batch=batch_called(prediction.scenario),
        waterfall=_steps_parts(prediction),
        hidden=f"{hidden}." if hidden else "",
        busy=busy(prediction),
        idle=idle(prediction),
        timeline=_timeline(prediction),
        stacks=_stacks(prediction),
        run=tuple(run_figures(prediction)),
        tokens=tuple(token_rows(prediction)),
        cost=tuple(cost_figures(prediction)),
        long_run=() if prediction.outlook is None else tuple(goodput.rows(prediction.outlook)),
        evidence=None if near is None else _evidence(near),
        warnings=tuple(
            printable(line) for line in prediction.warnings if not line.startswith(GUESSES)
        ),
        assumptions=tuple(sorted(prediction.assumptions, key=lambda one: one.source.verified)),
    )


def _steps_parts(prediction: Prediction) -> tuple[Bar, ...]:
    """The parts of a step; none where samples only pass through."""
    prepares = prediction.scenario.job.mode is Mode.PREPARE
    return () if prepares else waterfall(prediction)


def _stacks(prediction: Prediction) -> tuple[Stack, ...]:
    ram = stack("Host RAM of one machine", prediction.host_ram)
    if prediction.memory is None:
        return (ram,)
    return ram, stack(f"Memory of one {device_word(prediction)}", prediction.memory)


def _timeline(prediction: Prediction) -> Timeline | None:
    timing = prediction.timing
    if timing.trace is None:
        return None
    many = batches_called(prediction.scenario)
    return timeline(timing.trace, timing.step_time.mean, many)


def _inputs(prediction: Prediction) -> tuple[Row, ...]:
    """Yield the settings: machine, data, loader, model, and what the machines cost."""
    rent = prediction.cost.per_second
    price = "none is known" if rent is None else quantity(rent, USD_PER_SECOND, 4)
    rows = (*setting_rows(prediction.scenario), ("Rent", price))
    return tuple((name, printable(text)) for name, text in rows)


def tiles(prediction: Prediction) -> list[Tile]:
    """The few figures that say most."""
    timing, device = prediction.timing, device_word(prediction)
    metrics = [
        (batch_called(prediction.scenario), "step_time_s.mean"),
        ("run time", "total_time_s"),
        ("cost", "cost.usd_to_train"),
        ("tokens/s", "tokens_per_s"),
    ]
    found = [
        Tile(name=name, value=value, note=note)
        for name, metric in metrics
        for value, note in [_figure(prediction, metric)]
        if value
    ]
    mfu = number_at(prediction, "mfu")
    if timing.accelerator_utilization is not None:
        digits = digits_of(prediction, "step_time_s.mean")
        note = "of the time" if mfu is None else f"of the time; MFU {100.0 * mfu:.{digits}g}%"
        computing = share_known(timing.accelerator_utilization)
        found.append(Tile(name=f"{device}s compute", value=computing, note=note))
    said = marks(prediction)[timing.bottleneck]
    notes = [] if said == "bottleneck" else [said]
    if timing.next_bottleneck is not None:
        notes.append(f"next: {limit_called(timing.next_bottleneck, prediction.scenario)}")
    limit = limit_called(timing.bottleneck, prediction.scenario)
    return [*found, Tile(name="bottleneck", value=limit, note="; ".join(notes))]


def _figure(prediction: Prediction, metric: str) -> tuple[str, str]:
    """A metric to the precision of its interval, and the interval; empty where it has no value."""
    value = number_at(prediction, metric)
    if value is None:
        return "", ""
    said = quantity(value, select(metric)[0].unit, digits_of(prediction, metric))
    whole = known(prediction, metric).removeprefix(said)
    said = said.removesuffix(" tokens/s")
    return said, f"80%: {whole.strip(' ()')}" if whole else ""


def _evidence(near: Neighbourhood) -> Evidence:
    """Rows within reach only: what is further off says nothing about this job."""
    close = replace(near, rows=tuple(r for r in near.rows if r.distance <= near.reach))
    rows = tuple(
        EvidenceRow(
            name=printable(f"{one.set}: {one.row.id}"),
            split=str(one.row.split),
            distance=f"{one.distance:.1f}",
            error=f"{one.judged[0].error:+.1%}" if one.judged else "",
            apart=printable(apart(one)),
        )
        for one in close.rows
    )
    said = about(close) if rows else _far(near)
    scores = tuple(score_texts(close)) if rows else ()
    return Evidence(
        about=said, rows=rows, scores=scores, plot=_plot(close) if len(rows) >= FEW else None
    )


def _far(near: Neighbourhood) -> str:
    """That nothing near was measured, and how far the nearest is."""
    nearest = min((one.distance for one in near.rows), default=None)
    if nearest is None:
        return "No measured run can be compared with this job: its error is unknown."
    return (
        f"Nothing similar was measured: the nearest of {near.compared:,} measured runs has a "
        f"distance of {nearest:.1f} (1 is a factor of two in one feature). The error is unknown."
    )


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


def as_fragment(prediction: Prediction) -> str:
    """The same short, for a notebook: a ``<div>`` with its own style that touches nothing else."""
    return rendered(
        "fragment.html.j2",
        name=printable(prediction.scenario.name),
        verdict=printable(verdict(prediction)),
        fits=prediction.fits,
        tiles=tiles(prediction),
        waterfall=waterfall(prediction),
        busy=busy(prediction),
    )


_ASIDE = frozenset({"throughput", "epoch", "first epoch", "total", "bounds"})
"""Rows of the full report that are said here in fewer words, or that only experts ask for."""


def run_figures(prediction: Prediction) -> Iterator[Row]:
    """Speed, epochs, the whole run, and what is done once."""
    timing, batch = prediction.timing, batch_called(prediction.scenario)
    first = f"first {batch}"
    many = "batches" if batch == "batch" else f"{batch}s"
    yield "speed", known(prediction, "throughput_samples_per_s")
    yield f"{first} ends after", known(prediction, "first_step_s")
    if timing.total_time > 1.5 * timing.epoch_time:
        epoch = known(prediction, "epoch_time_s")
        yield "an epoch", f"{epoch}, {prediction.steps_per_epoch:,} {many}"
    yield "run time", f"{known(prediction, 'total_time_s')}, {prediction.total_steps:,} {many}"
    yield from (row for row in run_rows(prediction) if row[0] not in {*_ASIDE, first})


def cost_figures(prediction: Prediction) -> Iterator[Row]:
    """The bill; what a single step costs is in `plan simulate --full`."""
    metrics = {"samples per $": "cost.samples_per_usd"}
    whole = bill_in_all(prediction, known(prediction, "cost.usd_to_train"))
    for name, text in cost_rows(prediction):
        if name in {batch_called(prediction.scenario), "1,000 samples"}:
            continue
        if name in {"to train", "bill"} and whole:
            yield name, whole
        else:
            yield name, known(prediction, metrics[name]) if name in metrics else text
