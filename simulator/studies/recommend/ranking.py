"""Choices of a recommendation: value under the goal, order, confidence, and tradeoffs.

Every choice's value is known to an interval, and drawn values are lognormal with its quantiles.
Choices with the same limiting part of the same make share their errors; all others err
independently. That is an assumption that the report states: an error common to all (of the model's
arithmetic, say) would make the winner more certain than this.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

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
    """A candidate with what became of it.

    `figures` are those of the outcome with lost work and restarts in them where the machine is
    bought as spot capacity, and with the copy of the data where it needs one (`copied`). `value` is
    the goal's (None: it has none), `broken` the limits it does not keep.
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
        """Return the settings that differ from the scenario."""
        return self.outcome.settings

    @property
    def index(self) -> int:
        """Its place in the search."""
        return self.outcome.candidate.index

    @property
    def is_predicted(self) -> bool:
        """Return whether its figures come from a prediction."""
        return self.outcome.status is Status.PREDICTED

    @property
    def is_sound(self) -> bool:
        """Return whether it was predicted, is within every limit and has a value."""
        return self.is_predicted and not self.broken and self.value is not None

    @property
    def hardware(self) -> tuple[object, ...]:
        """Return the bought hardware, equal for choices that differ only in program settings."""
        named: dict[str, Plain] = {
            "hardware.machine": self.machine.name,
            "hardware.count": self.count,
        }
        return hardware_of({**self.settings, **named})

    @property
    def kind(self) -> tuple[object, ...]:
        """Return the kind of machines, independent of their number and of where the data is."""
        keys = ("remote.machine", "cost.purchase")
        return (self.machine.name, *(self.settings.get(key) for key in keys))


def hardware_of(settings: Mapping[str, Plain]) -> tuple[object, ...]:
    """Return the bought hardware of a candidate, independent of settings of the program."""
    return tuple(settings.get(key) for key in _HARDWARE_KEYS)


def number(figures: Mapping[str, Value], name: str) -> float | None:
    """Return a finite figure by its name; None if there is none."""
    value = figures.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if math.isfinite(value) else None


FACTOR_FROM: Final = 2.0
EQUAL_FACTOR: Final = 1.005
"""How many times as much still reads as the same."""
GoalValue = Callable[[Mapping[str, Value]], float | None]
"""The goal's value of a choice's figures; None where it has none."""


def goal_value_of(objective: Objective) -> GoalValue:
    """Return the function that values figures under the goal.

    Raises
    ------
    PlanError
        If the objective is neither a metric nor an expression over metrics; names the nearest.
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
    """Return sound choices, best first; of equals the cheaper one, then the earlier one."""

    def place(choice: Choice) -> tuple[float, float, int]:
        value = 0.0 if choice.value is None else choice.value
        signed = -value if objective.sense is Sense.MAXIMIZE else value
        money = number(choice.figures, MONEY)
        return signed, math.inf if money is None else money, choice.index

    return sorted((choice for choice in choices if choice.is_sound), key=place)


def runner_up(ranked: Sequence[Choice]) -> Choice | None:
    """Return the best choice of other hardware than the winner's; None if there is none."""
    return next((one for one in ranked[1:] if one.hardware != ranked[0].hardware), None)


def equals(objective: Objective, ranked: Sequence[Choice]) -> list[Choice]:
    """Return ranked choices whose value reads the same as the best one, itself included."""
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
    """Return sound choices that none beats in both time and cost, fastest first."""
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
    """Return a front that shows `taken` instead of one that reads the same in time and cost."""

    def alike(choice: Choice) -> bool:
        pairs = ((number(one.figures, name) for one in (choice, taken)) for name in (TIME, MONEY))
        return all(a and b and max(a, b) <= EQUAL_FACTOR * min(a, b) for a, b in pairs)

    if any(choice.index == taken.index for choice in points):
        return list(points)
    place = next((i for i, choice in enumerate(points) if alike(choice)), None)
    return [taken if i == place else choice for i, choice in enumerate(points)]


def distinct(points: Sequence[Choice], always: Choice | None = None) -> list[Choice]:
    """Return a front without points barely faster than a cheaper one, but with `always`."""
    kept: list[Choice] = []
    for choice in reversed(points):
        time = number(choice.figures, TIME) or 0.0
        slower = number(kept[-1].figures, TIME) or 0.0 if kept else math.inf
        if EQUAL_FACTOR * time <= slower or choice is always:
            kept.append(choice)
    return kept[::-1]


def by_factor(factor: float, word: str) -> str:
    """Return a ratio above 1 as text, with `word` for better or worse.

    Examples
    --------
    >>> by_factor(1.023, "worse"), by_factor(1.3, "better"), by_factor(2.04, "worse")
    ('2.3% worse', '30% better', '2.04x worse')
    """
    if factor < FACTOR_FROM:
        return f"{PERCENT * (factor - 1.0):.2g}% {word}"
    return f"{factor:.3g}x {word}"


def ratio(objective: Objective, best: float, other: float) -> float | None:
    """Return the factor by which the best value is better; None where the two can't be divided.

    Values of a utility may be zero or of different sign.
    """
    if best == 0.0 or other == 0.0 or (best > 0.0) is not (other > 0.0):
        return None
    quotient = best / other if objective.sense is Sense.MAXIMIZE else other / best
    return quotient if best > 0.0 else 1.0 / quotient


