"""The report of ``plan whatif``: effects of changes, moves of the bottleneck, swaps, a tornado."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from simulator.report.document import Cell, Document, Notes, Section, Table, grid, notes, section
from simulator.report.labels import batch_called, limit_called, metric_called
from simulator.report.numbers import (
    digits_of,
    figure,
    metric_figure,
    quantity,
    rate_known,
    significant,
)
from simulator.report.prediction.rows import setting_rows
from simulator.report.prediction.verdict import verdict
from simulator.report.text import count, percent, printable
from simulator.results.metrics import number_at, select, service_figures
from simulator.results.prediction import Prediction
from simulator.studies.levers.lever import SPEED, Knob
from simulator.studies.sensitivity import Bar, Sensitivity
from simulator.studies.whatif import (
    MAX_COUNT,
    MAX_FACTOR,
    Flip,
    Generation,
    Margins,
    WhatIf,
    Worth,
    misfit,
    turning_point,
)
from simulator.units import SECOND, USD, show

if TYPE_CHECKING:
    from simulator.results.serving import ServicePrediction
    from simulator.studies.service_sizing import ChangedService

SCHEMA: Final = 1
DIGITS: Final = 3
ROUGH: Final = 2
"""Significant digits of predicted values; `DIGITS` are those of inputs."""
ROUNDING: Final = 1e-9
"""Relative rounding error of a total cost."""
_STEP: Final = "step_time_s.mean"
_RATE: Final = "throughput_samples_per_s"
_TOTAL: Final = "total_time_s"
_SHOWN: Final = {_STEP: "step", _RATE: "samples/s", _TOTAL: "run time"}


_CPU: Final = "cpu"
_CORES: Final = ("vCPUs", "vCPUs+workers")
_ENOUGH: Final = (
    "Enough vCPUs: here, where another resource becomes the busiest in simulation; in plan "
    "simulate, the CPU work at the full speed of the GPUs; in plan size cpu, the least with at "
    "most 5% loss of speed."
)
"""Note on the three definitions of enough, which differ in value."""


def document(
    found: WhatIf | tuple[ServicePrediction, Sequence[ChangedService]], metric: str
) -> Document:
    """Return the effects of changes of a job or a service on a metric as a document."""
    if not isinstance(found, WhatIf):
        return _service_document(*found, metric)
    margins, base = found.margins, found.margins.base
    scenario = base.scenario
    title = f"{scenario.name}: {scenario.title}" if scenario.title else scenario.name
    useful = [w for w in margins.worths if w.prediction is not None and margins.matters(w)]
    return Document(
        title=title,
        question=tuple(setting_rows(scenario)),
        verdict=(_now(base), verdict(base)),
        sections=(
            *section(
                f"Effect of more of each resource, by {metric_called(margins.metric)}",
                _worth_table(margins, useful),
                notes(_worth_notes(margins, useful)),
            ),
            *section(f"When the bottleneck moves away from {_limit(base)}", *_flips(found)),
            *_swap_section(found.generations),
            *_tornado_section(found.tornado),
        ),
        data=lambda: _object(found),
        table=lambda: _table(found),
    )


def _service_document(
    base: ServicePrediction, worths: Sequence[ChangedService], metric: str
) -> Document:
    """Return the effects of changes on a metric of a service, smallest value first."""
    now = service_figures(base).get(metric)

    def rounded(value: float | None) -> float | None:
        return None if value is None else float(f"{value:.3g}")

    rows: list[tuple[str, float | None, float | None]] = []
    for worth in worths:
        value = service_figures(worth.prediction).get(metric)
        ratio = value / now if value is not None and now else None
        rows.append((worth.name, value, ratio))
    rows.sort(key=lambda row: (row[2] is None, row[2] or 0.0))
    rows = [(name, rounded(value), rounded(ratio)) for name, value, ratio in rows]
    table = Table(head=("change", metric, "ratio"), rows=tuple(rows))
    shown = "none beyond saturation" if now is None else significant(now, 3)
    return Document(
        title=f"{base.service.name}: {metric} is {shown}",
        sections=section("", table),
        data=lambda: {
            "schema": SCHEMA,
            "metric": metric,
            "base": now,
            "changes": [
                {"change": name, "value": value, "ratio": ratio} for name, value, ratio in rows
            ],
        },
        table=lambda: table,
    )


def _now(prediction: Prediction) -> str:
    timing, digits = prediction.timing, digits_of(prediction, _TOTAL)
    paid = "price unknown"
    if prediction.in_all is not None:
        paid = quantity(prediction.in_all, USD, digits)
    long = quantity(timing.step_time.mean, SECOND, digits_of(prediction, _STEP))
    return (
        f"Now: {batch_called(prediction.scenario)} {long}, {rate_known(prediction)} samples/s, "
        f"run time {quantity(timing.total_time, SECOND, digits)}, {paid}."
    )


def _limit(prediction: Prediction) -> str:
    return limit_called(prediction.timing.bottleneck, prediction.scenario)


def _worth_table(margins: Margins, useful: Sequence[Worth]) -> Table | None:
    head = _heading(margins)
    rows = [_row(margins, worth) for worth in useful]
    return grid(head, rows, "<" + ">" * (len(head) - 1))


def _heading(margins: Margins) -> list[str]:
    priced = margins.base.cost.per_second is not None
    scenario = margins.base.scenario
    money = ["total", "saved per $"] if priced else []
    own = [] if margins.metric in _SHOWN else [metric_called(margins.metric)]
    shown = [name.replace("step", batch_called(scenario)) for name in _SHOWN.values()]
    return ["", "now", "then", *own, *shown, *money]


def _row(margins: Margins, worth: Worth) -> list[str]:
    knob = worth.change.knob
    after = worth.prediction
    name = printable(worth.change.name)
    cells = [name, value_text(knob, knob.value), value_text(knob, worth.change.value)]
    if margins.metric not in _SHOWN and after is not None:
        cells.append(metric_figure(margins.metric, number_at(after, margins.metric)))
    cells += [_signed(margins.effect(worth, metric)) for metric in _SHOWN]
    if margins.base.cost.per_second is not None:
        cells += [_dollars(margins.base.in_all, worth.to_train), _per_dollar(margins, worth)]
    return cells


def _signed(share: float | None) -> str:
    if share is None:
        return "-"
    change = 100.0 * share
    places = 0 if abs(change) >= 9.95 else 1  # noqa: PLR2004 - rounding edge
    # Adding zero turns minus zero into plus zero.
    near = round(change, places) + 0.0
    return f"{near:+.{places}f}%" if near else "0%"


def _dollars(before: float | None, after: float | None) -> str:
    if before is None or after is None:
        return "-"
    more = after - before
    if abs(more) < ROUNDING * before:
        return show(0.0, USD, DIGITS)
    return f"{'-' if more < 0.0 else '+'}{quantity(abs(more), USD, ROUGH)}"


def _per_dollar(margins: Margins, worth: Worth) -> str:
    if worth.rent == 0.0:
        return "no added price"
    if worth.per_dollar is None:
        return "unknown"
    dearer = (worth.to_train or 0.0) > (1.0 + ROUNDING) * (margins.base.in_all or math.inf)
    return "-" if dearer else quantity(worth.per_dollar, USD, ROUGH)


def _worth_notes(margins: Margins, useful: Sequence[Worth]) -> Iterator[str]:
    if useful:
        last = "run time" if margins.base.cost.per_second is None else "total"
        yield f"Columns from {batch_called(margins.base.scenario)} to {last} are changes."
    tried = [w for w in margins.worths if w.prediction is not None and not margins.matters(w)]
    idle = [w.change.name for w in tried if not margins.is_open(w)]
    if idle:
        yield f"No effect (below {percent(margins.floor)}): {', '.join(idle)}"
    for worth in tried:
        if margins.is_open(worth):
            effect, noise = _signed(margins.effect(worth)), percent(margins.noise(worth))
            yield f"{worth.change.name}: {effect} is within noise ({noise})"
    for worth in margins.worths:
        if worth.prediction is None:
            yield f"Not possible: {worth.change.name}: {worth.reason}"
        elif misfit(worth.prediction) and not misfit(margins.base):
            yield f"Does not fit: {worth.change.name} needs more {misfit(worth.prediction)}"
    yield from _price_notes(margins, useful)


def _price_notes(margins: Margins, useful: Sequence[Worth]) -> Iterator[str]:
    if margins.base.cost.per_second is None:
        yield "The price of the machines is unknown: set cost.price."
        return
    if any(w.per_dollar is not None for w in useful):
        yield "saved per $: dollars saved per dollar spent; above $1 a change pays for itself"
    unpriced = [w.change.name for w in useful if w.rent is None]
    if unpriced:
        yield (
            "unknown: the price of the change is not in the total; give it, such as "
            f"--price '{unpriced[0]}=$0.50/h'"
        )


def value_text(knob: Knob, value: float) -> str:
    """Format the value of a resource with its unit.

    Examples
    --------
    >>> value_text(Knob(name="workers", value=8, settings=None), 12.0)
    '12'
    """
    if knob.unit is None:
        return count(value) if knob.whole else f"{value:.3g}"
    return f"{value:.3g}x" if knob.unit is SPEED else show(value, knob.unit, DIGITS)


def _flips(found: WhatIf) -> tuple[Table | None, Notes]:
    scenario = found.margins.base.scenario
    rows = [_flip_row(flip, limit_called(flip.after, scenario)) for flip in found.flips]
    moved = {flip.knob.name for flip in found.flips}
    still = [knob.name for knob in found.turned if knob.name not in moved]
    texts = []
    if still:
        texts.append(
            f"Never the limit, even {MAX_FACTOR:g}x larger or smaller (counts up to "
            f"{MAX_COUNT:g}): {', '.join(still)}"
        )
    if found.margins.base.timing.bottleneck == _CPU and any(name in moved for name in _CORES):
        texts.append(_ENOUGH)
    return grid((), rows, "<<<"), notes(texts)


def _rough(knob: Knob, value: float) -> float:
    """Round a value to `ROUGH` digits; small counts are not rounded."""
    near = float(f"{value:.{ROUGH}g}")
    return value if knob.whole and abs(near - value) < 1.0 else near


def _flip_row(flip: Flip, after: str) -> tuple[str, ...]:
    knob = flip.knob
    at = value_text(knob, _rough(knob, flip.at))
    bound = f"limited by {after}" if " " in after else f"{after}-bound"
    where = f"{bound} at {at} or {'more' if flip.rises else 'less'}"
    return (printable(knob.name), f"now {value_text(knob, knob.value)}", where)


def _object(found: WhatIf) -> dict[str, Any]:
    margins = found.margins
    base = margins.base
    return {
        "schema": SCHEMA,
        "scenario": base.scenario.name,
        "seed": base.seed,
        "metric": margins.metric,
        "now": {
            **{name: number_at(base, name) for name in (*_SHOWN, margins.metric)},
            "cost.usd_to_train": base.in_all,
            "bottleneck": base.timing.bottleneck,
            "next_bottleneck": base.timing.next_bottleneck,
        },
        "negligible": margins.floor,
        "changes": [_worth_object(margins, worth) for worth in margins.worths],
        "flips": [_flip_object(flip) for flip in found.flips],
        "generations": found.generations and [_generation_object(g) for g in found.generations],
        "tornado": _tornado_object(found.tornado),
    }


def _table(found: WhatIf) -> Table:
    """Return a row for the unchanged job and for each change, in SI units; effects as fractions."""
    margins = found.margins
    names = tuple(dict.fromkeys((*_SHOWN, "cost.usd_to_train", margins.metric)))
    head = (
        *("change", "now", "then", "unit", "possible", "fits", "matters", *names),
        *(f"effect on {name}" for name in names),
        *("added_usd_per_s", "saved_per_usd", "reason"),
    )
    now: tuple[Cell, ...] = (
        *("as it is", None, None, "", "yes", "yes" if margins.base.fits else "no", ""),
        *(number_at(margins.base, name) for name in names),
        *([0.0] * len(names)),
        *(None, None, ""),
    )
    rows: list[tuple[Cell, ...]] = []
    for worth in margins.worths:
        known = _worth_object(margins, worth)
        answers = ("yes" if known[key] else "no" for key in ("possible", "fits", "matters"))
        rows.append(
            (
                *(known["change"], known["now"], known["then"], known["unit"] or "", *answers),
                *(known["figures"].get(name) for name in names),
                *(known["relative"].get(name) for name in names),
                *(known["added_usd_per_s"], known["saved_per_usd"], worth.reason),
            )
        )
    return Table(head=head, rows=(now, *rows))


def _worth_object(margins: Margins, worth: Worth) -> dict[str, Any]:
    after, knob = worth.prediction, worth.change.knob
    names = (*_SHOWN, "cost.usd_to_train", margins.metric)
    return {
        "change": worth.change.name,
        "now": knob.value,
        "then": worth.change.value,
        "unit": None if knob.unit is None else knob.unit.symbol,
        "settings": None if knob.settings is None else dict(knob.settings(worth.change.value)),
        "possible": after is not None,
        "reason": worth.reason or None,
        "fits": worth.fits,
        "matters": after is not None and margins.matters(worth),
        "figures": {} if after is None else {name: number_at(after, name) for name in names},
        "relative": {name: margins.effect(worth, name) for name in names},
        "added_usd_per_s": worth.rent,
        "usd_to_train": worth.to_train,
        "saved_usd": worth.saved,
        "spent_usd": worth.spent,
        "saved_per_usd": worth.per_dollar,
    }


def _flip_object(flip: Flip) -> dict[str, Any]:
    knob = flip.knob
    return {
        "resource": knob.name,
        "now": knob.value,
        "at": flip.at,
        "factor": flip.at / knob.value,
        "unit": None if knob.unit is None else knob.unit.symbol,
        "direction": "more" if flip.rises else "less",
        "from": flip.before,
        "to": flip.after,
    }


def _swap_section(found: Sequence[Generation] | None) -> tuple[Section, ...]:
    if not found:
        return ()
    head = ("accelerator", "step", "samples/s", "possible", "vCPUs each", "has", "limited by", "")
    ran = [_generation(one) for one in found if one.prediction is not None]
    return section(
        "Accelerator swapped, machine held fixed",
        grid(head, ran, "<>>>>><<"),
        notes(_swap_notes(found)),
    )


def _generation(one: Generation) -> tuple[str, ...]:
    prediction = one.prediction
    if prediction is None:
        return ("",) * 8
    timing, need = prediction.timing, prediction.cpu_need
    group = prediction.scenario.cluster.trainers
    there = group.host.cpu.threads / max(1, group.gpus_per_host)
    limit = limit_called(timing.bottleneck, prediction.scenario)
    memory = {True: "", False: "does not fit its memory", None: "memory unknown"}
    marks = ("its own" if one.own else "", memory[one.fits])
    return (
        printable(one.gpu),
        show(timing.step_time.mean, SECOND),
        count(timing.throughput),
        count(one.possible),
        "-" if need is None else count(need.per_gpu),
        count(there),
        f"{limit}, starved" if one.starved else limit,
        ", ".join(mark for mark in marks if mark),
    )


def _swap_notes(found: Sequence[Generation]) -> Iterator[str]:
    turn = turning_point(found)
    if turn is None:
        yield "The job is CPU-bound with none of them."
    elif turn.prediction is not None and turn.prediction.cpu_need is not None:
        need = count(turn.prediction.cpu_need.per_gpu)
        yield (f"CPU-bound from {turn.gpu} on, which needs {need} of the machine's vCPUs each.")
    yield "Prices with another accelerator are unknown; set cost.price."
    refused: dict[str, list[str]] = {}
    for one in found:
        if one.prediction is None:
            refused.setdefault(one.reason.replace(one.gpu, "it"), []).append(one.gpu)
    for reason, names in refused.items():
        yield f"Not possible: {', '.join(names)}: {reason}"


def _generation_object(one: Generation) -> dict[str, Any]:
    after = one.prediction
    if after is None:
        return {"gpu": one.gpu, "possible": False, "reason": one.reason}
    need = after.cpu_need
    return {
        "gpu": one.gpu,
        "possible": True,
        "own": one.own,
        "step_time_s.mean": after.timing.step_time.mean,
        "throughput_samples_per_s": after.timing.throughput,
        "unstarved_samples_per_s": one.possible,
        "vcpus_needed_per_gpu": None if need is None else need.per_gpu,
        "bottleneck": after.timing.bottleneck,
        "starved": one.starved,
        "cpu_bound": one.cpu_bound,
        "fits_gpu": one.fits,
    }


CHART: Final = 36
"""Columns of the widest bar of a tornado."""
NARROW: Final = 0.002
"""Width over the metric below which a rate does not matter."""


def _tornado_section(found: Sensitivity | None) -> tuple[Section, ...]:
    if found is None:
        return ()
    unit = select(found.metric)[0].unit
    wide = [bar for bar in found.bars if bar.width > NARROW * abs(found.base)]
    ends = [end for bar in wide for end in (bar.slow, bar.fast)]
    low, high = min((found.base, *ends)), max((found.base, *ends))
    rows = [
        (
            bar.rate,
            f"+-{percent(bar.log_sd)}",
            figure(bar.slow, unit),
            _drawn(bar, found.base, low, high),
            figure(bar.fast, unit),
        )
        for bar in wide
    ]
    narrow = [bar.rate for bar in found.bars if bar not in wide]
    texts = [f"no effect: {', '.join(narrow)}"] if narrow else []
    if found.correlated:
        texts.append("some of these rates are correlated; a tornado leaves that out")
    base = figure(found.base, unit)
    return section(
        f"Tornado: {metric_called(found.metric)} is {base}; one rate at a time at P10 and at P90",
        grid(("rate", "1 sigma", "slow", "", "fast"), rows, "<>><<"),
        notes(texts),
    )


def _drawn(bar: Bar, base: float, low: float, high: float) -> str:
    """Draw a bar between both values in characters, with a stroke at the present value."""
    span = high - low

    def place(value: float) -> int:
        return round(CHART * (value - low) / span)

    start, middle, end = (
        place(v) for v in (min(bar.slow, bar.fast), base, max(bar.slow, bar.fast))
    )
    cells = ["#" if start <= i < end else " " for i in range(CHART + 1)]
    cells[middle] = "|"
    return "".join(cells)


def _tornado_object(found: Sensitivity | None) -> dict[str, Any] | None:
    if found is None:
        return None
    return {
        "metric": found.metric,
        "base": found.base,
        "rates": [
            {"rate": bar.rate, "log_sd": bar.log_sd, "p10": bar.slow, "p90": bar.fast}
            for bar in found.bars
        ],
        "correlated": found.correlated,
    }
