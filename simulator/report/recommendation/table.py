"""A recommendation as one table: the best, the front, the alternatives that lost, and remedies."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from simulator.report.format.table import Cell, Table, as_markdown
from simulator.report.numbers import figure
from simulator.report.recommendation.words import hardware, settings, worth
from simulator.studies.recommend.ranking import MONEY, TIME, Choice, number
from simulator.studies.recommend.recommendation import Recommendation
from simulator.units import SECOND, USD


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A choice, what it is among all of them, and why it is not the best."""

    answer: Recommendation
    place: str
    choice: Choice
    reason: str = ""


def lines(answers: Sequence[Recommendation]) -> Iterator[Line]:
    """Every choice that the report names, scenario by scenario."""
    for answer in answers:
        named = [("best", answer.winner, ""), ("runner-up", answer.second, "")]
        named += [("front", choice, "") for choice in answer.front]
        named += [("as it stands", answer.now, "")]
        named += [(f"lost: {one.what}", one.choice, one.reason) for one in answer.losers]
        named += [(f"remedy: {one.idea}", one, "") for one in answer.ideas]
        for place, choice, reason in named:
            if choice is not None:
                own = reason or choice.outcome.reason or "; ".join(choice.broken)
                yield Line(answer=answer, place=place, choice=choice, reason=own)


def as_table(answers: Sequence[Recommendation]) -> Table:
    """All of them in SI units."""
    head = (
        *("scenario", "place", "machine", "count", "gpus_per_machine", "gpu", "settings"),
        *("goal", "value", "total_time_s", "cost.usd_to_train", "cost.usd_per_h"),
        *("accelerator_utilization", "bottleneck", "status", "reason"),
    )
    return Table(head=head, rows=tuple(_cells(line) for line in lines(answers)))


def _cells(line: Line) -> tuple[Cell, ...]:
    choice, machine = line.choice, line.choice.machine
    given = "; ".join(f"{key}={value}" for key, value in choice.settings.items())
    figures = (TIME, MONEY, "cost.usd_per_h", "accelerator_utilization")
    limit = choice.figures.get("bottleneck")
    return (
        *(line.answer.scenario.name, line.place, machine.name, choice.count),
        *(machine.gpus, machine.gpu or "", given, line.answer.goal.objective.metric),
        choice.value,
        *(number(choice.figures, name) for name in figures),
        *("" if limit is None else str(limit), choice.outcome.status.value, line.reason),
    )


def as_page(answers: Sequence[Recommendation]) -> str:
    """The same as Markdown, as the report words it."""
    head = ("", "hardware", "settings", "goal", "time", "cost", "why not")
    rows = tuple(_row(line) for line in lines(answers))
    if len(answers) == 1:
        return as_markdown(Table(head=head, rows=rows))
    names = (line.answer.scenario.name for line in lines(answers))
    several = tuple((name, *row) for name, row in zip(names, rows, strict=True))
    return as_markdown(Table(head=("scenario", *head), rows=several))


def _row(line: Line) -> tuple[str, ...]:
    choice = line.choice
    return (
        line.place,
        hardware(choice),
        settings(choice),
        worth(choice, line.answer.goal.objective),
        figure(number(choice.figures, TIME), SECOND),
        figure(number(choice.figures, MONEY), USD),
        line.reason,
    )
