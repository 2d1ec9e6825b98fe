"""Outcomes of a search as a table: a row each, with settings, status and every figure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, TypeAlias

import pandas as pd

from simulator.results.metrics import METRICS
from simulator.schema.goal import Plain
from simulator.studies.search.outcome import Outcome

Cell: TypeAlias = Plain | None

_FIRST: Final = "index"
_LAST: Final = ("status", "reason")


def frame(outcomes: Sequence[Outcome]) -> pd.DataFrame:
    """A pandas frame in order of the outcomes.

    Columns are the keys that vary, status, reason and the metrics by their dotted names, in SI
    units; figures of a table have a column each, such as ``gpu_memory_bytes.items.activations``.
    What is unknown is missing. The frame's index is the candidate's.
    """
    names = column_names(outcomes)
    rows = [row(outcome, names) for outcome in outcomes]
    return pd.DataFrame(rows, columns=pd.Index(names)).set_index(_FIRST)


def column_names(outcomes: Sequence[Outcome]) -> tuple[str, ...]:
    """The columns of a table of these outcomes, the candidate's index first."""
    keys = dict.fromkeys(key for outcome in outcomes for key in outcome.candidate.settings)
    there = {name for outcome in outcomes for name, _ in _flat(outcome)}
    known: list[str] = []
    for metric in METRICS:
        if metric.name in there:
            known.append(metric.name)
        known += sorted(name for name in there if name.startswith(f"{metric.name}."))
    rest = sorted(there - set(known))
    return (_FIRST, *keys, *_LAST, *known, *rest)


def row(outcome: Outcome, names: Sequence[str]) -> tuple[Cell, ...]:
    """An outcome's cells under some columns."""
    cells: dict[str, Cell] = {
        _FIRST: outcome.candidate.index,
        **outcome.candidate.settings,
        "status": str(outcome.status),
        "reason": outcome.reason,
        **dict(_flat(outcome)),
    }
    return tuple(cells.get(name) for name in names)


def _flat(outcome: Outcome) -> Iterator[tuple[str, Cell]]:
    """Names and values of all figures that there are, those of tables one by one."""
    for name, value in outcome.figures.items():
        if isinstance(value, Mapping):
            yield from ((f"{name}.{item}", figure) for item, figure in value.items())
        elif value is not None:
            yield name, value
