"""Errors on unseen systems: constants of other submitters, speedups, and series left out.

A submitter is who measured a run, on a system of its own. A series is the measurements of one
accelerator that kernel efficiencies are fitted to.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from simulator.reading.hardware.catalogue import Catalogue
from simulator.reading.keys import Key, numeric_key
from simulator.records import dataclass
from simulator.schema.calibration import TransferError
from simulator.schema.measurement import MeasurementSet, Parameter, Row
from simulator.studies.search.workers import Progress, cores, local_workers
from simulator.uncertainty.scenario import siblings, sign_of
from simulator.validation.forecast import (
    Case,
    Fitted,
    GroupKey,
    case_of,
    fitted_groups,
    forecast_cases,
    part,
)
from simulator.validation.scores import (
    Judged,
    Point,
    Score,
    constant_width,
    interval_score,
    score,
    with_width,
)
from simulator.validation.validate import EVERY_FAMILY, judge

MIN_LOG_SD: Final = 0.05
"""Minimum log standard deviation of a constant between systems."""
_NINETY: Final = 0.9
_NO_BOUNDS: Final = (-math.inf, math.inf)
_BOUND_TOLERANCE: Final = 1e-4
"""Log distance below which a constant counts as at a bound."""
_MIN_SUBMITTERS: Final = 2
"""Minimum number of submitters for a standard deviation of their constants."""

Submitter: TypeAlias = tuple[str, ...]
Vector: TypeAlias = NDArray[np.float64]


Constants: TypeAlias = tuple[Submitter, Mapping[str, str]]
"""A submitter, and the constants fitted to one group of its runs, as texts by key."""


def carried(
    found: MeasurementSet, row: Row, others: Sequence[Constants]
) -> tuple[tuple[str, ...], tuple[TransferError, ...]]:
    """Return overrides with the average constants of other submitters, and their uncertainty.

    Parameters
    ----------
    found : MeasurementSet
        Set of the row: `fit` are its constants, `submitter` the columns that identify a submitter.
    row : Row
        Row to predict.
    others : sequence of Constants
        Constants of each group of another submitter; if empty, both results are empty.
    """
    if not others:
        return (), ()
    weights = _weights(others)
    submitters = len({submitter for submitter, _ in others})
    logs = {one.key: _logs(found, row, one, others) for one in found.fit}
    bounds = {one.key: _bounds(one) for one in found.fit}
    overrides = tuple(
        f"{one.key}={_text(one, _middle(one, logs[one.key], weights))}" for one in found.fit
    )
    wide = tuple(
        TransferError(
            key=key,
            log_sd=max(MIN_LOG_SD, deviation(own, weights, submitters, bounds[key])),
            shared=tuple(
                (other, sign_of(key) * sign_of(other) * correlation(own, theirs, weights))
                for other, theirs in logs.items()
                if other != key
            ),
        )
        for key, own in logs.items()
    )
    return overrides, wide


def deviation(
    logs: Vector, weights: Vector, submitters: int, bounds: tuple[float, float] = _NO_BOUNDS
) -> float:
    """Return the log standard deviation to predict for the constant of an unseen submitter.

    With few submitters neither mean nor spread is known well: the result is that of the normal
    distribution with the same P10 and P90 as the prediction interval of Student's t, whose degrees
    of freedom are the submitters minus 1. It is 0 for one submitter, whose spread is unknown.
    Constants at one of the `bounds` of the fit count as censored: they are there or beyond.

    Examples
    --------
    >>> round(deviation(np.array([0.0, 0.2]), np.array([0.5, 0.5]), 2), 3)
    0.416
    """
    if submitters < _MIN_SUBMITTERS:
        return 0.0
    from scipy.special import ndtri, stdtrit  # noqa: PLC0415 - slow to load, and rarely needed

    spread = _spread(logs, weights, bounds) * math.sqrt(submitters / (submitters - 1.0))
    wider = float(stdtrit(submitters - 1.0, _NINETY) / ndtri(_NINETY))
    return spread * math.sqrt(1.0 + 1.0 / submitters) * wider


def _spread(logs: Vector, weights: Vector, bounds: tuple[float, float]) -> float:
    """Return the maximum-likelihood deviation of a normal with values at bounds censored."""
    low, high = (np.isclose(logs, bound, atol=_BOUND_TOLERANCE) for bound in bounds)
    middle = float(weights @ logs)
    plain = math.sqrt(float(weights @ (logs - middle) ** 2))
    known = ~(low | high)
    if known.all() or np.count_nonzero(known) < _MIN_SUBMITTERS or plain <= 0.0:
        return plain
    from scipy.optimize import minimize  # noqa: PLC0415 - slow to load, and rarely needed
    from scipy.special import log_ndtr  # noqa: PLC0415 - as above

    def unlikely(x: Vector) -> float:
        """Return the weighted negative log-likelihood of the mean x[0] and log deviation x[1]."""
        off = (logs - x[0]) / math.exp(x[1])
        own = np.where(low, -log_ndtr(off), np.where(high, -log_ndtr(-off), 0.5 * off**2 + x[1]))
        return float(weights @ own)

    best = minimize(unlikely, (middle, math.log(plain)), method="Nelder-Mead").x
    return math.exp(float(best[1]))


def _bounds(parameter: Parameter) -> tuple[float, float]:
    kind = numeric_key(parameter.key)
    return math.log(kind.value(parameter.low)), math.log(kind.value(parameter.high))


def correlation(one: Vector, other: Vector, weights: Vector) -> float:
    """Return the weighted correlation of two fitted values over systems; 0 if one never varies."""
    off, beside = one - float(weights @ one), other - float(weights @ other)
    whole = math.sqrt(float(weights @ off**2) * float(weights @ beside**2))
    return float(weights @ (off * beside)) / whole if whole > 0.0 else 0.0


def _weights(others: Sequence[Constants]) -> Vector:
    groups = Counter(submitter for submitter, _ in others)
    return np.array([1.0 / (groups[submitter] * len(groups)) for submitter, _ in others])


def _middle(parameter: Parameter, logs: Vector, weights: Vector) -> float:
    """Return the weighted mean of the logs, or the median if any is at a bound or at its start."""
    start = math.log(numeric_key(parameter.key).value(parameter.start))
    if not np.isin(logs, (start, *_bounds(parameter))).any():
        return float(weights @ logs)
    order = np.argsort(logs)
    half = int(np.searchsorted(np.cumsum(weights[order]), 0.5))
    return float(logs[order][half])


def _text(parameter: Parameter, log: float) -> str:
    kind = numeric_key(parameter.key)
    return kind.text(math.exp(log), parameter.start)


def _logs(
    found: MeasurementSet, row: Row, parameter: Parameter, others: Sequence[Constants]
) -> Vector:
    """Return the logs of the constants of others, scaled to the speed of the row's system."""
    kind = numeric_key(parameter.key)
    texts = (values.get(parameter.key, parameter.start) for _, values in others)
    there = [math.log(kind.value(text)) for text in texts]
    if not parameter.pace:
        return np.array(there)
    submitters = {row.key(found.maker) for row in found.rows}
    paces = {one: dict(_paces(found, parameter.pace, one)) for one in submitters}
    own = paces[row.key(found.maker)]
    slower = [_slower(own, paces[submitter]) for submitter, _ in others]
    return np.array([log + more for log, more in zip(there, slower, strict=True)])


