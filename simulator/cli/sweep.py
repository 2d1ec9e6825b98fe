"""``plan sweep``: variants of a scenario, the best of them, and why others are worse."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from simulator.cli.options import (
    Named,
    as_typed,
    count_option,
    evidence_option,
    examples,
    format_option,
    output_option,
    seed_option,
    subject_arguments,
)
from simulator.cli.output import (
    answer,
    complain,
    made,
    progress_line,
    study_ended,
    write_file,
)
from simulator.cli.searching import Means, in_full, run_search, search_options

if TYPE_CHECKING:
    from simulator.studies.subject import Subject


@click.command(
    epilog=examples(
        "plan sweep mine.toml --over input.workers=1..16 --plot workers.png",
        "plan sweep mine.toml --over 'hardware.machine=node/*' --where \"total_time_s < '3 h'\"",
        "plan sweep mine.toml --over train.batch_size=64,128,256 --html sweep.html",
        "plan sweep mine.toml --cluster tcp://scheduler:8786",
    )
)
@subject_arguments
@click.option(
    "--over",
    "over",
    multiple=True,
    metavar="KEY=VALUES",
    help="Vary a key: input.workers=1..16, hardware.machine=instance/aws/*; repeatable.",
)
@click.option(
    "--where",
    metavar="CONDITION",
    help="Keep only candidates that meet this, such as \"cost.usd_to_train < '$500'\".",
)
@click.option(
    "--sample",
    type=Named(("grid", "latin-hypercube", "sobol")),
    help="All combinations (grid, the default), or points that fill the space evenly.",
)
@count_option("--points", text="Number of points that --sample latin-hypercube or sobol draws.")
@click.option(
    "--by",
    "by",
    multiple=True,
    metavar="METRIC",
    help="Objective of the Pareto front: a metric, or an expression after min: or max: "
    "(max:cost.samples_per_usd); repeatable. Default: total_time_s and cost.usd_to_train.",
)
@count_option("--top", text="Also print the K best by the first objective.", metavar="K")
@click.option(
    "--margin",
    default="0%",
    show_default=True,
    metavar="SHARE",
    help="Also simulate candidates that may be within SHARE of the Pareto front.",
)
@click.option(
    "--exhaustive",
    is_flag=True,
    help="Simulate every feasible candidate, also those that cannot be among the best.",
)
@format_option
@output_option("--csv", text="Write all candidates as CSV.")
@output_option("--parquet", text="Write all candidates as a Parquet file.")
@output_option(
    "--plot",
    text="Write a chart as .png, .svg or .pdf: a curve, a heat map or the Pareto front.",
    is_figure=True,
)
@output_option("--html", text="Write a report with charts as one HTML file.")
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
    means: Means,
    seed: int,
) -> int:
    """Predict variants of SCENARIO and print the Pareto front of time and cost.

    Varies the keys of the scenario's [sweep] section and of --over, which takes precedence.
    Candidates that cannot be among the best even in their best case are not simulated. Each result
    is saved as soon as it is known: after Ctrl-C or a crash, the same command continues where it
    stopped. Exit code 1: no candidate is feasible.
    """
    files = {"--csv": csv, "--parquet": parquet, "--plot": plot, "--html": html}
    _refuse_same_file(files)
    from simulator.report import sweep as report
    from simulator.studies.subject import StudyOptions

    if parquet is not None:
        report.check_parquet()
    study = subject.sweep(
        StudyOptions(
            over=over,
            where=where,
            sample=sample,
            points=points,
            by=by,
            top=top,
            margin=margin,
            exhaustive=exhaustive,
            seed=seed,
            search=partial(run_search, means=means),
            progress=progress_line,
        )
    )
    complain(*study.notes)
    found, name = study.found, subject.name
    if csv is not None:
        write_file(csv, report.csv_text(found), "--csv")
    if parquet is not None:
        write_file(parquet, report.parquet_bytes(found), "--parquet")
    if plot is not None:
        from simulator.report.plot import as_bytes, sweep_figure

        write_file(plot, as_bytes(sweep_figure(found, name), plot), "--plot")
    if html is not None:
        from simulator.report.html.sweep import as_page

        best = None
        if found.front:
            scenario = subject.read(found.front[0].outcome.settings)
            best = in_full(
                scenario,
                seed=seed,
                jobs=means.jobs,
                profiles=subject.profiles,
                evidence=evidence,
            )
        write_file(html, as_page(found, name, best, made(seed, as_typed(subject))), "--html")
    answer(report.document(found, name), form)
    if not study.good:
        complain(*report.none_found(found))
    return study_ended(study)


def _refuse_same_file(files: dict[str, Path | None]) -> None:
    taken: dict[Path, str] = {}
    for option, path in files.items():
        if path is None:
            continue
        other = taken.setdefault(path.resolve(), option)
        if other != option and not (path.exists() and not path.is_file()):
            msg = f"{other} and {option} would write the same file, {path}; name two"
            raise click.UsageError(msg)
