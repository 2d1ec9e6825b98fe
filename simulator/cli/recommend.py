"""``plan recommend``: the best machines for a goal, and why the others lose."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import click

from simulator.cli import completion
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
from simulator.cli.output import check_writable, complain, emit, made, study_ended, write_file
from simulator.cli.progress import progress_line
from simulator.cli.searching import Means, search_backend, search_options
from simulator.cli.subjects import (
    InFull,
    as_typed,
    price_age_option,
    read,
    refuse_unavailable,
    warn_of_old,
)


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
@file_option("--goal", text="Read [goal] from this file instead of the scenario.")
@click.option(
    "--search/--no-search",
    "search",
    default=True,
    show_default=True,
    help="Simulate candidates that are not in the store; --no-search chooses among stored ones.",
)
@file_option("--html", text="Write a report with charts as one HTML file.")
@evidence_option("In --html, compare the best candidates")
@format_option
@set_option("Set a key of the scenario, such as train.epochs=10; repeatable.")
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
    """Recommend machines for SCENARIO: the best for the objective and limits of its [goal].

    Searches machine types with a known price, the number of machines, where data are stored,
    workers, batch size and parallelism; [goal.search] restricts the search. With several scenarios:
    the best machines for each, and the best single machine type for all. Exit code 1: no machine
    meets all limits; the report names the conflicting ones.
    """
    if html is not None:
        check_writable(html, "--html")
    means = Means(store=store, resume=resume, jobs=jobs, cluster=cluster)
    subjects = [read(name, overrides, profiles, calibration) for name in scenarios]
    first = subjects[0]
    if any(subject.noun != first.noun for subject in subjects):
        msg = 'cannot recommend for jobs and services (mode = "serve") together'
        raise click.UsageError(msg)
    refuse_unavailable(first, {"goal": goal, "html": html})
    from simulator.report.kinds import report_of

    reports = report_of(first)
    study = first.recommend(
        subjects,
        goal=goal,
        open_backend=partial(search_backend, means, stored_only=not search),
        seed=seed,
        progress=progress_line,
    )
    complain(*study.notes)
    if html is not None:
        from simulator.report.html.recommend import as_page

        whole = InFull(seed=seed, jobs=jobs, profiles=profiles, evidence=evidence)
        best = [None if each.best is None else whole.of(each.best) for each in study.found]
        answers, launches = [each.answer for each in study.found], reports.launches(study.found)
        how = made(seed, *(as_typed(subject) for subject in subjects))
        write_file(html, as_page(answers, launches, best, how), "--html")
    emit(reports.recommended(study.found, form, as_typed(first)))
    if price_age is not None:
        warn_of_old(study.prices(), price_age)
    if form in {"csv", "markdown"}:
        complain(*reports.no_recommendation(study.found))
    return study_ended(study)
