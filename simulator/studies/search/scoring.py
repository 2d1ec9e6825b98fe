"""Criteria of a search: objectives, conditions, and the Pareto front."""

from __future__ import annotations

import difflib
import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from simulator.errors import PlanError
from simulator.reading.settings import unit_of
from simulator.records import dataclass
from simulator.results.expression import Expression, parse_expression
from simulator.results.metrics import JOB_METRICS
from simulator.schema.goal import Objective, Sense
from simulator.studies.search.outcome import Candidate

Points = NDArray[np.float64]
Mask = NDArray[np.bool_]

PAIR = 2
"""Objectives for which one pass over sorted points is enough."""


def front(points: Points) -> Mask:
    """Return a mask of the points on the Pareto front; less is better in every objective.

    One point beats another if it is better in one objective and no worse in all others.

    Parameters
    ----------
    points : array
        One row for each point, one column for each objective; values may be infinite.

    Returns
    -------
    array of bool
        True for points that no other point beats; equal points are all on the front.

    Notes
    -----
    A point that beats another comes before it in lexicographic order. So with two objectives a
    point is on the front if its second one is the least so far: n log n. With more each point is
    compared with the front of those before it.

    Examples
    --------
    >>> front(np.array([[1.0, 5.0], [2.0, 2.0], [2.0, 2.0], [3.0, 4.0], [5.0, 1.0]])).tolist()
    [True, True, True, False, True]
    """
    points = np.asarray(points, dtype=float)
    if not len(points):
        return np.zeros(0, dtype=bool)
    unique, place = np.unique(points, axis=0, return_inverse=True)
    best = _of_two(unique) if unique.shape[1] <= PAIR else _of_more(unique)
    return np.asarray(best[place.reshape(-1)])


def _of_two(ordered: Points) -> Mask:
    last = ordered[:, -1]
    least = np.minimum.accumulate(last)
    return np.concatenate(([True], last[1:] < least[:-1]))


def _of_more(ordered: Points) -> Mask:
    """Return a mask of the Pareto front of distinct points in lexicographic order."""
    best = np.zeros(len(ordered), dtype=bool)
    kept = np.empty_like(ordered)
    number = 0
    for i, point in enumerate(ordered):
        if not (kept[:number] <= point).all(axis=1).any():
            best[i], kept[number] = True, point
            number += 1
    return best


def may_beat(
    best_cases: Points, found: Points, *, top: int | None = None, margin: float = 0.0
) -> Mask:
    """Return a mask of the candidates that could still be wanted, given their best cases.

    Parameters
    ----------
    best_cases : array
        Best case of each candidate, one row each; minus infinity where it is unbounded.
    found : array
        Predicted objectives of other candidates, one row each.
    top : int, optional
        Candidates that could be among this number of best by the first objective are wanted too.
    margin : float, optional
        Relative distance from the front up to which candidates are wanted too. If negative, only
        candidates are wanted that could be better than those found by more than this share.

    Returns
    -------
    array of bool
        False only if a point found beats the best case of the candidate, and with a margin even
        when made worse by that share.

    Examples
    --------
    >>> may_beat(np.array([[1.0, 3.0], [2.0, 2.0], [2.0, 3.0]]), np.array([[2.0, 2.0]])).tolist()
    [True, True, False]
    """
    best_cases = np.asarray(best_cases, dtype=float)
    found = np.asarray(found, dtype=float).reshape(-1, best_cases.shape[1])
    reach = np.unique(found[front(found)], axis=0)
    if margin:  # without one an infinite figure would be multiplied by zero
        known = np.isfinite(reach)  # an unknown figure stays unknown, however much worse
        reach = np.where(known, reach + margin * np.abs(np.where(known, reach, 0.0)), reach)
    wanted = np.ones(len(best_cases), dtype=bool)
    for point in reach:
        wanted &= ~beats(point, best_cases)
    if top:
        firsts = np.sort(found[:, 0])
        if len(firsts) < top:
            return np.ones_like(wanted)
        last = firsts[top - 1]
        if margin < 0.0 and np.isfinite(last):
            last += margin * abs(last)
        wanted |= best_cases[:, 0] <= last
    return wanted


