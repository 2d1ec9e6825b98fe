"""A validation as one table: a row for each family, split and metric of each set."""

from __future__ import annotations

from typing import Final

from simulator.report.evidence.text import ALL, HEAD, cells
from simulator.report.format.table import Cell, Table, as_markdown
from simulator.validation.local_coverage import Near, Neighbourhood
from simulator.validation.validate import EVERY_FAMILY, Family, Validated

_HEAD: Final = (
    *("set", "metric", "family", "split", "errors", "rows", "excluded", "median", "mean", "p90"),
    *("largest", "bias", "rank_correlation", "interval_coverage", "interval_score"),
    *("baseline", "baseline_mean", "over"),
)


def as_table(found: Validated) -> Table:
    """All families, and behind those of a set their total; errors are fractions."""
    return Table(head=_HEAD, rows=tuple(_row(family) for family in _families(found)))


def as_page(found: Validated) -> str:
    """The same as Markdown, errors as per cent."""
    rows = tuple((family.set, family.metric, *cells(family)) for family in _families(found))
    return as_markdown(Table(head=("set", "metric", *HEAD), rows=rows))


def _families(found: Validated) -> list[Family]:
    """Families with the total over them where there are several, as the report shows them."""
    shown: list[Family] = []
    for one in found.sets:
        for metric in one.metrics:
            own = [f for f in found.families if (f.set, f.metric) == (one.name, metric)]
            totals = [f for f in found.totals if (f.set, f.metric) == (one.name, metric)]
            shown += [*own, *(totals if len({family.name for family in own}) > 1 else [])]
    return shown


def _row(family: Family) -> tuple[Cell, ...]:
    score = family.score
    name = ALL if family.name == EVERY_FAMILY else family.name
    kind = "difference" if family.absolute else "relative"
    counts = (0 if score is None else score.rows, family.excluded)
    head = (family.set, family.metric, name, str(family.split), kind, *counts)
    over = "; ".join(family.over)
    if score is None:
        return (*head, *[None] * 8, str(family.baseline), None, over)
    return (
        *head,
        *(score.median, score.mean, score.p90, score.largest, score.bias),
        *(score.rank_correlation, score.coverage, score.interval_score),
        *(str(family.baseline), score.baseline_mean, over),
    )


def near_table(found: Neighbourhood) -> Table:
    """The measured rows most like a scenario; a row for each metric that was measured there."""
    head = ("set", "row", "family", "split", "distance", "metric", "measured", "predicted")
    rows = (row for near in found.rows for row in _near(near))
    return Table(head=(*head, "error", "differs in"), rows=tuple(rows))


def _near(near: Near) -> list[tuple[Cell, ...]]:
    ids = (near.set, near.row.id, near.row.family, str(near.row.split), near.distance)
    apart = "; ".join(f"{name} {what}" for name, what in near.apart.items())
    return [
        (*ids, one.metric, one.point.measured, one.point.predicted, one.error, apart)
        for one in near.judged
    ] or [(*ids, None, None, None, None, apart)]
