"""``plan schema``: the JSON Schema of scenario files, for editors."""

from __future__ import annotations

import json

import click

from simulator.cli.output import emit


@click.command()
@click.option(
    "--format",
    "form",
    type=click.Choice(("json", "table", "markdown")),
    default="json",
    show_default=True,
    help="The schema itself, or its keys to read.",
)
def schema(*, form: str) -> None:
    """Print the JSON Schema of scenario files.

    Editors that know JSON Schema (for TOML: Even Better TOML, Taplo) complete and check
    scenarios with it.
    """
    from simulator.files.json_schema import scenario_schema
    from simulator.report.reference import keys_markdown, keys_text

    found = scenario_schema()
    if form == "json":
        emit(json.dumps(found, indent=2, ensure_ascii=False))
    else:
        emit(keys_text(found) if form == "table" else keys_markdown(found))
