"""``plan whatif``: the value of more of each resource, and what would move the bottleneck."""

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
    help="What a change adds to the rent of all machines, such as 'vCPUs x2=$0.50/h'.",
)
@click.option(
    "--gpus",
    "gpus",
    metavar="LIST",
    help="Also swap the accelerator: all, or names and patterns as plan hardware list has them.",
)
@click.option("--tornado", is_flag=True, help="Also show how far each uncertain rate moves METRIC.")
@output_option("--plot", text="Draw the tornado into a PNG, SVG or PDF file.")
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
    from simulator.report.labels import device_called
    from simulator.report.whatif import document

    chosen = metric or subject.default_metric
    study = subject.whatif(
        chosen,
        prices=prices,
        gpus=gpus,
        tornado=tornado or plot is not None,
        seed=seed,
        device=device_called(subject.job),
        progress=progress_line,
    )
    if plot is not None and study.found.tornado is not None:
        from simulator.report.plot import as_bytes, tornado_figure

        write_file(plot, as_bytes(tornado_figure(study.found.tornado), plot), "--plot")
    answer(document(study.found, chosen), form)
    return study_ended(study)
