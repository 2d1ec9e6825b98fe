"""Recommendation: search, ranking, reasons of the others to lose; one machine for several jobs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import Final

from simulator.pipeline.stages.base import Resource
from simulator.records import dataclass
from simulator.results.binding import LIMITS, Part
from simulator.results.prediction import STARVED
from simulator.schema.goal import Goal, Objective, Plain, Sense
from simulator.schema.scenario import Scenario
from simulator.studies.baseline import keeps_pins
from simulator.studies.data_migration import Move
from simulator.studies.levers import Settings
from simulator.studies.purchase import BuyingOption
from simulator.studies.recommend.conflicts import Conflict, conflict_of
from simulator.studies.recommend.limits import Program, Rule
from simulator.studies.recommend.ranking import (
    EQUAL_FACTOR,
    MONEY,
    TIME,
    Choice,
    Confidence,
    Tradeoff,
    by_factor,
    chance_kept,
    confidence_of,
    front,
    hardware_of,
    in_order,
    number,
    ratio,
    runner_up,
    select_winner,
    tradeoffs,
    with_choice,
)
from simulator.studies.recommend.search_problem import (
    Interruption,
    Refusal,
    Search,
    SearchBackend,
    SearchProblem,
    interrupted,
)
from simulator.studies.search.outcome import Candidate, Outcome, Status


@dataclass(frozen=True, slots=True, kw_only=True)
class Loser:
    """The best choice with another accelerator, named `what`, and the reason why it lost."""

    what: str
    reason: str
    choice: Choice | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PinPrice:
    """Effect of fixing the value of a key (a pin): the best choices with it and without it."""

    key: str
    value: Plain
    kept: Choice | None
    freed: Choice | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Recommendation:
    """Answer of `plan recommend` to one scenario and goal.

    `ranked` are the valid choices, best first; `front` are those on the Pareto front of time and
    cost. `now` is the scenario without changes; `off_axes`: it is outside the searched axes.
    `excluded` is the number of machines excluded by each limit on hardware, `refused` are machines
    that cannot run the job. `ideas` are remedies for a CPU-bound scenario, best first, and
    `against` the pins that each violates, by its index. `missing` is the number of candidates that
    could be best but are not in the store, if nothing is predicted: then there is no winner. `bugs`
    are internal errors.

    `equals` are as good under the goal as the winner, `trades` are faster or cheaper choices,
    `losers` are the best with other accelerators, `pins` the effects of fixed keys, `moves` the
    copies of data that the winner needs first, which are included in its metrics, and `safer` is
    the best choice that meets deadline and budget with high probability, with that probability.
    `sure` are the probabilities of being best of the `contenders`. `program` is the software that
    the job's program runs on, `ports` the software of machines that were excluded because of it.
    `buying` is a machine to buy instead of the rented one, `best` is the job on the best machines,
    `prices` are the listed prices in its bill, with dates.
    """

    scenario: Scenario
    goal: Goal
    looked_at: int
    predicted: int
    ranked: tuple[Choice, ...] = ()
    front: tuple[Choice, ...] = ()
    second: Choice | None = None
    now: Choice | None = None
    losers: tuple[Loser, ...] = ()
    ideas: tuple[Choice, ...] = ()
    against: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    pins: tuple[PinPrice, ...] = ()
    refused: tuple[Refusal, ...] = ()
    excluded: Mapping[str, int] = field(default_factory=dict)
    sure: Confidence | None = None
    contenders: tuple[Choice, ...] = ()
    safer: tuple[Choice, float] | None = None
    lost: Interruption | None = None
    buying: BuyingOption | None = None
    prices: tuple[str, ...] = ()
    conflict: Conflict | None = None
    from_store: bool = False
    missing: int = 0
    bugs: tuple[str, ...] = ()
    equals: tuple[Choice, ...] = ()
    trades: tuple[Tradeoff, ...] = ()
    moves: tuple[Move, ...] = ()
    off_axes: bool = False
    program: Program | None = None
    ports: tuple[str, ...] = ()
    best: Scenario | None = None

    @property
    def weighed(self) -> tuple[Choice, ...]:
        """Choices that the answer compares, without repetition."""
        lost = [loser.choice for loser in self.losers]
        every = [self.winner, *self.front, *self.equals, *lost]
        return tuple({one.index: one for one in every if one is not None}.values())

    @property
    def winner(self) -> Choice | None:
        """The best choice; None if none is within all limits, or if candidates are missing."""
        return self.ranked[0] if self.ranked and not self.missing else None


@dataclass(frozen=True, slots=True, kw_only=True)
class CommonMachine:
    """The best machine for all of several workloads.

    `choices` are the best choices with it, one for each workload, and `worse` the factors by which
    they are worse than the best choice of all, under the workload's own goal (None if undefined).
    """

    machine: str
    choices: tuple[Choice, ...]
    worse: tuple[float | None, ...]


def best_on_each(answer: Recommendation) -> dict[str, Choice]:
    """Return the best valid choice on every machine, by name of the machine."""
    found: dict[str, Choice] = {}
    for choice in answer.ranked:
        found.setdefault(choice.machine.name, choice)
    return found


def common_machine(answers: Sequence[Recommendation]) -> CommonMachine | None:
    """Return the machine with the least mean loss over all workloads; None if none runs all.

    The mean is geometric: twice the price for one and half the price for another cancel. If
    values cannot be divided, the ranks are compared instead.

    Parameters
    ----------
    answers : sequence of Recommendation
        One for each workload, from searches with `everywhere`.
    """
    tables = [best_on_each(answer) for answer in answers]
    shared = set.intersection(*(set(table) for table in tables)) if tables else set()
    if not shared:
        return None
    best = min(shared, key=lambda name: (_mean_loss(answers, tables, name), name))
    choices = tuple(table[best] for table in tables)
    return CommonMachine(
        machine=best,
        choices=choices,
        worse=tuple(_loss_factor(a, c) for a, c in zip(answers, choices, strict=True)),
    )


def _mean_loss(
    answers: Sequence[Recommendation], tables: Sequence[Mapping[str, Choice]], name: str
) -> tuple[float, float]:
    pairs = list(zip(answers, tables, strict=True))
    factors = [_loss_factor(answer, table[name]) for answer, table in pairs]
    known = [factor for factor in factors if factor is not None and factor > 0.0]
    places = sum(list(table).index(name) for _, table in pairs)
    if len(known) < len(factors):
        return float(places), 0.0
    return sum(math.log(factor) for factor in known), float(places)


def _loss_factor(answer: Recommendation, choice: Choice) -> float | None:
    best = answer.ranked[0].value
    if best is None or choice.value is None:
        return None
    return ratio(answer.goal.objective, best, choice.value)


_BOUND_BY: Final[Mapping[str, str]] = {
    Resource.GPU: "its accelerators are busy",
    Resource.CPU: "CPU-bound",
    Resource.STORAGE: "storage-bound",
    Resource.NETWORK: "network-bound",
    Resource.PCIE: "PCIe-bound",
    Resource.NVLINK: "bound by links between accelerators",
    Resource.HOST_MEMORY: "bound by host memory",
    Part.COMMUNICATION: "bound by communication",
    Part.BUBBLE: "held up by the pipeline's bubble",
    Part.CHECKPOINT: "held up by checkpoints",
    Part.WAITING: "held up by waiting",
}


def reason_lost(choice: Choice, winner: Choice, objective: Objective, rules: Sequence[Rule]) -> str:
    """Describe why a choice lost to the winner."""
    if not choice.is_predicted:
        return choice.outcome.reason or "its best case is worse than what others reach"
    parts = [
        *_broken_limits(choice, rules),
        *_disadvantages(choice, winner, objective),
        _bottleneck(choice),
    ]
    return "; ".join(part for part in parts if part)


def _broken_limits(choice: Choice, rules: Sequence[Rule]) -> Iterator[str]:
    texts = {rule.name: rule.text for rule in rules}
    for name in choice.broken:
        yield f"breaks {texts.get(name, name)}"


def _disadvantages(choice: Choice, winner: Choice, objective: Objective) -> Iterator[str]:
    """Yield texts on disadvantages under the goal, and in time and cost if not the goal."""
    if choice.value is not None and winner.value is not None:
        factor = ratio(objective, winner.value, choice.value)
        if factor is not None and factor > EQUAL_FACTOR:
            yield by_factor(factor, f"worse in {objective.metric}")
        elif factor is not None and factor < 1.0 / EQUAL_FACTOR:
            yield by_factor(1.0 / factor, f"better in {objective.metric}")
    for name, word in ((MONEY, "the cost"), (TIME, "as long")):
        if name == objective.metric:
            continue
        own, best = number(choice.figures, name), number(winner.figures, name)
        if own is not None and best and own > EQUAL_FACTOR * best:
            yield f"{own / best:.3g}x {word}"


def _bottleneck(choice: Choice) -> str:
    """Describe the bottleneck of a choice, and the utilization of its accelerators."""
    limit = str(choice.figures.get("bottleneck") or "")
    group, _, resource = limit.rpartition(".")
    busy = number(choice.figures, "accelerator_utilization")
    if resource not in LIMITS:
        return ""
    words = _BOUND_BY[resource] + (f" at '{group}'" if group else "")
    if busy is None:
        return words
    if resource == Resource.GPU:
        return f"{words} {busy:.0%} of the time"
    return f"{words}: accelerators busy {busy:.0%}"


def is_cpu_bound(choice: Choice) -> bool:
    """Return whether accelerators wait for the CPUs that prepare batches."""
    stall = number(choice.figures, "step_split_s.data_stall")
    step = number(choice.figures, "step_time_s.mean")
    limit = str(choice.figures.get("bottleneck") or "").rpartition(".")[2]
    waits = stall is not None and step is not None and stall > STARVED * step
    return choice.outcome.status is Status.PREDICTED and waits and limit == Resource.CPU


MIN_PREDICTED: Final = 3
"""Best candidates under the goal that are predicted for sure."""
SEARCH_TOLERANCE: Final = 0.01
"""A gain of no more than this share is not searched for in addition to the best of all: the front,
who comes second, and what pins and remedies come to are known that well."""
MIN_SAFE_PROBABILITY: Final = 0.9
"""Probability of keeping deadline and budget below which a safer choice is reported."""
LOSER_TOLERANCE: Final = 0.05
"""The same for the best of an accelerator that lost."""
READING_SHARE, SURVEY_SHARE, RUNNER_UP_SHARE = 0.35, 0.3, 0.1
"""Shares of what is left of a search, for its progress: reading, the best and the front, who comes
second."""


def recommend(
    problem: SearchProblem,
    backend: SearchBackend,
    *,
    seeds: Iterable[Settings] = ({},),
    seed: int = 0,
    everywhere: bool = False,
) -> Recommendation:
    """Search the best machines for a goal, rank them and explain why others lost.

    Parameters
    ----------
    problem : SearchProblem
        Goal and candidates of the search.
    backend : SearchBackend
        Predicts candidates.
    seeds : iterable of settings
        Settings of the keys that the goal searches; one dict for each combination.
    seed : int
        Of all random draws.
    everywhere : bool
        Also predict the best choice on every machine, to find one for several workloads.
    """
    search = Search(problem, backend, seed)
    search.all_of(search.candidates[:1])
    now = problem.judged(search.known[0])
    starved = is_cpu_bound(now)
    plain = [c for c in search.candidates if c.index not in problem.ideas]
    search.candidates = search.candidates if starved else tuple(plain)
    search.bound(READING_SHARE)
    _survey(problem, search)
    _predict_groups(problem, search, starved=starved, everywhere=everywhere)
    choices = [problem.judged(outcome) for outcome in search.known.values()]
    kept = _eligible(problem, search)
    ranked = in_order(problem.goal.objective, kept)
    answer = Recommendation(
        scenario=problem.baseline.scenario,
        goal=problem.goal,
        looked_at=len(search.candidates),
        predicted=sum(choice.is_predicted for choice in choices),
        ranked=tuple(ranked),
        front=tuple(front(kept)),
        now=now,
        off_axes=not problem.is_searched(now.settings),
        program=problem.program,
        ports=problem.ports,
        refused=problem.refused,
        excluded=problem.excluded,
        from_store=backend.predicted == 0,
        missing=len(backend.missing),
        bugs=tuple(one.reason for one in search.known.values() if one.status is Status.BUG),
    )
    if answer.missing:
        return answer
    if not ranked:
        # A part of the candidates tells of no conflict: the others may keep all limits.
        found = conflict_of(problem, seeds, backend, seed)
        return replace(answer, conflict=found, missing=len(backend.missing))
    return _explained(problem, answer, choices, seed, starved=starved)


def _survey(problem: SearchProblem, search: Search) -> None:
    """Predict the best choice, the best one with other hardware, and the Pareto front."""
    search.backend.begin(SURVEY_SHARE)
    search.best_of(search.candidates, top=MIN_PREDICTED)
    search.backend.begin(SURVEY_SHARE)
    search.front(search.candidates, close=SEARCH_TOLERANCE)
    best = in_order(problem.goal.objective, _eligible(problem, search))
    if best:
        search.backend.begin(RUNNER_UP_SHARE)
        search.best_of(
            [c for c in search.candidates if hardware_of(c.settings) != best[0].hardware],
            close=SEARCH_TOLERANCE,
        )


def _eligible(problem: SearchProblem, search: Search) -> list[Choice]:
    """Return predicted choices that may win: they satisfy the pins and need no consent."""
    choices = (problem.judged(outcome) for outcome in search.known.values())
    return [
        c
        for c in choices
        if problem.pinned(c)
        and not problem.needs_consent(c.settings)
        and problem.is_searched(c.settings)
    ]


def _predict_groups(
    problem: SearchProblem, search: Search, *, starved: bool, everywhere: bool
) -> None:
    """Predict the best choice with each accelerator, without each pin, and with each remedy.

    The best choice with an accelerator only explains why it lost, so a slightly better one may be
    missed.
    """
    groups: dict[tuple[str, str], list[Candidate]] = {}
    for candidate in search.candidates:
        machine = problem.machine(candidate.settings)
        groups.setdefault(("gpu", machine.gpu), []).append(candidate)
        if everywhere:
            groups.setdefault(("machine", machine.name), []).append(candidate)
        if starved and candidate.index in problem.ideas:
            groups.setdefault(("idea", problem.ideas[candidate.index]), []).append(candidate)
    for key in problem.goal.pins:
        groups[("free", key)] = _freed(problem, search, key)
    if problem.goal.pins:
        groups[("free", "")] = _freed(problem, search, "")
    for place, ((kind, name), group) in enumerate(groups.items()):
        search.backend.begin(1.0 / (len(groups) - place))
        close = (
            0.0
            if (kind, name) == ("free", "")
            else LOSER_TOLERANCE
            if kind == "gpu"
            else SEARCH_TOLERANCE
        )
        _predict_best(problem, search, group, close)


def _freed(problem: SearchProblem, search: Search, key: str) -> list[Candidate]:
    """Return the candidates that satisfy all pins except `key`."""
    pins = {k: v for k, v in problem.goal.pins.items() if k != key}
    return [
        c
        for c in search.candidates
        if keeps_pins(problem.baseline, problem.machine(c.settings), c.settings, pins)
    ]


def _predict_best(
    problem: SearchProblem, search: Search, group: Sequence[Candidate], close: float
) -> None:
    """Predict the best candidate of a group within the limits, or without if none meets them."""
    if all(_is_hopeless(search.known.get(c.index)) for c in group):
        return
    search.best_of(group, close=close)
    judged = [problem.judged(search.known[c.index]) for c in group if c.index in search.known]
    if not any(choice.is_predicted for choice in judged):
        search.best_of(group, close=close, within_limits=False)


def _is_hopeless(outcome: Outcome | None) -> bool:
    return outcome is not None and outcome.status in (Status.REFUSED, Status.FAILED, Status.BUG)


def _explained(
    problem: SearchProblem,
    answer: Recommendation,
    choices: Sequence[Choice],
    seed: int,
    *,
    starved: bool,
) -> Recommendation:
    goal = problem.goal
    most = _upper_limits(problem)
    taken = select_winner(goal.objective, answer.ranked, _confidence(problem, seed))
    winner = taken.ranked[0]
    ideas = tuple(_best_ideas(problem, choices, winner)) if starved else ()
    return replace(
        answer,
        ranked=taken.ranked,
        equals=taken.equals,
        front=tuple(with_choice(answer.front, winner)),
        trades=tradeoffs(answer.front, winner),
        moves=problem.copies(winner.settings),
        second=runner_up(taken.ranked),
        losers=tuple(_losers(problem, choices, winner)),
        ideas=ideas,
        against={
            idea.index: tuple(key for key in goal.pins if not problem.keeps(idea.settings, key))
            for idea in ideas
        },
        pins=tuple(_pin_prices(problem, choices)),
        contenders=taken.contenders,
        sure=taken.sure,
        safer=_safer(taken.ranked, most),
        lost=_interruption(problem, winner),
    )


def _confidence(
    problem: SearchProblem, seed: int
) -> Callable[[Sequence[Sequence[Choice]]], Confidence]:
    goal, most = problem.goal, _upper_limits(problem)
    return lambda variants: confidence_of(variants, goal.objective, problem.worth, most, seed)


def _upper_limits(problem: SearchProblem) -> dict[str, float]:
    limits = problem.goal.limits
    most = {TIME: limits.deadline, MONEY: limits.budget}
    return {name: value for name, value in most.items() if value is not None}


def _safer(ranked: Sequence[Choice], most: Mapping[str, float]) -> tuple[Choice, float] | None:
    """Return the best choice that very probably meets the limits, if the first one does not."""
    if chance_kept(ranked[0], most) >= MIN_SAFE_PROBABILITY:
        return None
    chances = ((one, chance_kept(one, most)) for one in ranked[1:])
    return next(((one, chance) for one, chance in chances if chance >= MIN_SAFE_PROBABILITY), None)


def _interruption(problem: SearchProblem, choice: Choice) -> Interruption | None:
    spot = problem.goal.spot
    total = number(choice.outcome.figures, TIME)
    step = number(choice.outcome.figures, "step_time_s.mean")
    if spot is None or total is None or step is None:
        return None
    return interrupted(problem.baseline.reader.read(choice.settings).scenario, spot, total, step)


def _losers(problem: SearchProblem, choices: Sequence[Choice], winner: Choice) -> Iterator[Loser]:
    """Yield the best choice with every accelerator except the winner's, best first."""
    objective = problem.goal.objective
    by_gpu: dict[str, list[Choice]] = {}
    for choice in choices:
        if not choice.idea:
            by_gpu.setdefault(choice.machine.gpu, []).append(choice)
    told = []
    for gpu, group in by_gpu.items():
        best = _best_of(problem, group)
        if gpu != winner.machine.gpu and best is not None:
            told.append((best, gpu))
    told.sort(key=lambda pair: _order(problem, pair[0]))
    for best, gpu in told:
        reason = reason_lost(best, winner, objective, problem.rules)
        yield Loser(what=gpu or "no accelerator", reason=reason, choice=best)


