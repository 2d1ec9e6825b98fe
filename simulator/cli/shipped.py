"""``plan scenarios``: the scenarios that come with plan."""

from __future__ import annotations

import click

from simulator.cli.options import examples, format_option
from simulator.cli.output import emit


@click.command(
    epilog=examples("plan scenarios", "plan scenarios --json"),
)
@format_option
def scenarios(*, form: str) -> None:
    """List the scenarios that come with plan, each with what it asks.

    All verbs take their names; plan init --from copies one into a file for you to change.
    """
    from simulator.report import shipped as report
    from simulator.report.table import Format, rendered

    emit(rendered(Format(form), text=report.as_text, tree=report.as_json, table=report.as_table))
