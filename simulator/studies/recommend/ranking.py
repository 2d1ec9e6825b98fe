"""Ranking: the value of a choice under the goal, the order, the front, who comes second."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from simulator.results.expression import parse_expression
from simulator.results.metrics import Value
from simulator.schema.goal import Objective, Sense
from simulator.studies.recommend.choice import MONEY, TIME, Choice, number
from simulator.units import PERCENT

TWICE: Final = 2.0
CLOSE: Final = 1.005
"""How many times as much still reads as the same."""
Worth = Callable[[Mapping[str, Value]], float | None]
"""The goal's value of a choice's figures; None where it has none."""


def worth_of(objective: Objective) -> Worth:
    """How the goal values figures.

    Raises
    ------
    PlanError
        If the objective is no metric and no expression over metrics; names the nearest.
    """
    expression = parse_expression(objective.metric)

    def worth(figures: Mapping[str, Value]) -> float | None:
        if any(figures.get(name) is None for name in expression.names):
            return None
        value = expression.value(figures)
        if isinstance(value, bool) or not isinstance(value, int | float):
            return None
        return float(value) if math.isfinite(value) else None

    return worth


def in_order(objective: Objective, choices: Iterable[Choice]) -> list[Choice]:
    """The sound choices, best first; of equals the one that costs less, then the earlier one."""

    def place(choice: Choice) -> tuple[float, float, int]:
        value = 0.0 if choice.value is None else choice.value
        signed = -value if objective.sense is Sense.MAXIMIZE else value
        money = number(choice.figures, MONEY)
        return signed, math.inf if money is None else money, choice.index

    return sorted((choice for choice in choices if choice.is_sound), key=place)


def runner_up(ranked: Sequence[Choice]) -> Choice | None:
    """The best choice of other hardware than the winner's; None if there is none."""
    return next((one for one in ranked[1:] if one.hardware != ranked[0].hardware), None)


def equals(objective: Objective, ranked: Sequence[Choice]) -> list[Choice]:
    """Those of ranked choices whose value reads the same as that of the best, itself included."""
    best = ranked[0].value if ranked else None
    if best is None:
        return []
    return [
        choice
        for choice in ranked
        if choice.value is not None
        and (choice.value == best or (ratio(objective, best, choice.value) or math.inf) <= CLOSE)
    ]


def front(choices: Iterable[Choice]) -> list[Choice]:
    """The sound choices that none beats in both time and cost, fastest first."""
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
    """A front that shows `taken` in place of one that reads the same in time and cost."""

    def alike(choice: Choice) -> bool:
        pairs = ((number(one.figures, name) for one in (choice, taken)) for name in (TIME, MONEY))
        return all(a and b and max(a, b) <= CLOSE * min(a, b) for a, b in pairs)

    if any(choice.index == taken.index for choice in points):
        return list(points)
    place = next((i for i, choice in enumerate(points) if alike(choice)), None)
    return [taken if i == place else choice for i, choice in enumerate(points)]


def distinct(points: Sequence[Choice], always: Choice | None = None) -> list[Choice]:
    """A front without what is hardly faster than a cheaper point of it, but with `always`."""
    kept: list[Choice] = []
    for choice in reversed(points):
        time = number(choice.figures, TIME) or 0.0
        slower = number(kept[-1].figures, TIME) or 0.0 if kept else math.inf
        if CLOSE * time <= slower or choice is always:
            kept.append(choice)
    return kept[::-1]


def by_factor(factor: float, word: str) -> str:
    """How much worse or better something is by a ratio above 1, in words.

    Examples
    --------
    >>> by_factor(1.023, "worse"), by_factor(1.3, "better"), by_factor(2.04, "worse")
    ('2.3% worse', '30% better', '2.04x worse')
    """
    if factor < TWICE:
        return f"{PERCENT * (factor - 1.0):.2g}% {word}"
    return f"{factor:.3g}x {word}"


def ratio(objective: Objective, best: float, other: float) -> float | None:
    """How many times as good the best value is; None where the two can't be divided.

    Values of a utility may be zero or of different sign.
    """
    if best == 0.0 or other == 0.0 or (best > 0.0) is not (other > 0.0):
        return None
    quotient = best / other if objective.sense is Sense.MAXIMIZE else other / best
    return quotient if best > 0.0 else 1.0 / quotient
