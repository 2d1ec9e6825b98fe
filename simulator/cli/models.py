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
    from functools import partial

    from simulator.report import models as report
    from simulator.report.format.table import Format, rendered

    emit(
        rendered(
            Format(form),
            text=partial(report.as_text, name),
            tree=partial(report.as_json, name),
            table=partial(report.table, name),
            page=partial(report.as_page, name),
        )
    )
