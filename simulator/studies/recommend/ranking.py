"""Ranking: the value of a choice under the goal, the order, the front, who comes second."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence

from simulator.expression import parse_expression
from simulator.goal import Objective, Sense
from simulator.metrics import Value
from simulator.studies.recommend.choice import MONEY, TIME, Choice, number

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


def ahead(objective: Objective, one: float, other: float) -> bool:
    """Whether the first value is better."""
    return one > other if objective.sense is Sense.MAXIMIZE else one < other


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


def ratio(objective: Objective, best: float, other: float) -> float | None:
    """How many times as good the best value is; None where the two can't be divided.

    Values of a utility may be zero or of different sign.
    """
    if best == 0.0 or other == 0.0 or (best > 0.0) is not (other > 0.0):
        return None
    quotient = best / other if objective.sense is Sense.MAXIMIZE else other / best
    return quotient if best > 0.0 else 1.0 / quotient