def within(points: Points, margin: float) -> Mask:
    """Return a mask of the points on the front, or worse than it by at most the share `margin`."""
    return may_beat(points, points, margin=margin)


def beats(point: Points, rows: Points) -> Mask:
    """Return a mask of the rows that a point beats: better in one objective, no worse in others."""
    return np.asarray((point <= rows).all(axis=1) & (point < rows).any(axis=1))


def comparable(points: Points) -> Mask:
    """Return a mask of the rows with a value for every objective, or of all rows if none has.

    A machine without a price is not on a front of time and cost; if no machine has a price, cost
    does not distinguish them.
    """
    known = np.asarray(~np.isposinf(points).any(axis=1))
    return known if known.any() else np.ones(len(points), dtype=bool)


_BETTER: Final = {metric.name: metric.better for metric in JOB_METRICS}
_PRICED: Final = frozenset(
    {"cost.usd_per_h", "cost.usd_per_step", "cost.samples_per_usd"}
    | {"cost.usd_to_train", "cost.usd_for_machines", "cost.usd_with_storage"}
    | {f"run.usd.p{quantile}" for quantile in (10, 50, 90, 99)}
)
"""Metrics without a value if no price is known."""
_PRICE: Final = "cost.usd_per_h"
_EXACT: Final = frozenset(
    {
        *("host_ram_bytes.total", "host_ram_bytes.capacity"),
        *("gpu_memory_bytes.total", "gpu_memory_bytes.capacity"),
        *("cost.usd_per_h", "bound_s.lower"),
    }
)
"""Metrics that are known exactly before a candidate is predicted."""
_SENSES: Final = {"min": Sense.MINIMIZE, "max": Sense.MAXIMIZE}


def objective_of(text: str) -> Objective:
    """Parse an objective: a metric, or ``min:`` or ``max:`` and an expression.

    Raises
    ------
    PlanError
        If it is not a metric or a number, or its better direction is unknown.

    Examples
    --------
    >>> objective_of("cost.samples_per_usd").sense
    <Sense.MAXIMIZE: 'maximize'>
    >>> objective_of("max:accelerator_utilization - 0.1 * cost.usd_per_h").sense
    <Sense.MAXIMIZE: 'maximize'>
    """
    way, colon, rest = text.partition(":")
    sense = _SENSES.get(way.strip()) if colon else None
    if colon and sense is None:
        close = difflib.get_close_matches(way.strip(), _SENSES, n=1)
        hint = f"; did you mean '{close[0]}:'?" if close else "; write min: or max: before it"
        msg = f"--by {text}: '{way}:' is not a direction{hint}"
        raise PlanError(msg)
    metric = (rest if colon else text).strip()
    if not metric:
        msg = "--by: names no metric; write one, such as total_time_s, or min: and an expression"
        raise PlanError(msg)
    expression = _number(metric)
    better = _BETTER.get(str(expression))
    if sense is None and better is None:
        msg = (
            f"--by {text}: nothing says which way it is better; write min:{metric} or max:{metric}"
        )
        raise PlanError(msg)
    usual = Sense.MAXIMIZE if better == "high" else Sense.MINIMIZE
    return Objective(metric=metric, sense=sense or usual)


def share_of(text: str, option: str) -> float:
    """Parse a share, such as ``5%`` or ``0.05``.

    Raises
    ------
    PlanError
        If it is not a number, or negative; the message names `option`.

    Examples
    --------
    >>> share_of("5%", "--margin"), share_of("0.2", "--margin")
    (0.05, 0.2)
    """
    number, percent, rest = text.strip().partition("%")
    try:
        value = float(number) / (100.0 if percent else 1.0)
    except ValueError:
        value = math.nan
    if rest or not 0.0 <= value < math.inf:
        msg = f"{option}: '{text}' is not a share; write it like 5% or 0.05"
        raise PlanError(msg)
    return value


def _number(text: str) -> Expression:
    expression = parse_expression(text)
    if not expression.is_number:
        msg = f"'{text}' is not a number, so no candidate has more or less of it than another"
        raise PlanError(msg)
    return expression