def _slower(own: Mapping[Submitter, float], theirs: Mapping[Submitter, float]) -> float:
    both = own.keys() & theirs.keys()
    return float(np.mean([own[one] - theirs[one] for one in both])) if both else 0.0


def _paces(
    found: MeasurementSet, pace: str, submitter: Submitter
) -> Iterator[tuple[Submitter, float]]:
    """Yield the log of the key `pace` on a submitter's rows, by the rest of the configuration."""
    rest = tuple(name for name in found.configuration if name not in found.maker)
    kind: Key = numeric_key(pace)
    for row in found.rows:
        stated = dict(override.split("=", 1) for override in row.overrides).get(pace)
        if stated is not None and row.key(found.maker) == submitter:
            yield row.key(rest), math.log(kind.value(stated))


TIME_METRICS: Final = ("step_time_s.mean",)
RATE_METRICS: Final = ("throughput_samples_per_s",)
_HARDWARE: Final = "hardware."


@dataclass(frozen=True, slots=True, kw_only=True)
class Speedup:
    """Speedup of a job on the accelerator `faster` over that on `slower`, measured and predicted.

    `slower` and `faster` are full names of accelerators; `rows` are the ids of their runs in that
    order.
    """

    set: str
    family: str
    metric: str
    slower: str
    faster: str
    rows: tuple[str, str]
    measured: float
    predicted: float

    @property
    def error(self) -> float:
        """Relative error of the speedup: predicted / measured - 1."""
        return self.predicted / self.measured - 1.0


