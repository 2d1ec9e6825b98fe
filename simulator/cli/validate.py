"""``plan validate``: how wrong the predictions are, on published and on the user's own runs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from simulator.cli import completion
from simulator.cli.options import examples, format_option, jobs_option, profiles_option
from simulator.cli.output import Exit, check_writable, emit, ended, write_file
from simulator.cli.progress import progress_line

if TYPE_CHECKING:
    from simulator.schema.measurement import MeasurementSet
    from simulator.validation.unseen import LeftOut
    from simulator.validation.validate import Validated


Command = TypeVar("Command", bound=Callable[..., object])


def _file(name: str, help_: str) -> Callable[[Command], Command]:
    return click.option(
        f"--{name}", name, type=click.Path(path_type=Path), metavar="FILE", help=help_
    )


@click.command(
    epilog=examples(
        "plan validate",
        "plan validate measured.toml --worst 5 --html accuracy.html",
        "plan validate --unseen",
        "plan validate --near mine.toml",
    )
)
@click.argument("sets", nargs=-1, shell_complete=completion.measurement_sets)
@format_option
@_file("html", "Write a report with predicted against measured plots.")
@_file("markdown", "Write the tables of errors, unseen series first, as Markdown.")
@_file("plot", "Draw predicted against measured values of test rows, as .png, .svg or .pdf.")
@click.option(
    "--worst", type=click.IntRange(min=1), metavar="N", help="Also list the N rows furthest off."
)
@click.option(
    "--unseen",
    is_flag=True,
    help="Instead: every series by figures that it and its siblings had no part in.",
)
@click.option(
    "--near",
    shell_complete=completion.scenarios,
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
    for path, option in ((html, "--html"), (markdown, "--markdown"), (plot, "--plot")):
        if path is not None:
            check_writable(path, option)
    if plot is not None:
        from simulator.report.plot import check_format

        check_format(plot)
    chosen = _sets(sets)
    if near is not None:
        return _near(near, chosen, jobs, profiles, form)
    if unseen:
        emit(_rendered_unseen(_leave_out(chosen, jobs, profiles), form, worst or 0))
        return Exit.FINE
    from simulator.validation.validate import validate as run

    with progress_line("predicting") as progress:
        found = run(chosen, processes=jobs, progress=progress, profiles=profiles)
    left_out = None if markdown is None else _leave_out(chosen, jobs, profiles)
    _write(found, html, markdown, left_out)
    if plot is not None:
        from simulator.report.plot import as_bytes, validation_figure

        write_file(plot, as_bytes(validation_figure(found), plot), "--plot")
    emit(_rendered(found, form, worst or 0))
    return ended(Exit.DOES_NOT_FIT if found.over else Exit.FINE, found.bugs)


def _sets(names: tuple[str, ...]) -> list[MeasurementSet]:
    """Load all named sets; report the mistakes of all of them at once."""
    from simulator.errors import InputError, Problem
    from simulator.reading.measured.measurement_set import load_set
    from simulator.reading.shipped import set_names

    found: list[MeasurementSet] = []
    problems: list[Problem] = []
    for name in dict.fromkeys(names or set_names()):
        try:
            found.append(load_set(name))
        except InputError as error:
            problems += error.problems
    if problems:
        raise InputError(tuple(problems))
    _refuse_namesakes(found)
    return found


def _refuse_namesakes(sets: list[MeasurementSet]) -> None:
    names = [one.name for one in sets]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        msg = f"two of the sets are called '{twice[0]}'; rename one, or leave one out"
        raise click.UsageError(msg)


def _rendered(found: Validated, form: str, worst: int) -> str:
    from simulator.report.evidence import document
    from simulator.report.render import render

    return render(document(found, worst), form)


def _leave_out(sets: list[MeasurementSet], jobs: int | None, profiles: tuple[Path, ...]) -> LeftOut:
    from simulator.validation.unseen import leave_out

    with progress_line("predicting what was not seen") as progress:
        return leave_out(sets, processes=jobs, progress=progress, profiles=profiles)


def _rendered_unseen(found: LeftOut, form: str, worst: int) -> str:
    from simulator.report.render import render
    from simulator.report.unseen import document

    return render(document(found, worst), form)


def _write(
    found: Validated, html: Path | None, markdown: Path | None, left_out: LeftOut | None
) -> None:
    if html is not None:
        from simulator.report.html.evidence import as_html

        write_file(html, as_html(found), "--html")
    if markdown is not None:
        from simulator.report.evidence import accuracy_page

        write_file(markdown, accuracy_page(found, left_out), "--markdown")


def _near(
    name: str,
    sets: list[MeasurementSet],
    jobs: int | None,
    profiles: tuple[Path, ...],
    form: str,
) -> int:
    from simulator.cli.subjects import read_job
    from simulator.report.evidence import near_document
    from simulator.report.render import render
    from simulator.validation.local_coverage import nearest

    scenario = read_job(name, (), profiles).described
    with progress_line("comparing") as progress:
        found = nearest(scenario, sets, processes=jobs, progress=progress, profiles=profiles)
    emit(render(near_document(found), form))
    return Exit.FINE
