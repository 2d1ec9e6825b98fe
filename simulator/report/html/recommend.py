"""The page of a recommendation: the winner, time against cost, why others lost, how to start."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from simulator.report import recommend as report
from simulator.report.html.charts import Point, Scatter, scatter
from simulator.report.html.page import Made, rendered
from simulator.report.html.prediction import Tile, shown
from simulator.report.labels import metric_called
from simulator.report.launch import Launch
from simulator.report.numbers import figure
from simulator.report.text import printable
from simulator.results.prediction import Prediction
from simulator.schema.machines import short_name
from simulator.studies.recommend.ranking import MONEY, TIME, Choice, is_outside_evidence, number
from simulator.studies.recommend.recommendation import Recommendation
from simulator.units import SECOND, USD
from simulator.validation.local_coverage import Neighbourhood


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A titled list of sentences."""

    title: str
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """A titled table; `numbers` are the columns of figures."""

    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numbers: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One scenario's recommendation, ready to be shown."""

    name: str
    title: str
    goal: str
    looked: str
    verdict: str
    found: bool
    heading: str
    tiles: tuple[Tile, ...]
    settings: tuple[tuple[str, str], ...]
    parts: tuple[Part, ...]
    front: Grid | None
    losers: Grid | None
    scatter: Scatter | None
    launch: str
    command: str


def as_page(
    answers: Sequence[Recommendation],
    launches: Sequence[Launch | None],
    best: Sequence[tuple[Prediction, Neighbourhood | None] | None] = (),
    made: Made | None = None,
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
    made : Made, optional
        How the page came to be.
    """
    how = made or Made()
    asked = how.asked or [shlex.quote(answer.scenario.name) for answer in answers]
    each = zip(answers, launches, asked, strict=True)
    shown_answers = [_answer(*one) for one in each]
    whole = [None if one is None else shown(*one) for one in best or [None] * len(answers)]
    return rendered(
        "recommend.html.j2",
        answers=list(zip(shown_answers, whole, strict=True)),
        made=how,
    )


def _answer(answer: Recommendation, launch: Launch | None, asked: str) -> Answer:
    won = answer.winner is not None
    about = report.about_texts(answer) if won else []
    parts = [
        ("How it compares", about),
        ("Before you take it", report.caveats(answer)),
        *(part for part in report.reasons(answer) if part[1] and part[0] != report.LOST),
    ]
    return Answer(
        name=printable(answer.scenario.name),
        title=printable(answer.scenario.title),
        goal=printable(report.goal_text(answer.goal)),
        looked=report.looked_text(answer),
        verdict=_verdict(answer),
        found=won,
        heading=report.best_title(answer),
        tiles=_tiles(answer) if won else (),
        settings=_settings(answer),
        parts=tuple(
            Part(title=title, lines=tuple(map(printable, lines))) for title, lines in parts if lines
        ),
        front=_front(answer),
        losers=_losers(answer),
        scatter=_scatter(answer),
        launch="\n".join(report.launch_lines(launch)) if won else "",
        command=_command(answer, asked),
    )


def _tiles(answer: Recommendation) -> tuple[Tile, ...]:
    """The figures of the best choice, each with its interval."""
    return tuple(
        Tile(name=name, value=printable(value), note=printable(note))
        for name, value, note in report.winner_figures(answer)
    )


def _settings(answer: Recommendation) -> tuple[tuple[str, str], ...]:
    """What to set for the best choice, key by key."""
    if answer.winner is None:
        return ()
    return tuple(
        (printable(key), printable(str(value))) for key, value in answer.winner.settings.items()
    )


def _front(answer: Recommendation) -> Grid | None:
    """Choices that nothing looked at beats in both time and cost."""
    found = report.front_rows(answer)[0]
    rows = tuple((*map(printable, row[:-1]), _remark(row[-1])) for row in found)
    if not rows:
        return None
    head = ("time", "cost", "goal", "machines", "")
    kept = [i for i in range(len(head)) if i != _GOAL or any(row[i] for row in rows)]
    return Grid(
        title="Time against cost",
        head=tuple(head[i] for i in kept),
        rows=tuple(tuple(row[i] for i in kept) for row in rows),
        numbers=(0, 1),
    )


def _remark(mark: str) -> str:
    """What a mark of the front says, which has no footnote here."""
    remarks = ["best"] * ("best" in mark) + [report.UNMEASURED] * (report.BEYOND in mark)
    return ", ".join(remarks)


_GOAL: Final = 2


def _losers(answer: Recommendation) -> Grid | None:
    """Why each obvious alternative lost."""
    rows = tuple(tuple(map(printable, row)) for row in report.loser_rows(answer.losers))
    if not rows or answer.winner is None:
        return None
    return Grid(title=report.LOST, head=("alternative", "machines", "why not"), rows=rows)


def _command(answer: Recommendation, asked: str) -> str:
    """What shows all of the winner: its step, memory, cost, sources; empty without one."""
    if answer.winner is None:
        return ""
    given = (
        f"--set {shlex.quote(f'{key}={value}')}" for key, value in answer.winner.settings.items()
    )
    return printable(f"plan report {asked} {' '.join(given)}")


def _verdict(answer: Recommendation) -> str:
    """What to take, what that gives, and what other money or time would buy."""
    winner = answer.winner
    if winner is None:
        return printable(" ".join(report.nothing_texts(answer)))
    objective = answer.goal.objective
    value, time, cost = report.measures(objective, winner)
    with_unit = value if " " in value else f"{value} {metric_called(objective.metric)}"
    goal = "" if objective.metric in (TIME, MONEY) else f", {with_unit}"
    sentences = [f"Take {report.hardware(winner)}: {time} for {cost}{goal}."]
    sentences += ["Nothing similar was measured."] * is_outside_evidence(winner)
    sentences += [f"{line}." for line in report.trade_texts(answer)[:1]]
    return printable(" ".join(sentences))


def _scatter(answer: Recommendation) -> Scatter | None:
    """Sound choices by time and cost; none where nothing has a price."""
    front = {choice.index for choice in answer.front}
    best = None if answer.winner is None else answer.winner.index
    points = [
        Point(
            x=time,
            y=money,
            front=choice.index in front,
            hint=_hint(choice),
            label=printable(f"{choice.count} x {short_name(choice.machine.name)}"),
            best=choice.index == best,
        )
        for choice in answer.ranked
        if (time := number(choice.figures, TIME)) is not None
        and (money := number(choice.figures, MONEY)) is not None
    ]
    return scatter(points, TIME, MONEY)


def _hint(choice: Choice) -> str:
    time, money = (figure(number(choice.figures, m), u) for m, u in ((TIME, SECOND), (MONEY, USD)))
    return printable(f"{report.hardware(choice)}: {time}, {money}; {report.settings(choice)}")
