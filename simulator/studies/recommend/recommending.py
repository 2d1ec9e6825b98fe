"""The recommendation: search, rank, and say why."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from simulator.schema.goal import Sense
from simulator.studies.recommend import pins as pinning
from simulator.studies.recommend.answer import Loser, PinPrice, Recommendation
from simulator.studies.recommend.baseline import Settings
from simulator.studies.recommend.choice import MONEY, TIME, Choice, hardware_of, number
from simulator.studies.recommend.confidence import Sureness, chance_kept, sureness
from simulator.studies.recommend.conflicts import conflict_of
from simulator.studies.recommend.evaluator import Ask, Search
from simulator.studies.recommend.problem import Inquiry
from simulator.studies.recommend.ranking import front, in_order, runner_up, with_choice
from simulator.studies.recommend.reasons import is_cpu_bound, why
from simulator.studies.recommend.spot import Interrupted, interrupted
from simulator.studies.recommend.weighing import trades, weighed
from simulator.studies.search.outcome import Candidate, Outcome, Status

SURE_OF: Final = 3
"""Best candidates by the goal that are predicted for sure."""
CLOSE: Final = 0.01
"""What is better by no more than this share is not looked for beside the best of all: the front,
who comes second, and what pins and remedies come to are known that well."""
SAFE: Final = 0.9
"""Probability of keeping deadline and budget below which a safer choice is told of."""
HARDLY: Final = 0.05
"""The same for the best of an accelerator that lost."""
READING, SURVEYING, SECOND = 0.35, 0.3, 0.1
"""Shares of what is left of a search, for its progress: reading, the best and the front, who comes
second."""


def recommend(
    inquiry: Inquiry,
    ask: Ask,
    *,
    seeds: Iterable[Settings] = ({},),
    seed: int = 0,
    everywhere: bool = False,
) -> Recommendation:
    """Search, rank, and say why the others lost.

    Parameters
    ----------
    inquiry : Inquiry
        What is looked for, and among what.
    ask : callable
        Who predicts.
    seeds : iterable of settings
        Points along the axes that the goal names itself.
    seed : int
        Of all random draws.
    everywhere : bool
        Also predict the best on every machine, for a choice that several workloads share.
    """
    search = Search.of(inquiry, ask, seed=seed)
    search.all_of(search.candidates[:1])
    now = inquiry.judged(search.known[0])
    starved = is_cpu_bound(now)
    plain = [c for c in search.candidates if c.index not in inquiry.ideas]
    search.candidates = search.candidates if starved else tuple(plain)
    search.bound(READING)
    _survey(inquiry, search)
    _fill(inquiry, search, starved=starved, everywhere=everywhere)
    choices = [inquiry.judged(outcome) for outcome in search.known.values()]
    kept = _kept(inquiry, search)
    ranked = in_order(inquiry.goal.objective, kept)
    answer = Recommendation(
        scenario=inquiry.ground.scenario,
        goal=inquiry.goal,
        looked_at=len(search.candidates),
        predicted=sum(choice.is_predicted for choice in choices),
        ranked=tuple(ranked),
        front=tuple(front(kept)),
        now=now,
        off_axes=not inquiry.is_searched(now.settings),
        program=inquiry.program,
        ports=inquiry.ports,
        refused=inquiry.space.refused,
        excluded=inquiry.excluded,
        from_store=ask.course.predicted == 0,
        missing=len(ask.missing),
        bugs=tuple(one.reason for one in search.known.values() if one.status is Status.BUG),
    )
    if answer.missing:
        return answer
    if not ranked:
        # A part of the candidates tells of no conflict: the others may keep all limits.
        found = conflict_of(inquiry, seeds, ask, seed)
        return replace(answer, conflict=found, missing=len(ask.missing))
    return _explained(inquiry, answer, choices, seed, starved=starved)


def _survey(inquiry: Inquiry, search: Search) -> None:
    """The best by the goal, what comes second on other hardware, and the front."""
    search.ask.course.begin(SURVEYING)
    search.best_of(search.candidates, top=SURE_OF)
    search.ask.course.begin(SURVEYING)
    search.front(search.candidates, close=CLOSE)
    best = in_order(inquiry.goal.objective, _kept(inquiry, search))
    if best:
        search.ask.course.begin(SECOND)
        search.best_of(
            [c for c in search.candidates if hardware_of(c.settings) != best[0].hardware],
            close=CLOSE,
        )


def _kept(inquiry: Inquiry, search: Search) -> list[Choice]:
    """What is known of those that may win: they keep the pins and need nobody's consent."""
    choices = (inquiry.judged(outcome) for outcome in search.known.values())
    return [
        c
        for c in choices
        if inquiry.pinned(c)
        and not inquiry.needs_consent(c.settings)
        and inquiry.is_searched(c.settings)
    ]


