"""Validate as for a user's job: every series predicted by figures that it had no part in.

Kernel figures are those fitted without a series and its siblings (``data/unseen.toml``), and the
series is no evidence of how sure its prediction is. Constants that a set fits to the anchors of
each group are those of the groups that others measured. Sets where neither can be done are named
with the figures that they rest on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from simulator.reading.fitted.unseen import siblings
from simulator.reading.hardware.catalogue import Catalogue
from simulator.studies.search.workers import Progress, cores, local_workers
from simulator.uncertainty.measurement import MeasurementSet, Row
from simulator.validation.elsewhere import Constants, carried
from simulator.validation.forecast import (
    Case,
    Fitted,
    Forecasts,
    GroupKey,
    case_of,
    fitted_groups,
    forecast_cases,
    part,
)
from simulator.validation.scores import (
    Point,
    Score,
    constant_width,
    interval_score,
    score,
    with_width,
)
from simulator.validation.speedups import Speedup, speedups
from simulator.validation.validate import EVERY_FAMILY, Judged, judge

SERIES: Final = "series"
"""The label of a row that names its series."""
WHOLE: Final = (0.72, 0.88)
"""Share of all unseen figures of a metric that should lie within P10 to P90."""
EACH: Final = (0.65, 0.92)
"""The same in every family of at least `ENOUGH` rows."""
ENOUGH: Final = 40

FIGURES: Final = "kernel figures fitted without it"
ELSEWHERE: Final = "constants of other makers"
SHIPPED: Final = "as shipped: nothing was fitted to it"


@dataclass(frozen=True, slots=True, kw_only=True)
class Unseen:
    """How wrong one family is, unseen and as shipped, in one metric.

    `name` is `EVERY_FAMILY` for all of a set. `by` says what it was predicted by.
    `constant_width_score` is the interval score of the one width that would have served all unseen
    figures of the metric best.
    """

    set: str
    name: str
    metric: str
    absolute: bool
    by: str
    unseen: Score
    seen: Score
    constant_width_score: float | None

    @property
    def off(self) -> bool:
        """Whether coverage is not what it should be, where there are enough rows to say."""
        low, high = WHOLE if self.name == EVERY_FAMILY else EACH
        share = self.unseen.coverage
        return share is not None and self.unseen.rows >= ENOUGH and not low <= share <= high


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """What leaving out found.

    `families` are in the order of the rows, each set's total last. `judged` are the unseen
    figures, `speedups` what they say of jobs that ran on two types of accelerators. `resting` says
    of other sets by name which figures of their own they rest on.
    """

    sets: tuple[MeasurementSet, ...]
    families: tuple[Unseen, ...]
    judged: tuple[Judged, ...]
    resting: Mapping[str, str]
    speedups: tuple[Speedup, ...] = ()

    @property
    def off(self) -> tuple[Unseen, ...]:
        """Families, and whole sets, whose coverage is not what it should be."""
        return tuple(one for one in self.families if one.off)


def leave_out(
    sets: Sequence[MeasurementSet],
    *,
    processes: int | None = None,
    progress: Progress | None = None,
    profiles: tuple[Path, ...] = (),
) -> LeftOut:
    """Predict every row by figures that it and its siblings had no part in, and as shipped.

    Parameters
    ----------
    sets : sequence of MeasurementSet
        What was measured.
    processes : int, optional
        How many to spread the work over; all cores by default.
    progress : callable, optional
        Told the share that is done, 0 to 1.
    profiles : tuple of pathlib.Path
        Folders of hardware profiles that come before the usual ones.

    Raises
    ------
    InputError
        With all mistakes in the scenarios of rows at once.
    """
    able = [found for found in sets if not _resting(found)]
    with local_workers(processes or cores()) as workers:
        groups = fitted_groups(able, workers, part(progress, 0.0, 0.2), profiles)
        constants = {group.key: group for group in groups}
        seen = {
            (found.name, row.id): case_of(found, row, constants, profiles)
            for found in able
            for row in _rows(found)
        }
        unseen = {
            (found.name, row.id): _case(found, row, constants, profiles)
            for found in able
            for row in _rows(found)
        }
        known = forecast_cases(seen, workers, part(progress, 0.2, 0.6))
        found_out = forecast_cases(unseen, workers, part(progress, 0.6, 1.0))
    families: list[Unseen] = []
    judged: list[Judged] = []
    ratios: list[Speedup] = []
    catalogue = Catalogue.default(profiles)
    for found in able:
        kept = replace(found, rows=tuple(_rows(found)))
        own = list(judge(kept, Forecasts(rows=found_out, groups=())))
        families += _families(kept, own, list(judge(kept, Forecasts(rows=known, groups=()))))
        ratios += speedups(kept, own, catalogue)
        judged += own
    return LeftOut(
        sets=tuple(able),
        families=tuple(families),
        judged=tuple(judged),
        resting={found.name: _resting(found) for found in sets if _resting(found)},
        speedups=tuple(ratios),
    )


def _resting(found: MeasurementSet) -> str:
    """The figures of its own that a set rests on; empty where they can be left out."""
    if found.serves:
        return "nothing else: plan validate itself leaves the models of services out"
    if not found.fit or found.maker:
        return ""
    keys = " and ".join(parameter.key for parameter in found.fit)
    return f"{keys} of each {', '.join(found.group_by)}, fitted to {found.anchor}"


def _rows(found: MeasurementSet) -> Iterator[Row]:
    """Rows that can be predicted without having been seen; anchors set the level of the others."""
    return (row for row in found.rows if not row.excluded and not (found.fit and row.anchor))


def _by(found: MeasurementSet, row: Row) -> str:
    if found.maker:
        return ELSEWHERE
    return FIGURES if siblings(row.labels.get(SERIES, "")) else SHIPPED


def _case(
    found: MeasurementSet,
    row: Row,
    constants: Mapping[GroupKey, Fitted],
    profiles: tuple[Path, ...],
) -> Case:
    """What is asked about a row as if nobody had measured its series."""
    bare = case_of(found, row, {}, profiles)
    if found.maker:
        return _elsewhere(bare, found, row, constants)
    series = row.labels.get(SERIES, "")
    return replace(bare, unseen=series) if siblings(series) else bare


def _elsewhere(
    bare: Case, found: MeasurementSet, row: Row, constants: Mapping[GroupKey, Fitted]
) -> Case:
    """The case with the middle of the constants that were fitted to groups of other makers."""
    makers = {
        (found.name, one.key(found.group_by)): one.key(found.maker)
        for one in found.rows
        if not one.excluded
    }
    own = row.key(found.maker)
    others = [
        Constants(maker=maker, values=dict(text.split("=", 1) for text in group.overrides))
        for key, group in constants.items()
        if group.overrides and (maker := makers.get(key, own)) != own
    ]
    overrides, wide = carried(found, row, others)
    return replace(bare, overrides=(*bare.overrides, *overrides), elsewhere=wide)


def _families(
    found: MeasurementSet, unseen: Sequence[Judged], seen: Sequence[Judged]
) -> Iterator[Unseen]:
    by = {row.id: _by(found, row) for row in found.rows}
    for metric in found.metrics:
        own, beside = ([one for one in rows if one.metric == metric] for rows in (unseen, seen))
        absolute = metric in found.absolute
        width = constant_width([one.point for one in own], absolute=absolute)
        for name in (*dict.fromkeys(one.family for one in own), EVERY_FAMILY):
            points, shipped = (
                [one.point for one in rows if name in (one.family, EVERY_FAMILY)]
                for rows in (own, beside)
            )
            scores = score(points, absolute=absolute), score(shipped, absolute=absolute)
            if scores[0] is None or scores[1] is None:
                continue
            told = (by[one.id] for one in own if name in (one.family, EVERY_FAMILY))
            yield Unseen(
                set=found.name,
                name=name,
                metric=metric,
                absolute=absolute,
                by=", ".join(dict.fromkeys(told)),
                unseen=scores[0],
                seen=scores[1],
                constant_width_score=_one_width(points, width, absolute=absolute),
            )


def _one_width(points: Sequence[Point], width: float | None, *, absolute: bool) -> float | None:
    """The interval score of points with one width, where they have intervals of their own."""
    if width is None or any(point.p10 is None for point in points):
        return None
    return interval_score(with_width(points, width, absolute=absolute), absolute=absolute)
