"""``plan schema``: the JSON Schema of files of jobs and of services, for editors."""

from __future__ import annotations

import click

from simulator.cli.options import FORMATS, Named, examples
from simulator.cli.output import emit


@click.command(epilog=examples("plan schema service --format table"))
@click.argument("what", type=Named(("job", "service")), default="job")
@click.option(
    "--format",
    "form",
    type=Named(FORMATS),
    default="json",
    show_default=True,
    help="The schema itself (json), or its keys.",
)
def schema(*, what: str, form: str) -> None:
    """Print the JSON Schema of scenario files: of jobs, or of services (mode = "serve").

    Editors that know JSON Schema (for TOML: Even Better TOML, Taplo) complete and check
    scenarios with it.
    """
    from simulator.reading.json_schema import scenario_schema, service_schema
    from simulator.report.library import keys_document, keys_markdown
    from simulator.report.render import render

    found = service_schema() if what == "service" else scenario_schema()
    emit(keys_markdown(found) if form == "markdown" else render(keys_document(found), form))