def _fill(inquiry: Inquiry, search: Search, *, starved: bool, everywhere: bool) -> None:
    """Predict the best of every kind: of each accelerator, with each pin left out, of each idea.

    The best of an accelerator only says why it lost: there another that is hardly better is not
    looked for.
    """
    groups: dict[tuple[str, str], list[Candidate]] = {}
    for candidate in search.candidates:
        machine = inquiry.machine(candidate.settings)
        groups.setdefault(("gpu", machine.gpu), []).append(candidate)
        if everywhere:
            groups.setdefault(("machine", machine.name), []).append(candidate)
        if starved and candidate.index in inquiry.ideas:
            groups.setdefault(("idea", inquiry.ideas[candidate.index]), []).append(candidate)
    for key in inquiry.goal.pins:
        groups[("free", key)] = _freed(inquiry, search, key)
    if inquiry.goal.pins:
        groups[("free", "")] = _freed(inquiry, search, "")
    for place, ((kind, name), group) in enumerate(groups.items()):
        search.ask.course.begin(1.0 / (len(groups) - place))
        close = 0.0 if (kind, name) == ("free", "") else HARDLY if kind == "gpu" else CLOSE
        _be_sure(inquiry, search, group, close)


def _freed(inquiry: Inquiry, search: Search, key: str) -> list[Candidate]:
    """Candidates that keep all pins but one."""
    pins = {k: v for k, v in inquiry.goal.pins.items() if k != key}
    return [
        c
        for c in search.candidates
        if pinning.keeps_all(inquiry.ground, inquiry.machine(c.settings), c.settings, pins)
    ]


def _be_sure(inquiry: Inquiry, search: Search, group: Sequence[Candidate], close: float) -> None:
    """Know the best of a group within the limits; or, where none keeps them, without them."""
    if all(_hopeless(search.known.get(c.index)) for c in group):
        return
    search.best_of(group, close=close)
    judged = [inquiry.judged(search.known[c.index]) for c in group if c.index in search.known]
    if not any(choice.is_predicted for choice in judged):
        search.best_of(group, close=close, within_limits=False)


def _hopeless(outcome: Outcome | None) -> bool:
    return outcome is not None and outcome.status in (Status.REFUSED, Status.FAILED, Status.BUG)


def _explained(
    inquiry: Inquiry,
    answer: Recommendation,
    choices: Sequence[Choice],
    seed: int,
    *,
    starved: bool,
) -> Recommendation:
    goal = inquiry.goal
    most = _most(inquiry)
    taken = weighed(goal.objective, answer.ranked, _sure(inquiry, seed))
    winner = taken.ranked[0]
    ideas = tuple(_best_ideas(inquiry, choices, winner)) if starved else ()
    return replace(
        answer,
        ranked=taken.ranked,
        equals=taken.equals,
        front=tuple(with_choice(answer.front, winner)),
        trades=trades(answer.front, winner),
        moves=inquiry.copies(winner.settings),
        second=runner_up(taken.ranked),
        losers=tuple(_losers(inquiry, choices, winner)),
        ideas=ideas,
        against={
            idea.index: tuple(key for key in goal.pins if not inquiry.keeps(idea.settings, key))
            for idea in ideas
        },
        pins=tuple(_pin_prices(inquiry, choices)),
        contenders=taken.contenders,
        sure=taken.sure,
        safer=_safer(taken.ranked, most),
        lost=_lost(inquiry, winner),
    )