def _best_of(problem: SearchProblem, group: Iterable[Choice]) -> Choice | None:
    return min(group, key=lambda choice: _order(problem, choice), default=None)


def _order(problem: SearchProblem, choice: Choice) -> tuple[int, int, float, int]:
    value = choice.value if choice.value is not None else 0.0
    signed = -value if problem.goal.objective.sense is Sense.MAXIMIZE else value
    order = (
        *(Status.PREDICTED, Status.SCREENED, Status.INFEASIBLE),
        *(Status.REFUSED, Status.FAILED, Status.BUG),
    )
    known = order.index(choice.outcome.status)
    no_value = choice.value is None or not choice.is_predicted
    return known, len(choice.broken), 0.0 if no_value else signed, choice.index


def _best_ideas(
    problem: SearchProblem, choices: Sequence[Choice], winner: Choice
) -> Iterator[Choice]:
    """Yield the best candidate of every remedy, best first; a winner that is a remedy is kept."""
    by_name: dict[str, list[Choice]] = {}
    for choice in choices:
        if choice.idea:
            by_name.setdefault(choice.idea, []).append(choice)
    if winner.idea:
        by_name[winner.idea] = [winner]
    best = [one for group in by_name.values() if (one := _best_of(problem, group)) is not None]
    yield from sorted(best, key=lambda choice: _order(problem, choice))


def _pin_prices(problem: SearchProblem, choices: Sequence[Choice]) -> Iterator[PinPrice]:
    objective = problem.goal.objective
    choices = [choice for choice in choices if not problem.needs_consent(choice.settings)]
    kept = in_order(objective, (c for c in choices if problem.pinned(c)))
    for key, value in problem.goal.pins.items():
        freed = in_order(objective, (c for c in choices if problem.pinned(c, without=key)))
        yield PinPrice(
            key=key,
            value=value,
            kept=kept[0] if kept else None,
            freed=freed[0] if freed else None,
        )
