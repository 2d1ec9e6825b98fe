"""What verbs do with a service in place of a training job."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from simulator.cli.exits import Exit
from simulator.cli.output import columns, emit

if TYPE_CHECKING:
    from simulator.files.service import ServiceReader


def simulated(reader: ServiceReader, form: str, seed: int, *, full: bool) -> Exit:
    """``plan simulate`` of a service; exit code 1: it does not fit or misses its limits."""
    from simulator.predict import predict_service
    from simulator.report import serving as report
    from simulator.report.table import Format, rendered

    prediction = predict_service(reader.read({}), seed=seed)
    emit(
        rendered(
            Format(form),
            text=lambda: report.as_text(prediction, width=columns(), full=full),
            tree=lambda: report.as_json(prediction),
            table=lambda: report.as_table(prediction),
        )
    )
    return Exit.FINE if prediction.keeps_limits else Exit.DOES_NOT_FIT


def refuse(**given: object) -> None:
    """Refuse options that mean nothing for a service.

    Raises
    ------
    click.UsageError
        If one of them is given.
    """
    for name, value in given.items():
        if value is not None and value is not False and value != ():
            msg = f'--{name.replace("_", "-")} means nothing for a service (mode = "serve")'
            raise click.UsageError(msg)