def _sure(inquiry: Inquiry, seed: int) -> Callable[[Sequence[Sequence[Choice]]], Sureness]:
    """How sure the best of several machines is, within the deadline and the budget."""
    goal, most = inquiry.goal, _most(inquiry)
    return lambda variants: sureness(variants, goal.objective, inquiry.worth, most, seed)


def _most(inquiry: Inquiry) -> dict[str, float]:
    """The most that a run may take and cost, where the goal says so."""
    limits = inquiry.goal.limits
    most = {TIME: limits.deadline, MONEY: limits.budget}
    return {name: value for name, value in most.items() if value is not None}


def _safer(ranked: Sequence[Choice], most: Mapping[str, float]) -> tuple[Choice, float] | None:
    """The best that keeps deadline and budget in nearly all cases, where the first does not."""
    if chance_kept(ranked[0], most) >= SAFE:
        return None
    chances = ((one, chance_kept(one, most)) for one in ranked[1:])
    return next(((one, chance) for one, chance in chances if chance >= SAFE), None)


def _lost(inquiry: Inquiry, choice: Choice) -> Interrupted | None:
    spot = inquiry.goal.spot
    total = number(choice.outcome.figures, TIME)
    step = number(choice.outcome.figures, "step_time_s.mean")
    if spot is None or total is None or step is None:
        return None
    return interrupted(inquiry.ground.reader.read(choice.settings).scenario, spot, total, step)


def _losers(inquiry: Inquiry, choices: Sequence[Choice], winner: Choice) -> Iterator[Loser]:
    """The scenario as it stands, and the best of every other accelerator, best first."""
    objective = inquiry.goal.objective
    by_gpu: dict[str, list[Choice]] = {}
    for choice in choices:
        if not choice.idea:
            by_gpu.setdefault(choice.machine.gpu, []).append(choice)
    told = []
    for gpu, group in by_gpu.items():
        best = _best(inquiry, group)
        if gpu != winner.machine.gpu and best is not None:
            told.append((best, gpu))
    told.sort(key=lambda pair: _place(inquiry, pair[0]))
    for best, gpu in told:
        reason = why(best, winner, objective, inquiry.rules)
        yield Loser(what=gpu or "no accelerator", reason=reason, choice=best)


def _best(inquiry: Inquiry, group: Iterable[Choice]) -> Choice | None:
    """The best of a group: sound ones first, then predicted ones, then the most telling."""
    return min(group, key=lambda choice: _place(inquiry, choice), default=None)


def _place(inquiry: Inquiry, choice: Choice) -> tuple[int, int, float, int]:
    value = choice.value if choice.value is not None else 0.0
    signed = -value if inquiry.goal.objective.sense is Sense.MAXIMIZE else value
    order = (
        *(Status.PREDICTED, Status.SCREENED, Status.INFEASIBLE),
        *(Status.REFUSED, Status.FAILED, Status.BUG),
    )
    known = order.index(choice.outcome.status)
    no_value = choice.value is None or not choice.is_predicted
    return known, len(choice.broken), 0.0 if no_value else signed, choice.index


def _best_ideas(inquiry: Inquiry, choices: Sequence[Choice], winner: Choice) -> Iterator[Choice]:
    """The best candidate of every remedy, best first; the winner is the best of its own."""
    by_name: dict[str, list[Choice]] = {}
    for choice in choices:
        if choice.idea:
            by_name.setdefault(choice.idea, []).append(choice)
    if winner.idea:
        by_name[winner.idea] = [winner]
    best = [one for group in by_name.values() if (one := _best(inquiry, group)) is not None]
    yield from sorted(best, key=lambda choice: _place(inquiry, choice))


def _pin_prices(inquiry: Inquiry, choices: Sequence[Choice]) -> Iterator[PinPrice]:
    objective = inquiry.goal.objective
    choices = [choice for choice in choices if not inquiry.needs_consent(choice.settings)]
    kept = in_order(objective, (c for c in choices if inquiry.pinned(c)))
    for key, value in inquiry.goal.pins.items():
        freed = in_order(objective, (c for c in choices if inquiry.pinned(c, without=key)))
        yield PinPrice(
            key=key,
            value=value,
            kept=kept[0] if kept else None,
            freed=freed[0] if freed else None,
        )
