"""The measured rows most like a scenario: how far they are, and how wrong the model is there.

Two scenarios are compared by what describes them (`facts`). Numbers count by their ratio: a factor
of two in one of them is a distance of 1. A word that differs (another accelerator, model or
precision) counts as much as a factor of four. Distances add up like sides of a box.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from simulator.errors import PlanError
from simulator.reading.scenario import load_scenario
from simulator.schema.scenario import Scenario
from simulator.studies.search.workers import Progress, Workers, cores, local_workers
from simulator.uncertainty.measurement import MeasurementSet, Row
from simulator.validation.facts import Facts, facts_of
from simulator.validation.forecast import known_profiles
from simulator.validation.scores import Score, score
from simulator.validation.validate import Judged, validate

NEAREST: Final = 10
"""Rows that are shown."""
OTHER_WORD: Final = 2.0
"""Distance of two words that differ: as far as a factor of four."""
ONE_SIDED: Final = 2.0
"""Distance where only one of two scenarios has a number at all."""
FARTHEST: Final = 5.0
"""Distance along one feature from which on farther is the same: as far as a factor of 32."""
REACH: Final = 3.0
"""Distance from which on the error at a row says nothing about a scenario."""
CLOSE: Final = 1.0
"""Distance within which rows are mixed however near the nearest is: a factor of two."""
NAMED: Final = 3
"""Features that are named as what sets a row apart."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Near:
    """A measured row: how far it is, by which features (largest first), and the errors there.

    `distance` 1 is a factor of two in one feature. `apart` maps features to what differs, written
    as row against scenario.
    """

    set: str
    row: Row
    distance: float
    apart: Mapping[str, str]
    judged: tuple[Judged, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbourhood:
    """The nearest rows of a scenario, nearest first, and the score by metric.

    Scores are over the rows of `rows` no farther than `reach`: twice the nearest one's distance,
    within bounds.
    """

    scenario: str
    rows: tuple[Near, ...]
    scores: Mapping[str, Score]
    compared: int
    reach: float = REACH


@dataclass(frozen=True, slots=True)
class _Ask:
    base: str
    overrides: tuple[str, ...]
    profiles: tuple[Path, ...]


def nearest(  # noqa: PLR0913 - what to compare, and how
    scenario: Scenario,
    sets: Sequence[MeasurementSet],
    *,
    most: int = NEAREST,
    processes: int | None = None,
    progress: Progress | None = None,
    profiles: tuple[Path, ...] = (),
) -> Neighbourhood:
    """Find the rows most like a scenario and predict them.

    Parameters
    ----------
    scenario : Scenario
        The user's.
    sets : sequence of MeasurementSet
        Where to look.
    most : int
        Rows to return.
    processes, progress, profiles
        As for `validate`.
    """
    own = facts_of(scenario)
    with local_workers(processes or cores()) as workers:
        facts = _all_facts(sets, workers, progress, profiles)
    found = [
        Near(
            set=one.name,
            row=row,
            distance=distance(own, facts[one.name, row.id]),
            apart=differences(own, facts[one.name, row.id]),
        )
        for one in sets
        for row in one.rows
        if (one.name, row.id) in facts
    ]
    rows = _judged(sets, sorted(found, key=lambda near: near.distance)[:most], profiles)
    reach = _reach(rows)
    return Neighbourhood(
        scenario=scenario.name,
        rows=rows,
        scores=_scores([near for near in rows if near.distance <= reach]),
        compared=len(facts),
        reach=reach,
    )


def _reach(rows: Sequence[Near]) -> float:
    """How far rows may be for their errors to be mixed: twice the nearest, within bounds."""
    least = min((near.distance for near in rows), default=REACH)
    return min(REACH, max(CLOSE, 2.0 * least))


def _all_facts(
    sets: Sequence[MeasurementSet],
    workers: Workers,
    progress: Progress | None,
    profiles: tuple[Path, ...],
) -> dict[tuple[str, str], Facts]:
    """The facts of every row whose scenario can be read, by set and id."""
    asked = {
        (one.name, row.id): _Ask(row.base, row.overrides, profiles)
        for one in sets
        for row in one.rows
        if not row.excluded
    }
    distinct = list(dict.fromkeys(asked.values()))
    # Reading a scenario is a tenth of the work of predicting it.
    answers = workers.map(_facts, distinct, progress, [0.1] * len(distinct))
    known = dict(zip(distinct, answers, strict=True))
    return {place: facts for place, ask in asked.items() if (facts := known[ask]) is not None}


def _facts(ask: _Ask) -> Facts | None:
    try:
        catalogue = known_profiles(ask.profiles)
        return facts_of(load_scenario(ask.base, overrides=ask.overrides, catalogue=catalogue))
    except PlanError:
        return None


def _judged(
    sets: Sequence[MeasurementSet], rows: Sequence[Near], profiles: tuple[Path, ...]
) -> tuple[Near, ...]:
    """The rows with their predictions; groups are fitted to their anchors as ever."""
    parts = []
    for one in sets:
        wanted = {near.row.id for near in rows if near.set == one.name}
        groups = {near.row.key(one.group_by) for near in rows if near.set == one.name}
        kept = tuple(
            row
            for row in one.rows
            if row.id in wanted or (row.anchor and one.fit and row.key(one.group_by) in groups)
        )
        if wanted:
            parts.append(replace(one, rows=kept))
    judged = validate(parts, profiles=profiles).judged
    return tuple(
        replace(
            near,
            judged=tuple(one for one in judged if (one.set, one.id) == (near.set, near.row.id)),
        )
        for near in rows
    )


def _scores(rows: Sequence[Near]) -> dict[str, Score]:
    judged = [one for near in rows for one in near.judged]
    found = {}
    for metric in dict.fromkeys(one.metric for one in judged):
        own = [one for one in judged if one.metric == metric]
        scored = score([one.point for one in own], absolute=any(one.absolute for one in own))
        if scored is not None:
            found[metric] = scored
    return found


def distance(one: Facts, other: Facts) -> float:
    """How far apart two scenarios are; 1 is a factor of two in one number.

    Examples
    --------
    >>> from simulator.validation.facts import Facts
    >>> rest = {"devices": 1, "samples": 1.0, "operations": None, "peak": None, "words": {}}
    >>> distance(*(Facts(numbers={"batch": n}, **rest) for n in (8.0, 32.0)))
    2.0
    """
    return math.sqrt(sum(part**2 for part in _parts(one, other).values()))


def _parts(one: Facts, other: Facts) -> dict[str, float]:
    """The distance along each feature."""
    parts = {}
    for name in {**one.numbers, **other.numbers}:
        mine, theirs = one.numbers.get(name), other.numbers.get(name)
        if mine is None or theirs is None:
            parts[name] = ONE_SIDED
        else:
            parts[name] = min(FARTHEST, abs(math.log2(theirs / mine)))
    for name in one.words:
        parts[name] = 0.0 if one.words[name] == other.words.get(name) else OTHER_WORD
    return parts


def differences(own: Facts, theirs: Facts) -> dict[str, str]:
    """What sets a row apart, largest first: ``{"batch size": "4x"}``."""
    parts = sorted(_parts(own, theirs).items(), key=lambda item: -item[1])
    return {name: _said(name, own, theirs) for name, part in parts[:NAMED] if part > 0.0}


def _said(name: str, own: Facts, theirs: Facts) -> str:
    if name in own.words:
        return f"{theirs.words.get(name)}, not {own.words[name]}"
    mine, other = own.numbers.get(name), theirs.numbers.get(name)
    if mine is None or other is None:
        return "only one has any"
    return f"{other / mine:.3g}x"
