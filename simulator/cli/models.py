"""``plan models``: the models of the library."""

from __future__ import annotations

import click

from simulator.cli.options import format_option
from simulator.cli.output import emit


@click.command()
@format_option
def models(*, form: str) -> None:
    """List the models of the library with parameters, FLOPs and where they come from."""
    from simulator.report import models as report
    from simulator.report.table import Format, rendered

    emit(
        rendered(
            Format(form),
            text=report.as_text,
            tree=report.as_json,
            table=report.table,
            page=report.as_page,
        )
    )