def speedups(
    found: MeasurementSet, judged: Iterable[Judged], catalogue: Catalogue
) -> tuple[Speedup, ...]:
    """Return the speedup between every two runs of a set that differ only in the accelerator.

    Parameters
    ----------
    found : MeasurementSet
        Measurement set with the configurations of the runs.
    judged : iterable of Judged
        Measured and predicted metrics; those that are neither time nor rate are skipped.
    catalogue : Catalogue
        Hardware catalogue, to look up the accelerators of a machine.
    """
    rows = {row.id: row for row in found.rows}
    alike: dict[tuple[object, ...], list[tuple[str, Judged]]] = defaultdict(list)
    for one in judged:
        if one.metric not in (*TIME_METRICS, *RATE_METRICS):
            continue
        gpu, count = _accelerators(rows[one.id], catalogue)
        if gpu:
            keys = sorted(_keys(rows[one.id]).items())
            job = tuple(item for item in keys if not item[0].startswith(_HARDWARE))
            alike[one.family, one.metric, rows[one.id].base, job, count].append((gpu, one))
    return tuple(pair for runs in alike.values() for pair in _pairs(runs))


def _pairs(runs: Sequence[tuple[str, Judged]]) -> Iterator[Speedup]:
    for one, other in combinations(runs, 2):
        if one[0] == other[0]:
            continue
        slow, fast = sorted((one, other), key=lambda run: _measured_rate(run[1]))
        slower, faster = slow[1], fast[1]
        predicted = faster.point.predicted / slower.point.predicted
        yield Speedup(
            set=faster.set,
            family=faster.family,
            metric=faster.metric,
            slower=slow[0],
            faster=fast[0],
            rows=(slower.id, faster.id),
            measured=_measured_rate(faster) / _measured_rate(slower),
            predicted=1.0 / predicted if faster.metric in TIME_METRICS else predicted,
        )


def _measured_rate(one: Judged) -> float:
    return 1.0 / one.point.measured if one.metric in TIME_METRICS else one.point.measured


def _accelerators(row: Row, catalogue: Catalogue) -> tuple[str, int]:
    """Return the accelerator of a row's machines and its number; ("", 0) if unknown or emulated."""
    keys = _keys(row)
    if "hardware.machine" not in keys:
        return "", 0
    host = catalogue.host(keys["hardware.machine"])
    if host.gpu is None or host.gpu.emulated:
        return "", 0
    in_one = int(keys.get("hardware.gpus", host.gpu_count))
    return keys.get("hardware.gpu", host.gpu.name), in_one * int(keys.get("hardware.count", "1"))


def _keys(row: Row) -> Mapping[str, str]:
    return dict(override.split("=", 1) for override in row.overrides)


SERIES: Final = "series"
"""Label of a row that names its series."""
UNSEEN_COVERAGE: Final = (0.72, 0.88)
"""Target range of the share of unseen values of a metric within P10 to P90."""
UNSEEN_FAMILY_COVERAGE: Final = (0.65, 0.92)
"""Target range of this share in every family of at least `MIN_UNSEEN_FIGURES` rows."""
MIN_UNSEEN_FIGURES: Final = 40

REFITTED_KERNELS: Final = "kernel figures fitted without it"
CARRIED_CONSTANTS: Final = "constants of other submitters"
AS_SHIPPED: Final = "as shipped: nothing was fitted to it"


