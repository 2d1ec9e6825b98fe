"""The terminal report of a validation: how wrong, by family and split, what is over tolerance."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from simulator.report.numbers import figure
from simulator.report.text import INDENT, WIDTH, columns, printable, section, wrapped
from simulator.results.metrics import measurable
from simulator.uncertainty.measurement import MeasurementSet, Tolerance
from simulator.validation.scores import COVERAGE, FAMILY_COVERAGE, MIN_FIGURES, Bands
from simulator.validation.validate import (
    EVERY_FAMILY,
    LEVELS,
    Family,
    Judged,
    Left,
    Validated,
)

ALL: Final = "all families"
"""How the total over a set is called."""
NAMED: Final = 6
"""Rows of one reason that are named; ``--json`` lists all."""
GROUPS: Final = 6
"""Groups whose constants are shown; ``--json`` lists all."""
NAME_WIDTH: Final = 24

HEAD: Final = (
    *("family", "split", "rows", "out", "median", "mean", "p90", "max"),
    *("bias", "ranks", "in band", "score", "naive"),
)
REGIME_HEAD: Final = ("regime", *HEAD[1:])
ALIGN: Final = "<<>>>>>>>>>>>"
WORST_HEAD: Final = (
    *("set", "row", "split", "metric", "measured", "predicted", "P10", "P90", "error"),
)
LEGEND: Final = (
    "Errors are shares of the measured value, or differences in percentage points where it says "
    "so. test: rows that nothing was fitted to; fit: rows that constants may be fitted to. out: "
    "rows left out, with the reason below. bias: mean signed error. ranks: Spearman's rank "
    "correlation. in band: measured values within P10 to P90, which should be 80%. score: interval "
    "(Winkler) score, less is better. naive: mean error of the baseline."
)


def as_text(found: Validated, worst: int = 0) -> str:
    """The report, without a final line end; with the `worst` rows of all sets where asked."""
    blocks = [_set_block(found, one) for one in found.sets]
    lines = [
        *(line for block in blocks for line in [*block, ""]),
        *wrapped(LEGEND, hang="", width=WIDTH),
        *section("Intervals, over all test rows", band_lines(found.bands)),
        *section(f"Worst {worst} rows" if worst else "", worst_lines(found, worst)),
        *section("Doubtful figures", [line for text in found.warnings for line in wrapped(text)]),
        *section("Over tolerance", [_over_line(family) for family in found.over]),
    ]
    return "\n".join(lines)


def _set_block(found: Validated, one: MeasurementSet) -> list[str]:
    source = f"{one.source.reference}, {one.source.date}"
    lines = [
        *wrapped(f"{one.name}: {one.title}", width=WIDTH),
        *wrapped(f"  {len(one.rows):,} rows. {source}", width=WIDTH),
    ]
    for metric in one.metrics:
        totals = [t for t in found.totals if (t.set, t.metric) == (one.name, metric)]
        families = [f for f in found.families if (f.set, f.metric) == (one.name, metric)]
        several = len({family.name for family in families}) > 1
        shown = [*families, *(totals if several else [])]
        lines += ["", *wrapped(_metric_line(one, metric), hang="", width=WIDTH)]
        lines += columns([HEAD, *(cells(family) for family in shown)], ALIGN)
        regimes = [f for f in found.regimes if (f.set, f.metric) == (one.name, metric)]
        if regimes:
            lines += ["", *wrapped(f"{metric}, by regime; a row may lie in several", hang="")]
            lines += columns([REGIME_HEAD, *(cells(regime) for regime in regimes)], ALIGN)
    lines += section("Tolerances, on test rows", _tolerance_lines(found, one))
    lines += section("Calibrated on anchors", _group_lines(found, one))
    lines += section("Left out", _left_lines([left for left in found.left if left.set == one.name]))
    return lines


def _metric_line(one: MeasurementSet, metric: str) -> str:
    kind = "differences in percentage points" if metric in one.absolute else "relative errors"
    return f"{metric}: {kind}; naive: {one.baseline}"


def cells(family: Family) -> tuple[str, ...]:
    """One family as a row of the table."""
    name = ALL if family.name == EVERY_FAMILY else printable(family.name)
    name = name if len(name) <= NAME_WIDTH else f"{name[: NAME_WIDTH - 1]}~"
    head = (name, str(family.split))
    score, out = family.score, str(family.excluded or "")
    if score is None:
        return (*head, "0", out, *[""] * (len(HEAD) - 4))
    return (
        *head,
        f"{score.rows:,}",
        out,
        *(share(value) for value in (score.median, score.mean, score.p90, score.largest)),
        f"{100.0 * score.bias:+.1f}%",
        "" if score.rank_correlation is None else f"{score.rank_correlation:.2f}",
        "" if score.coverage is None else f"{score.coverage:.0%}",
        "" if score.interval_score is None else f"{score.interval_score:.2f}",
        "" if score.baseline_mean is None else share(score.baseline_mean),
    )


def share(value: float) -> str:
    """An error as per cent.

    Examples
    --------
    >>> share(0.0312), share(12.5)
    ('3.1%', '1250%')
    """
    return f"{value:.1%}" if value < 1.0 else f"{value:.0%}"


def tolerance_rows(families: Sequence[Family]) -> Iterator[tuple[str, ...]]:
    """What each family reached beside what is allowed and what is aimed at."""
    for family in families:
        for tolerance in family.tolerances:
            for level in LEVELS:
                yield from _level_row(family, tolerance, level)


def _level_row(family: Family, tolerance: Tolerance, level: str) -> Iterator[tuple[str, ...]]:
    allowed, target = getattr(tolerance, level), getattr(tolerance, f"target_{level}")
    if allowed is None and target is None:
        return
    reached = None if family.score is None else getattr(family.score, level)
    name = ALL if family.name == EVERY_FAMILY else printable(family.name)
    over = allowed is not None and reached is not None and reached > allowed
    yield (
        name,
        family.metric,
        level.replace("largest", "max"),
        "no rows" if reached is None else exact(reached),
        "" if allowed is None else exact(allowed),
        "" if target is None else exact(target),
        "over" if over else "",
    )


def exact(value: float) -> str:
    """A tolerance as per cent, to three digits.

    Examples
    --------
    >>> exact(0.05), exact(0.000374), exact(1e-15)
    ('5%', '0.0374%', '0%')
    """
    return f"{100.0 * round(value, 9):.3g}%"


TOLERANCE_HEAD: Final = ("family", "metric", "error", "reached", "allowed", "target", "")


def _tolerance_lines(found: Validated, one: MeasurementSet) -> list[str]:
    own = [f for f in (*found.families, *found.totals) if f.set == one.name]
    rows = list(tolerance_rows(own))
    return columns([TOLERANCE_HEAD, *rows], "<<<>>><") if rows else []


def band_lines(found: Bands | None) -> list[str]:
    """How many measured values lie within their intervals, and how these score."""
    if found is None:
        return []
    (low, high), (least, most) = COVERAGE, FAMILY_COVERAGE
    verdict = "" if low <= found.coverage <= high else " (off)"
    text = (
        f"{found.coverage:.1%} of {found.figures:,} measured values lie within P10 to P90; "
        f"{low:.0%} to {high:.0%} should{verdict}."
    )
    if found.interval_score is not None and found.constant_score is not None:
        text += (
            f" Score {found.interval_score:.3f}; one relative width for all, fitted on the fit "
            f"rows: {found.constant_score:.3f}."
        )
    lines = wrapped(text, hang="")
    if found.off:
        lines.append(f"Families of {MIN_FIGURES} rows and more outside {least:.0%} to {most:.0%}:")
        lines += [f"{INDENT}{printable(name)}: {share:.0%}" for name, share in found.off]
    return lines


def _group_lines(found: Validated, one: MeasurementSet) -> list[str]:
    fitted = [(k, c) for (name, k), c in found.constants.items() if name == one.name]
    without = [(k, why) for (name, k), why in found.unfitted.items() if name == one.name]
    lines = []
    for key, constants in fitted[:GROUPS]:
        lines += wrapped(f"{', '.join(key)}: {', '.join(constants)}")
    if len(fitted) > GROUPS:
        lines.append(f"and {len(fitted) - GROUPS:,} groups more; --json has them all")
    for key, why in without:
        lines += wrapped(f"{', '.join(key)}: from the description alone ({why})")
    return lines


def _left_lines(left: Sequence[Left]) -> list[str]:
    """Reasons with the rows they hold for."""
    reasons: dict[str, list[str]] = defaultdict(list)
    for one in left:
        reasons[one.reason].append(one.id)
    lines = []
    for reason, rows in reasons.items():
        more = f" and {len(rows) - NAMED:,} more" if len(rows) > NAMED else ""
        many = "1 row" if len(rows) == 1 else f"{len(rows):,} rows"
        lines += wrapped(f"{many}: {reason} ({', '.join(rows[:NAMED])}{more})")
    return lines


def worst_lines(found: Validated, worst: int) -> list[str]:
    """The rows with the largest absolute errors, the worst first."""
    rows = worst_rows(found.judged, worst)
    return columns([WORST_HEAD, *rows], "<<<<>>>>>") if rows else []


def worst_rows(judged: Iterable[Judged], worst: int) -> list[tuple[str, ...]]:
    """Cells under `WORST_HEAD` of the rows with the largest absolute errors, the worst first."""
    ordered = sorted(judged, key=lambda one: -abs(one.error))[:worst]
    return [_worst_row(one) for one in ordered]


def _worst_row(one: Judged) -> tuple[str, ...]:
    known = measurable(one.metric)
    unit = None if known is None else known.unit
    point = one.point
    shown = [
        "" if value is None else figure(value, unit).removesuffix(" samples/s")
        for value in (point.measured, point.predicted, point.p10, point.p90)
    ]
    ids = (printable(one.set), printable(one.id), str(one.split), one.metric)
    return (*ids, *shown, f"{100.0 * one.error:+.1f}%")


def _over_line(family: Family) -> str:
    name = ALL if family.name == EVERY_FAMILY else printable(family.name)
    return f"{family.set}, {name}, {family.metric}: {'; '.join(family.over)}"
