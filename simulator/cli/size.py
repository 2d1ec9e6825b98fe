"""``plan size``: the least storage, network, CPU or RAM with which a job loses little speed."""

from __future__ import annotations

from pathlib import Path

import click

from simulator.cli.exits import Exit
from simulator.cli.options import examples, format_option
from simulator.cli.output import emit
from simulator.cli.progress import progress_line
from simulator.cli.scenarios import (
    calibration_option,
    candidate_reader,
    scenario_arguments,
    seed_option,
)
from simulator.errors import InputError, Problem, UnitError

RESOURCES = ("storage", "network", "cpu", "ram")
"""As `studies.size.Resource` has them; that module takes long to import."""


@click.command(
    epilog=examples(
        "plan size storage mine.toml --loss 5%",
        "plan size network mine.toml --machines 1,2,4,8,16,32,64,128",
    )
)
@click.argument("resource", type=click.Choice(RESOURCES))
@scenario_arguments
@format_option
@click.option(
    "--loss",
    default="5%",
    show_default=True,
    metavar="SHARE",
    help="Share of the speed with plenty of it that may be lost.",
)
@click.option(
    "--machines",
    "counts",
    default="",
    metavar="LIST",
    help="Numbers of machines, such as 1,8,64; the scenario's own by default.",
)
@calibration_option
@seed_option
def size(  # noqa: PLR0913 - one parameter an option
    *,
    resource: str,
    scenario: str,
    overrides: tuple[str, ...],
    profiles: tuple[Path, ...],
    calibration: Path | None,
    form: str,
    loss: str,
    counts: str,
    seed: int,
) -> int:
    """Find the least storage, network, CPU or RAM that SCENARIO needs.

    Enough is what loses no more than --loss of the speed that the job has with plenty of the
    resource. All else stays as the scenario says; CPUs bring workers in proportion.
    """
    from simulator.files.catalogue import Catalogue
    from simulator.report import size as report
    from simulator.report.table import Format, reported
    from simulator.studies.offers import offers
    from simulator.studies.size import Resource, sized

    asked, share = Resource(resource), _share(loss)
    numbers = _counts(counts)
    reader = candidate_reader(scenario, overrides, profiles, calibration)
    with progress_line("sizing") as progress:
        rows = sized(
            lambda settings: reader.read(settings).scenario,
            asked,
            share,
            counts=numbers,
            seed=seed,
            progress=progress,
        )
    job = reader.read({}).scenario
    found = report.Answer(
        name=job.name,
        asked=scenario,
        resource=asked,
        loss=share,
        rows=rows,
        offers=offers(rows[0], asked, job, Catalogue.default(profiles)),
        accelerated=job.cluster.trainers.gpus_per_host > 0,
    )
    emit(reported(report, found, Format(form)))
    return Exit.FINE


def _share(text: str) -> float:
    from simulator.units import parse_share

    try:
        share = parse_share(text)
    except UnitError as error:
        raise InputError((Problem(origin=f"--loss {text}", message=str(error)),)) from None
    if not 0.0 < share < 1.0:
        message = "has to be above 0 and below 100%"
        raise InputError((Problem(origin=f"--loss {text}", message=message),))
    return share


def _counts(text: str) -> tuple[int, ...]:
    if not text.strip():
        return ()
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdigit() and int(part) > 0 for part in parts):
        message, hint = "is no list of whole numbers", "write it like 1,8,64"
        raise InputError((Problem(origin=f"--machines {text}", message=message, hint=hint),))
    return tuple(int(part) for part in parts)
