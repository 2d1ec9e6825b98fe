"""Choices of a recommendation: value under the goal, order, confidence, and tradeoffs.

The value of each choice has an interval, and its draws are lognormal with its quantiles. Choices
with the same bottleneck on the same make of hardware share their errors; all others have
independent errors. The report states this assumption: an error common to all choices (of the
model's arithmetic, say) would make the winner more certain.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from simulator.records import dataclass
from simulator.results.expression import parse_expression
from simulator.results.metrics import JOB_METRICS, Value
from simulator.schema.goal import Objective, Plain, Sense
from simulator.schema.uncertainty import MOST_DIMENSIONS, P90, normal_points
from simulator.studies.baseline import Machine
from simulator.studies.search.outcome import Outcome, Status
from simulator.units import PERCENT

TIME = "total_time_s"
MONEY = "cost.usd_to_train"
"""The two axes of the front."""
PREPARED_WHERE: Final = "input.where"
"""A remedy that sets this changes what the loader does, which the user must want: reported, but
not chosen."""
_HARDWARE_KEYS: Final = (
    *("hardware.machine", "hardware.count", "remote.machine", "remote.count"),
    "remote.storage",
    *("hardware.storage", "data.placement", "cost.purchase"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """A candidate with its outcome and its value under the goal.

    `figures` are the metrics of the outcome, including lost work and restarts on spot capacity, and
    copies of the data before the run (`copied`). `value` is that of the objective (None if
    undefined), `broken` are the limits that it violates, `idea` is the name of the remedy that it
    tries.
    """

    machine: Machine
    outcome: Outcome
    count: int = 1
    figures: Mapping[str, Value] = field(default_factory=dict)
    value: float | None = None
    broken: tuple[str, ...] = ()
    idea: str = ""
    copied: bool = False

    @property
    def settings(self) -> Mapping[str, Plain]:
        """Settings that differ from the scenario."""
        return self.outcome.settings

    @property
    def index(self) -> int:
        """Index of the candidate in the search."""
        return self.outcome.candidate.index

    @property
    def is_predicted(self) -> bool:
        """True if the metrics come from a prediction."""
        return self.outcome.status is Status.PREDICTED

    @property
    def is_sound(self) -> bool:
        """True if the choice is valid: predicted, within every limit, and with a value."""
        return self.is_predicted and not self.broken and self.value is not None

    @property
    def hardware(self) -> tuple[object, ...]:
        """Purchased hardware; equal for choices that differ only in settings of the program."""
        named: dict[str, Plain] = {
            "hardware.machine": self.machine.name,
            "hardware.count": self.count,
        }
        return hardware_of({**self.settings, **named})

    @property
    def kind(self) -> tuple[object, ...]:
        """Kind of machines, independent of their number and of the place of the data."""
        keys = ("remote.machine", "cost.purchase")
        return (self.machine.name, *(self.settings.get(key) for key in keys))


def hardware_of(settings: Mapping[str, Plain]) -> tuple[object, ...]:
    """Return the purchased hardware of a candidate, without settings of the program."""
    return tuple(settings.get(key) for key in _HARDWARE_KEYS)


def number(figures: Mapping[str, Value], name: str) -> float | None:
    """Return the finite value of a metric; None if there is none."""
    value = figures.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if math.isfinite(value) else None


FACTOR_FROM: Final = 2.0
EQUAL_FACTOR: Final = 1.005
"""Ratio of two values up to which they count as equal."""
GoalValue = Callable[[Mapping[str, Value]], float | None]
"""Function that returns the value of the objective for metrics; None if undefined."""


def goal_value_of(objective: Objective) -> GoalValue:
    """Return a function that evaluates the objective for metrics.

    Raises
    ------
    PlanError
        If the objective is not an expression over metrics; the message names the nearest one.
    """
    expression = parse_expression(objective.metric)

    def goal_value(figures: Mapping[str, Value]) -> float | None:
        if any(figures.get(name) is None for name in expression.names):
            return None
        value = expression.value(figures)
        if isinstance(value, bool) or not isinstance(value, int | float):
            return None
        return float(value) if math.isfinite(value) else None

    return goal_value


def in_order(objective: Objective, choices: Iterable[Choice]) -> list[Choice]:
    """Return the valid choices, best first; ties are broken by cost, then by index."""

    def place(choice: Choice) -> tuple[float, float, int]:
        value = 0.0 if choice.value is None else choice.value
        signed = -value if objective.sense is Sense.MAXIMIZE else value
        money = number(choice.figures, MONEY)
        return signed, math.inf if money is None else money, choice.index

    return sorted((choice for choice in choices if choice.is_sound), key=place)


def runner_up(ranked: Sequence[Choice]) -> Choice | None:
    """Return the best choice with other hardware than the winner's; None if there is none."""
    return next((one for one in ranked[1:] if one.hardware != ranked[0].hardware), None)


