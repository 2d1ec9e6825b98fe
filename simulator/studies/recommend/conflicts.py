"""Conflicts of limits: the smallest set that no candidate satisfies, and ways to resolve it.

Limits on hardware and memory and fixed settings are known for every candidate without a prediction.
Other limits are evaluated only as needed: the smallest set of limits that no known candidate
satisfies is assumed to be the conflict until a candidate is found that satisfies it. A candidate
beyond a limit even in its best case needs no prediction. So no candidate satisfies the set found,
and no smaller set has this property.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Final

from simulator.records import dataclass
from simulator.results.energy import missing
from simulator.schema.accelerators import Stack
from simulator.schema.goal import Goal, Limits, Objective, Sense
from simulator.schema.machines import short_name
from simulator.studies.levers import COUNT, Settings
from simulator.studies.recommend.limits import RuledOffer, broken, limits_as_text
from simulator.studies.recommend.ranking import MONEY, TIME, Choice, number
from simulator.studies.recommend.search_problem import (
    Search,
    SearchBackend,
    SearchProblem,
    define_problem,
)
from simulator.studies.search.outcome import Candidate
from simulator.units import SECOND, USD, show

NODES_FACTOR: Final = 4
"""How many times as many machines as the limit allows are looked at to see what would do."""
MAX_REASONS: Final = 3
"""Reasons named where nothing can be predicted at all."""
PIN_PREFIX: Final = "pin "
READING_SHARE: Final = 0.3
"""Share of the work that is reading all candidates, for its progress."""
ROUND_SHARE: Final = 0.2
"""The same for each question after that, of what is left."""
_COST: Final = "cost."
_MEASURES: Final = {
    "deadline": Objective(metric=TIME, sense=Sense.MINIMIZE),
    "budget": Objective(metric=MONEY, sense=Sense.MINIMIZE),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Conflict:
    """Limits that no candidate satisfies together, and ways to satisfy them, one text each."""

    limits: tuple[str, ...]
    ways_out: tuple[str, ...] = ()


def hardware_conflict(problem: SearchProblem) -> Conflict | None:
    """Return limits on hardware that no machine on offer satisfies together, or None."""
    rules = [rule for rule in problem.rules if rule.of_hardware]
    kinds = [
        broken(rules, RuledOffer(machine=machine, count=1, figures={}))
        for machine in problem.baseline.machines
    ]
    names = smallest_conflict([rule.name for rule in rules], kinds)
    return None if names is None else Conflict(limits=_texts(problem, names))


def conflict_of(
    problem: SearchProblem, seeds: Iterable[Settings], backend: SearchBackend, seed: int
) -> Conflict:
    """Return a smallest set of limits that no candidate satisfies together.

    Parameters
    ----------
    problem : SearchProblem
        Search in which no candidate is within all limits.
    seeds : iterable of settings
        Settings of the keys that the goal searches, as in that search.
    backend : SearchBackend
        Evaluates the candidates.
    seed : int
        Of all random draws.
    """
    on_hardware = hardware_conflict(problem)
    if on_hardware is not None:
        return on_hardware
    wide = define_problem(problem.baseline, _freed(problem.goal), seeds)
    search = Search(wide, backend, seed)
    search.candidates = tuple(c for c in search.candidates if not wide.needs_consent(c.settings))
    search.bound(READING_SHARE)
    conflict_search = _ConflictSearch(problem=problem, wide=wide, search=search)
    names = conflict_search.excluding()
    if not names:
        return Conflict(limits=(), ways_out=conflict_search.why_none())
    ways = [conflict_search.way_out(name) for name in names]
    return Conflict(limits=_texts(problem, names), ways_out=tuple(way for way in ways if way))


def _freed(goal: Goal) -> Goal:
    """Return the goal without limits and pins, and with more machines than it allows."""
    nodes = goal.limits.nodes
    everywhere = tuple(stack.value for stack in Stack)
    limits = Limits(nodes=None if nodes is None else NODES_FACTOR * nodes, porting=everywhere)
    return replace(goal, limits=limits, pins={})


def _texts(problem: SearchProblem, names: Sequence[str]) -> tuple[str, ...]:
    texts = {rule.name: rule.text for rule in problem.rules}
    pins = {
        f"{PIN_PREFIX}{key}": f"{PIN_PREFIX}{key} = {value}"
        for key, value in problem.goal.pins.items()
    }
    return tuple({**texts, **pins}[name] for name in names)


@dataclass(frozen=True, slots=True, kw_only=True)
class _ConflictSearch:
    """Search of limits of `problem` that exclude each other, among candidates without limits."""

    problem: SearchProblem
    wide: SearchProblem
    search: Search

    def excluding(self) -> tuple[str, ...]:
        """Return a smallest set of limits that no candidate satisfies; empty if there is none."""
        order = [rule.name for rule in self.problem.rules]
        order += [f"{PIN_PREFIX}{key}" for key in self.problem.goal.pins]
        names: tuple[str, ...] = ()
        kinds: list[frozenset[str]] = []
        while (found := self._keeping(names)) is not None:
            kinds.append(self._broken(found))
            smallest = smallest_conflict(order, kinds)
            if smallest is None:  # one keeps all limits, but has no value under the goal
                return ()
            names = smallest
        return names

    def why_none(self) -> tuple[str, ...]:
        """Return reasons why there is no best choice although no limits exclude each other."""
        known = self.search.known.values()
        if any(self.problem.judged(one).is_predicted for one in known):
            metric = self.problem.goal.objective.metric
            unknown = f"{metric} is unknown for all candidates within the limits"
            return (unknown, *(missing(self.problem.baseline.scenario) if _COST in metric else ()))
        told = Counter(one.reason for one in known if one.reason)
        return tuple(reason for reason, _ in told.most_common(MAX_REASONS))

    def way_out(self, name: str) -> str:
        """Describe the value of a limit with which all limits can be met; empty if none."""
        others = [rule.name for rule in self.problem.rules if rule.name != name]
        others += [
            f"{PIN_PREFIX}{key}" for key in self.problem.goal.pins if f"{PIN_PREFIX}{key}" != name
        ]
        best = self._keeping(others, name)
        if best is None:
            return ""
        where = f"{best.count} x {short_name(best.machine.name)}"
        if name == "deadline":
            least = show(number(best.figures, TIME) or 0.0, SECOND)
            return f"a deadline of {least} would do, with {where}"
        if name == "budget":
            least = show(number(best.figures, MONEY) or 0.0, USD)
            return f"a budget of {least} would do, with {where}"
        if name == "nodes":
            return f"nodes = {best.count} would do, with {where}"
        text = _texts(self.problem, [name])[0]
        time = show(number(best.figures, TIME) or 0.0, SECOND)
        return f"without {text}: {where}, {time}"

    def _keeping(self, names: Collection[str], measure: str = "") -> Choice | None:
        """Return the best candidate within the limits `names`, or None.

        `measure`: limit by whose metric candidates are compared; the run time by default.
        """
        may = [c for c in self.search.candidates if self._known_broken(c).isdisjoint(names)]
        objective = _MEASURES.get(measure, _MEASURES["deadline"])
        where = self._condition(names)
        for group in self._by_count(may) if measure == "nodes" else [may]:
            self.search.backend.begin(ROUND_SHARE)
            self.search.meeting(group, objective, where)
            choices = [self.problem.judged(self.search.known[c.index]) for c in group]
            kept = [c for c in choices if c.is_predicted and self._broken(c).isdisjoint(names)]
            if kept:
                return min(kept, key=lambda c: number(c.figures, objective.metric) or 0.0)
        return None

    def _by_count(self, candidates: Iterable[Candidate]) -> list[list[Candidate]]:
        """Group candidates by their number of machines, the fewest first."""
        groups: dict[int, list[Candidate]] = {}
        for candidate in candidates:
            groups.setdefault(int(candidate.settings[COUNT]), []).append(candidate)
        return [groups[count] for count in sorted(groups)]

    def _condition(self, names: Collection[str]) -> str:
        """Return the limits that need a prediction as a condition on metrics."""
        limits = self.problem.goal.limits
        return limits_as_text(
            Limits(
                deadline=limits.deadline if "deadline" in names else None,
                budget=limits.budget if "budget" in names else None,
                ram_margin=limits.ram_margin if "ram_margin" in names else 0.0,
                gpu_memory_margin=limits.gpu_memory_margin if "gpu_memory_margin" in names else 0.0,
                where=limits.where if "where" in names else "",
            )
        )

    def _known_broken(self, candidate: Candidate) -> frozenset[str]:
        """Return the limits on hardware and the pins that a candidate violates."""
        settings = candidate.settings
        rules = [rule for rule in self.problem.rules if rule.of_hardware]
        subject = RuledOffer(
            machine=self.wide.machine(settings), count=self.wide.count(settings), figures={}
        )
        loose = [key for key in self.problem.goal.pins if not self.problem.keeps(settings, key)]
        return frozenset({*broken(rules, subject), *(f"{PIN_PREFIX}{key}" for key in loose)})

    def _broken(self, choice: Choice) -> frozenset[str]:
        return frozenset(choice.broken) | self._known_broken(choice.outcome.candidate)


def smallest_conflict(
    names: Sequence[str], broken: Iterable[Collection[str]]
) -> tuple[str, ...] | None:
    """Return the smallest set of limits such that every candidate violates one of them.

    Parameters
    ----------
    names : sequence of str
        All limits; among sets of one size, those of earlier limits are preferred.
    broken : iterable of collections of str
        Limits that each candidate violates.

    Returns
    -------
    tuple of str or None
        None if a candidate is within all limits. Every proper subset can be satisfied.

    Notes
    -----
    It is a minimum hitting set, found by trying sets in order of their size; a goal has few limits.

    Examples
    --------
    >>> smallest_conflict(("nodes", "deadline", "budget"), [{"nodes"}, {"deadline"}])
    ('nodes', 'deadline')
    """
    kinds = {frozenset(one) for one in broken}
    if frozenset() in kinds:
        return None
    for size in range(1, len(names) + 1):
        for chosen in combinations(names, size):
            if all(kind & set(chosen) for kind in kinds):
                return chosen
    return None
