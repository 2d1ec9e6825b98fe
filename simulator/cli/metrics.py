"""``plan metrics``: the names that --where, goals, --json and measured columns use."""

from __future__ import annotations

import click

from simulator.cli import completion
from simulator.cli.options import format_option
from simulator.cli.output import emit


@click.command()
@click.argument(
    "name", required=False, default="", metavar="[NAME]", shell_complete=completion.metrics
)
@format_option
def metrics(*, name: str, form: str) -> None:
    """List every metric: dotted name, unit, which way is better, meaning.

    With NAME only those whose names begin so or hold it, such as cost or mfu.

    The names are those of --json, --where, [goal] and measured columns.
    """
    from simulator.report.library import metrics_document
    from simulator.report.render import render

    emit(render(metrics_document(name), form))
