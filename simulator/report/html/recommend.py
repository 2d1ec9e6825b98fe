"""The HTML page of a recommendation: winner, time against cost, alternatives, launch commands."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence

from simulator.report import recommend as report
from simulator.report.document import Code, Rows, grid, notes, section
from simulator.report.html.charts import Point, Scatter, scatter
from simulator.report.html.page import (
    Block,
    Made,
    Page,
    Shown,
    Tile,
    rendered,
    section_blocks,
    shown,
    tiles,
    titled,
)
from simulator.report.html.prediction import in_full
from simulator.report.labels import metric_called
from simulator.report.launch import Launch
from simulator.report.numbers import figure
from simulator.results.prediction import Prediction
from simulator.schema.machines import short_name
from simulator.studies.recommend.ranking import MONEY, TIME, Choice, is_outside_evidence, number
from simulator.studies.recommend.recommendation import Recommendation
from simulator.units import SECOND, USD
from simulator.validation.local_coverage import Neighbourhood


def as_page(
    answers: Sequence[Recommendation],
    launches: Sequence[Launch | None],
    best: Sequence[tuple[Prediction, Neighbourhood | None] | None] = (),
    made: Made | None = None,
) -> str:
    """Return recommendations as one self-contained HTML document.

    Parameters
    ----------
    answers : sequence of Recommendation
        One for each workload.
    launches : sequence of Launch or None
        Launch commands of each winner.
    best : sequence of pairs, optional
        Prediction of each winner, and measured runs similar to it; None if there is no winner.
    made : Made, optional
        Origin of the page.
    """
    how = made or Made()
    asked = how.asked or [shlex.quote(answer.scenario.name) for answer in answers]
    parts = zip(answers, launches, asked, best or [None] * len(answers), strict=True)
    pages = [
        Page(
            name=answer.scenario.name,
            title=answer.scenario.title,
            about=(f"Goal: {report.goal_text(answer.goal)}", report.looked_text(answer)),
            verdict=_verdict(answer),
            good=answer.winner is not None,
            blocks=tuple(_blocks(answer, launch, _command(answer, typed), whole)),
        )
        for answer, launch, typed, whole in parts
    ]
    one = f"{answers[0].scenario.name}: " if len(answers) == 1 else ""
    return rendered(pages, f"{one}which machines to take", how)


def _blocks(
    answer: Recommendation,
    launch: Launch | None,
    command: str,
    best: tuple[Prediction, Neighbourhood | None] | None,
) -> Iterator[Block]:
    winner = answer.winner
    if winner is not None:
        settings = [(key, str(value)) for key, value in winner.settings.items()]
        figures = [
            Tile(name=name, value=value, note=note)
            for name, value, note in report.winner_figures(answer)
        ]
        yield from titled(report.best_title(answer), tiles(figures), Rows(rows=tuple(settings)))
    dots, front = _scatter(answer), report.front_table(answer)
    yield from titled("Time against cost", shown("scatter", dots), front)
    compared = report.about_texts(answer) if winner is not None else []
    yield from section_blocks(
        (
            *section("How it compares", notes(compared)),
            *section("Before you take it", notes(report.caveats(answer))),
            *(
                part
                for title, texts in report.reasons(answer)
                if title != report.LOST
                for part in section(title, notes(texts))
            ),
        )
    )
    losers = report.loser_rows(answer.losers)[: report.MAX_ALTERNATIVES]
    if losers and winner is not None:
        table = grid(("alternative", "machines", "why not"), losers, "<<<")
        yield from titled(report.LOST, Shown(macro="words", what=table))
    if winner is None:
        return
    yield from section_blocks(section("Launch", report.launch_code(launch)))
    if best is not None:
        yield from in_full(*best, command)
        return
    text = "All of it, with what it rests on and where that is from:"
    yield from (Shown(macro="text", what=text), Code(lines=(command,)))


def _command(answer: Recommendation, asked: str) -> str:
    """Return the command that reports the winner in full; empty if there is none."""
    if answer.winner is None:
        return ""
    given = (
        f"--set {shlex.quote(f'{key}={value}')}" for key, value in answer.winner.settings.items()
    )
    return f"plan report {asked} {' '.join(given)}"


def _verdict(answer: Recommendation) -> str:
    """Describe the winner with its metrics, and the next trade-off."""
    winner = answer.winner
    if winner is None:
        return " ".join(report.nothing_texts(answer))
    objective = answer.goal.objective
    value, time, cost = report.measures(objective, winner)
    with_unit = value if " " in value else f"{value} {metric_called(objective.metric)}"
    goal = "" if objective.metric in (TIME, MONEY) else f", {with_unit}"
    sentences = [f"Take {report.hardware(winner)}: {time} for {cost}{goal}."]
    sentences += ["Nothing similar was measured."] * is_outside_evidence(winner)
    sentences += [f"{line}." for line in report.trade_texts(answer)[:1]]
    return " ".join(sentences)


def _scatter(answer: Recommendation) -> Scatter | None:
    """Return the ranked choices by time and cost; None if no choice has both."""
    front = {choice.index for choice in answer.front}
    best = None if answer.winner is None else answer.winner.index
    points = [
        Point(
            x=time,
            y=money,
            front=choice.index in front,
            hint=_hint(choice),
            label=f"{choice.count} x {short_name(choice.machine.name)}",
            best=choice.index == best,
        )
        for choice in answer.ranked
        if (time := number(choice.figures, TIME)) is not None
        and (money := number(choice.figures, MONEY)) is not None
    ]
    return scatter(points, TIME, MONEY)


def _hint(choice: Choice) -> str:
    time, money = (figure(number(choice.figures, m), u) for m, u in ((TIME, SECOND), (MONEY, USD)))
    return f"{report.hardware(choice)}: {time}, {money}; {report.settings(choice)}"
