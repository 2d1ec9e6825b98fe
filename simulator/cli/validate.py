"""``plan validate``: errors of predictions for published runs and for the user's own."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from simulator.cli.options import (
    complete_measurement_sets,
    complete_scenarios,
    count_option,
    examples,
    format_option,
    jobs_option,
    output_option,
    profiles_option,
    read_job,
    read_sets,
)
from simulator.cli.output import (
    Exit,
    answer,
    ended,
    progress_line,
    write_file,
)

if TYPE_CHECKING:
    from simulator.schema.measurement import MeasurementSet
    from simulator.validation.unseen import LeftOut


@click.command(
    epilog=examples(
        "plan validate",
        "plan validate measured.toml --worst 5 --html accuracy.html",
        "plan validate --unseen",
        "plan validate --near mine.toml",
    )
)
@click.argument("sets", nargs=-1, shell_complete=complete_measurement_sets)
@format_option
@output_option("--html", text="Write a report with predicted against measured plots.")
@output_option("--markdown", text="Write the tables of errors, unseen series first, as Markdown.")
@output_option(
    "--plot",
    text="Draw predicted against measured values of test rows, as .png, .svg or .pdf.",
    is_figure=True,
)
@count_option("--worst", text="Also list the N rows furthest off.")
@click.option(
    "--unseen",
    is_flag=True,
    help="Instead: every series by figures that it and its siblings had no part in.",
)
@click.option(
    "--near",
    shell_complete=complete_scenarios,
    metavar="SCENARIO",
    help="Instead: the measured rows most like SCENARIO, how far they are, and the error there.",
)
@jobs_option
@profiles_option
def validate(  # noqa: PLR0913 - one parameter an option
    *,
    sets: tuple[str, ...],
    form: str,
    html: Path | None,
    markdown: Path | None,
    plot: Path | None,
    worst: int | None,
    unseen: bool,
    near: str | None,
    jobs: int | None,
    profiles: tuple[Path, ...],
) -> int:
    """Predict every row of measurement SETS and print how wrong that is.

    SETS are TOML files, or names of shipped sets; all shipped sets by default. Rows are counted
    by family and split: what constants were fitted to, and what they were not. Exit code 1 says
    that a family is over its declared tolerance. With --unseen, which takes a minute, figures that
    were fitted without each series and its siblings predict it, as they would a job of yours.
    """
    from simulator.reading.shipped import set_names
    from simulator.report import evidence

    chosen = read_sets(sets or set_names())
    names = [one.name for one in chosen]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        msg = f"two of the sets are called '{twice[0]}'; rename one, or leave one out"
        raise click.UsageError(msg)
    if near is not None:
        from simulator.validation.local_coverage import nearest

        scenario = read_job(near, (), profiles).described
        with progress_line("comparing") as progress:
            close = nearest(scenario, chosen, processes=jobs, progress=progress, profiles=profiles)
        answer(evidence.near_document(close), form)
        return Exit.FINE
    if unseen:
        from simulator.report.unseen import document

        answer(document(_leave_out(chosen, jobs, profiles), worst or 0), form)
        return Exit.FINE
    from simulator.validation.validate import validate as run

    with progress_line("predicting") as progress:
        found = run(chosen, processes=jobs, progress=progress, profiles=profiles)
    left_out = None if markdown is None else _leave_out(chosen, jobs, profiles)
    if html is not None:
        from simulator.report.html.evidence import as_html

        write_file(html, as_html(found), "--html")
    if markdown is not None:
        write_file(markdown, evidence.accuracy_page(found, left_out), "--markdown")
    if plot is not None:
        from simulator.report.plot import as_bytes, validation_figure

        write_file(plot, as_bytes(validation_figure(found), plot), "--plot")
    answer(evidence.document(found, worst or 0), form)
    return ended(Exit.DOES_NOT_FIT if found.over else Exit.FINE, found.bugs)


def _leave_out(sets: list[MeasurementSet], jobs: int | None, profiles: tuple[Path, ...]) -> LeftOut:
    from simulator.validation.unseen import leave_out

    with progress_line("predicting what was not seen") as progress:
        return leave_out(sets, processes=jobs, progress=progress, profiles=profiles)