def equals(objective: Objective, ranked: Sequence[Choice]) -> list[Choice]:
    """Return the choices whose value is within `EQUAL_FACTOR` of the best one, including it."""
    best = ranked[0].value if ranked else None
    if best is None:
        return []
    return [
        choice
        for choice in ranked
        if choice.value is not None
        and (
            choice.value == best
            or (ratio(objective, best, choice.value) or math.inf) <= EQUAL_FACTOR
        )
    ]


def front(choices: Iterable[Choice]) -> list[Choice]:
    """Return the valid choices on the Pareto front of time and cost, fastest first."""
    points = [
        (time, money, choice)
        for choice in choices
        if choice.is_sound
        and (time := number(choice.figures, TIME)) is not None
        and (money := number(choice.figures, MONEY)) is not None
    ]
    kept: list[Choice] = []
    cheapest = math.inf
    for _, money, choice in sorted(points, key=lambda p: (p[0], p[1], p[2].index)):
        if money < cheapest:
            cheapest = money
            kept.append(choice)
    return kept


def with_choice(points: Sequence[Choice], taken: Choice) -> list[Choice]:
    """Return a front in which `taken` replaces a choice with about equal time and cost."""

    def alike(choice: Choice) -> bool:
        pairs = ((number(one.figures, name) for one in (choice, taken)) for name in (TIME, MONEY))
        return all(a and b and max(a, b) <= EQUAL_FACTOR * min(a, b) for a, b in pairs)

    if any(choice.index == taken.index for choice in points):
        return list(points)
    place = next((i for i, choice in enumerate(points) if alike(choice)), None)
    return [taken if i == place else choice for i, choice in enumerate(points)]


def distinct(points: Sequence[Choice], always: Choice | None = None) -> list[Choice]:
    """Return a front without choices barely faster than a cheaper one, except `always`."""
    kept: list[Choice] = []
    for choice in reversed(points):
        time = number(choice.figures, TIME) or 0.0
        slower = number(kept[-1].figures, TIME) or 0.0 if kept else math.inf
        if EQUAL_FACTOR * time <= slower or choice is always:
            kept.append(choice)
    return kept[::-1]


def by_factor(factor: float, word: str) -> str:
    """Format a ratio above 1 as a text that ends with `word`, such as "worse".

    Examples
    --------
    >>> by_factor(1.023, "worse"), by_factor(1.3, "better"), by_factor(2.04, "worse")
    ('2.3% worse', '30% better', '2.04x worse')
    """
    if factor < FACTOR_FROM:
        return f"{PERCENT * (factor - 1.0):.2g}% {word}"
    return f"{factor:.3g}x {word}"


def ratio(objective: Objective, best: float, other: float) -> float | None:
    """Return the factor by which the best value is better; None if undefined.

    It is undefined if a value is zero, or if their signs differ.
    """
    if best == 0.0 or other == 0.0 or (best > 0.0) is not (other > 0.0):
        return None
    quotient = best / other if objective.sense is Sense.MAXIMIZE else other / best
    return quotient if best > 0.0 else 1.0 / quotient


DRAW_BITS: Final = 12
"""Base-2 logarithm of the number of draws."""
GPU: Final = "gpu"


@dataclass(frozen=True, slots=True, kw_only=True)
class Confidence:
    """Probability of each choice to be the best, and of the first one to be within its limits.

    `limits` is None if no limit depends on an uncertain metric.
    """

    best: tuple[float, ...]
    limits: float | None = None


def cause(choice: Choice) -> tuple[object, ...]:
    """Return the bottleneck of a choice with the make of the device that causes it.

    Choices with an equal cause share their errors.
    """
    limit = choice.figures.get("bottleneck")
    if limit == GPU:
        return (limit, choice.machine.gpu)
    return (limit, choice.machine.family or choice.machine.name)


