"""``plan scenarios``: the scenarios that come with plan."""

from __future__ import annotations

import click

from simulator.cli import completion
from simulator.cli.options import examples, format_option
from simulator.cli.output import emit


@click.command(
    epilog=examples("plan scenarios", "plan scenarios llama"),
)
@click.argument(
    "name", required=False, default="", metavar="[NAME]", shell_complete=completion.scenarios
)
@format_option
def scenarios(*, name: str, form: str) -> None:
    """List the scenarios that come with plan, each with what it asks.

    With NAME only those whose names begin so or hold it, such as llama or imagenet.

    All verbs take their names; plan init --from copies one into a file for you to change.
    """
    from simulator.report.library import scenarios_document
    from simulator.report.render import render

    emit(render(scenarios_document(name), form))
