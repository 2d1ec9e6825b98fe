"""The models of the library: what they count, and what was measured of them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, astuple, dataclass, fields
from typing import Final

from simulator.reading.convert.models import model_names, read_model
from simulator.reading.names import asked_for
from simulator.report.format.table import Table, as_markdown
from simulator.schema.precision import Precision
from simulator.schema.workload.models import forward_flops
from simulator.units import FLOP, show

SCHEMA: Final = 1
HEAD: Final = ("model", "parameters", "forward/sample", "measured", "what it is")


@dataclass(frozen=True, slots=True)
class Fact:
    """A model of the library; the names are those of columns and keys."""

    model: str
    family: str
    parameters: float
    forward_flop_per_sample: float
    measured_step_times: int
    title: str
    source: str
    date: str


def facts(wanted: str = "") -> Iterator[Fact]:
    """The models of the library that `wanted` means, by name; all of them where it is empty.

    Raises
    ------
    UnknownName
        If it means none.
    """
    for name in asked_for("model", wanted, model_names()):
        file = read_model(name)
        model, about = file.model(), file.about
        yield Fact(
            name,
            about.family,
            float(model.parameters),
            float(forward_flops(model, 1.0, Precision.FP32)),
            sum(len(row.seconds) for row in about.step_time),
            about.title,
            file.shape.source,
            file.shape.date,
        )


def as_text(wanted: str = "") -> str:
    """The models as lines of text; titles are not aligned."""
    rows = [HEAD, *_rows(wanted)]
    widths = [max(len(row[i]) for row in rows) for i in range(len(HEAD) - 1)]
    lines = []
    for name, *figures, title in rows:
        numbers = [f"{cell:>{width}}" for cell, width in zip(figures, widths[1:], strict=True)]
        lines.append("  ".join((f"{name:<{widths[0]}}", *numbers, title)))
    return "\n".join(lines)


def as_page(wanted: str = "") -> str:
    """The models as Markdown."""
    return as_markdown(Table(head=HEAD, rows=tuple(_rows(wanted))))


def _rows(wanted: str) -> Iterator[tuple[str, ...]]:
    for fact in facts(wanted):
        flops, measured = fact.forward_flop_per_sample, fact.measured_step_times
        yield (
            fact.model,
            f"{fact.parameters:,.0f}",
            show(flops, FLOP) if flops else "none",
            f"{measured} steps" if measured else "-",
            fact.title,
        )


def table(wanted: str = "") -> Table:
    """The models with exact counts."""
    head = tuple(field.name for field in fields(Fact))
    return Table(head=head, rows=tuple(astuple(fact) for fact in facts(wanted)))


def as_json(wanted: str = "") -> str:
    """The models as one JSON object."""
    tree = {"schema": SCHEMA, "models": [asdict(fact) for fact in facts(wanted)]}
    return json.dumps(tree, indent=2, ensure_ascii=False, allow_nan=False)
