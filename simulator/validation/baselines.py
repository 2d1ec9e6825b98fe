"""Naive predictors that a model has to beat: a constant, linear scaling, the slowest part, one MFU.

Each is told what may be fitted to and says what it would have predicted for every row, None where
it has nothing to say.
"""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from simulator.uncertainty.measurement import Baseline, MeasurementSet, Row, Split
from simulator.units import Seconds
from simulator.validation.facts import Facts

STEPS = ("step_time_s.mean", "step_time_s")
"""How the names of metrics end that say how long a step takes."""
RATE = "samples_per_s"
"""How those end that say how many samples it makes of a second; these grow with the devices."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A row that was predicted, and what describes its scenario."""

    row: Row
    facts: Facts


def is_speed(metric: str) -> bool:
    """Whether a metric says how long a step takes, or how many samples it makes of a second."""
    return metric.endswith((*STEPS, RATE))


def baseline(found: MeasurementSet, seen: Sequence[Seen], metric: str) -> Mapping[str, float]:
    """What the set's naive predictor says about `metric`, by row id."""
    rule: Rule = _RULES[found.baseline]
    rows = [one for one in seen if metric in one.row.measured]
    return dict(rule(found, rows, metric))


Rule = Callable[[MeasurementSet, Sequence[Seen], str], Iterator[tuple[str, float]]]


def _constant(
    found: MeasurementSet, seen: Sequence[Seen], metric: str
) -> Iterator[tuple[str, float]]:
    """The median of the fit rows with the same labels; of all such rows if none may be fitted.

    Rates count per device: no constant predicts samples per second of one and of eight.
    """
    for alike in _grouped(seen, found.baseline_by).values():
        fitted = _fitted([one.row for one in alike])
        size = {one.row.id: _size(metric, one.facts) for one in alike}
        middle = statistics.median(row.measured[metric] / size[row.id] for row in fitted)
        yield from ((one.row.id, middle * size[one.row.id]) for one in alike)


def _size(metric: str, facts: Facts) -> float:
    """What a constant counts per: a device for rates, the whole run for everything else."""
    return float(facts.devices) if metric.endswith(RATE) else 1.0


def _grouped(seen: Sequence[Seen], columns: tuple[str, ...]) -> Mapping[object, list[Seen]]:
    groups: dict[object, list[Seen]] = defaultdict(list)
    for one in seen:
        groups[one.row.key(columns)].append(one)
    return groups


def _fitted(rows: Sequence[Row]) -> Sequence[Row]:
    return [row for row in rows if row.split is Split.FIT] or rows


def _linear(
    found: MeasurementSet, seen: Sequence[Seen], metric: str
) -> Iterator[tuple[str, float]]:
    """The throughput of the group's smallest anchor, times the ratio of devices."""
    for group in _grouped(seen, found.group_by).values():
        anchors = [one for one in group if one.row.anchor]
        if not anchors or not is_speed(metric):
            continue
        anchor = min(anchors, key=lambda one: one.facts.devices)
        alone = _rate(anchor.row.measured[metric], metric, anchor.facts) / anchor.facts.devices
        for one in group:
            yield one.row.id, _figure(alone * one.facts.devices, metric, one.facts)


def _slowest_part(
    found: MeasurementSet, seen: Sequence[Seen], metric: str
) -> Iterator[tuple[str, float]]:
    """What the slowest of device, cores and store takes for a step, as if it were alone."""
    del found
    for one in seen:
        slowest = one.facts.slowest
        if slowest and is_speed(metric):
            yield one.row.id, _figure(one.facts.samples / slowest, metric, one.facts)


def _constant_mfu(
    found: MeasurementSet, seen: Sequence[Seen], metric: str
) -> Iterator[tuple[str, float]]:
    """The same share of the devices' peak for all with the same labels: the fit rows' median.

    Where none of them may be fitted, the median of all fit rows.
    """
    known = [s for s in seen if math.isfinite(_ideal(s.facts))]
    if not known or not is_speed(metric):
        return
    everywhere = _shares(known, metric)
    for alike in _grouped(known, found.baseline_by).values():
        own = any(one.row.split is Split.FIT for one in alike)
        share = statistics.median(_shares(alike, metric) if own else everywhere)
        for one in alike:
            rate = share * one.facts.samples / _ideal(one.facts)
            yield one.row.id, _figure(rate, metric, one.facts)


def _shares(seen: Sequence[Seen], metric: str) -> list[float]:
    """Shares of the peak that the fit rows reach."""
    fitted = {row.id for row in _fitted([s.row for s in seen])}
    return [
        _rate(s.row.measured[metric], metric, s.facts) * _ideal(s.facts) / s.facts.samples
        for s in seen
        if s.row.id in fitted
    ]


def _ideal(facts: Facts) -> Seconds:
    """A step at the devices' peak [s]; infinite or NaN where that is not known."""
    if not facts.operations or not facts.peak:
        return math.inf
    return facts.operations / facts.peak


def _rate(value: float, metric: str, facts: Facts) -> float:
    """Samples per second, from a throughput or a step time."""
    return value if metric.endswith(RATE) else facts.samples / value


def _figure(rate: float, metric: str, facts: Facts) -> float:
    """The metric at a rate of samples per second."""
    return rate if metric.endswith(RATE) else facts.samples / rate


_RULES: Mapping[Baseline, Rule] = {
    Baseline.CONSTANT: _constant,
    Baseline.LINEAR: _linear,
    Baseline.SLOWEST_PART: _slowest_part,
    Baseline.CONSTANT_MFU: _constant_mfu,
}
