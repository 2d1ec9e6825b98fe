"""The report of ``plan validate --unseen``: errors for series without own fitted values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median
from typing import Any, Final

import numpy as np

from simulator.report.document import Cell, Document, Table, grid, notes, section
from simulator.report.evidence import ALL, NAME_WIDTH, WORST_HEAD, share, worst_rows
from simulator.report.markdown import escaped, table
from simulator.report.text import printable
from simulator.validation.scores import Judged
from simulator.validation.unseen import (
    MIN_UNSEEN_FIGURES,
    UNSEEN_COVERAGE,
    UNSEEN_FAMILY_COVERAGE,
    LeftOut,
    Speedup,
    Unseen,
)
from simulator.validation.validate import EVERY_FAMILY
from simulator.version import __version__

HEAD: Final = (
    *("series", "rows", "median", "p90", "in series", "p90", "in band", "in series"),
    *("score", "one width"),
)
ALIGN: Final = "<>>>>>>>>>"
MAX_WORST: Final = 10
TITLE: Final = "Series that nothing was fitted to"
ABOUT: Final = (
    "Each series is predicted with figures fitted without it and its siblings; in series: with the "
    "shipped figures. In band: measured values within P10 to P90, which should be "
    "80%. Score: interval (Winkler) score, less is better; one width: that of the single relative "
    "width that would have served all these rows best."
)
SPEEDUP_HEAD: Final = ("set", "from", "to", "pairs", "measured", "predicted", "median", "p90")
SPEEDUP_ALIGN: Final = "<<<>>>>>"
ABOUT_SPEEDUPS: Final = (
    "Pairs of runs that differ only in the accelerator: median speed-up of the faster one, "
    "and the error of the predicted speed-up."
)
_UNKNOWN: Final = "unknown"


def document(found: LeftOut, worst: int = 0) -> Document:
    """Return the errors on unseen series as a document, with the `worst` rows of all sets."""
    rows = worst_rows(found.judged, worst)
    pairs = found.speedups
    return Document(
        verdict=(ABOUT,),
        sections=(
            *(
                part
                for name, metric in _metrics(found)
                for part in section(
                    f"{name}: {metric}",
                    grid(HEAD, map(_cells, _of(found, name, metric)), ALIGN),
                )
            ),
            *section(
                "From one accelerator to a faster one",
                notes([ABOUT_SPEEDUPS] if pairs else []),
                grid(SPEEDUP_HEAD, _speedup_rows(pairs) if pairs else [], SPEEDUP_ALIGN),
            ),
            *section("Predicted with figures of their own", notes(_resting(found))),
            *section("Coverage is off", notes(_off(found))),
            *section(f"Worst {worst} rows", grid(WORST_HEAD, rows, "<<<<>>>>>")),
        ),
        data=lambda: _tree(found),
        table=lambda: _table(found),
    )


def _tree(found: LeftOut) -> dict[str, Any]:
    return {
        "schema": 1,
        "version": __version__,
        "unseen": [_object(one) for one in found.families],
        "speedups": [
            {
                "set": one.set,
                "from": one.slower,
                "to": one.faster,
                "rows": list(one.rows),
                "measured": one.measured,
                "predicted": one.predicted,
            }
            for one in found.speedups
        ],
        "resting_on_own_figures": dict(found.resting),
        "coverage_off": [{"set": one.set, "family": one.name} for one in found.off],
    }


def _table(found: LeftOut) -> Table:
    """Return a row for each family of measured rows and metric; errors as fractions."""
    keys = tuple(_object(found.families[0])) if found.families else ("set",)
    rows = tuple(tuple(_object(one).values()) for one in found.families)
    return Table(head=keys, rows=rows)


def page(found: LeftOut) -> str:
    """Return the section on unseen series of the accuracy document, in Markdown."""
    parts = [f"## {TITLE}\n", f"{ABOUT}\n"]
    for name, metric in _metrics(found):
        own = list(_of(found, name, metric))
        by = "; ".join(dict.fromkeys(one.by for one in own if one.name != EVERY_FAMILY))
        parts += [f"`{name}`, `{metric}`; {by}:\n", table(HEAD, [_cells(one) for one in own])]
    if found.speedups:
        parts += [
            "From one accelerator to a faster one. " + ABOUT_SPEEDUPS + "\n",
            table(SPEEDUP_HEAD, _speedup_rows(found.speedups)),
        ]
    off = [f"- {escaped(line)}" for line in _off(found)]
    if off:
        parts += ["Coverage is off:\n", "\n".join(off) + "\n"]
    resting = [f"- {escaped(line)}" for line in _resting(found)]
    if resting:
        parts += ["Sets predicted with figures of their own:\n", "\n".join(resting) + "\n"]
    worst = _worst(found)
    if worst:
        head = (*WORST_HEAD[1:2], *WORST_HEAD[3:], "why")
        told = zip(worst_rows(worst, MAX_WORST), worst, strict=True)
        rows = [(*row[1:2], *row[3:], _why(found, one)) for row, one in told]
        parts += [
            f"The worst {len(worst)} misses, one of each series and metric, and why:\n",
            table(head, rows),
        ]
    return "\n".join(parts)


def _speedup_rows(pairs: Sequence[Speedup]) -> list[tuple[str, ...]]:
    """Return speed-ups and their errors by set and accelerators; the total of all pairs last."""
    kinds = dict.fromkeys((one.set, one.slower, one.faster) for one in pairs)
    groups = [(kind, [one for one in pairs if kind == _kind(one)]) for kind in kinds]
    whole = [((ALL, "", ""), list(pairs))] if len(groups) > 1 else []
    return [_speedup_cells(kind, own) for kind, own in (*groups, *whole)]


def _kind(one: Speedup) -> tuple[str, str, str]:
    return one.set, one.slower, one.faster


def _speedup_cells(kind: tuple[str, str, str], own: Sequence[Speedup]) -> tuple[str, ...]:
    ratios = (median(one.measured for one in own), median(one.predicted for one in own))
    middle, tail = np.percentile([abs(one.error) for one in own], [50, 90])
    name, slower, faster = kind
    return (
        *(name, slower.removeprefix("gpu/"), faster.removeprefix("gpu/"), f"{len(own):,}"),
        *((f"x{ratio:.2f}" for ratio in ratios) if slower else ("", "")),
        *(share(float(middle)), share(float(tail))),
    )


def _worst(found: LeftOut) -> list[Judged]:
    """Return the largest errors, one for each family of rows and metric."""
    worst: dict[tuple[str, str, str], Judged] = {}
    for one in sorted(found.judged, key=lambda one: -abs(one.error)):
        worst.setdefault((one.set, one.family, one.metric), one)
    return list(worst.values())[:MAX_WORST]


def _why(found: LeftOut, one: Judged) -> str:
    sets = {each.name: each.misses for each in found.sets}
    return sets[one.set].get((one.family, one.metric), _UNKNOWN)


def _metrics(found: LeftOut) -> Sequence[tuple[str, str]]:
    return tuple(dict.fromkeys((one.set, one.metric) for one in found.families))


def _of(found: LeftOut, name: str, metric: str) -> Iterator[Unseen]:
    """Return the families of a set's metric, and the total if there are several."""
    own = [one for one in found.families if (one.set, one.metric) == (name, metric)]
    several = len(own) > 1 + 1
    return (one for one in own if several or one.name != EVERY_FAMILY)