@dataclass(frozen=True, slots=True, kw_only=True)
class Unseen:
    """Errors of one family of rows in one metric, predicted in two ways.

    `unseen` is predicted without the measurements of the row's own series (its accelerator) or
    submitter, `seen` with the figures that ship.


    `name` is `EVERY_FAMILY` for all rows of a set. `by` names the method of the unseen prediction.
    `constant_width_score` is the interval score of the one width that fits all unseen values of the
    metric best.
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
        """True if the coverage is outside its target range; false with too few rows to judge."""
        low, high = UNSEEN_COVERAGE if self.name == EVERY_FAMILY else UNSEEN_FAMILY_COVERAGE
        share = self.unseen.coverage
        return (
            share is not None
            and self.unseen.rows >= MIN_UNSEEN_FIGURES
            and not low <= share <= high
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """Result of leaving series out.

    `families` are in the order of the rows, each set's total last. `judged` are the unseen
    predictions, `speedups` those between two types of accelerators. `resting` maps the names of
    other sets to the reason why none of their measurements can be left out.
    """

    sets: tuple[MeasurementSet, ...]
    families: tuple[Unseen, ...]
    judged: tuple[Judged, ...]
    resting: Mapping[str, str]
    speedups: tuple[Speedup, ...] = ()

    @property
    def off(self) -> tuple[Unseen, ...]:
        """Families and sets whose share of values within the interval is off its target range."""
        return tuple(one for one in self.families if one.off)


def leave_out(
    sets: Sequence[MeasurementSet],
    *,
    processes: int | None = None,
    progress: Progress | None = None,
    profiles: tuple[Path, ...] = (),
) -> LeftOut:
    """Predict every row from measurements of other series or submitters, and as shipped.

    Parameters
    ----------
    sets : sequence of MeasurementSet
        Measurement sets to predict.
    processes : int, optional
        Number of worker processes; all cores by default.
    progress : callable, optional
        Called with the finished share, 0 to 1.
    profiles : tuple of pathlib.Path
        Folders of hardware profiles, searched before the usual ones.

    Raises
    ------
    InputError
        With all mistakes in the scenarios of rows at once.
    """
    able = [found for found in sets if not _resting(found)]
    with local_workers(processes or cores()) as workers:
        groups = fitted_groups(able, workers, part(progress, 0.0, 0.2), profiles)
        constants = {group.key: group for group in groups}
        places = [(found, row) for found in able for row in _rows(found)]
        known, found_out = (
            forecast_cases(
                {(one.name, row.id): case(one, row, constants, profiles) for one, row in places},
                workers,
                part(progress, start, start + 0.4),
            )
            for case, start in ((case_of, 0.2), (_case, 0.6))
        )
    families: list[Unseen] = []
    judged: list[Judged] = []
    ratios: list[Speedup] = []
    catalogue = Catalogue.default(profiles)
    for found in able:
        kept = replace(found, rows=tuple(_rows(found)))
        own = list(judge(kept, found_out))
        families += _families(kept, own, list(judge(kept, known)))
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
    """Return the reason why no measurements of a set can be left out; empty if they can."""
    if found.serves:
        return "nothing else: plan validate itself leaves the models of services out"
    if not found.fit or found.maker:
        return ""
    keys = " and ".join(parameter.key for parameter in found.fit)
    return f"{keys} of each {', '.join(found.group_by)}, fitted to {found.anchor}"


def _rows(found: MeasurementSet) -> Iterator[Row]:
    return (row for row in found.rows if not row.excluded and not (found.fit and row.anchor))


def _by(found: MeasurementSet, row: Row) -> str:
    if found.maker:
        return CARRIED_CONSTANTS
    return REFITTED_KERNELS if siblings(row.labels.get(SERIES, "")) else AS_SHIPPED


def _case(
    found: MeasurementSet,
    row: Row,
    constants: Mapping[GroupKey, Fitted],
    profiles: tuple[Path, ...],
) -> Case:
    """Return the arguments to predict a row as if its series had not been measured."""
    bare = case_of(found, row, {}, profiles)
    if found.maker:
        return _elsewhere(bare, found, row, constants)
    series = row.labels.get(SERIES, "")
    return replace(bare, unseen=series) if siblings(series) else bare


def _elsewhere(
    bare: Case, found: MeasurementSet, row: Row, constants: Mapping[GroupKey, Fitted]
) -> Case:
    """Return the case with average constants fitted to the groups of other submitters."""
    submitters = {
        (found.name, one.key(found.group_by)): one.key(found.maker)
        for one in found.rows
        if not one.excluded
    }
    own = row.key(found.maker)
    others = [
        (submitter, dict(text.split("=", 1) for text in group.overrides))
        for key, group in constants.items()
        if group.overrides and (submitter := submitters.get(key, own)) != own
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
    if width is None or any(point.p10 is None for point in points):
        return None
    return interval_score(with_width(points, width, absolute=absolute), absolute=absolute)
