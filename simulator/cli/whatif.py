"""``plan whatif``: the value of more of each resource, and what would move the bottleneck."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from simulator.cli import completion
from simulator.cli.options import examples, file_option, format_option, seed_option
from simulator.cli.output import check_writable, emit, study_ended, write_file
from simulator.cli.progress import progress_line
from simulator.cli.subjects import subject_arguments

if TYPE_CHECKING:
    from simulator.studies.subject import Subject


@click.command(
    epilog=examples(
        "plan whatif mine.toml",
        "plan whatif mine.toml cost.usd_to_train --price 'vCPUs x2=$0.50/h' --gpus all",
    )
)
@subject_arguments
@click.argument("metric", required=False, shell_complete=completion.metrics)
@format_option
@click.option(
    "--price",
    "prices",
    multiple=True,
    metavar="CHANGE=PRICE",
    help="What a change adds to the rent of all machines, such as 'vCPUs x2=$0.50/h'.",
)
@click.option(
    "--gpus",
    "gpus",
    metavar="LIST",
    help="Also swap the accelerator: all, or names and patterns as plan hardware list has them.",
)
@click.option("--tornado", is_flag=True, help="Also show how far each uncertain rate moves METRIC.")
@file_option("--plot", text="Draw the tornado into a PNG, SVG or PDF file.")
@seed_option
def whatif(  # noqa: PLR0913 - one parameter an option
    *,
    subject: Subject[Any, Any],
    metric: str | None,
    form: str,
    prices: tuple[str, ...],
    gpus: str | None,
    tornado: bool,
    plot: Path | None,
    seed: int,
) -> int:
    """Predict the effect of more of each resource of SCENARIO, and what moves its bottleneck.

    Each change is predicted as a scenario of its own. Changes are sorted by their effect on METRIC,
    a dotted path of the --json output of plan simulate; by default the time of the whole run, or
    the mean latency of a service. Exit code 1: the job does not fit as it is.
    """
    if plot is not None:
        check_writable(plot, "--plot")
    from simulator.report.kinds import report_of

    reports, chosen = report_of(subject), metric or subject.default_metric
    study = subject.whatif(
        chosen,
        prices=prices,
        gpus=gpus,
        tornado=tornado or plot is not None,
        seed=seed,
        device=reports.device(subject.job),
        progress=progress_line,
    )
    if plot is not None and study.found.tornado is not None:
        from simulator.report.plot import as_bytes, tornado_figure

        write_file(plot, as_bytes(tornado_figure(study.found.tornado), plot), "--plot")
    emit(reports.changed(study.found, chosen, form))
    return study_ended(study)
