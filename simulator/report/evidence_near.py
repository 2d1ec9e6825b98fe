"""The measured rows most like a scenario, as text and as JSON."""

from __future__ import annotations

import json
from typing import Any

from simulator.report.evidence import share
from simulator.report.layout import WIDTH, columns, printable, section, wrapped
from simulator.studies.nearest import Near, Neighbourhood


def as_text(found: Neighbourhood) -> str:
    """The nearest rows, how far each is and why, and the error there."""
    if not found.rows:
        return "no measured row could be compared with the scenario"
    head = ("distance", "set", "row", "split", "error", "differs most in")
    rows = [head, *(_row(near) for near in found.rows)]
    scores = [
        f"{metric}: median error {share(score.median)}, mean {share(score.mean)}, "
        f"largest {share(score.largest)} over {_rows(score.rows)}"
        for metric, score in found.scores.items()
    ]
    name = printable(found.scenario)
    text = (
        f"The {len(found.rows)} measured rows most like {name}, of {found.compared:,}. A distance "
        f"of 1 is a factor of two in one feature; another accelerator, model or precision counts 2."
    )
    lines = [
        *wrapped(text, hang="", width=WIDTH),
        "",
        *(_clipped(line) for line in columns(rows, "><<<><")),
        *section("Error there", scores),
    ]
    return "\n".join(lines)


def _rows(count: int) -> str:
    return "1 row" if count == 1 else f"{count} rows"


def _clipped(line: str) -> str:
    return line if len(line) <= WIDTH else f"{line[: WIDTH - 3]}..."


def _row(near: Near) -> tuple[str, ...]:
    first = near.judged[0] if near.judged else None
    apart = "; ".join(f"{name} {what}" for name, what in near.apart.items())
    return (
        f"{near.distance:.1f}",
        printable(near.set),
        printable(near.row.id),
        str(near.row.split),
        "" if first is None else f"{100.0 * first.error:+.1f}%",
        printable(apart) or "nothing",
    )


def as_json(found: Neighbourhood) -> str:
    """The nearest rows as one JSON object."""
    tree: dict[str, Any] = {
        "schema": 1,
        "scenario": found.scenario,
        "compared": found.compared,
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
