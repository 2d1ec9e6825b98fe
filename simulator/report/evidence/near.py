"""The measured rows most like a scenario, as text and as JSON."""

from __future__ import annotations

import json
from typing import Any, Final

from simulator.report.evidence.text import share
from simulator.report.labels import metric_called
from simulator.report.numbers import figure
from simulator.report.text import columns, printable, section, wrapped
from simulator.results.metrics import select
from simulator.results.prediction import Prediction
from simulator.validation.local_coverage import Near, Neighbourhood, measured_here

NARROW: Final = 80
"""Columns of this report: it is read in a terminal."""


def as_text(found: Neighbourhood) -> str:
    """The nearest rows, how far each is and why, and the error there."""
    if not found.rows:
        return "no measured row could be compared with the scenario"
    text = about(found)
    head = ("distance", "error", "split", "set: row")
    first = columns([head, *(_row(near) for near in found.rows)], ">><<")
    lines = [*wrapped(text, hang="", width=NARROW), "", first[0]]
    for near, line in zip(found.rows, first[1:], strict=True):
        lines += wrapped(line, hang=_HANG, width=NARROW)
        lines += wrapped(f"{_HANG}{printable(apart(near))}", hang=_HANG, width=NARROW)
    scores = [line for text in score_lines(found) for line in wrapped(text, width=NARROW - 2)]
    return "\n".join([*lines, *section("Error there", scores)])


def about(found: Neighbourhood) -> str:
    """What is listed, and what a distance means."""
    rows = "measured row" if len(found.rows) == 1 else f"{len(found.rows)} measured rows"
    return (
        f"The {rows} most like {printable(found.scenario)}, of "
        f"{found.compared:,}. A distance of 1 is a factor of two in one feature; another "
        "accelerator, model or precision counts 2."
    )


def headline(prediction: Prediction, found: Neighbourhood) -> str:
    """What was measured at this very configuration, if it was, and what that did to intervals."""
    here = measured_here(prediction, found)
    if not here:
        return ""
    first = here[0]
    value = figure(first.measured, select(first.metric)[0].unit)
    rows = len({(one.set, one.id) for one in here})
    others = f" and {rows - 1} more" if rows > 1 else ""
    wider = "; the intervals are widened to hold it" if any(one.outside for one in here) else ""
    return (
        f"Measured at this very configuration: {metric_called(first.metric)} {value}, "
        f"{first.ratio:.3g} times what is predicted ({first.set}: {first.id}{others}){wider}."
    )


_HANG: Final = " " * 10


def _row(near: Near) -> tuple[str, ...]:
    first = near.judged[0] if near.judged else None
    return (
        f"{near.distance:.1f}",
        "" if first is None else f"{100.0 * first.error:+.1f}%",
        str(near.row.split),
        f"{printable(near.set)}: {printable(near.row.id)}",
    )


def apart(near: Near) -> str:
    """How far a row is by feature."""
    features = "; ".join(f"{name} {what}" for name, what in near.apart.items())
    return f"differs in {features}" if features else "differs in nothing"


def score_lines(found: Neighbourhood) -> list[str]:
    """The errors of the rows within reach, metric by metric; how many rows that are."""
    within = sum(near.distance <= found.reach for near in found.rows)
    if not within:
        return [f"not known: no measured row lies within a distance of {found.reach:.1f}"]
    lines = [f"over the {_rows(within)} within a distance of {found.reach:.1f}:"]
    for metric, score in found.scores.items():
        lines.append(
            f"{metric}: median {share(score.median)}, mean {share(score.mean)}, largest "
            f"{share(score.largest)} ({_rows(score.rows)})"
        )
    return lines


def _rows(count: int) -> str:
    return "1 row" if count == 1 else f"{count} rows"


def as_json(found: Neighbourhood) -> str:
    """The nearest rows as one JSON object."""
    tree: dict[str, Any] = {
        "schema": 1,
        "scenario": found.scenario,
        "compared": found.compared,
        "reach": found.reach,
        "nearest": [
            {
                "set": near.set,
                "id": near.row.id,
                "family": near.row.family,
                "split": str(near.row.split),
                "distance": near.distance,
                "differs": dict(near.apart),
                "errors": {one.metric: one.error for one in near.judged},
            }
            for near in found.rows
        ],
        "errors": {
            metric: {
                "rows": score.rows,
                "median_abs_error": score.median,
                "mean_abs_error": score.mean,
                "max_abs_error": score.largest,
            }
            for metric, score in found.scores.items()
        },
    }
    return json.dumps(tree, indent=2, ensure_ascii=False, allow_nan=False)
