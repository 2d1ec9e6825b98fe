"""``plan recommend``: the best machines for a goal, and why others are worse."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import click

from simulator.cli.options import (
    as_typed,
    evidence_option,
    examples,
    file_option,
    format_option,
    output_option,
    price_age_option,
    read_all,
    refuse_unavailable,
    scenarios_arguments,
    seed_option,
    warn_of_old,
)
from simulator.cli.output import answer, complain, made, progress_line, study_ended, write_file
from simulator.cli.searching import Means, in_full, search_backend, search_options


@click.command(
    epilog=examples(
        "plan recommend mine.toml",
        "plan recommend mine.toml --goal goal.toml",
    )
)
@scenarios_arguments("Set a key of the scenario, such as train.epochs=10; repeatable.")
@file_option("--goal", text="Read [goal] from this file instead of the scenario.")
@click.option(
    "--search/--no-search",
    "search",
    default=True,
    show_default=True,
    help="Simulate candidates that are not in the store; --no-search chooses among stored ones.",
)
@output_option("--html", text="Write a report with charts as one HTML file.")
@evidence_option("In --html, compare the best candidates")
@format_option
@search_options
@seed_option
@price_age_option
def recommend(  # noqa: PLR0913 - one parameter an option
    *,
    scenarios: tuple[str, ...],
    overrides: tuple[str, ...],
    profiles: tuple[Path, ...],
    calibration: Path | None,
    goal: Path | None,
    search: bool,
    html: Path | None,
    evidence: bool,
    form: str,
    means: Means,
    seed: int,
    price_age: str | None,
) -> int:
    """Recommend machines for SCENARIO: the best for the objective and limits of its [goal].

    Searches machine types with a known price, the number of machines, where data are stored,
    workers, batch size and parallelism; [goal.search] restricts the search. With several scenarios:
    the best machines for each, and the best single machine type for all. Exit code 1: no machine
    meets all limits; the report names the conflicting ones.
    """
    refusal = 'cannot recommend for jobs and services (mode = "serve") together'
    subjects = read_all(([name] for name in scenarios), overrides, profiles, calibration, refusal)
    first = subjects[0]
    refuse_unavailable(first, {"goal": goal, "html": html})
    from simulator.report.recommend import document, launch_of_best, none_found
    from simulator.studies.subject import StudyOptions

    options = StudyOptions(
        goal=goal,
        open_backend=partial(search_backend, means, stored_only=not search),
        seed=seed,
        progress=progress_line,
    )
    study = first.recommend(subjects, options)
    complain(*study.notes)
    if html is not None:
        from simulator.report.html.recommend import as_page

        whole = partial(in_full, seed=seed, jobs=means.jobs, profiles=profiles, evidence=evidence)
        best = [None if each.best is None else whole(each.best) for each in study.found]
        answers = list(study.found)
        launches = list(map(launch_of_best, study.found))
        how = made(seed, *(as_typed(subject) for subject in subjects))
        write_file(html, as_page(answers, launches, best, how), "--html")
    answer(document(study.found, as_typed(first)), form)
    if isinstance(study.found, Sequence) and any(each.from_store for each in study.found):
        complain("all predictions were in the store; --no-resume makes them again")
    if price_age is not None:
        warn_of_old(study.prices(), price_age)
    if form in {"csv", "markdown"}:
        complain(*none_found(study.found))
    return study_ended(study)