def _cells(one: Unseen) -> tuple[str, ...]:
    name = ALL if one.name == EVERY_FAMILY else printable(one.name)[:NAME_WIDTH]
    unseen, seen = one.unseen, one.seen
    return (
        name,
        f"{unseen.rows:,}",
        *(share(value) for value in (unseen.median, unseen.p90, seen.median, seen.p90)),
        *("" if c is None else f"{c:.0%}" for c in (unseen.coverage, seen.coverage)),
        *(
            "" if s is None else f"{s:.2f}"
            for s in (unseen.interval_score, one.constant_width_score)
        ),
    )


def _object(one: Unseen) -> dict[str, Cell]:
    unseen, seen = one.unseen, one.seen
    return {
        "set": one.set,
        "family": one.name,
        "metric": one.metric,
        "errors": "difference" if one.absolute else "relative",
        "by": one.by,
        "rows": unseen.rows,
        "median": unseen.median,
        "p90": unseen.p90,
        "interval_coverage": unseen.coverage,
        "interval_score": unseen.interval_score,
        "constant_width_score": one.constant_width_score,
        "in_series_median": seen.median,
        "in_series_p90": seen.p90,
        "in_series_interval_coverage": seen.coverage,
        "in_series_interval_score": seen.interval_score,
    }


def _resting(found: LeftOut) -> Iterator[str]:
    return (f"{name}: {what}" for name, what in found.resting.items())


def _off(found: LeftOut) -> Iterator[str]:
    (low, high), (least, most) = UNSEEN_COVERAGE, UNSEEN_FAMILY_COVERAGE
    for one in found.off:
        whole = one.name == EVERY_FAMILY
        name, ends = (ALL, (low, high)) if whole else (one.name, (least, most))
        yield (
            f"{one.set}, {name}, {one.metric}: {one.unseen.coverage:.0%} of {one.unseen.rows:,}, "
            f"should be {ends[0]:.0%} to {ends[1]:.0%}"
            + ("" if whole else f" ({MIN_UNSEEN_FIGURES} rows or more)")
        )