def confidence_of(
    variants: Sequence[Sequence[Choice]],
    objective: Objective,
    goal_value: GoalValue,
    limits: Mapping[str, float],
    seed: int = 0,
) -> Confidence:
    """Return the probability of each of several machines to be the best, in any variant.

    Parameters
    ----------
    variants : sequence of sequences of Choice
        Variants of each machine, the winner first. Causes beyond the number of dimensions of the
        draws share the last one.
    objective, goal_value : Objective, GoalValue
        Objective and its value for metrics.
    limits : mapping of str to float
        Upper limits of uncertain metrics: deadline and budget.
    seed : int
        Seed of the draws.
    """
    choices = [choice for group in variants for choice in group]
    whose = [place for place, group in enumerate(variants) for _ in group]
    causes = list(dict.fromkeys(cause(choice) for choice in choices))
    places = {one: min(i, MOST_DIMENSIONS - 1) for i, one in enumerate(causes)}
    draws = normal_points(DRAW_BITS, min(len(causes), MOST_DIMENSIONS), seed)
    values = np.array(
        [_drawn_values(choice, goal_value, draws[:, places[cause(choice)]]) for choice in choices]
    )
    signed = values if objective.sense is Sense.MAXIMIZE else -values
    held = np.array(
        [_keeps_limits(choice, limits, draws[:, places[cause(choice)]]) for choice in choices]
    )
    signed = np.where(held, signed, -np.inf)
    first = np.asarray(whose)[np.argmax(signed, axis=0)[held.any(axis=0)]]
    wins = np.bincount(first, minlength=len(variants))
    share = wins / draws.shape[0]
    uncertain = any(name in choices[0].outcome.intervals for name in limits)
    return Confidence(
        best=tuple(share.tolist()), limits=float(held[0].mean()) if uncertain else None
    )


def chance_kept(choice: Choice, limits: Mapping[str, float]) -> float:
    """Return the probability of a choice to be within its limits; 1 without uncertain metrics."""
    reach = [
        math.log(most / told) / deviation
        for told, deviation, most in _uncertain(choice, limits)
        if deviation > 0.0
    ]
    return float(ndtr(min(reach))) if reach else 1.0


def _uncertain(choice: Choice, limits: Mapping[str, float]) -> Iterator[tuple[float, float, float]]:
    """Yield uncertain metrics with a limit: value, standard deviation of its log, limit."""
    for name, most in limits.items():
        told, band = number(choice.figures, name), choice.outcome.intervals.get(name)
        if told is not None and band is not None and band["p10"] > 0.0 < told:
            yield told, math.log(band["p90"] / band["p10"]) / (2.0 * P90), most


