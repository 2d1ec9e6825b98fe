"""Which of the best is taken: what is as good, how sure each is, and what another would trade."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from simulator.schema.goal import Objective
from simulator.studies.recommend.choice import MONEY, TIME, Choice, number
from simulator.studies.recommend.confidence import Sureness
from simulator.studies.recommend.ranking import equals

CONTENDERS: Final = 8
"""Machines among which the chance of being best is counted."""
VARIANTS: Final = 6
"""Variants of each machine that count."""
WORTH_TELLING: Final = 1.1
"""Times as fast, or as cheap, from which on another choice is told of."""
BEYOND: Final = "outside the evidence"
"""How a warning begins that nothing like a choice was ever measured."""

Sure = Callable[[Sequence[Sequence[Choice]]], Sureness]


@dataclass(frozen=True, slots=True, kw_only=True)
class Weighed:
    """The sound choices with the one to take first.

    `equals` are as good by the goal as that one, on other machines or another number of them.
    `contenders` are the best variants of each machine, in the order of `sure`.
    """

    ranked: tuple[Choice, ...]
    equals: tuple[Choice, ...]
    contenders: tuple[Choice, ...]
    sure: Sureness


@dataclass(frozen=True, slots=True, kw_only=True)
class Trade:
    """Another choice that nothing beats in time and cost: faster or cheaper than the best.

    `time` is how many times as long it takes, `money` what it costs more [$].
    """

    choice: Choice
    time: float
    money: float


def weighed(objective: Objective, ranked: Sequence[Choice], sure: Sure) -> Weighed:
    """Take one of the choices that are best by the goal.

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
    groups = _by_kind(ranked)
    shares = dict(zip(groups, sure(list(groups.values())).best, strict=True))
    tied = equals(objective, ranked)

    def place(one: Choice) -> tuple[bool, float, bool, float]:
        return is_beyond(one), -round(shares.get(one.kind, 0.0), 1), one.copied, _spent(one)

    taken = min(tied, key=place)
    ordered = (taken, *(one for one in ranked if one is not taken))
    groups = _by_kind(ordered)
    others: dict[tuple[object, ...], Choice] = {}
    for one in tied:
        if (one.kind, one.count) != (taken.kind, taken.count):
            others.setdefault((one.kind, one.count), one)
    return Weighed(
        ranked=ordered,
        equals=tuple(others.values()),
        contenders=tuple(group[0] for group in groups.values()),
        sure=sure(list(groups.values())),
    )


def _spent(choice: Choice) -> float:
    """Time and money together, as their product; infinite where one is not known."""
    time, money = number(choice.figures, TIME), number(choice.figures, MONEY)
    return math.inf if time is None or money is None else time * money


def is_beyond(choice: Choice) -> bool:
    """Whether nothing like it was ever measured."""
    return any(text.startswith(BEYOND) for text in choice.outcome.warnings)


def _by_kind(ranked: Iterable[Choice]) -> Mapping[tuple[object, ...], list[Choice]]:
    """The best variants of each machine, best first."""
    found: dict[tuple[object, ...], list[Choice]] = {}
    for choice in ranked:
        if choice.kind in found or len(found) < CONTENDERS:
            group = found.setdefault(choice.kind, [])
            if len(group) < VARIANTS:
                group.append(choice)
    return found


def trades(front: Iterable[Choice], winner: Choice) -> tuple[Trade, ...]:
    """What others of the front trade: time for money, or money for time.

    The faster one that a percent of the cost buys most of, the one that is fastest and cheapest
    together, and the cheaper one that gains most over what it loses.

    Parameters
    ----------
    front : iterable of Choice
        What nothing beats in both time and cost.
    winner : Choice
        The one taken.
    """
    found = [one for choice in front if (one := _trade(choice, winner)) is not None]
    base = number(winner.figures, MONEY) or 0.0
    faster = [one for one in found if WORTH_TELLING * one.time <= 1.0]
    cheaper = [one for one in found if WORTH_TELLING * (base + one.money) <= base]
    told: dict[int, Trade] = {}
    for group, measure in ((faster, _yield), (faster, _gain), (cheaper, _gain)):
        if group:
            best = max(group, key=lambda one: measure(one, base))
            told[best.choice.index] = best
    return tuple(told.values())


def _gain(trade: Trade, base: float) -> float:
    """How much faster and cheaper together, in logarithms."""
    return -math.log(trade.time) - _dearer(trade, base)


def _yield(trade: Trade, base: float) -> float:
    """How much faster for how much dearer, in logarithms; without end where it is no dearer."""
    dearer = _dearer(trade, base)
    return -math.log(trade.time) / dearer if dearer > 0.0 else math.inf


def _dearer(trade: Trade, base: float) -> float:
    return math.log((base + trade.money) / base)


def _trade(choice: Choice, winner: Choice) -> Trade | None:
    times = number(choice.figures, TIME), number(winner.figures, TIME)
    money = number(choice.figures, MONEY), number(winner.figures, MONEY)
    if choice.index == winner.index or not times[0] or not times[1]:
        return None
    if not money[0] or not money[1]:
        return None
    return Trade(choice=choice, time=times[0] / times[1], money=money[0] - money[1])
