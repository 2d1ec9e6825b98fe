"""``plan sweep``: many variants of a scenario, the best of them, and why the others are not."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from simulator.cli.options import Named, evidence_option, examples, format_option, seed_option
from simulator.cli.output import check_writable, complain, emit, made, study_ended, write_file
from simulator.cli.progress import progress_line
from simulator.cli.searching import Means, run_search, search_options
from simulator.cli.subjects import InFull, as_typed, subject_arguments

if TYPE_CHECKING:
    from simulator.report.html.page import Made
    from simulator.results.prediction import Prediction
    from simulator.schema.goal import Plain
    from simulator.studies.search.findings import Findings
    from simulator.studies.subject import Subject
    from simulator.validation.local_coverage import Neighbourhood

Command = TypeVar("Command", bound=Callable[..., Any])

SAMPLINGS = ("grid", "latin-hypercube", "sobol")


def _axes_options(verb: Command) -> Command:
    """Add the options for the axes."""
    for add in (
        click.option(
            "--points",
            type=click.IntRange(min=1),
            metavar="N",
            help="Number of points that --sample latin-hypercube or sobol draws.",
        ),
        click.option(
            "--sample",
            type=Named(SAMPLINGS),
            help="All combinations (grid, the default), or points that fill the space evenly.",
        ),
        click.option(
            "--where",
            metavar="CONDITION",
            help="Keep only candidates that meet this, such as \"cost.usd_to_train < '$500'\".",
        ),
        click.option(
            "--over",
            "over",
            multiple=True,
            metavar="KEY=VALUES",
            help="Vary a key: input.workers=1..16, hardware.machine=instance/aws/*; repeatable.",
        ),
    ):
        verb = add(verb)
    return verb


def _choice_options(verb: Command) -> Command:
    """Add the options for the choice of candidates."""
    for add in (
        click.option(
            "--exhaustive",
            is_flag=True,
            help="Simulate every feasible candidate, also those that cannot be among the best.",
        ),
        click.option(
            "--margin",
            default="0%",
            show_default=True,
            metavar="SHARE",
            help="Also simulate candidates that may be within SHARE of the Pareto front.",
        ),
        click.option(
            "--top",
            type=click.IntRange(min=1),
            metavar="K",
            help="Also print the K best by the first objective.",
        ),
        click.option(
            "--by",
            "by",
            multiple=True,
            metavar="METRIC",
            help="Objective of the Pareto front: a metric, or an expression after min: or max: "
            "(max:cost.samples_per_usd); repeatable. Default: total_time_s and cost.usd_to_train.",
        ),
    ):
        verb = add(verb)
    return verb


def _file_options(verb: Command) -> Command:
    """Add the options for files of results."""
    for name, help_ in (
        ("html", "Write a report with charts as one HTML file."),
        ("plot", "Write a chart as .png, .svg or .pdf: a curve, a heat map or the Pareto front."),
        ("parquet", "Write all candidates as a Parquet file."),
        ("csv", "Write all candidates as CSV."),
    ):
        option = click.option(
            f"--{name}", name, type=click.Path(path_type=Path), metavar="FILE", help=help_
        )
        verb = option(verb)
    return verb


@click.command(
    epilog=examples(
        "plan sweep mine.toml --over input.workers=1..16 --plot workers.png",
        "plan sweep mine.toml --over 'hardware.machine=node/*' --where \"total_time_s < '3 h'\"",
        "plan sweep mine.toml --over train.batch_size=64,128,256 --html sweep.html",
        "plan sweep mine.toml --cluster tcp://scheduler:8786",
    )
)
@subject_arguments
@_axes_options
@_choice_options
@format_option
@_file_options
@evidence_option("In --html, compare the best candidates")
@search_options
@seed_option
def sweep(  # noqa: PLR0913 - one parameter an option
    *,
    subject: Subject[Any, Any],
    over: tuple[str, ...],
    where: str | None,
    sample: str | None,
    points: int | None,
    by: tuple[str, ...],
    top: int | None,
    margin: str,
    exhaustive: bool,
    form: str,
    csv: Path | None,
    parquet: Path | None,
    plot: Path | None,
    html: Path | None,
    evidence: bool,
    store: Path | None,
    resume: bool,
    jobs: int | None,
    cluster: str | None,
    seed: int,
) -> int:
    """Predict variants of SCENARIO and print the Pareto front of time and cost.

    Varies the keys of the scenario's [sweep] section and of --over, which takes precedence.
    Candidates that cannot be among the best even in their best case are not simulated. Each result
    is saved as soon as it is known: after Ctrl-C or a crash, the same command continues where it
    stopped. Exit code 1: no candidate is feasible.
    """
    files = {"--csv": csv, "--parquet": parquet, "--plot": plot, "--html": html}
    _check(files)
    from simulator.report.kinds import report_of
    from simulator.studies.subject import SweepOptions

    means = Means(store=store, resume=resume, jobs=jobs, cluster=cluster)
    study = subject.sweep(
        SweepOptions(
            over=over,
            where=where,
            sample=sample,
            points=points,
            by=by,
            top=top,
            margin=margin,
            exhaustive=exhaustive,
            seed=seed,
        ),
        partial(run_search, means=means),
        progress=progress_line,
    )
    complain(*study.notes)
    name = subject.name
    if any(files.values()):
        whole = InFull(seed=seed, jobs=jobs, profiles=subject.profiles, evidence=evidence)
        _write(
            study.found,
            name,
            files,
            lambda settings: whole.of(subject.read(settings)),
            made(seed, as_typed(subject)),
        )
    reports = report_of(subject)
    emit(reports.swept(study.found, name, form))
    if not study.good:
        complain(*reports.no_sweep(study.found))
    return study_ended(study)


def _check(files: dict[str, Path | None]) -> None:
    """Refuse files that cannot be written, before a long search rather than after it."""
    taken: dict[Path, str] = {}
    for option, path in files.items():
        if path is None:
            continue
        check_writable(path, option)
        other = taken.setdefault(path.resolve(), option)
        if other != option and not (path.exists() and not path.is_file()):
            msg = f"{other} and {option} would write the same file, {path}; name two"
            raise click.UsageError(msg)
    plot, parquet = files["--plot"], files["--parquet"]
    if plot is not None:
        from simulator.report.plot import check_format

        check_format(plot)
    if parquet is not None:
        from simulator.report.sweep import check_parquet

        check_parquet()


def _write(
    found: Findings,
    name: str,
    files: dict[str, Path | None],
    whole: Callable[[Mapping[str, Plain]], tuple[Prediction, Neighbourhood | None]],
    how: Made,
) -> None:
    csv, parquet, plot = files["--csv"], files["--parquet"], files["--plot"]
    html = files["--html"]
    if csv is not None:
        from simulator.report.sweep import csv_text

        write_file(csv, csv_text(found), "--csv")
    if parquet is not None:
        from simulator.report.sweep import parquet_bytes

        write_file(parquet, parquet_bytes(found), "--parquet")
    if plot is not None:
        from simulator.report.plot import as_bytes, sweep_figure

        write_file(plot, as_bytes(sweep_figure(found, name), plot), "--plot")
    if html is not None:
        from simulator.report.html.sweep import as_page

        best, close = None, None
        if found.front:
            best, close = whole(found.front[0].outcome.candidate.settings)
        write_file(html, as_page(found, name, best, close, how), "--html")
