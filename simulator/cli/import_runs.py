"""``plan import`` of what was seen while a job ran: utilization, training logs."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from simulator.cli.import_output import files_argument, set_option
from simulator.cli.options import format_option, profiles_option
from simulator.cli.output import check_writable, complain, emit, write_file

if TYPE_CHECKING:
    from simulator.importers.result import MeasuredRun
    from simulator.results.prediction import Prediction

SetFiles = Callable[["list[MeasuredRun]", str, str], tuple[str, str]]


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
@format_option
def utilization(  # noqa: PLR0913 - one parameter an option
    *,
    files: tuple[Path, ...],
    profiles: tuple[Path, ...],
    beside: str | None,
    overrides: tuple[str, ...],
    gpus: int | None,
    vcpus: int | None,
    whole: bool,
    form: str,
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
    from simulator.report.render import render
    from simulator.report.utilization import document

    if prediction is not None:
        host = prediction.scenario.cluster.trainers.host
        gpus = gpus or host.gpu_count or None
        vcpus = vcpus or round(host.cpu.threads)
    found = importer.read(files, gpus=gpus, vcpus=vcpus, whole=whole)
    complain(*(f"warning: {warning}" for warning in found.warnings))
    emit(render(document(found, prediction), form))


def _predicted(name: str, overrides: tuple[str, ...], profiles: tuple[Path, ...]) -> Prediction:
    from simulator.cli.subjects import read_job
    from simulator.predict import predict

    return predict(read_job(name, overrides, profiles).described)


@click.command("mlperf-training")
@files_argument
@click.option("--base", metavar="SCENARIO", help="The scenario that describes the runs.")
@set_option
def mlperf_training(*, files: tuple[Path, ...], base: str | None, output: Path | None) -> None:
    """Read time, batch and samples/s of MLPerf training runs.

    FILE is the log of one run. With -o the runs become a measurement set whose rows are
    predicted from the scenario --base, by plan validate.
    """
    output = _set_output(base, output)
    from simulator.importers import mlperf_training as importer

    runs = [importer.read(path) for path in files]
    _tell(runs, base, output, importer.set_files)


@click.command("serving-benchmark")
@files_argument
@click.option("--base", metavar="SERVICE", help="The service that was measured.")
@set_option
def serving_benchmark(*, files: tuple[Path, ...], base: str | None, output: Path | None) -> None:
    """Read latencies and tokens/s of runs of a serving benchmark.

    FILE is what vllm bench serve --save-result or sglang.bench_serving wrote. With -o the runs
    become a measurement set whose rows are predicted from the service --base, by plan validate;
    its [load] has arrivals of the benchmark's kind.
    """
    from simulator.importers import serving_benchmark as importer

    output = _set_output(base, output)
    runs = [run for path in files for run in importer.read(path)]
    _tell(runs, base, output, importer.set_files)


@click.command("request-log")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--base", metavar="SERVICE", help="The service that was logged.")
@set_option
def request_log(*, file: Path, base: str | None, output: Path | None) -> None:
    """Read a log of requests: arrivals, tokens and latencies.

    FILE is a CSV with columns arrival, input, output, latency [s] and, if there is one, ttft. With
    -o NAME it becomes NAME-service.toml, the service --base with the requests as they came, and
    NAME.toml, a measurement set that plan validate sets beside the prediction.
    """
    from simulator.importers import request_log as importer

    output = _set_output(base, output)
    log = importer.read(file)
    emit("\n".join(log.summary))
    if base is None or output is None:
        return
    folder = output.absolute().parent
    if Path(base).is_file():
        base = os.path.relpath(base, folder)
    files = importer.service_files(log, base, output.stem)
    for name in files:
        check_writable(folder / name, "--output")
    for name, text in files.items():
        write_file(folder / name, text, "--output")
    emit(f"wrote {', '.join(str(output.parent / name) for name in files)}")


def _set_output(base: str | None, output: Path | None) -> Path | None:
    """The file of the set to write, if one is asked for."""
    if (base is None) != (output is None):
        msg = "--base and -o belong together: a measurement set needs a scenario to predict"
        raise click.UsageError(msg)
    if output is None:
        return None
    if output.suffix != ".toml":
        output = output.with_name(f"{output.name}.toml")
    for path in (output, output.with_suffix(".csv")):
        check_writable(path, "--output")
    return output


def _tell(runs: list[MeasuredRun], base: str | None, output: Path | None, files: SetFiles) -> None:
    """Say what was read, and write it as a set where one is asked for."""
    for run in runs:
        complain(*(f"warning: {run.id}: {warning}" for warning in run.warnings))
    emit("\n\n".join("\n".join([run.id, *run.summary]) for run in runs))
    if base is not None and output is not None:
        _write_set(runs, base, output, files)


def _write_set(runs: list[MeasuredRun], base: str, output: Path, files: SetFiles) -> None:
    """Write both files of the set, after reading back what they will hold."""
    from simulator.reading.measured.measurement_set import parse_set

    folder = output.absolute().parent
    if Path(base).is_file():
        base = os.path.relpath(base, folder)
    toml, rows = files(runs, base, output.stem)
    parse_set(toml, rows, str(output), folder)
    write_file(output.with_suffix(".csv"), rows, "--output")
    write_file(output, toml, "--output")
    emit(f"wrote {output} and {output.with_suffix('.csv')}")
