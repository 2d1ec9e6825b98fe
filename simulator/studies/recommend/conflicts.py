"""Where no candidate keeps all limits: which of them exclude each other, and what would do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final

from simulator.goal import Goal, Limits
from simulator.studies.outcome import Candidate
from simulator.studies.recommend.answer import Conflict
from simulator.studies.recommend.asking import Ask, Search
from simulator.studies.recommend.choice import MONEY, TIME, Choice, number
from simulator.studies.recommend.conflict import smallest_conflict
from simulator.studies.recommend.ground import Settings
from simulator.studies.recommend.inquiry import Inquiry, inquire
from simulator.studies.recommend.limits import Subject, broken
from simulator.units import SECOND, USD, show

FURTHER: Final = 4
"""How many times as many machines as the limit allows are looked at to see what would do."""
COMMON: Final = 3
"""Reasons named where nothing can be predicted at all."""
PIN: Final = "pin "


def hardware_conflict(inquiry: Inquiry) -> Conflict | None:
    """Limits on the hardware that no machine on offer keeps together."""
    rules = [rule for rule in inquiry.rules if rule.of_hardware]
    kinds = [
        broken(rules, Subject(machine=machine, count=1, figures={}))
        for machine in inquiry.ground.machines
    ]
    names = smallest_conflict([rule.name for rule in rules], kinds)
    return None if names is None else Conflict(limits=_texts(inquiry, names))


def conflict_of(inquiry: Inquiry, seeds: Iterable[Settings], ask: Ask, seed: int) -> Conflict:
    """A smallest set of limits that no candidate keeps, among all there would be without them.

    Parameters
    ----------
    inquiry : Inquiry
        A search in which no candidate keeps all limits.
    seeds : iterable of settings
        As in that search.
    ask : callable
        Who predicts; the fastest and the cheapest are looked for once more for every set of
        limits on the hardware that candidates break.
    seed : int
        Of all random draws.
    """
    on_hardware = hardware_conflict(inquiry)
    if on_hardware is not None:
        return on_hardware
    wide = inquire(inquiry.ground, _freed(inquiry.goal), seeds)
    search = Search.of(wide.ground.reader, wide.goal, wide.settings, ask, seed=seed)
    for group in _groups(inquiry, wide, search.candidates):
        search.extremes(group)
    told = [inquiry.judged(outcome) for outcome in search.known.values()]
    choices = [choice for choice in told if choice.is_predicted and choice.value is not None]
    kinds = {choice.index: _breaks(inquiry, choice) for choice in choices}
    order = [rule.name for rule in inquiry.rules] + [f"{PIN}{key}" for key in inquiry.goal.pins]
    names = smallest_conflict(order, kinds.values()) if choices else None
    if names is None:
        reasons = Counter(choice.outcome.reason for choice in told if choice.outcome.reason)
        return Conflict(limits=(), ways_out=tuple(r for r, _ in reasons.most_common(COMMON)))
    ways = (_way_out(inquiry, name, choices, kinds) for name in names)
    return Conflict(limits=_texts(inquiry, names), ways_out=tuple(way for way in ways if way))


def _freed(goal: Goal) -> Goal:
    """The goal without any limit; more machines than it allows, to see how many would do."""
    nodes = goal.limits.most_nodes
    limits = Limits(most_nodes=None if nodes is None else FURTHER * nodes)
    return replace(goal, limits=limits, pins={})


def _texts(inquiry: Inquiry, names: Sequence[str]) -> tuple[str, ...]:
    texts = {rule.name: rule.text for rule in inquiry.rules}
    pins = {f"{PIN}{key}": f"{PIN}{key} = {value}" for key, value in inquiry.goal.pins.items()}
    return tuple({**texts, **pins}[name] for name in names)


def _breaks(inquiry: Inquiry, choice: Choice) -> frozenset[str]:
    """Limits and pins that a choice does not keep."""
    loose = {f"{PIN}{key}" for key in inquiry.goal.pins if not inquiry.keeps_pin(choice, key)}
    return frozenset({*choice.broken, *loose})


def _groups(
    inquiry: Inquiry, wide: Inquiry, candidates: Sequence[Candidate]
) -> Iterator[list[Candidate]]:
    """Candidates by the limits on the hardware that they break."""
    rules = [rule for rule in inquiry.rules if rule.of_hardware]
    groups: dict[tuple[str, ...], list[Candidate]] = {}
    for candidate in candidates:
        machine, count = wide.machine(candidate.settings), wide.count(candidate.settings)
        names = broken(rules, Subject(machine=machine, count=count, figures={}))
        groups.setdefault(names, []).append(candidate)
    yield from groups.values()


def _way_out(
    inquiry: Inquiry, name: str, choices: Sequence[Choice], kinds: dict[int, frozenset[str]]
) -> str:
    """What a limit would have to be for all the others to be kept; empty if that is no help."""
    others = [choice for choice in choices if kinds[choice.index] <= {name}]
    if not others:
        return ""
    measures: dict[str, Callable[[Choice], float]] = {
        "deadline": lambda c: number(c.figures, TIME) or 0.0,
        "budget": lambda c: number(c.figures, MONEY) or 0.0,
        "nodes": lambda c: float(c.count),
    }
    best = min(others, key=measures.get(name, lambda c: float(c.index)))
    where = f"{best.count} x {best.machine.name}"
    if name == "deadline":
        return f"a deadline of {show(measures[name](best), SECOND)} would do, with {where}"
    if name == "budget":
        return f"a budget of {show(measures[name](best), USD)} would do, with {where}"
    if name == "nodes":
        return f"nodes = {best.count} would do, with {where}"
    text = _texts(inquiry, [name])[0]
    return f"without {text}: {where}, {show(number(best.figures, TIME) or 0.0, SECOND)}"
