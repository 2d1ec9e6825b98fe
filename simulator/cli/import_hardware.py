"""``plan import`` of measured hardware: fio, nccl-tests, nvidia-smi."""

from __future__ import annotations

from pathlib import Path

import click

from simulator.cli.import_output import check_output, deliver, files_argument, output_option


@click.command()
@files_argument
@output_option
@click.option(
    "--scope",
    type=click.Choice(("local", "volume", "network", "object")),
    default="local",
    show_default=True,
    help="How the store is reached, which fio doesn't say.",
)
def fio(*, files: tuple[Path, ...], output: Path | None, scope: str) -> None:
    """Read the JSON of fio runs into a storage profile.

    FILE is what ``fio --output-format=json`` prints; several files make one profile.
    """
    check_output(output)
    from simulator.hardware.storage import Scope
    from simulator.importers import fio as importer

    deliver(importer.read(files, Scope(scope)), output)
