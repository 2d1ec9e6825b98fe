"""The report of ``plan validate``: errors of predictions by family, and the nearest rows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final

from simulator.report.document import (
    Cell,
    Columns,
    Document,
    Item,
    Section,
    Table,
    grid,
    listed,
    notes,
    record,
    section,
    some_of,
    tabled,
)
from simulator.report.labels import metric_called
from simulator.report.markdown import escaped, table
from simulator.report.numbers import figure
from simulator.report.text import printable
from simulator.results.metrics import measurable, select
from simulator.results.prediction import Prediction
from simulator.schema.measurement import MeasurementSet, Tolerance
from simulator.validation.local_coverage import Near, Neighbourhood, measured_here
from simulator.validation.scores import COVERAGE, FAMILY_COVERAGE, MIN_FIGURES, Bands, Judged
from simulator.validation.unseen import LeftOut
from simulator.validation.validate import EVERY_FAMILY, LEVELS, Family, Left, Validated
from simulator.version import __version__

SCHEMA: Final = 1
ALL: Final = "all families"
"""Label of the total over a set."""
MAX_NAMED: Final = 6
"""Maximum number of rows named per reason; ``--json`` lists all."""
MAX_GROUPS: Final = 6
"""Maximum number of groups with constants shown; ``--json`` lists all."""
NAME_WIDTH: Final = 24
ACCURACY_WORST: Final = 10
"""Rows of each set that the accuracy document lists with their errors."""
COMMAND: Final = "plan validate --markdown docs/accuracy.md"
INTERPOLATION: Final = "Interpolation"
_HELD_OUT: Final = (
    "The tables below hold out configurations by a hash: nothing was fitted to a test row, but "
    "other rows of its series were mostly used to fit. They show the error for jobs that are "
    "similar to measured ones."
)
HEAD: Final = (
    *("family", "split", "rows", "out", "median", "mean", "p90", "max"),
    *("bias", "ranks", "in band", "score", "naive"),
)
REGIME_HEAD: Final = ("regime", *HEAD[1:])
ALIGN: Final = "<<>>>>>>>>>>>"
WORST_HEAD: Final = (
    *("set", "row", "split", "metric", "measured", "predicted", "P10", "P90", "error"),
)
TOLERANCE_HEAD: Final = ("family", "metric", "error", "reached", "allowed", "target", "")
LEGEND: Final = (
    "Errors are relative to the measured value, or differences in percentage points where stated. "
    "test: rows that nothing was fitted to; fit: rows that constants may be fitted to. out: "
    "rows left out, with the reason below. bias: mean signed error. ranks: Spearman's rank "
    "correlation. in band: measured values within P10 to P90, which should be 80%. score: interval "
    "(Winkler) score, less is better. naive: mean error of the baseline."
)


def document(found: Validated, worst: int = 0) -> Document:
    """Return a validation as a document; it lists the `worst` rows with the largest errors."""
    rows = worst_rows(found.judged, worst)
    return Document(
        sections=(
            *(part for one in found.sets for part in set_sections(found, one)),
            *section("Columns", notes([LEGEND])),
            *section("Intervals, over all test rows", notes(band_texts(found.bands))),
            *section(f"Worst {worst} rows", grid(WORST_HEAD, rows, "<<<<>>>>>")),
            *section("Questionable figures", notes(found.warnings)),
            *section("Over tolerance", notes(over_texts(found))),
        ),
        data=lambda: as_object(found),
        table=lambda: _table(found),
    )


def set_sections(found: Validated, one: MeasurementSet) -> Iterator[Section]:
    """Yield the sections of a measurement set: errors, tolerances, constants, rows left out."""
    source = f"{len(one.rows):,} rows. {one.source}, {one.date}"
    yield from section(f"{one.name}: {one.title}", notes([source]), *_tables(found, one))
    own = [f for f in (*found.families, *found.totals) if f.set == one.name]
    yield from section(
        "Tolerances, on test rows", grid(TOLERANCE_HEAD, tolerance_rows(own), "<<<>>><")
    )
    yield from section("Calibrated on anchors", notes(_group_texts(found, one)))
    reasons: dict[str, list[str]] = defaultdict(list)
    for left in found.left:
        if left.set == one.name:
            reasons[left.reason].append(left.id)
    texts = (
        f"{_count(len(rows))}: {reason} ({some_of(rows, MAX_NAMED)})"
        for reason, rows in reasons.items()
    )
    yield from section("Left out", notes(texts))


def _tables(found: Validated, one: MeasurementSet) -> Iterator[Item | None]:
    for metric in one.metrics:
        yield notes([_metric_text(one, metric)])
        yield grid(HEAD, map(cells, shown_families(found, one, metric)), ALIGN)
        regimes = [f for f in found.regimes if (f.set, f.metric) == (one.name, metric)]
        if regimes:
            yield notes([f"{metric}, by regime; a row may be in several"])
            yield grid(REGIME_HEAD, map(cells, regimes), ALIGN)


def shown_families(found: Validated, one: MeasurementSet, metric: str) -> list[Family]:
    """Return the families of rows of a set with scores, and the total if there are several."""
    families = [f for f in found.families if (f.set, f.metric) == (one.name, metric)]
    totals = [t for t in found.totals if (t.set, t.metric) == (one.name, metric)]
    return [*families, *(totals if len({family.name for family in families}) > 1 else [])]


def _metric_text(one: MeasurementSet, metric: str) -> str:
    kind = "differences in percentage points" if metric in one.absolute else "relative errors"
    return f"{metric}: {kind}; naive: {one.baseline}"


def cells(family: Family) -> tuple[str, ...]:
    """Return the table row of a family of measured rows, under the head `HEAD`."""
    name = _called(family)
    name = name if len(name) <= NAME_WIDTH else f"{name[: NAME_WIDTH - 1]}~"
    head = (name, str(family.split))
    score, out = family.score, str(family.excluded or "")
    if score is None:
        return (*head, "0", out, *[""] * (len(HEAD) - 4))
    return (
        *(*head, f"{score.rows:,}", out),
        *(share(value) for value in (score.median, score.mean, score.p90, score.largest)),
        f"{100.0 * score.bias:+.1f}%",
        *_known(score.rank_correlation, ".2f"),
        *_known(score.coverage, ".0%"),
        *_known(score.interval_score, ".2f"),
        "" if score.baseline_mean is None else share(score.baseline_mean),
    )


def _known(value: float | None, form: str) -> tuple[str]:
    return ("" if value is None else f"{value:{form}}",)


def _called(family: Family) -> str:
    return ALL if family.name == EVERY_FAMILY else printable(family.name)


def share(value: float) -> str:
    """Format an error as a percentage.

    Examples
    --------
    >>> share(0.0312), share(12.5)
    ('3.1%', '1250%')
    """
    return f"{value:.1%}" if value < 1.0 else f"{value:.0%}"


def tolerance_rows(families: Sequence[Family]) -> Iterator[tuple[str, ...]]:
    """Yield the error that each family of rows reached, the allowed error, and the target."""
    for family in families:
        for tolerance in family.tolerances:
            for level in LEVELS:
                yield from _level_row(family, tolerance, level)


def _level_row(family: Family, tolerance: Tolerance, level: str) -> Iterator[tuple[str, ...]]:
    allowed, target = getattr(tolerance, level), getattr(tolerance, f"target_{level}")
    if allowed is None and target is None:
        return
    reached = None if family.score is None else getattr(family.score, level)
    over = allowed is not None and reached is not None and reached > allowed
    limits = ("" if limit is None else exact(limit) for limit in (allowed, target))
    shown = "no rows" if reached is None else exact(reached)
    name = level.replace("largest", "max")
    yield (_called(family), family.metric, name, shown, *limits, "over" if over else "")


def exact(value: float) -> str:
    """Format a tolerance as a percentage to three digits.

    Examples
    --------
    >>> exact(0.05), exact(0.000374), exact(1e-15)
    ('5%', '0.0374%', '0%')
    """
    return f"{100.0 * round(value, 9):.3g}%"


def band_texts(found: Bands | None) -> list[str]:
    """Return sentences with the coverage of the 80% intervals and their interval score."""
    if found is None:
        return []
    (low, high), (least, most) = COVERAGE, FAMILY_COVERAGE
    verdict = "" if low <= found.coverage <= high else " (off)"
    text = (
        f"{found.coverage:.1%} of {found.figures:,} measured values are within P10 to P90; "
        f"{low:.0%} to {high:.0%} should be{verdict}."
    )
    if found.interval_score is not None and found.constant_score is not None:
        text += (
            f" Score {found.interval_score:.3f}; one relative width for all, fitted on the fit "
            f"rows: {found.constant_score:.3f}."
        )
    if not found.off:
        return [text]
    off = "; ".join(f"{printable(name)} {share:.0%}" for name, share in found.off)
    return [
        text,
        f"Families of {MIN_FIGURES} rows or more outside {least:.0%} to {most:.0%}: {off}",
    ]


def _group_texts(found: Validated, one: MeasurementSet) -> Iterator[str]:
    fitted = (
        f"{', '.join(key)}: {', '.join(constants)}"
        for (name, key), constants in found.constants.items()
        if name == one.name
    )
    yield from listed(fitted, MAX_GROUPS, "{} groups more; --json has them all")
    for (name, key), why in found.unfitted.items():
        if name == one.name:
            yield f"{', '.join(key)}: from the description alone ({why})"


def _count(number: int) -> str:
    return "1 row" if number == 1 else f"{number:,} rows"


def worst_rows(judged: Iterable[Judged], worst: int) -> list[tuple[str, ...]]:
    """Return the rows with the largest absolute errors, largest first, under `WORST_HEAD`."""
    rows = []
    for one in sorted(judged, key=lambda one: -abs(one.error))[:worst]:
        known, point = measurable(one.metric), one.point
        unit = None if known is None else known.unit
        shown = (
            "" if value is None else figure(value, unit).removesuffix(" samples/s")
            for value in (point.measured, point.predicted, point.p10, point.p90)
        )
        ids = (printable(one.set), printable(one.id), str(one.split), one.metric)
        rows.append((*ids, *shown, f"{100.0 * one.error:+.1f}%"))
    return rows


def over_texts(found: Validated) -> Iterator[str]:
    """Yield the families of rows that exceed their tolerance, with the excess."""
    for family in found.over:
        yield f"{family.set}, {_called(family)}, {family.metric}: {'; '.join(family.over)}"


def _table(found: Validated) -> Table:
    """Return a row for each family of measured rows, then the total; errors as fractions."""
    families = [
        family
        for one in found.sets
        for metric in one.metrics
        for family in shown_families(found, one, metric)
    ]
    return tabled(_FAMILY, families)


def _score(name: str) -> Callable[[Family], Any]:
    """Return a getter of a score of a family of rows; it returns None if the family is empty."""
    return lambda family: getattr(family.score, name, None)


_FAMILY: Final[Columns[Family]] = {
    "set": lambda family: family.set,
    "metric": lambda family: family.metric,
    "family": lambda family: ALL if family.name == EVERY_FAMILY else family.name,
    "split": lambda family: str(family.split),
    "errors": lambda family: "difference" if family.absolute else "relative",
    "rows": lambda family: 0 if family.score is None else family.score.rows,
    "excluded": lambda family: family.excluded,
    **{name: _score(name) for name in ("median", "mean", "p90", "largest", "bias")},
    "rank_correlation": _score("rank_correlation"),
    "interval_coverage": _score("coverage"),
    "interval_score": _score("interval_score"),
    "baseline": lambda family: str(family.baseline),
    "baseline_mean": _score("baseline_mean"),
    "over": lambda family: "; ".join(family.over),
}
_FAMILY_OBJECT: Final[Columns[Family]] = {
    "name": lambda family: family.name,
    "split": lambda family: str(family.split),
    "set": lambda family: family.set,
    "metric": lambda family: family.metric,
    "absolute": lambda family: family.absolute,
    "rows": _FAMILY["rows"],
    "excluded": lambda family: family.excluded,
    "median_abs_error": _score("median"),
    "mean_abs_error": _score("mean"),
    "p90_abs_error": _score("p90"),
    "max_abs_error": _score("largest"),
    "bias": _score("bias"),
    "rank_correlation": _score("rank_correlation"),
    "interval_coverage": _score("coverage"),
    "interval_score": _score("interval_score"),
    "constant_width_score": lambda family: family.constant_width_score,
    "baseline": lambda family: str(family.baseline),
    "baseline_mean_abs_error": _score("baseline_mean"),
    "baseline_median_abs_error": _score("baseline_median"),
    "over": lambda family: list(family.over),
    "tolerances": lambda family: [
        {
            f"{kind}{level}": getattr(tolerance, f"{kind}{level}")
            for kind in ("", "target_")
            for level in ("median", "mean", "p90", "largest")
        }
        for tolerance in family.tolerances
    ],
}
_SET: Final[Columns[MeasurementSet]] = {
    "name": lambda one: one.name,
    "title": lambda one: one.title,
    "rows": lambda one: len(one.rows),
    "metrics": lambda one: list(one.metrics),
    "split": lambda one: str(one.split),
    "baseline": lambda one: str(one.baseline),
    "source": lambda one: one.source,
    "date": lambda one: one.date,
    "verified": lambda one: one.verified,
}
_ROW: Final[Columns[Judged]] = {
    "id": lambda one: one.id,
    "set": lambda one: one.set,
    "family": lambda one: one.family,
    "split": lambda one: str(one.split),
    "metric": lambda one: one.metric,
    "predicted": lambda one: one.point.predicted,
    "p10": lambda one: one.point.p10,
    "p90": lambda one: one.point.p90,
    "measured": lambda one: one.point.measured,
    "spread": lambda one: one.spread,
    "baseline": lambda one: one.point.baseline,
    "anchor": lambda one: one.anchor,
    "error": lambda one: one.error,
}
_LEFT: Final[Columns[Left]] = {
    "id": lambda one: one.id,
    "set": lambda one: one.set,
    "family": lambda one: one.family,
    "split": lambda one: str(one.split),
    "reason": lambda one: one.reason,
}


def as_object(found: Validated) -> dict[str, Any]:
    """Return the validation as a JSON-serializable dict.

    Errors are fractions; null: unknown. There is one entry for each family, split and metric.
    """
    bands = found.bands
    return {
        "schema": SCHEMA,
        "version": __version__,
        "sets": [record(_SET, one) for one in found.sets],
        "families": [record(_FAMILY_OBJECT, family) for family in found.families],
        "regimes": [record(_FAMILY_OBJECT, family) for family in found.regimes],
        "totals": [record(_FAMILY_OBJECT, family) for family in found.totals],
        "rows": [record(_ROW, one) for one in found.judged],
        "excluded": [record(_LEFT, one) for one in found.left],
        "calibrated": [
            {"set": name, "group": list(group), "constants": list(constants)}
            for (name, group), constants in found.constants.items()
        ],
        "uncalibrated": [
            {"set": name, "group": list(group), "reason": reason}
            for (name, group), reason in found.unfitted.items()
        ],
        "intervals": None
        if bands is None
        else {
            "figures": bands.figures,
            "coverage": bands.coverage,
            "interval_score": bands.interval_score,
            "constant_width_score": bands.constant_score,
            "families_off": [{"family": name, "coverage": share} for name, share in bands.off],
            "holds": bands.holds,
        },
        "warnings": list(found.warnings),
        "over_tolerance": bool(found.over),
    }


def near_document(found: Neighbourhood) -> Document:
    """Return the measured rows most similar to a scenario as a document, with their errors."""
    said = about(found) if found.rows else "No measured row could be compared with the scenario."
    return Document(
        verdict=(said,),
        sections=(
            *section("Nearest rows", notes(map(_near_text, found.rows))),
            *section("Error there", notes(score_texts(found) if found.rows else [])),
        ),
        data=lambda: {
            "schema": 1,
            "scenario": found.scenario,
            "compared": found.compared,
            "reach": found.reach,
            "nearest": [record(_NEAR, near) for near in found.rows],
            "errors": {
                metric: {
                    "rows": score.rows,
                    "median_abs_error": score.median,
                    "mean_abs_error": score.mean,
                    "max_abs_error": score.largest,
                }
                for metric, score in found.scores.items()
            },
        },
        table=lambda: _near_table(found),
    )


_NEAR: Final[Columns[Near]] = {
    "set": lambda near: near.set,
    "id": lambda near: near.row.id,
    "family": lambda near: near.row.family,
    "split": lambda near: str(near.row.split),
    "distance": lambda near: near.distance,
    "differs": lambda near: dict(near.apart),
    "errors": lambda near: {one.metric: one.error for one in near.judged},
}


def _near_text(near: Near) -> str:
    error = f", error {100.0 * near.judged[0].error:+.1f}%" if near.judged else ""
    row = f"{printable(near.set)}: {printable(near.row.id)} ({near.row.split})"
    return f"distance {near.distance:.1f}{error}: {row}; {printable(apart(near))}"


def about(found: Neighbourhood) -> str:
    """Describe the number of rows and the unit of distance."""
    rows = "measured row" if len(found.rows) == 1 else f"{len(found.rows)} measured rows"
    return (
        f"The {rows} most like {printable(found.scenario)}, of "
        f"{found.compared:,}. A distance of 1 is a factor of two in one feature; another "
        "accelerator, model or precision counts 2."
    )


def headline(prediction: Prediction, found: Neighbourhood) -> str:
    """Describe measurements of this very configuration; empty if there are none."""
    here = measured_here(prediction, found)
    if not here:
        return ""
    first = here[0]
    value = figure(first.measured, select(first.metric)[0].unit)
    rows = len({(one.set, one.id) for one in here})
    others = f" and {rows - 1} more" if rows > 1 else ""
    wider = "; the intervals are widened to include it" if any(one.outside for one in here) else ""
    return (
        f"Measured at this very configuration: {metric_called(first.metric)} {value}, "
        f"{first.ratio:.3g}x the prediction ({first.set}: {first.id}{others}){wider}."
    )


def apart(near: Near) -> str:
    """Describe the differences between a row and the scenario, by feature."""
    features = "; ".join(f"{name} {what}" for name, what in near.apart.items())
    return f"differs in {features}" if features else "no difference"


def score_texts(found: Neighbourhood) -> list[str]:
    """Return the errors of the rows within reach, one text for each metric."""
    within = sum(near.distance <= found.reach for near in found.rows)
    if not within:
        return [f"unknown: no measured row is within a distance of {found.reach:.1f}"]
    texts = [f"over the {_count(within)} within a distance of {found.reach:.1f}:"]
    for metric, score in found.scores.items():
        texts.append(
            f"{metric}: median {share(score.median)}, mean {share(score.mean)}, largest "
            f"{share(score.largest)} ({_count(score.rows)})"
        )
    return texts


def _near_table(found: Neighbourhood) -> Table:
    """Return a row for each of the nearest rows and each metric measured there."""
    head = ("set", "row", "family", "split", "distance", "metric", "measured", "predicted")
    rows: list[tuple[Cell, ...]] = []
    for near in found.rows:
        ids = (near.set, near.row.id, near.row.family, str(near.row.split), near.distance)
        differs = "; ".join(f"{name} {what}" for name, what in near.apart.items())
        rows += [
            (*ids, one.metric, one.point.measured, one.point.predicted, one.error, differs)
            for one in near.judged
        ] or [(*ids, None, None, None, None, differs)]
    return Table(head=(*head, "error", "differs in"), rows=tuple(rows))


def accuracy_page(found: Validated, left_out: LeftOut | None = None) -> str:
    """Return the accuracy document in Markdown, with a final newline; unseen series come first."""
    from simulator.report.unseen import page

    about_it = (
        f"Written by `{COMMAND}`; `plan validate` predicts every row again. "
        "The format of a measurement set: [measurement-sets.md](reference/measurement-sets.md).\n"
    )
    overall = " ".join(band_texts(found.bands))
    parts = ["# Accuracy\n", about_it]
    if left_out is not None:
        parts += [page(left_out), f"## {INTERPOLATION}\n", f"{_HELD_OUT}\n"]
    parts += [f"{LEGEND}\n", *([f"{overall}\n"] if overall else [])]
    parts += [_set_page(found, one) for one in found.sets]
    return "\n".join(parts)


def _set_page(found: Validated, one: MeasurementSet) -> str:
    source = f"{one.source}, {one.date}"
    parts = [f"### {one.name}\n", f"{escaped(one.title)}. {len(one.rows):,} rows.\n"]
    parts.append(f"Source: {escaped(source)}.\n")
    for metric in one.metrics:
        kind = "differences in points" if metric in one.absolute else "relative errors"
        parts.append(f"`{metric}`, {kind}; naive: {one.baseline}\n")
        parts.append(table(HEAD, map(cells, shown_families(found, one, metric))))
        regimes = [f for f in found.regimes if (f.set, f.metric) == (one.name, metric)]
        if regimes:
            parts.append(f"`{metric}` by regime; a row may be in several:\n")
            parts.append(table(REGIME_HEAD, map(cells, regimes)))
    own = [f for f in (*found.families, *found.totals) if f.set == one.name]
    limits = list(tolerance_rows(own))
    if limits:
        parts += [
            "Tolerances on test rows:\n",
            table(TOLERANCE_HEAD[:-1], [row[:-1] for row in limits]),
        ]
    worst = worst_rows((row for row in found.judged if row.set == one.name), ACCURACY_WORST)
    if worst:
        parts.append(f"Worst {len(worst)} rows of all splits:\n")
        parts.append(table(WORST_HEAD[1:], [row[1:] for row in worst]))
    left = [left.reason for left in found.left if left.set == one.name]
    if left:
        each = ((_count(left.count(reason)), reason) for reason in dict.fromkeys(left))
        texts = [f"- {count}: {escaped(reason)}" for count, reason in each]
        parts.append("Left out:\n\n" + "\n".join(texts) + "\n")
    return "\n".join(parts)
