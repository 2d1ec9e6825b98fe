"""``plan import`` of measured hardware: fio, nccl-tests, nvidia-smi."""

from __future__ import annotations

from pathlib import Path

import click

from simulator.cli.import_output import check_output, deliver, files_argument, output_option


@click.command()
@files_argument
@output_option
def fio(*, files: tuple[Path, ...], output: Path | None) -> None:
    """Read the JSON of fio runs into a storage profile."""
    check_output(output)
    from simulator.importers import fio as importer

    deliver(importer.read(files), output)
