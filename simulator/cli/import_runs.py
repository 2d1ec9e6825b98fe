"""``plan import`` of what was seen while a job ran: utilization, training logs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from simulator.cli.import_output import files_argument, profiles_option
from simulator.cli.output import complain, emit

if TYPE_CHECKING:
    from simulator.results import Prediction


@click.command()
@files_argument
@profiles_option
@click.option("--beside", metavar="SCENARIO", help="Show what is predicted for it beside.")
@click.option(
    "--set", "overrides", multiple=True, metavar="KEY=VALUE", help="Set a key of that scenario."
)
@click.option("--gpus", type=click.IntRange(min=1), metavar="N", help="GPUs of a host.")
@click.option(
    "--vcpus", type=click.IntRange(min=1), metavar="N", help="Hardware threads of a host."
)
@click.option("--whole", is_flag=True, help="Keep what came before and after the busy time.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object, in SI units.")
def utilization(  # noqa: PLR0913 - one parameter an option
    *,
    files: tuple[Path, ...],
    profiles: tuple[Path, ...],
    beside: str | None,
    overrides: tuple[str, ...],
    gpus: int | None,
    vcpus: int | None,
    whole: bool,
    as_json: bool,
) -> None:
    """Read how busy devices were, and set it beside what is predicted.

    FILE is a log of one run: CSV of nvidia-smi, the table of dcgmi dmon, text of dcgm-exporter,
    or JSON of aws cloudwatch get-metric-data. Metrics of CloudWatch are sums over GPUs or cores;
    their numbers are those of the scenario unless given.
    """
    if overrides and beside is None:
        msg = "--set changes the scenario of --beside, which is missing"
        raise click.UsageError(msg)
    prediction = None if beside is None else _predicted(beside, overrides, profiles)
    from simulator.importers import utilization as importer
    from simulator.report import utilization as report

    if prediction is not None:
        host = prediction.scenario.cluster.trainers.host
        gpus = gpus or host.gpu_count or None
        vcpus = vcpus or round(host.cpu.threads)
    found = importer.read(files, gpus=gpus, vcpus=vcpus, whole=whole)
    complain(*(f"warning: {warning}" for warning in found.warnings))
    emit((report.as_json if as_json else report.as_text)(found, prediction))


def _predicted(name: str, overrides: tuple[str, ...], profiles: tuple[Path, ...]) -> Prediction:
    from simulator.cli.scenarios import read_scenario
    from simulator.predict import predict

    return predict(read_scenario(name, overrides, profiles))
