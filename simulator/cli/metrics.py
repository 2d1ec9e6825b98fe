"""``plan metrics``: the names that --where, goals, --json and measured columns use."""

from __future__ import annotations

import json

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
    from functools import partial

    from simulator.report.format.table import Format, rendered
    from simulator.report.reference import metrics as table
    from simulator.report.reference import metrics_text

    def tree() -> str:
        found = table(name)
        return json.dumps([dict(zip(found.head, row, strict=True)) for row in found.rows], indent=2)

    emit(
        rendered(
            Format(form), text=partial(metrics_text, name), tree=tree, table=partial(table, name)
        )
    )
