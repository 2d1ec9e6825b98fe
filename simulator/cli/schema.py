"""``plan schema``: the JSON Schema of scenario files, for editors."""

from __future__ import annotations

import json

import click

from simulator.cli.output import emit


@click.command()
def schema() -> None:
    """Print the JSON Schema of scenario files.

    Editors that know JSON Schema (for TOML: Even Better TOML, Taplo) complete and check
    scenarios with it.
    """
    from simulator.files.json_schema import scenario_schema

    emit(json.dumps(scenario_schema(), indent=2, ensure_ascii=False))
