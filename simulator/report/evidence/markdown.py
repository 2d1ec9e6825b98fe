"""The table of errors as a Markdown document: how accurate predictions are, set by set."""

from __future__ import annotations

from simulator.report.evidence.text import (
    HEAD,
    LEGEND,
    REGIME_HEAD,
    TOLERANCE_HEAD,
    WORST_HEAD,
    band_lines,
    cells,
    tolerance_rows,
    worst_rows,
)
from simulator.report.evidence.unseen import as_page
from simulator.report.markdown import escaped, table
from simulator.uncertainty.measurement import MeasurementSet
from simulator.validation.unseen import LeftOut
from simulator.validation.validate import Validated

COMMAND = "plan validate --markdown docs/accuracy.md"
WORST = 10
"""Rows of each set that are named with their errors."""


INTERPOLATION = "Interpolation"
_HELD_OUT = (
    "The tables below hold out configurations by a hash: nothing was fitted to a test row, but "
    "others of its series were mostly fitted to. They tell of jobs that are akin to measured ones."
)


def as_markdown(found: Validated, left_out: LeftOut | None = None) -> str:
    """The document, with a final line end; what leaving series out found comes first."""
    about = (
        f"Written by `{COMMAND}`; every row behind it is predicted anew by `plan validate`. "
        "What a measurement set is: [evidence-format.md](evidence-format.md).\n"
    )
    overall = " ".join(line.strip() for line in band_lines(found.bands))
    parts = ["# Accuracy\n", about]
    if left_out is not None:
        parts += [as_page(left_out), f"## {INTERPOLATION}\n", f"{_HELD_OUT}\n"]
    parts += [f"{LEGEND}\n", *([f"{overall}\n"] if overall else [])]
    parts += [_set(found, one) for one in found.sets]
    return "\n".join(parts)


def _set(found: Validated, one: MeasurementSet) -> str:
    source = f"{one.source.reference}, {one.source.date}"
    parts = [f"### {one.name}\n", f"{escaped(one.title)}. {len(one.rows):,} rows.\n"]
    parts.append(f"Source: {escaped(source)}.\n")
    for metric in one.metrics:
        families = [f for f in found.families if (f.set, f.metric) == (one.name, metric)]
        totals = [f for f in found.totals if (f.set, f.metric) == (one.name, metric)]
        several = len({family.name for family in families}) > 1
        kind = "differences in points" if metric in one.absolute else "relative errors"
        parts.append(f"`{metric}`, {kind}; naive: {one.baseline}\n")
        rows = [cells(family) for family in (*families, *(totals if several else []))]
        parts.append(table(HEAD, rows))
        regimes = [f for f in found.regimes if (f.set, f.metric) == (one.name, metric)]
        if regimes:
            parts.append(f"`{metric}` by regime; a row may lie in several:\n")
            parts.append(table(REGIME_HEAD, [cells(regime) for regime in regimes]))
    own = [f for f in (*found.families, *found.totals) if f.set == one.name]
    limits = list(tolerance_rows(own))
    if limits:
        parts += [
            "Tolerances on test rows:\n",
            table(TOLERANCE_HEAD[:-1], [r[:-1] for r in limits]),
        ]
    worst = worst_rows((one_row for one_row in found.judged if one_row.set == one.name), WORST)
    if worst:
        parts.append(f"Worst {len(worst)} rows, whatever they were used for:\n")
        parts.append(table(WORST_HEAD[1:], [row[1:] for row in worst]))
    reasons = dict.fromkeys(left.reason for left in found.left if left.set == one.name)
    if reasons:
        left = [f"- {_count(found, one.name, reason)}: {escaped(reason)}" for reason in reasons]
        parts.append("Left out:\n\n" + "\n".join(left) + "\n")
    return "\n".join(parts)


def _count(found: Validated, name: str, reason: str) -> str:
    number = sum(1 for left in found.left if (left.set, left.reason) == (name, reason))
    return "1 row" if number == 1 else f"{number:,} rows"
