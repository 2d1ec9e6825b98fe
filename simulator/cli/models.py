"""``plan models``: the models of the library."""

from __future__ import annotations

import click

from simulator.cli import completion
from simulator.cli.options import format_option
from simulator.cli.output import emit


@click.command()
@click.argument(
    "name", required=False, default="", metavar="[NAME]", shell_complete=completion.models
)
@format_option
def models(*, name: str, form: str) -> None:
    """List the models of the library with parameters, FLOPs and where they come from.

    With NAME only those whose names begin so or hold it, such as llama or 70b.
    """
    from simulator.report.library import models_document
    from simulator.report.render import render

    emit(render(models_document(name), form))
