"""The HTML page of one prediction: verdict, step, resources, timeline, memory, cost, evidence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from markupsafe import Markup

from simulator.report import goodput
from simulator.report.document import Actions, Code, Rows, grid, notes, rows, section
from simulator.report.evidence import about, apart, headline, score_texts
from simulator.report.html.charts import busy, idle, stack, waterfall
from simulator.report.html.page import (
    Block,
    Made,
    Page,
    Shown,
    Tile,
    fragment,
    heading,
    rendered,
    section_blocks,
    shown,
    soft,
    tiles,
    titled,
)
from simulator.report.html.timeline import timeline
from simulator.report.labels import batch_called, batches_called, device_called, limit_called
from simulator.report.numbers import GUESSES, digits_of, known, quantity, share_known
from simulator.report.plot import dots_of, predicted_against_measured
from simulator.report.prediction.rows import (
    cost_rows,
    hidden_exchange,
    run_rows,
    setting_rows,
    token_rows,
)
from simulator.report.prediction.verdict import marks, verdict
from simulator.results.metrics import number_at, select
from simulator.results.prediction import Prediction
from simulator.schema.training import Mode
from simulator.units import USD_PER_SECOND
from simulator.validation.local_coverage import Neighbourhood, widened

MIN_PLOTTED: Final = 3
"""Minimum number of measured rows for a plot."""
PLOT: Final = (4.4, 4.0)
"""Width and height of the plot of evidence, legible on a phone [inch]."""


def as_page(
    prediction: Prediction,
    near: Neighbourhood | None = None,
    next_steps: Sequence[str] = (),
    made: Made | None = None,
) -> str:
    """Return a prediction as one self-contained HTML document.

    Parameters
    ----------
    prediction : Prediction
        The prediction; the page has a timeline if it has a trace.
    near : Neighbourhood, optional
        Measured rows similar to the scenario; without them the page has no errors.
    next_steps : sequence of str
        Recommended actions, one text each.
    made : Made, optional
        Origin of the page; by default only seed and version are stated.
    """
    scenario = prediction.scenario
    said, prediction = _measured(prediction, near)
    steps = (Actions(texts=tuple(next_steps)),) if next_steps else ()
    page = Page(
        name=scenario.name,
        title=scenario.title,
        verdict=said,
        good=prediction.fits,
        blocks=(
            tiles(figures(prediction)),
            *titled("Do next", *steps, place="next"),
            *titled("Settings", _settings(prediction), place="asked"),
            *whole(prediction, near),
        ),
    )
    return rendered([page], scenario.name, made or Made(seed=prediction.seed))


def in_full(prediction: Prediction, near: Neighbourhood | None, command: str) -> list[Block]:
    """Return the blocks of the best candidate of a study, with the command that shows it alone."""
    said, prediction = _measured(prediction, near)
    return [
        heading("Best candidate in full"),
        Shown(macro="text", what=said),
        tiles(figures(prediction)),
        _settings(prediction),
        *whole(prediction, near, level=3),
        Shown(macro="text", what="With a timeline of its steps:"),
        Code(lines=(command,)),
    ]


def as_fragment(prediction: Prediction) -> str:
    """Return a short version of the page as an HTML fragment for a notebook."""
    bars = [
        Shown(
            macro="bar_chart",
            what=waterfall(prediction),
            about="the mean step as a sum of its parts",
        ),
        Shown(macro="bar_chart", what=busy(prediction), about="busy share of each resource"),
    ]
    blocks = [tiles(figures(prediction)), *bars]
    return fragment(prediction.scenario.name, verdict(prediction), blocks, good=prediction.fits)


def _measured(prediction: Prediction, near: Neighbourhood | None) -> tuple[str, Prediction]:
    """Return the verdict with measurements of this configuration, and the widened prediction."""
    if near is None:
        return verdict(prediction), prediction
    return f"{verdict(prediction)} {headline(prediction, near)}".rstrip(), widened(prediction, near)


def whole(prediction: Prediction, near: Neighbourhood | None = None, level: int = 2) -> list[Block]:
    """Return the blocks of a page below its verdict and settings."""
    timing, batch = prediction.timing, batch_called(prediction.scenario)
    step = waterfall(prediction)
    bars = Shown(macro="bar_chart", what=step, about=f"the mean {batch} as a sum of its parts")
    prepares = prediction.scenario.job.mode is Mode.PREPARE
    hidden = hidden_exchange(timing)
    used = Shown(macro="bar_chart", what=busy(prediction), about="busy share of each resource")
    many = batches_called(prediction.scenario)
    lanes = None if timing.trace is None else timeline(timing.trace, timing.step_time.mean, many)
    memories = [stack("Host RAM of one machine", prediction.host_ram)]
    if prediction.memory is not None:
        device = device_called(prediction.scenario)
        memories.append(stack(f"Memory of one {device}", prediction.memory))
    warnings = [text for text in prediction.warnings if not text.startswith(GUESSES)]
    outlook = prediction.outlook
    parts = (
        *section("Run", rows(run_rows(prediction, full=False))),
        *section("Tokens", rows(token_rows(prediction))),
        *section("Cost", rows(cost_rows(prediction, full=False))),
        *section("Run with failures", rows(() if outlook is None else goodput.rows(outlook))),
    )
    assumed = sorted(prediction.assumptions, key=lambda one: one.source.verified)
    return [
        *titled(
            f"{batch.capitalize()} time",
            None if prepares or not step else bars,
            *soft(f"{hidden}." if hidden and step and not prepares else ""),
            level=level,
        ),
        *titled("Utilization", used, *soft(idle(prediction)), level=level),
        *titled("Timeline", shown("lanes", lanes), level=level),
        *titled("Memory", *(Shown(macro="stacked", what=one) for one in memories), level=level),
        *section_blocks(parts, level),
        *titled("Uncertainty", *([] if near is None else _evidence(near)), level=level),
        *section_blocks(section("Warnings", notes(warnings)), level),
        *titled("Assumptions and sources", Shown(macro="assumptions", what=assumed), level=level),
    ]


def _settings(prediction: Prediction) -> Rows:
    """Return the settings as rows: machine, data, loader, model, and rent."""
    rent = prediction.cost.per_second
    price = "none is known" if rent is None else quantity(rent, USD_PER_SECOND, 4)
    return Rows(rows=(*setting_rows(prediction.scenario), ("Rent", price)))


def figures(prediction: Prediction) -> list[Tile]:
    """Return the key values as tiles."""
    timing, scenario = prediction.timing, prediction.scenario
    found = list[Tile]()
    for name, metric in (
        (batch_called(scenario), "step_time_s.mean"),
        ("run time", "total_time_s"),
        ("cost", "cost.usd_to_train"),
        ("tokens/s", "tokens_per_s"),
    ):
        value = number_at(prediction, metric)
        if value is not None:
            said = quantity(value, select(metric)[0].unit, digits_of(prediction, metric))
            between = known(prediction, metric).removeprefix(said).strip(" ()")
            said = said.removesuffix(" tokens/s")
            found.append(Tile(name=name, value=said, note=between and f"80%: {between}"))
    mfu = number_at(prediction, "mfu")
    if timing.accelerator_utilization is not None:
        digits = digits_of(prediction, "step_time_s.mean")
        note = "of the time" if mfu is None else f"of the time; MFU {100.0 * mfu:.{digits}g}%"
        computing = share_known(timing.accelerator_utilization)
        found.append(Tile(name=f"{device_called(scenario)}s compute", value=computing, note=note))
    said = marks(prediction)[timing.bottleneck]
    remarks = [] if said == "bottleneck" else [said]
    if timing.next_bottleneck is not None:
        remarks.append(f"next: {limit_called(timing.next_bottleneck, scenario)}")
    limit = limit_called(timing.bottleneck, scenario)
    return [*found, Tile(name="bottleneck", value=limit, note="; ".join(remarks))]


def _evidence(near: Neighbourhood) -> list[Block]:
    """Return blocks with the rows within reach and their errors."""
    close = replace(near, rows=tuple(r for r in near.rows if r.distance <= near.reach))
    if not close.rows:
        return [Shown(macro="text", what=_far(near))]
    table = grid(
        ("measured row", "split", "distance", "error", "what differs"),
        [
            (
                f"{one.set}: {one.row.id}",
                str(one.row.split),
                f"{one.distance:.1f}",
                f"{one.judged[0].error:+.1%}" if one.judged else "",
                apart(one),
            )
            for one in close.rows
        ],
        "<<>><",
    )
    plot = _plot(close) if len(close.rows) >= MIN_PLOTTED else None
    return [
        Shown(macro="text", what=about(close)),
        *([] if plot is None else [Shown(macro="plotted", what=plot)]),
        Shown(macro="words", what=table),
        *(Shown(macro="text", what=text) for text in score_texts(close)),
    ]


def _far(near: Neighbourhood) -> str:
    """Describe that no similar run was measured, with the distance of the nearest one."""
    nearest = min((one.distance for one in near.rows), default=None)
    if nearest is None:
        return "No measured run can be compared with this job: its error is unknown."
    return (
        f"Nothing similar was measured: the nearest of {near.compared:,} measured runs has a "
        f"distance of {nearest:.1f} (1 is a factor of two in one feature). The error is unknown."
    )


def _plot(near: Neighbourhood) -> Markup | None:
    """Plot predicted over measured values of the most frequent metric; None without values."""
    judged = [one for row in near.rows for one in row.judged if not one.absolute]
    names = [one.metric for one in judged]
    if not names:
        return None
    metric = max(dict.fromkeys(names), key=names.count)
    same = [one for one in judged if one.metric == metric]
    dots = {
        f"{split} rows": dots_of([one for one in same if one.split is split])
        for split in dict.fromkeys(one.split for one in same)
    }
    return Markup(predicted_against_measured(dots, metric, "", size=PLOT))  # noqa: S704 - drawn here, names escaped by matplotlib
