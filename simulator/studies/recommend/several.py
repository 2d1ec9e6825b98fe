"""Several workloads: the best machine for each, the best single one for all, and what that costs.

A machine counts by its type, in whatever number and with whatever settings suit each workload.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from simulator.studies.recommend.answer import Recommendation
from simulator.studies.recommend.choice import Choice
from simulator.studies.recommend.ranking import ratio


@dataclass(frozen=True, slots=True, kw_only=True)
class Common:
    """The machine that suits all workloads best.

    `choices` are the best on it and `worse` how many times worse it is than the best of all, by
    each workload's own goal (None where the two values cannot be divided).
    """

    machine: str
    choices: tuple[Choice, ...]
    worse: tuple[float | None, ...]


def best_on_each(answer: Recommendation) -> dict[str, Choice]:
    """The best sound choice on every machine."""
    found: dict[str, Choice] = {}
    for choice in answer.ranked:
        found.setdefault(choice.machine.name, choice)
    return found


def common_machine(answers: Sequence[Recommendation]) -> Common | None:
    """The machine whose mean loss over all workloads is least; None if none suits all.

    The mean is geometric: twice as dear for one and half as dear for another is no loss. Where a
    utility's values cannot be divided, the places in the rankings are compared instead.

    Parameters
    ----------
    answers : sequence of Recommendation
        One for each workload, in which the best on every machine was predicted.
    """
    tables = [best_on_each(answer) for answer in answers]
    shared = set.intersection(*(set(table) for table in tables)) if tables else set()
    if not shared:
        return None
    best = min(shared, key=lambda name: (_loss(answers, tables, name), name))
    choices = tuple(table[best] for table in tables)
    return Common(
        machine=best,
        choices=choices,
        worse=tuple(_worse(a, c) for a, c in zip(answers, choices, strict=True)),
    )


def _loss(
    answers: Sequence[Recommendation], tables: Sequence[Mapping[str, Choice]], name: str
) -> tuple[float, float]:
    pairs = list(zip(answers, tables, strict=True))
    factors = [_worse(answer, table[name]) for answer, table in pairs]
    known = [factor for factor in factors if factor is not None and factor > 0.0]
    places = sum(list(table).index(name) for _, table in pairs)
    if len(known) < len(factors):
        return float(places), 0.0
    return sum(math.log(factor) for factor in known), float(places)


def _worse(answer: Recommendation, choice: Choice) -> float | None:
    best = answer.ranked[0].value
    if best is None or choice.value is None:
        return None
    return ratio(answer.goal.objective, best, choice.value)
