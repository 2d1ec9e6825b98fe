"""``plan models``: the models of the library."""

from __future__ import annotations

import click

from simulator.cli.output import emit


@click.command()
def models() -> None:
    """List the models of the library with parameters, FLOPs and where they come from."""
    from simulator.files.models import model_table

    emit(model_table())