DRAW_BITS: Final = 12
"""Logarithm of the number of worlds drawn."""
GPU: Final = "gpu"


@dataclass(frozen=True, slots=True, kw_only=True)
class Confidence:
    """Probability of being best for each choice, and of the first being within its limits.

    `limits` is None where no limit depends on an uncertain figure.
    """

    best: tuple[float, ...]
    limits: float | None = None


def cause(choice: Choice) -> tuple[object, ...]:
    """Return what limits a choice, and of which make: choices of one cause share their errors."""
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
    """Return how often each of several machines is best, in any of its variants.

    Parameters
    ----------
    variants : sequence of sequences of Choice
        Variants of each machine, the winner the first of all; each cause after the first eleven
        shares a draw with an earlier one.
    objective, worth : Objective, Worth
        The goal.
    limits : mapping of str to float
        The most that each figure uncertain may be: deadline and budget.
    seed : int
        Of the draws.
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
    """Return the probability that a choice is within its limits; 1 where none is uncertain."""
    reach = [
        math.log(most / told) / deviation
        for told, deviation, most in _uncertain(choice, limits)
        if deviation > 0.0
    ]
    return float(ndtr(min(reach))) if reach else 1.0


def _uncertain(choice: Choice, limits: Mapping[str, float]) -> Iterator[tuple[float, float, float]]:
    """Return uncertain figures with a limit: value, deviation of its logarithm, limit."""
    for name, most in limits.items():
        told, band = number(choice.figures, name), choice.outcome.intervals.get(name)
        if told is not None and band is not None and band["p10"] > 0.0 < told:
            yield told, math.log(band["p90"] / band["p10"]) / (2.0 * P90), most


def _drawn_values(
    choice: Choice, goal_value: GoalValue, draw: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the goal's value in each draw, between and beyond its three points.

    Even in the logarithm where all three are positive.
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
    """Return the goal's value with all uncertain figures slow (p90) or fast (p10) together."""
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
"""Figures that fall where a run gets slower."""


def _keeps_limits(
    choice: Choice, limits: Mapping[str, float], draw: NDArray[np.float64]
) -> NDArray[np.bool_]:
    """Return in which drawn worlds the choice is within the limits."""
    kept = np.ones(draw.shape, dtype=np.bool_)
    for told, deviation, most in _uncertain(choice, limits):
        kept &= told * np.exp(deviation * draw) <= most
    return kept


MAX_CONTENDERS: Final = 8
"""Machines among which the chance of being best is counted."""
MAX_VARIANTS: Final = 6
"""Variants of each machine that count."""
MIN_TRADEOFF: Final = 1.1
"""Times as fast, or as cheap, from which on another choice is reported."""
OUTSIDE_EVIDENCE: Final = "outside the evidence"
"""How a warning begins that nothing like a choice was ever measured."""

ConfidenceOf = Callable[[Sequence[Sequence[Choice]]], Confidence]


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """The sound choices with the one to take first.

    `equals` are as good under the goal as that one, on other machines or another number of them.
    `contenders` are the best variants of each machine, in the order of `sure`.
    """

    ranked: tuple[Choice, ...]
    equals: tuple[Choice, ...]
    contenders: tuple[Choice, ...]
    sure: Confidence


@dataclass(frozen=True, slots=True, kw_only=True)
class Tradeoff:
    """Another choice that nothing beats in time and cost: faster or cheaper than the best.

    `time` is how many times as long it takes, `money` what it costs more [$].
    """

    choice: Choice
    time: float
    money: float


def select_winner(objective: Objective, ranked: Sequence[Choice], sure: ConfidenceOf) -> Selection:
    """Select one of the choices that are best under the goal.

    Of several that are as good, one that was measured like comes before one outside of the
    evidence, then the one that is best in more of the worlds drawn by a tenth of them or more,
    then one whose data stay where they are, then the one that is faster and cheaper together.

    Parameters
    ----------
    objective : Objective
        The goal.
    ranked : sequence of Choice
        The sound choices, best first; one at least.
    sure : callable
        How often each of several machines is best, each given by its variants.
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
    """Return whether nothing like it was ever measured."""
    return any(text.startswith(OUTSIDE_EVIDENCE) for text in choice.outcome.warnings)


def _best_by_machine(ranked: Iterable[Choice]) -> Mapping[tuple[object, ...], list[Choice]]:
    """Return the best variants of each machine, best first."""
    found: dict[tuple[object, ...], list[Choice]] = {}
    for choice in ranked:
        if choice.kind in found or len(found) < MAX_CONTENDERS:
            group = found.setdefault(choice.kind, [])
            if len(group) < MAX_VARIANTS:
                group.append(choice)
    return found


def tradeoffs(front: Iterable[Choice], winner: Choice) -> tuple[Tradeoff, ...]:
    """Return choices of the front that trade time for money, or money for time.

    The faster one that a percent of the cost buys most of, the one that is fastest and cheapest
    together, and the cheaper one that gains most over what it loses.

    Parameters
    ----------
    front : iterable of Choice
        What nothing beats in both time and cost.
    winner : Choice
        The one taken.
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
