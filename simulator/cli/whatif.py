"""``plan whatif``: the effect of more of each resource, and what would move the bottleneck."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from simulator.cli.options import (
    complete_metrics,
    examples,
    format_option,
    output_option,
    seed_option,
    subject_arguments,
)
from simulator.cli.output import (
    answer,
    progress_line,
    study_ended,
    write_file,
)

if TYPE_CHECKING:
    from simulator.studies.subject import Subject


@click.command(
    epilog=examples(
        "plan whatif mine.toml",
        "plan whatif mine.toml cost.usd_to_train --price 'vCPUs x2=$0.50/h' --gpus all",
    )
)
@subject_arguments
@click.argument("metric", required=False, shell_complete=complete_metrics)
@format_option
@click.option(
    "--price",
    "prices",
    multiple=True,
    metavar="CHANGE=PRICE",
    help="Price that a change adds for all machines, such as 'vCPUs x2=$0.50/h'; repeatable.",
)
@click.option(
    "--gpus",
    "gpus",
    metavar="LIST",
    help="Also try other GPUs: all, or names and patterns from plan hardware list gpu.",
)
@click.option(
    "--tornado",
    is_flag=True,
    help="Also print how far each uncertain input moves METRIC (tornado chart).",
)
@output_option("--plot", text="Write the tornado chart as .png, .svg or .pdf.")
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
    """Predict how more of each resource of SCENARIO changes METRIC, and when the bottleneck moves.

    Changes are applied one at a time and sorted by their effect on METRIC, a dotted path of the
    --json output of plan simulate; by default the time of the whole run, or the mean latency of a
    service. Exit code 1: the job does not fit without changes.
    """
    from simulator.report.labels import device_called
    from simulator.report.whatif import document
    from simulator.studies.subject import StudyOptions

    chosen = metric or subject.default_metric
    options = StudyOptions(
        prices=prices,
        gpus=gpus,
        tornado=tornado or plot is not None,
        seed=seed,
        device=device_called(subject.job),
        progress=progress_line,
    )
    study = subject.whatif(chosen, options)
    if plot is not None and study.found.tornado is not None:
        from simulator.report.plot import as_bytes, tornado_figure

        write_file(plot, as_bytes(tornado_figure(study.found.tornado), plot), "--plot")
    answer(document(study.found, chosen), form)
    return study_ended(study)
