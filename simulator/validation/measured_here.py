"""What measured rows of the very configuration that is predicted say of its intervals.

A row that differs from a scenario in nothing that is compared is a measurement of this prediction.
An interval that leaves it out would deny what was seen, so it is widened until it holds it: for
every figure that goes with the length of a step, and for the measured figure itself.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, NamedTuple

from simulator.errors import PlanError
from simulator.reading.hardware.catalogue import Catalogue
from simulator.reading.scenario import load_scenario
from simulator.results.metrics import number_at
from simulator.results.prediction import Prediction
from simulator.schema.scenario import Scenario
from simulator.uncertainty.measurement import Row
from simulator.validation.facts import Facts, facts_of
from simulator.validation.forecast import known_profiles
from simulator.validation.nearest import Near, Neighbourhood, distance
from simulator.validation.validate import Judged

SAME: Final = 0.05
"""Distance below which a row is one of the same configuration: all numbers agree to 3.5%."""
LEFT_OUT: Final = 0.1
"""Share of many such rows that may lie beyond either end, as 10% of all measurements do."""
_LENGTHS: Final = (
    *("step_time_s.mean", "epoch_time_s", "total_time_s"),
    *("cost.usd_per_step", "cost.usd_to_train", "cost.usd_for_machines"),
    "cost.time_to_train_s",
)
"""Figures that are as many times longer as a step is."""
_RATES: Final = ("throughput_samples_per_s", "cost.samples_per_usd")
"""Figures that are as many times lower."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Here:
    """One figure measured at the configuration that is predicted.

    `ratio` is the measured over the predicted value, both of the row; `outside` says whether the
    interval of the prediction left it out.
    """

    set: str
    id: str
    metric: str
    measured: float
    ratio: float
    outside: bool


class Run(NamedTuple):
    """A measured row that differs from a scenario in nothing that is compared, and its set."""

    set: str
    row: Row


class Outside(NamedTuple):
    """A figure that a run of the very configuration measured beyond the interval predicted."""

    set: str
    id: str
    metric: str
    measured: float
    predicted: float


def runs_of(
    scenario: Scenario, alike: Sequence[tuple[str, Row]], profiles: tuple[Path, ...] = ()
) -> tuple[Run, ...]:
    """Of rows that may be runs of a scenario, each with its set's name, those that are.

    They differ from it in nothing that is compared (`nearest.distance`).
    """
    own = facts_of(scenario)
    catalogue = known_profiles(profiles)
    return tuple(Run(name, row) for name, row in alike if _is_same(row, own, catalogue))


def holding(prediction: Prediction, runs: Sequence[Run]) -> tuple[Prediction, tuple[Outside, ...]]:
    """The prediction with intervals that hold what runs of it measured, and what lay outside.

    With many runs a tenth of them may stay beyond either end. What lies inside changes nothing.
    """
    stretches: dict[str, list[float]] = {}
    outside: list[Outside] = []
    for run in runs:
        for metric, measured in run.row.measured.items():
            own = number_at(prediction, metric)
            if own is None or metric not in prediction.interval or not own > 0.0 < measured:
                continue
            for other, ratio in _implied(metric, measured / own):
                stretches.setdefault(other, []).append(ratio)
        outside.extend(_beyond(prediction, run))
    interval = {
        name: _holding(name, band, stretches.get(name, ()), prediction)
        for name, band in prediction.interval.items()
    }
    moved = (one for one in outside if interval[one.metric] != prediction.interval[one.metric])
    return replace(prediction, interval=interval), tuple(moved)


def _is_same(row: Row, own: Facts, catalogue: Catalogue) -> bool:
    try:
        scenario = load_scenario(row.base, overrides=row.overrides, catalogue=catalogue)
        return distance(own, facts_of(scenario)) < SAME
    except PlanError:
        return False


def _beyond(prediction: Prediction, run: Run) -> Iterator[Outside]:
    """What a run measured beyond the intervals of a prediction."""
    for metric, measured in run.row.measured.items():
        own, band = number_at(prediction, metric), prediction.interval.get(metric)
        if own is None or band is None or not own > 0.0 < measured:
            continue
        if not band["p10"] <= measured <= band["p90"]:
            yield Outside(run.set, run.row.id, metric, measured, own)


def measured_here(prediction: Prediction, near: Neighbourhood) -> tuple[Here, ...]:
    """Figures of rows that differ from the scenario in nothing, nearest first."""
    return tuple(
        Here(
            set=judged.set,
            id=judged.id,
            metric=judged.metric,
            measured=judged.point.measured,
            ratio=judged.point.measured / judged.point.predicted,
            outside=_is_outside(prediction, judged),
        )
        for judged in _judged(near.rows)
    )


def widened(prediction: Prediction, near: Neighbourhood) -> Prediction:
    """The prediction with intervals that hold what was measured at its configuration.

    With many such rows a tenth of them may stay beyond either end.
    """
    stretches: dict[str, list[float]] = {}
    for here in measured_here(prediction, near):
        for metric, ratio in _implied(here.metric, here.ratio):
            stretches.setdefault(metric, []).append(ratio)
    interval = {
        name: _holding(name, band, stretches.get(name, ()), prediction)
        for name, band in prediction.interval.items()
    }
    return replace(prediction, interval=interval)


def _judged(rows: Sequence[Near]) -> Iterator[Judged]:
    same = [near for near in rows if near.distance < SAME]
    for judged in (judged for near in same for judged in near.judged):
        if not judged.absolute and judged.point.predicted > 0.0 < judged.point.measured:
            yield judged


def _is_outside(prediction: Prediction, judged: Judged) -> bool:
    band, own = prediction.interval.get(judged.metric), number_at(prediction, judged.metric)
    if band is None or own is None:
        return False
    here = own * judged.point.measured / judged.point.predicted
    return not band["p10"] <= here <= band["p90"]


def _implied(metric: str, ratio: float) -> Iterator[tuple[str, float]]:
    """What a measured figure says of others: how many times as large as predicted each is."""
    if metric not in {*_LENGTHS, *_RATES}:
        yield metric, ratio
        return
    longer = ratio if metric in _LENGTHS else 1.0 / ratio
    yield from ((name, longer) for name in _LENGTHS)
    yield from ((name, 1.0 / longer) for name in _RATES)


def _holding(
    name: str, band: Mapping[str, float], ratios: Sequence[float], prediction: Prediction
) -> Mapping[str, float]:
    own = number_at(prediction, name)
    if own is None or not ratios:
        return band
    ordered = sorted(own * ratio for ratio in ratios)
    beyond = math.floor(LEFT_OUT * len(ordered))
    low, high = ordered[beyond], ordered[-1 - beyond]
    return {**band, "p10": min(band["p10"], low), "p90": max(band["p90"], high)}
