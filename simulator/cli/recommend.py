"""``plan recommend``: which machines to take for a goal, and why the others lose."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from simulator.cli import completion
from simulator.cli.metrics import note_old_names
from simulator.cli.options import (
    calibration_option,
    evidence_option,
    examples,
    file_option,
    format_option,
    profiles_option,
    seed_option,
    set_option,
)
from simulator.cli.output import Exit, check_writable, complain, emit, ended, made, write_file
from simulator.cli.searching import Means, search_backend, search_options
from simulator.cli.serving import recommended as sized_service
from simulator.cli.subjects import (
    InFull,
    as_typed,
    price_age_option,
    read,
    refuse_unavailable,
    warn_of_old,
)
from simulator.errors import PlanError, UnknownName

if TYPE_CHECKING:
    from simulator.reading.search.candidates import CandidateReader
    from simulator.reading.service.scenario import ServiceReader
    from simulator.report.recommendation.launch import Launch
    from simulator.schema.goal import Goal
    from simulator.studies.recommend.recommendation import Recommendation
    from simulator.studies.recommend.search_problem import SearchBackend

SKYPILOT_CLOUDS: Final = ("aws", "azure", "gcp", "lambda")
"""Clouds by the names that both our profiles and SkyPilot give them."""


@click.command(
    epilog=examples(
        "plan recommend mine.toml",
        "plan recommend mine.toml --goal goal.toml",
    )
)
@click.argument(
    "scenarios",
    nargs=-1,
    required=True,
    metavar="SCENARIO...",
    shell_complete=completion.scenarios,
)
@file_option("--goal", text="Take the [goal] of this file in place of the scenario's.")
@click.option(
    "--search/--no-search",
    "search",
    default=True,
    show_default=True,
    help="Whether to predict what is not stored yet; what is stored is not predicted again.",
)
@file_option("--html", text="Write a report with a drawing as one HTML file.")
@evidence_option("the best, in --html")
@format_option
@set_option("Set a key of the scenario, such as train.epochs=10; may be given again.")
@profiles_option
@search_options
@calibration_option
@seed_option
@price_age_option
def recommend(  # noqa: PLR0913 - one parameter an option
    *,
    scenarios: tuple[str, ...],
    goal: Path | None,
    search: bool,
    html: Path | None,
    evidence: bool,
    form: str,
    overrides: tuple[str, ...],
    profiles: tuple[Path, ...],
    calibration: Path | None,
    store: Path | None,
    resume: bool,
    jobs: int | None,
    cluster: str | None,
    seed: int,
    price_age: str | None,
) -> int:
    """Recommend machines for SCENARIO, by the [goal] in it: what is best within its limits.

    The search goes over machines with a price, how many of them, where data lies, workers, batch
    and parallelism. With several scenarios: the best for each, and the best single machine for
    all. Exit code 1 says that no candidate keeps all limits; it names those that exclude each
    other.
    """
    if html is not None:
        check_writable(html, "--html")
    means = Means(store=store, resume=resume, jobs=jobs, cluster=cluster)
    subjects = [read(name, overrides, profiles, calibration) for name in scenarios]
    services = [one.reader if one.noun == "service" else None for one in subjects]
    if any(services):
        for subject in subjects:
            refuse_unavailable(subject, {"goal": goal, "html": html})
        return _sized(services, form, seed, price_age, as_typed(subjects[0]))
    from simulator.reading.hardware.rented import RentingReader

    readers = [RentingReader(subject.reader) for subject in subjects]
    goals = [_goal(reader, name, goal, profiles) for reader, name in zip(readers, scenarios)]  # noqa: B905 - made from it
    with search_backend(means, stored_only=not search) as backend:
        answers = [
            _answer(reader, wanted, profiles, backend, seed=seed, everywhere=len(scenarios) > 1)
            for reader, wanted in zip(readers, goals, strict=True)
        ]
    launches = [_launch(reader, answer) for reader, answer in zip(readers, answers, strict=True)]
    if html is not None:
        from simulator.report.html.recommend import as_page

        whole = InFull(seed=seed, jobs=jobs, profiles=profiles, evidence=evidence)
        best = [
            whole.of(reader, answer.winner.settings) if answer.winner else None
            for reader, answer in zip(readers, answers, strict=True)
        ]
        how = made(seed, *(as_typed(subject) for subject in subjects))
        write_file(html, as_page(answers, launches, best, how), "--html")
    emit(_rendered(answers, launches, form))
    for reader, answer in zip(readers, answers, strict=True):
        _warn_of_old(reader, answer, price_age)
    if form in {"csv", "markdown"}:
        _say_what_is_missing(answers)
    bugs = [reason for answer in answers for reason in answer.bugs]
    return ended(Exit.FINE if all(answer.winner for answer in answers) else Exit.DOES_NOT_FIT, bugs)


def _warn_of_old(reader: CandidateReader, answer: Recommendation, age: str | None) -> None:
    """Name the old prices of the machines that the answer weighs against each other."""
    if age is None:
        return
    from simulator.results.price_age import listed_prices

    lost = [loser.choice for loser in answer.losers]
    weighed = [answer.winner, *answer.front, *answer.equals, *lost]
    shown = {choice.index: choice.settings for choice in weighed if choice is not None}
    scenarios = [reader.read(settings).scenario for settings in shown.values()]
    warn_of_old([one for job in scenarios for one in listed_prices(job)], age)


def _sized(
    services: Sequence[ServiceReader | None],
    form: str,
    seed: int,
    price_age: str | None,
    typed: str,
) -> int:
    """The machines of one service."""
    first = services[0]
    if first is None or len(services) > 1:
        msg = "one service at a time: each has limits of its own"
        raise click.UsageError(msg)
    return sized_service(first, form, seed, price_age, typed)


def _say_what_is_missing(answers: Sequence[Recommendation]) -> None:
    """Why a table of choices holds no best one; reports and JSON say so themselves."""
    from simulator.report.recommendation.text import nothing_lines

    for answer in answers:
        if answer.winner is None:
            complain(f"{answer.scenario.name}: no choice will do", *nothing_lines(answer))


def _goal(
    reader: CandidateReader, name: str, path: Path | None, profiles: tuple[Path, ...]
) -> Goal:
    from simulator.reading.search.goal_section import read_goal

    try:
        found = reader.goal if path is None else read_goal(path, profiles=profiles)
    except UnknownName as error:
        msg = f"--goal {path}: {error}"
        raise UnknownName(msg) from None
    if found is None:
        msg = (
            f"{name}: has no [goal] section; add one, such as maximize = "
            '"cost.samples_per_usd", or give --goal FILE'
        )
        raise PlanError(msg)
    note_old_names(found.objective.metric, found.limits.where)
    return found


def _answer(  # noqa: PLR0913 - all of one scenario
    reader: CandidateReader,
    goal: Goal,
    profiles: tuple[Path, ...],
    backend: SearchBackend,
    *,
    seed: int,
    everywhere: bool,
) -> Recommendation:
    from dataclasses import replace

    from simulator.reading.hardware.catalogue import Catalogue
    from simulator.results.price_age import dated_prices
    from simulator.schema.goal import Axes
    from simulator.studies.baseline import MACHINE, baseline_of, with_full_name
    from simulator.studies.purchase import buying_option
    from simulator.studies.recommend.recommendation import recommend as search_and_rank
    from simulator.studies.recommend.search_problem import define_problem
    from simulator.studies.search.candidates import expand

    catalogue = Catalogue.default(profiles)
    points = [c.settings for c in expand(Axes(axes=goal.search), reader)] if goal.search else [{}]
    seeds = [with_full_name(settings, catalogue) for settings in points]
    named = tuple({str(seed[MACHINE]) for seed in seeds if MACHINE in seed})
    baseline = baseline_of(reader, catalogue, named)
    problem = define_problem(baseline, goal, seeds)
    answer = search_and_rank(problem, backend, seeds=seeds, seed=seed, everywhere=everywhere)
    if answer.winner is None:
        return answer
    best = reader.read(answer.winner.settings).scenario
    return replace(
        answer,
        buying=buying_option(reader, answer.winner, catalogue, seed),
        prices=tuple(dated_prices(best)),
    )


def _launch(reader: CandidateReader, answer: Recommendation) -> Launch | None:
    from simulator.report.recommendation.launch import launch_of

    if answer.winner is None:
        return None
    scenario = reader.read(answer.winner.settings).scenario
    every = None if answer.lost is None else answer.lost.interval
    return launch_of(scenario, SKYPILOT_CLOUDS, every)


def _rendered(
    answers: Sequence[Recommendation], launches: Sequence[Launch | None], form: str
) -> str:
    from simulator.report.format.table import Format, rendered
    from simulator.report.recommendation import json as recommend_json
    from simulator.report.recommendation import table as recommend_table
    from simulator.report.recommendation import text as report
    from simulator.studies.recommend.recommendation import common_machine

    together = len(answers) > 1 and all(answer.winner for answer in answers)
    common = common_machine(answers) if together else None

    def text() -> str:
        if len(answers) == 1:
            return report.as_text(answers[0], launches[0])
        return report.several_text(answers, common)

    def tree() -> str:
        if len(answers) == 1:
            return recommend_json.as_json(answers, launches)
        return recommend_json.several_as_json(answers, launches, common)

    return rendered(
        Format(form),
        text=text,
        tree=tree,
        table=lambda: recommend_table.as_table(answers),
        page=lambda: recommend_table.as_page(answers),
    )