@dataclass(frozen=True, slots=True)
class _Goal:
    """One objective as a parsed expression; `sign` is -1 to maximize."""

    expression: Expression
    sign: float
    metric: str
    screened: bool
    """True if the expression is a single metric in its better direction."""

    def score(self, figures: Mapping[str, Any]) -> float:
        value = self.expression.value(figures)
        if isinstance(value, bool) or not isinstance(value, int | float) or math.isnan(value):
            return math.inf
        return self.sign * value

    def least(self, best: Mapping[str, float]) -> float:
        if self.screened and self.metric in best:
            return self.sign * best[self.metric]
        named = self.expression.names
        if best and _PRICE not in best and not _PRICED.isdisjoint(named):
            return math.inf
        if self.metric in named:  # a metric of which nothing is known, or wanted the other way
            return -math.inf
        low, high = self.expression.range(_ranges(best))
        return low if self.sign > 0.0 else -high


class Criteria:
    """Criteria of a search: objectives and a condition.

    Parameters
    ----------
    objectives : sequence of Objective
        Objectives; the first one ranks.
    where : str
        Condition on metrics and keys; empty if there is none.
    keys : sequence of str
        Keys of the scenario that the condition may name.

    Raises
    ------
    PlanError
        If an objective is not a number, or `where` is not a condition.
    """

    def __init__(
        self, objectives: Sequence[Objective], where: str = "", keys: Sequence[str] = ()
    ) -> None:
        self.where = where
        self._goals = [_goal(objective) for objective in objectives]
        units = {key: unit_of(key) for key in keys}
        self._condition = parse_expression(where, extra_names=units) if where else None
        if self._condition is not None and not self._condition.is_condition:
            msg = f"'{where}' is not a condition; compare it with something, such as ... < 500"
            raise PlanError(msg)
        named = set() if self._condition is None else set(self._condition.names)
        self._early = named <= _EXACT | set(units)

    def score(self, figures: Mapping[str, Any]) -> tuple[float, ...]:
        """Return the values of all objectives, less is better; infinite if unknown."""
        return tuple(goal.score(figures) for goal in self._goals)

    def least(self, best: Mapping[str, float]) -> tuple[float, ...]:
        """Return the best possible values of all objectives; minus infinity if unbounded."""
        return tuple(goal.least(best) for goal in self._goals)

    def meets(self, candidate: Candidate, figures: Mapping[str, Any]) -> bool:
        """Return whether a predicted candidate meets the condition."""
        if self._condition is None:
            return True
        return self._condition.holds({**figures, **candidate.settings})

    def misses_early(self, candidate: Candidate, best: Mapping[str, float]) -> bool:
        """Return whether a candidate fails the condition by values known without a prediction."""
        return self._early and bool(best) and not self.meets(candidate, best)

    def may_meet(self, candidate: Candidate, best: Mapping[str, float]) -> bool:
        """Return whether a candidate with this best case may meet the condition."""
        if self._condition is None:
            return True
        known = {
            key: (float(value), float(value))
            for key, value in candidate.settings.items()
            if not isinstance(value, bool | str)
        }
        return self._condition.may_hold({**_ranges(best), **known})


def _ranges(best: Mapping[str, float]) -> dict[str, tuple[float, float]]:
    """Return the ranges of metrics of a candidate that is at most as good as its best case."""
    ends: dict[str, tuple[float, float]] = {}
    for name, value in best.items():
        better = _BETTER.get(name)
        if name in _EXACT:
            ends[name] = (value, value)
        elif better is not None:
            ends[name] = (value, math.inf) if better == "low" else (0.0, value)
    return ends


def value_of(figures: Mapping[str, Any], objective: Objective) -> float | None:
    """Return the value of an objective, not negated for maximization; None if unknown."""
    score = Criteria((objective,)).score(figures)[0]
    if not math.isfinite(score):
        return None
    return -score if objective.sense is Sense.MAXIMIZE else score


def exact(best: Mapping[str, float]) -> dict[str, float]:
    """Return the metrics of a best case that are equal in a prediction."""
    return {name: value for name, value in best.items() if name in _EXACT}


def _goal(objective: Objective) -> _Goal:
    expression = _number(objective.metric)
    metric = str(expression)
    sign = -1.0 if objective.sense is Sense.MAXIMIZE else 1.0
    usual = {"low": 1.0, "high": -1.0}.get(_BETTER.get(metric) or "")
    return _Goal(expression, sign, metric, usual == sign)
