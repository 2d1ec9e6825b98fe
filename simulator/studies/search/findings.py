"""Answer of a search: counts, the front, the best, and all candidates as a table."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, TypeAlias

import numpy as np
import pandas as pd

from simulator.records import dataclass
from simulator.results.metrics import JOB_METRICS
from simulator.schema.goal import Objective, Plain
from simulator.studies.search.outcome import Outcome, Status
from simulator.studies.search.scoring import Criteria, comparable, front, within

Cell: TypeAlias = Plain | None

_FIRST: Final = "index"
_LAST: Final = ("status", "reason")


def frame(outcomes: Sequence[Outcome]) -> pd.DataFrame:
    """Return the outcomes as a pandas data frame, in their order, indexed by the candidate's index.

    Columns are the keys that vary, status, reason and the metrics by their dotted names, in SI
    units; items of tables have one column each, such as ``gpu_memory_bytes.items.activations``.
    Unknown values are missing.
    """
    names = column_names(outcomes)
    rows = [row(outcome, names) for outcome in outcomes]
    return pd.DataFrame(rows, columns=pd.Index(names)).set_index(_FIRST)


def column_names(outcomes: Sequence[Outcome]) -> tuple[str, ...]:
    """Return the names of the columns of a table of outcomes, starting with the index."""
    keys = dict.fromkeys(key for outcome in outcomes for key in outcome.settings)
    there = {name for outcome in outcomes for name, _ in _flat(outcome)}
    known: list[str] = []
    for metric in JOB_METRICS:
        if metric.name in there:
            known.append(metric.name)
        known += sorted(name for name in there if name.startswith(f"{metric.name}."))
    rest = sorted(there - set(known))
    return (_FIRST, *keys, *_LAST, *known, *rest)


def row(outcome: Outcome, names: Sequence[str]) -> tuple[Cell, ...]:
    """Return the cells of an outcome in the columns `names`."""
    cells: dict[str, Cell] = {
        _FIRST: outcome.candidate.index,
        **outcome.settings,
        "status": str(outcome.status),
        "reason": outcome.reason,
        **dict(_flat(outcome)),
    }
    return tuple(cells.get(name) for name in names)


def _flat(outcome: Outcome) -> Iterator[tuple[str, Cell]]:
    """Yield names and values of all known metrics, with one entry for each item of a table."""
    for name, value in outcome.figures.items():
        if isinstance(value, Mapping):
            yield from ((f"{name}.{item}", figure) for item, figure in value.items())
        elif value is not None:
            yield name, value


_NUMBERS: Final = re.compile(r"\d[\d,.]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A candidate on the Pareto front, and the indices of later ones with equal objectives."""

    outcome: Outcome
    equal: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """A reason for excluding candidates, as worded for the first one, and their number."""

    text: str
    count: int


MAX_SHOWN: Final = 20
"""Maximum number of candidates of the front that a report prints."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """Result of a search.

    `values` are the numbers of distinct values of each key. `front` is the Pareto front in order of
    the first objective, `best` the requested number of best candidates by the first objective
    alone. `near` are the indices of candidates worse than the front by at most `margin`. `prices`
    are the listed prices in their bills, with region and date.
    """

    outcomes: tuple[Outcome, ...]
    objectives: tuple[Objective, ...]
    values: Mapping[str, int]
    front: tuple[Place, ...]
    best: tuple[Outcome, ...] = ()
    near: tuple[int, ...] = ()
    margin: float = 0.0
    prices: tuple[str, ...] = ()

    @property
    def counts(self) -> Mapping[Status, int]:
        """Number of candidates by status."""
        found = Counter(outcome.status for outcome in self.outcomes)
        return {status: found[status] for status in Status}

    @property
    def idle(self) -> tuple[str, ...]:
        """Keys whose values make no difference to the metrics in all comparable outcomes."""
        predicted = [o for o in self.outcomes if o.status is Status.PREDICTED]
        return tuple(key for key in self.values if _makes_no_difference(key, predicted))

    def reasons(self, status: Status) -> tuple[Reason, ...]:
        """Return the reasons of a status, most common first; numbers in the texts are ignored."""
        told: dict[str, list[str]] = {}
        for outcome in self.outcomes:
            if outcome.status is status:
                told.setdefault(_NUMBERS.sub("#", outcome.reason), []).append(outcome.reason)
        groups = sorted(told.values(), key=len, reverse=True)
        return tuple(Reason(text=group[0], count=len(group)) for group in groups)


def findings(
    outcomes: Sequence[Outcome],
    objectives: Sequence[Objective],
    *,
    top: int | None = None,
    margin: float = 0.0,
) -> Findings:
    """Rank the outcomes of a search.

    Parameters
    ----------
    outcomes : sequence of Outcome
        All outcomes of the search, as `explore` returns them.
    objectives : sequence of Objective
        Objectives of the Pareto front; the first one ranks.
    top : int, optional
        Number of best candidates to report.
    margin : float
        Relative distance from the front up to which candidates are reported too.
    """
    criteria = Criteria(objectives)
    predicted = [outcome for outcome in outcomes if outcome.status is Status.PREDICTED]
    every = [criteria.score(outcome.figures) for outcome in predicted]
    whole = np.array(every, dtype=float).reshape(len(predicted), len(objectives))
    # What has no figure for any objective is no better or worse than anything.
    kept = np.flatnonzero(comparable(whole) & np.isfinite(whole).any(axis=1))
    sound, scores, table = [predicted[i] for i in kept], [every[i] for i in kept], whole[kept]
    order = sorted(range(len(sound)), key=lambda i: (scores[i], sound[i].candidate.index))
    mask = front(table)
    places: dict[tuple[float, ...], list[Outcome]] = {}
    for i in order:
        if mask[i]:
            places.setdefault(scores[i], []).append(sound[i])
    near = within(table, margin) & ~mask if margin else np.zeros(len(sound), dtype=bool)
    return Findings(
        outcomes=tuple(outcomes),
        objectives=tuple(objectives),
        values=_values(outcomes),
        front=tuple(
            Place(outcome=same[0], equal=tuple(o.candidate.index for o in same[1:]))
            for same in places.values()
        ),
        best=tuple(sound[i] for i in order[: top or 0]),
        near=tuple(sound[i].candidate.index for i in np.flatnonzero(near)),
        margin=margin,
    )


def _makes_no_difference(key: str, outcomes: Sequence[Outcome]) -> bool:
    groups: dict[tuple[tuple[str, object], ...], list[Outcome]] = {}
    for outcome in outcomes:
        others = tuple(item for item in outcome.settings.items() if item[0] != key)
        groups.setdefault(others, []).append(outcome)
    several = [group for group in groups.values() if len(group) > 1]
    return bool(several) and all(
        one.figures == group[0].figures for group in several for one in group
    )


def _values(outcomes: Sequence[Outcome]) -> dict[str, int]:
    found: dict[str, set[object]] = {}
    for outcome in outcomes:
        for key, value in outcome.settings.items():
            found.setdefault(key, set()).add(value)
    return {key: len(values) for key, values in found.items()}
