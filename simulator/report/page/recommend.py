"""The page of a recommendation: the winner, time against cost, why others lost, how to start."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from simulator.report import recommend as text
from simulator.report import recommend_words as words
from simulator.report.launch import Launch
from simulator.report.layout import printable
from simulator.report.page.environment import rendered
from simulator.report.page.prediction import shown
from simulator.report.page.scatter import Point, Scatter, scatter
from simulator.report.recommend_best import before_lines, best_title, winner_lines
from simulator.results.prediction import Prediction
from simulator.studies.nearest import Neighbourhood
from simulator.studies.recommend.answer import Recommendation
from simulator.studies.recommend.choice import MONEY, TIME, Choice, number


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A titled list of sentences."""

    title: str
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One scenario's recommendation, ready to be shown."""

    name: str
    title: str
    goal: str
    looked: str
    verdict: str
    found: bool
    parts: tuple[Part, ...]
    scatter: Scatter | None
    launch: str
    command: str


def as_page(
    answers: Sequence[Recommendation],
    launches: Sequence[Launch | None],
    best: Sequence[tuple[Prediction, Neighbourhood | None] | None] = (),
) -> str:
    """Recommendations as one HTML document that loads nothing from elsewhere.

    Parameters
    ----------
    answers : sequence of Recommendation
        One for each workload.
    launches : sequence of Launch or None
        How to start each.
    best : sequence of pairs, optional
        The prediction of each winner, to be shown in full, and measured runs like it; None where
        there is no winner.
    """
    shown_answers = [_answer(*pair) for pair in zip(answers, launches, strict=True)]
    whole = [None if one is None else shown(*one) for one in best or [None] * len(answers)]
    return rendered("recommend.html.j2", answers=list(zip(shown_answers, whole, strict=True)))


def _answer(answer: Recommendation, launch: Launch | None) -> Answer:
    parts = [
        (best_title(answer), winner_lines(answer) if answer.winner else []),
        ("Before you take it", before_lines(answer)),
        *text.why_parts(answer),
    ]
    return Answer(
        name=printable(answer.scenario.name),
        title=printable(answer.scenario.title),
        goal=printable(text.goal_text(answer.goal)),
        looked=text.looked_text(answer),
        verdict=_verdict(answer),
        found=answer.winner is not None,
        parts=tuple(
            Part(title=title, lines=tuple(map(printable, lines))) for title, lines in parts if lines
        ),
        scatter=_scatter(answer),
        launch="\n".join(text.launch_lines(launch)) if answer.winner else "",
        command=_command(answer),
    )


def _command(answer: Recommendation) -> str:
    """What shows all of the winner: its step, memory, cost, sources; empty without one."""
    if answer.winner is None:
        return ""
    given = (
        f"--set {shlex.quote(f'{key}={value}')}" for key, value in answer.winner.settings.items()
    )
    return printable(f"plan report {shlex.quote(answer.scenario.name)} {' '.join(given)}")


def _verdict(answer: Recommendation) -> str:
    """What to take, and what that gives."""
    winner = answer.winner
    if winner is None:
        return printable(" ".join(text.nothing_lines(answer)))
    settings = words.settings(winner)
    with_ = f" with {settings}" if settings else ""
    objective = answer.goal.objective
    value, time, cost = words.measures(objective, winner)
    goal = "" if objective.metric in (TIME, MONEY) else f", {objective.metric} {value}"
    return printable(f"Take {words.hardware(winner)}{with_}: {time} for {cost}{goal}.")


def _scatter(answer: Recommendation) -> Scatter | None:
    """Sound choices by time and cost; none where nothing has a price."""
    front = {choice.index for choice in answer.front}
    points = [
        Point(x=time, y=money, front=choice.index in front, hint=_hint(choice))
        for choice in answer.ranked
        if (time := number(choice.figures, TIME)) is not None
        and (money := number(choice.figures, MONEY)) is not None
    ]
    return scatter(points, TIME, MONEY)


def _hint(choice: Choice) -> str:
    return printable(f"{words.hardware(choice)}; {words.settings(choice)}")
