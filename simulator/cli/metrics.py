"""``plan metrics``: the names that --where, goals, --json and measured columns use."""

from __future__ import annotations

import click

from simulator.cli import completion
from simulator.cli.options import format_option
from simulator.cli.output import complain, emit


def note_old_names(*texts: str) -> None:
    """Say of names in expressions that are still read what they are now."""
    from simulator.results.metrics import OLD_NAMES

    for old, new in OLD_NAMES.items():
        if any(old in text for text in texts):
            complain(f"note: {old} is an old name of {new}")


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
