"""What each resource is worth and where the limit moves, for reading and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from simulator.report.format.table import Cell, Table, as_markdown
from simulator.report.labels import batch_called, bill_called, limit_called, metric_called
from simulator.report.numbers import digits_of, metric_figure, quantity, rate_known
from simulator.report.prediction.rows import head
from simulator.report.prediction.verdict import verdict
from simulator.report.text import (
    WIDTH,
    columns,
    count,
    percent,
    printable,
    section,
    wrapped,
)
from simulator.report.whatif.accelerator_swap import swap_json, swap_lines
from simulator.report.whatif.rates import tornado_json, tornado_lines
from simulator.results.metrics import number_at
from simulator.results.prediction import Prediction
from simulator.studies.levers.lever import SPEED, Knob
from simulator.studies.whatif import MAX_COUNT, MAX_FACTOR, Flip, Margins, WhatIf, Worth, misfit
from simulator.units import SECOND, USD, show

SCHEMA: Final = 1
DIGITS: Final = 3
ROUGH: Final = 2
"""Significant digits of what is predicted of a change, where `DIGITS` are those of an input."""
ROUNDING: Final = 1e-9
"""Share of a bill that sums of floats may be off by."""
_STEP: Final = "step_time_s.mean"
_RATE: Final = "throughput_samples_per_s"
_TOTAL: Final = "total_time_s"
_SHOWN: Final = {_STEP: "step", _RATE: "samples/s", _TOTAL: "whole run"}


_CPU: Final = "cpu"
_CORES: Final = ("vCPUs", "vCPUs+workers")
_ENOUGH: Final = (
    "enough here is from where on something else is the busiest, by simulation; in plan simulate "
    "what the CPUs work at the full speed of the GPUs over what a busy vCPU does; in plan size cpu "
    "the least that loses no more than 5% of the speed"
)
"""Three meanings of enough, each with a figure of its own."""


def as_text(found: WhatIf) -> str:
    """The report, `WIDTH` columns wide."""
    margins = found.margins
    lines = [
        *(line for text in head(margins.base) for line in wrapped(text, width=WIDTH)),
        "",
        *wrapped(now(margins.base), hang="", width=WIDTH),
        *section(_title(margins), _worth_lines(margins)),
        *section(f"What would move the limit away from {_limit(margins.base)}", _flip_lines(found)),
        *swap_lines(found.generations),
        *tornado_lines(found.tornado),
    ]  # fmt: skip
    return "\n".join(lines)


def now(prediction: Prediction) -> str:
    """The job as it is, in a few sentences."""
    timing = prediction.timing
    digits = digits_of(prediction, _TOTAL)
    paid = "no price known"
    if prediction.in_all is not None:
        paid = f"{quantity(prediction.in_all, USD, digits)} for it"
    long = quantity(timing.step_time.mean, SECOND, digits_of(prediction, _STEP))
    return (
        f"Now: {batch_called(prediction.scenario)} {long}, {rate_known(prediction)} samples/s, "
        f"{quantity(timing.total_time, SECOND, digits)} in all, {paid}. {verdict(prediction)}"
    )


def _title(margins: Margins) -> str:
    return f"What more of each is worth, by its effect on {metric_called(margins.metric)}"


def _limit(prediction: Prediction) -> str:
    return limit_called(prediction.timing.bottleneck, prediction.scenario)


def _worth_lines(margins: Margins) -> list[str]:
    useful = [w for w in margins.worths if w.prediction is not None and margins.matters(w)]
    rows = [_heading(margins), *(_row(margins, worth) for worth in useful)]
    table = columns(rows, "<>>" + ">" * (len(rows[0]) - 3)) if useful else []
    return [*table, *(line for text in _below(margins, useful) for line in wrapped(text))]


def _heading(margins: Margins) -> list[str]:
    priced = margins.base.cost.per_second is not None
    scenario = margins.base.scenario
    money = [bill_called(scenario), "saved per $"] if priced else []
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
        cells += [_dollars(margins.base.in_all, worth.to_train), _per_dollar(worth)]
    return cells


def _signed(share: float | None) -> str:
    """A change to two digits, and no finer than a tenth of a per cent."""
    if share is None:
        return "-"
    change = 100.0 * share
    places = 0 if abs(change) >= 9.95 else 1  # noqa: PLR2004 - rounding edge
    # Adding zero makes what rounds to minus zero a zero, with the sign of a number above it.
    near = round(change, places) + 0.0
    return f"{near:+.{places}f}%" if near else "0%"


def _dollars(before: float | None, after: float | None) -> str:
    if before is None or after is None:
        return "-"
    more = after - before
    if abs(more) < ROUNDING * before:
        return show(0.0, USD, DIGITS)
    return f"{'-' if more < 0.0 else '+'}{quantity(abs(more), USD, ROUGH)}"


def _per_dollar(worth: Worth) -> str:
    if worth.rent == 0.0:
        return "free"
    return "no price" if worth.per_dollar is None else quantity(worth.per_dollar, USD, ROUGH)


def _below(margins: Margins, useful: Sequence[Worth]) -> Iterator[str]:
    worths = margins.worths
    tried = [w for w in worths if w.prediction is not None and not margins.matters(w)]
    idle = [w.change.name for w in tried if not margins.is_open(w)]
    if idle:
        yield f"No effect (below {percent(margins.floor)}): {', '.join(idle)}"
    for worth in tried:
        if margins.is_open(worth):
            yield (
                f"Not known: {worth.change.name}: {_signed(margins.effect(worth))} of "
                f"{metric_called(margins.metric)}, which simulations know to "
                f"{percent(margins.noise(worth))}"
            )
    for worth in worths:
        if worth.prediction is None:
            yield f"Not possible: {worth.change.name}: {worth.reason}"
        elif misfit(worth.prediction) and not misfit(margins.base):
            yield f"Does not fit: {worth.change.name} needs more {misfit(worth.prediction)}"
    if margins.base.cost.per_second is None:
        yield "No price of the machines is known: give cost.price for dollars."
        return
    unpriced = [w.change.name for w in useful if w.rent is None]
    if any(w.per_dollar is not None for w in useful):
        yield (
            "saved per $: rent that a shorter run saves for each dollar that the change costs "
            "meanwhile; above $1 it pays for itself"
        )
    if unpriced:
        yield (
            "no price: not in the rent above, so its saving is not net; give one as in "
            f"--price '{unpriced[0]}=$0.50/h'"
        )


def value_text(knob: Knob, value: float) -> str:
    """A knob's value as a user would write it.

    Examples
    --------
    >>> value_text(Knob(name="workers", value=8, settings=None), 12.0)
    '12'
    """
    if knob.unit is None:
        return count(value) if knob.whole else f"{value:.3g}"
    return f"{value:.3g} x" if knob.unit is SPEED else show(value, knob.unit, DIGITS)


def _flip_lines(found: WhatIf) -> list[str]:
    scenario = found.margins.base.scenario
    rows = [_flip_row(flip, limit_called(flip.after, scenario)) for flip in found.flips]
    lines = columns(rows, "<<<<")
    moved = {flip.knob.name for flip in found.flips}
    still = [knob.name for knob in found.turned if knob.name not in moved]
    if still:
        text = (
            f"Not moved by {MAX_FACTOR:g} times more or less, nor by up to {MAX_COUNT:g} of what "
            f"is counted: {', '.join(still)}"
        )
        lines += wrapped(text)
    if found.margins.base.timing.bottleneck == _CPU and any(name in moved for name in _CORES):
        lines += wrapped(_ENOUGH)
    return lines


def _rough(knob: Knob, value: float) -> float:
    """Where the limit moves to `ROUGH` digits; what is counted one by one stays as it is."""
    near = float(f"{value:.{ROUGH}g}")
    return value if knob.whole and abs(near - value) < 1.0 else near


def _flip_row(flip: Flip, after: str) -> tuple[str, ...]:
    knob = flip.knob
    at = value_text(knob, _rough(knob, flip.at))
    where = f"from {at} on" if flip.rises else f"at {at} or less"
    return (
        printable(knob.name),
        f"now {value_text(knob, knob.value)}",
        where,
        f"then {after} limits",
    )


def as_object(found: WhatIf) -> dict[str, Any]:
    """The same as plain dictionaries, in SI units; shares as fractions."""
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
        "generations": swap_json(found.generations),
        "tornado": tornado_json(found.tornado),
    }


def as_table(found: WhatIf) -> Table:
    """The job as it is and each change, in SI units; effects as fractions of what is now."""
    margins = found.margins
    names = tuple(dict.fromkeys((*_SHOWN, "cost.usd_to_train", margins.metric)))
    head = ("change", "now", "then", "unit", "possible", "fits", "matters", *names)
    effects = tuple(f"effect on {name}" for name in names)
    base = [number_at(margins.base, name) for name in names]
    fits = "yes" if margins.base.fits else "no"
    now_: tuple[Cell, ...] = (
        "as it is",
        None,
        None,
        "",
        "yes",
        fits,
        "",
        *base,
        *[0.0] * len(names),
    )
    rows = (_cells(margins, worth, names) for worth in margins.worths)
    own = ("added_usd_per_s", "saved_per_usd", "reason")
    return Table(head=(*head, *effects, *own), rows=((*now_, None, None, ""), *rows))


def _cells(margins: Margins, worth: Worth, names: Sequence[str]) -> tuple[Cell, ...]:
    told = _worth_object(margins, worth)
    answers = ("yes" if told[key] else "no" for key in ("possible", "fits", "matters"))
    return (
        *(told["change"], told["now"], told["then"], told["unit"] or "", *answers),
        *(told["figures"].get(name) for name in names),
        *(told["relative"].get(name) for name in names),
        *(told["added_usd_per_s"], told["saved_per_usd"], worth.reason),
    )


def as_page(found: WhatIf) -> str:
    """The changes that matter, as the report shows them."""
    margins = found.margins
    useful = [w for w in margins.worths if w.prediction is not None and margins.matters(w)]
    rows = tuple(tuple(_row(margins, worth)) for worth in useful)
    return as_markdown(Table(head=tuple(_heading(margins)), rows=rows))


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