def _drawn_values(
    choice: Choice, goal_value: GoalValue, draw: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the value of the objective in each draw, interpolated from P10, P50 and P90.

    Interpolation is logarithmic if all three values are positive.
    """
    middle = 0.0 if choice.value is None else choice.value
    fast, slow = (_value_at(choice, goal_value, side) for side in ("p10", "p90"))
    far = draw / P90
    if min(fast, middle, slow) > 0.0:
        ratio = np.where(draw >= 0.0, slow / middle, middle / fast)
        values: NDArray[np.float64] = middle * ratio**far
        return values
    return middle + far * np.where(draw >= 0.0, slow - middle, middle - fast)


def _value_at(choice: Choice, goal_value: GoalValue, side: str) -> float:
    """Return the value of the objective with all uncertain metrics slow (p90) or fast (p10)."""
    moved: dict[str, Value] = dict(choice.figures)
    for name, band in choice.outcome.intervals.items():
        moved[name] = _figure_quantile(choice, name, band, side)
    value = goal_value(moved)
    return (choice.value or 0.0) if value is None else value


def _figure_quantile(choice: Choice, name: str, band: Mapping[str, float], side: str) -> float:
    taken = {"p10": "p90", "p90": "p10"}[side] if name in _HIGHER_IS_BETTER else side
    told, middle = number(choice.figures, name), band["p50"]
    return band[taken] if told is None or middle <= 0.0 else told * band[taken] / middle


_HIGHER_IS_BETTER: Final = frozenset(
    metric.name for metric in JOB_METRICS if metric.better == "high"
)
"""Metrics that decrease when a run gets slower."""


def _keeps_limits(
    choice: Choice, limits: Mapping[str, float], draw: NDArray[np.float64]
) -> NDArray[np.bool_]:
    """Return a mask of the draws in which the choice is within the limits."""
    kept = np.ones(draw.shape, dtype=np.bool_)
    for told, deviation, most in _uncertain(choice, limits):
        kept &= told * np.exp(deviation * draw) <= most
    return kept


MAX_CONTENDERS: Final = 8
"""Maximum number of machines for which the probability of being best is computed."""
MAX_VARIANTS: Final = 6
"""Maximum number of variants of each of these machines."""
MIN_TRADEOFF: Final = 1.1
"""Factor by which a choice must be faster or cheaper to be reported."""
OUTSIDE_EVIDENCE: Final = "outside the evidence"
"""Start of warnings that nothing similar to a choice was measured."""

ConfidenceOf = Callable[[Sequence[Sequence[Choice]]], Confidence]


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Valid choices, with the recommended one first.

    `equals` are as good under the goal, with other machines or another number of them. `contenders`
    are the best variants of each machine, in the order of the probabilities `sure`.
    """

    ranked: tuple[Choice, ...]
    equals: tuple[Choice, ...]
    contenders: tuple[Choice, ...]
    sure: Confidence


@dataclass(frozen=True, slots=True, kw_only=True)
class Tradeoff:
    """A choice on the front of time and cost that is faster or cheaper than the winner.

    `time` is its run time relative to the winner's, `money` its additional cost [$].
    """

    choice: Choice
    time: float
    money: float


def select_winner(objective: Objective, ranked: Sequence[Choice], sure: ConfidenceOf) -> Selection:
    """Select the winner among the choices that are equally good under the goal.

    Ties are broken in this order: similar runs were measured; the machine is best in at least 10%
    more of the draws; the data need not be moved; the product of time and cost is lower.

    Parameters
    ----------
    objective : Objective
        Objective of the goal.
    ranked : sequence of Choice
        Valid choices, best first; at least one.
    sure : callable
        Returns the probability of each machine to be the best, given the variants of each.
    """
    groups = _best_by_machine(ranked)
    shares = dict(zip(groups, sure(list(groups.values())).best, strict=True))
    tied = equals(objective, ranked)

    def place(one: Choice) -> tuple[bool, float, bool, float]:
        return (
            is_outside_evidence(one),
            -round(shares.get(one.kind, 0.0), 1),
            one.copied,
            _time_times_money(one),
        )

    taken = min(tied, key=place)
    ordered = (taken, *(one for one in ranked if one is not taken))
    groups = _best_by_machine(ordered)
    others: dict[tuple[object, ...], Choice] = {}
    for one in tied:
        if (one.kind, one.count) != (taken.kind, taken.count):
            others.setdefault((one.kind, one.count), one)
    return Selection(
        ranked=ordered,
        equals=tuple(others.values()),
        contenders=tuple(group[0] for group in groups.values()),
        sure=sure(list(groups.values())),
    )


def _time_times_money(choice: Choice) -> float:
    time, money = number(choice.figures, TIME), number(choice.figures, MONEY)
    return math.inf if time is None or money is None else time * money


def is_outside_evidence(choice: Choice) -> bool:
    """Return whether nothing similar to a choice was measured."""
    return any(text.startswith(OUTSIDE_EVIDENCE) for text in choice.outcome.warnings)


def _best_by_machine(ranked: Iterable[Choice]) -> Mapping[tuple[object, ...], list[Choice]]:
    """Return the best variants of each machine by kind, best first."""
    found: dict[tuple[object, ...], list[Choice]] = {}
    for choice in ranked:
        if choice.kind in found or len(found) < MAX_CONTENDERS:
            group = found.setdefault(choice.kind, [])
            if len(group) < MAX_VARIANTS:
                group.append(choice)
    return found


def tradeoffs(front: Iterable[Choice], winner: Choice) -> tuple[Tradeoff, ...]:
    """Return choices of the front that trade time for cost, or cost for time.

    At most three: the faster choice with the largest speedup per additional cost, the faster one
    with the lowest product of time and cost, and the cheaper one with the lowest product.

    Parameters
    ----------
    front : iterable of Choice
        Pareto front of time and cost.
    winner : Choice
        Choice to compare with.
    """
    found = [one for choice in front if (one := _tradeoff(choice, winner)) is not None]
    base = number(winner.figures, MONEY) or 0.0
    faster = [one for one in found if MIN_TRADEOFF * one.time <= 1.0]
    cheaper = [one for one in found if MIN_TRADEOFF * (base + one.money) <= base]
    told: dict[int, Tradeoff] = {}
    for group, measure in (
        (faster, _speed_per_cost),
        (faster, _total_gain),
        (cheaper, _total_gain),
    ):
        if group:
            best = max(group, key=lambda one: measure(one, base))
            told[best.choice.index] = best
    return tuple(told.values())


def _total_gain(trade: Tradeoff, base: float) -> float:
    return -math.log(trade.time) - _log_cost(trade, base)


def _speed_per_cost(trade: Tradeoff, base: float) -> float:
    dearer = _log_cost(trade, base)
    return -math.log(trade.time) / dearer if dearer > 0.0 else math.inf


def _log_cost(trade: Tradeoff, base: float) -> float:
    return math.log((base + trade.money) / base)


def _tradeoff(choice: Choice, winner: Choice) -> Tradeoff | None:
    times = number(choice.figures, TIME), number(winner.figures, TIME)
    money = number(choice.figures, MONEY), number(winner.figures, MONEY)
    if choice.index == winner.index or not times[0] or not times[1]:
        return None
    if not money[0] or not money[1]:
        return None
    return Tradeoff(choice=choice, time=times[0] / times[1], money=money[0] - money[1])
