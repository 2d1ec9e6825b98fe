"""``plan import``: profiles, workloads and measured runs from the output of other tools."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from simulator.cli.main import LateGroup, Table
from simulator.cli.options import (
    Named,
    count_option,
    file_option,
    format_option,
    profiles_option,
    quantity,
    read_job,
)
from simulator.cli.options import output_option as output_file
from simulator.cli.output import (
    Exit,
    answer,
    check_writable,
    complain,
    emit,
    progress_line,
    write_file,
)

if TYPE_CHECKING:
    from simulator.importers.result import Fragment, MeasuredRun

FORMATS: Final[Table] = {
    "fio": ("simulator.cli.import_", "fio JSON: a storage profile."),
    "nccl-tests": ("simulator.cli.import_", "nccl-tests text: a link profile."),
    "dlio": ("simulator.cli.import_", "DLIO, MLPerf Storage workload: a scenario."),
    "torch-trace": ("simulator.cli.import_", "PyTorch profiler: how a step is spent."),
    "hf-config": ("simulator.cli.import_", "Hugging Face config.json: a model section."),
    "mlperf-storage": ("simulator.cli.import_", "MLPerf Storage results: a table of runs."),
    "mlperf-training": ("simulator.cli.import_", "Training logs: a measurement set."),
    "request-log": ("simulator.cli.import_", "Logs of requests: a service with its trace."),
    "serving-benchmark": ("simulator.cli.import_", "vLLM, SGLang benchmarks: a set of runs."),
    "utilization": ("simulator.cli.import_", "Logs of utilization, next to a prediction."),
    "nvidia-smi": ("simulator.cli.import_", "topo -m and -q -x: a node profile."),
}
"""Commands by format: (module with a click command of this name, one line of help)."""


@click.group("import", cls=LateGroup, table=FORMATS, kind="format")
def import_() -> None:
    """Turn evidence you already have into profiles, workloads and measurements.

    Each format prints what it found as TOML, or writes it with -o. Broken evidence is refused
    with one message for each problem, and nothing is written.
    """


files_argument = click.argument(
    "files", nargs=-1, required=True, metavar="FILE...", type=click.Path(path_type=Path)
)
file_argument = click.argument("file", metavar="FILE", type=click.Path(path_type=Path))
set_option = file_option(
    "-o",
    "--output",
    text="Write a measurement set: this TOML file, and its rows next to it as CSV.",
    metavar="SET",
)
output_option = output_file(
    "-o", "--output", text="Write here instead of to standard output; appears whole or not at all."
)


def deliver(
    fragment: Fragment,
    output: Path | None,
    *,
    origin: str = "the evidence",
    profiles: tuple[Path, ...] = (),
) -> None:
    """Print the TOML of a fragment, or write it to `output` and print its summary.

    The text is checked by `verify` before it is written. `origin` names the imported file in
    problems; `profiles` are folders searched first for the parts of a machine.
    """
    from simulator.importers.result import verify
    from simulator.reading.hardware.catalogue import Catalogue

    verify(fragment, origin, Catalogue.default(profiles))
    complain(*(f"warning: {warning}" for warning in fragment.warnings))
    if output is None:
        emit(fragment.text.rstrip("\n"))
        return
    write_file(output, fragment.text, "--output")
    emit("\n".join([*fragment.summary, *_use(fragment, output)]))


def _use(fragment: Fragment, output: Path) -> list[str]:
    kind = str(fragment.kind)
    if kind == "scenario":
        return [f"wrote {output}: sections for a scenario"]
    folder = output.absolute().parent
    if output.suffix != ".toml" or folder.name != kind:
        wanted = Path("PROFILES") / kind / f"{output.stem}.toml"
        return [f"wrote {output}", f"move it to {wanted} to use it with --profiles PROFILES"]
    profiles = output.parent.parent
    shown = f"plan hardware show {kind}/{output.stem} --profiles {profiles}"
    return [f"wrote {output}", f"see it with: {shown}"]


@click.command("hf-config")
@file_argument
@output_option
@click.option(
    "--sequence",
    type=click.IntRange(min=1, max=10_000_000),
    metavar="N",
    help="Tokens of a sample; by default the longest the model takes, at most 4096.",
)
@click.option("--name", default="", metavar="NAME", help="What to call the model.")
@click.option("--library", is_flag=True, help="Write a whole file of the model library.")
def hf_config(
    *, file: Path, output: Path | None, sequence: int | None, name: str, library: bool
) -> int:
    """Read a config.json of Hugging Face into the [model] section of a scenario.

    Parameters, operations and cached bytes are counted. A model that no family of the library
    expresses (T5, latent attention without experts) is shown, and exit code 1 says that it
    is not modelled yet.
    """
    from simulator.importers import huggingface_config as importer

    found = importer.read(file, sequence=sequence, name=name, library=library)
    if found.lacking:
        complain(*(f"warning: {warning}" for warning in found.warnings))
        emit("\n".join(found.summary))
        complain(f"not modelled yet: {found.lacking}; no section is written")
        return Exit.DOES_NOT_FIT
    deliver(found, output)
    return Exit.FINE


@click.command()
@file_argument
@output_option
@profiles_option
@click.option("--machine", default="", metavar="NAME", help="Profile of the machine it runs on.")
@click.option("--storage", default="", metavar="NAME", help="Profile of the store it reads from.")
@count_option("--accelerators", text="Emulated on each machine.")
@count_option("--hosts", default=1, text="Equal machines.")
def dlio(  # noqa: PLR0913 - one parameter an option
    *,
    file: Path,
    output: Path | None,
    profiles: tuple[Path, ...],
    machine: str,
    storage: str,
    accelerators: int | None,
    hosts: int,
) -> None:
    """Read a workload of DLIO or MLPerf Storage into a scenario.

    FILE is a workload in YAML, or the config.yaml that a run leaves behind. Which machine runs
    it is not in there: --machine makes the scenario whole.
    """
    if not machine and (storage or accelerators or hosts > 1):
        msg = "--storage, --accelerators and --hosts belong to --machine, which is missing"
        raise click.UsageError(msg)
    from simulator.importers import dlio as importer
    from simulator.reading.hardware.catalogue import Catalogue
    from simulator.studies.unused_keys import unused_in

    catalogue = Catalogue.default(profiles)
    if machine:
        catalogue.host(machine)
    if storage:
        catalogue.storage(storage)

    idle: set[str] = set()

    def read() -> Fragment:
        return importer.read(
            file,
            machine=machine,
            storage=storage,
            accelerators=accelerators,
            hosts=hosts,
            leave_out=idle,
        )

    found = read()
    while machine and (more := set(unused_in(found.text, profiles)) - idle):
        idle |= more
        found = read()
    deliver(found, output)


@click.command("mlperf-storage")
@click.argument(
    "folders", nargs=-1, required=True, metavar="FOLDER...", type=click.Path(path_type=Path)
)
@output_option
@click.option("--system", default="", metavar="NAME", help="What to call the system.")
@click.option("--submitter", default="", metavar="NAME", help="Who ran it.")
@click.option(
    "--version",
    type=Named(("0.5", "1.0", "2.0", "3.0")),
    help="Version of the benchmark; by default what the layout tells.",
)
def mlperf_storage(
    *,
    folders: tuple[Path, ...],
    output: Path | None,
    system: str,
    submitter: str,
    version: str | None,
) -> None:
    """Read result folders of MLPerf Storage into a table of runs.

    FOLDER is what a run leaves behind (summary.json and the files next to it), or a tree of such
    folders. -o writes the CSV that evidence/convert.py of the source tree turns into a measurement
    set.
    """
    from simulator.importers import mlperf_storage as importer

    found = importer.read(folders, system=system, submitter=submitter, version=version or "")
    complain(*(f"warning: {warning}" for warning in found.warnings))
    lines = list(found.summary)
    if output is not None:
        write_file(output, found.text, "--output")
        command = f"python evidence/convert.py mlperf_storage {output} -o SET.toml"
        lines += [
            f"wrote {output}",
            f"make a measurement set of it, in the source tree, with: {command}",
        ]
    emit("\n".join(lines))


@click.command("torch-trace")
@files_argument
@output_option
@click.option(
    "--batch",
    "batches",
    type=click.IntRange(min=1),
    multiple=True,
    metavar="N",
    help="Samples a device took in a step; again for each further FILE.",
)
@click.option(
    "--to-batch",
    "to_batches",
    type=click.IntRange(min=1),
    multiple=True,
    metavar="N",
    help="Scale to this batch; repeatable.",
)
@count_option("--gpus", text="Scale to N devices.")
@click.option(
    "--network", metavar="RATE", help="Of a machine, all cards, one way: between machines."
)
@count_option("--per-machine", text="Devices of one machine.")
@count_option("--steps", text="Steps in a trace without ProfilerStep marks.")
@click.option("--extends", default="", metavar="SCENARIO", help="Build on this scenario.")
@count_option("--operators", default=15, show_default=True, text="How many operators to list.")
def torch_trace(  # noqa: PLR0913 - one parameter an option
    *,
    files: tuple[Path, ...],
    output: Path | None,
    batches: tuple[int, ...],
    to_batches: tuple[int, ...],
    gpus: int | None,
    network: str | None,
    per_machine: int | None,
    steps: int | None,
    extends: str,
    operators: int,
) -> None:
    """Read traces of the PyTorch profiler: how a step is spent, operator by operator.

    FILE is what export_chrome_trace or tensorboard_trace_handler wrote for one rank, gzip or not.
    Several files are runs at different batch sizes: they show how each operator grows. With
    --to-batch and --gpus the steps are scaled, and what that assumes is printed.
    """
    _check_extended(extends, output)
    from simulator import units
    from simulator.importers.torch_profiler import trace as importer

    request = importer.Request(
        batches=batches,
        to_batches=to_batches,
        devices=gpus,
        network=quantity(network, units.BYTE_PER_SECOND, "--network"),
        per_machine=per_machine,
        steps=steps,
        extends=extends,
        shown=operators,
    )
    with progress_line("reading traces") as progress:
        found = importer.read(files, request, progress)
    deliver(found, output)


def _check_extended(name: str, output: Path | None) -> None:
    """Raise `UnknownName` if no scenario `name` exists, relative to the folder of `output`."""
    if not name:
        return
    from simulator.errors import UnknownName
    from simulator.reading.shipped import find_scenario, nearest_scenarios

    folder = Path() if output is None else output.parent
    found = find_scenario(name, folder)
    if found is None or not found.exists():
        msg = f"--extends: there is no scenario '{name}'; {nearest_scenarios(name, folder)}"
        raise UnknownName(msg)


@click.command()
@files_argument
@output_option
@click.option(
    "--scope",
    type=Named(("local", "volume", "network", "object")),
    help="How the store is reached, which fio doesn't say; by default as --over, or local.",
)
@click.option(
    "--over", metavar="STORE", help="The store that was measured: keep its other figures."
)
@profiles_option
def fio(
    *,
    files: tuple[Path, ...],
    output: Path | None,
    scope: str | None,
    over: str | None,
    profiles: tuple[Path, ...],
) -> None:
    """Read the JSON of fio runs into a storage profile.

    FILE is what ``fio --output-format=json`` prints; several files make one profile. Runs that only
    write need --over, as a profile has a read rate.
    """
    from simulator.importers import fio as importer
    from simulator.reading.hardware.catalogue import Catalogue
    from simulator.schema.storage import Scope

    store = None if over is None else Catalogue.default(profiles).storage(over)
    reached = Scope(scope) if scope else Scope.LOCAL if store is None else store.scope
    found = importer.read(files, reached, store)
    deliver(found, output, origin=", ".join(map(str, files)))


@click.command("nccl-tests")
@files_argument
@output_option
@profiles_option
@click.option("--over", metavar="LINK", help="The link that was measured: keep its datasheet rate.")
@click.option(
    "--kind",
    type=Named(("pcie", "nvlink", "network", "socket")),
    help="What was measured; NVLink by default, a network if there are several hosts.",
)
@click.option("--operation", metavar="NAME", default="", help="The collective, such as all_reduce.")
def nccl_tests(  # noqa: PLR0913 - one parameter an option
    *,
    files: tuple[Path, ...],
    output: Path | None,
    profiles: tuple[Path, ...],
    over: str | None,
    kind: str | None,
    operation: str,
) -> None:
    """Read the text that nccl-tests prints into a link profile.

    FILE is the output of one run, whole; several collectives make one profile. Latency and
    bandwidth are fitted to all message sizes; with -o the table of sizes is printed.
    """
    from simulator.importers import nccl_tests as importer
    from simulator.reading.hardware.catalogue import Catalogue
    from simulator.schema.machines import LinkKind

    link = None if over is None else Catalogue.default(profiles).link(over)
    chosen = None if kind is None else LinkKind(kind)
    name = operation.removesuffix("_perf")
    found = importer.read(files, kind=chosen, over=link, operation=name)
    deliver(found, output, origin=", ".join(map(str, files)))


@click.command("nvidia-smi")
@files_argument
@output_option
@profiles_option
@click.option("--ram", metavar="SIZE", help="RAM of the machine, such as '2 TiB'.")
@count_option("--sockets", text="Processors of the machine.")
@count_option("--cores", text="Physical cores.")
@count_option("--threads", text="Hardware threads.")
@click.option("--network", metavar="RATE", help="All NICs together, one way, such as '400 Gb/s'.")
@click.option(
    "--gpu", metavar="NAME", default="", help="Profile of the GPUs, by its name in the catalogue."
)
def nvidia_smi(  # noqa: PLR0913 - one parameter an option
    *,
    files: tuple[Path, ...],
    output: Path | None,
    profiles: tuple[Path, ...],
    ram: str | None,
    sockets: int | None,
    cores: int | None,
    threads: int | None,
    network: str | None,
    gpu: str,
) -> None:
    """Read what nvidia-smi shows of a machine into a node profile.

    FILE holds the output of nvidia-smi topo -m, nvidia-smi -q -x or nvidia-smi nvlink -s; give
    all that you have. RAM is in none of them, so --ram is needed.
    """
    from simulator import units
    from simulator.importers import nvidia_smi as importer
    from simulator.importers.nvidia_smi import Given
    from simulator.reading.hardware.catalogue import Catalogue

    given = Given(
        ram=quantity(ram, units.BYTE, "--ram"),
        sockets=sockets,
        cores=cores,
        threads=threads,
        network=quantity(network, units.BYTE_PER_SECOND, "--network"),
        gpu=gpu,
    )
    found = importer.read(files, Catalogue.default(profiles), given)
    deliver(found, output, origin=", ".join(map(str, files)), profiles=profiles)


SetFiles = Callable[["list[MeasuredRun]", str, str], tuple[str, str]]


@click.command()
@files_argument
@profiles_option
@click.option(
    "--scenario",
    "--beside",
    "scenario",
    metavar="SCENARIO",
    help="Also print the prediction of this scenario.",
)
@click.option(
    "--set", "overrides", multiple=True, metavar="KEY=VALUE", help="Set a key of that scenario."
)
@count_option("--gpus", text="GPUs of a host.")
@count_option("--vcpus", text="Hardware threads of a host.")
@click.option("--whole", is_flag=True, help="Keep what came before and after the busy time.")
@format_option
def utilization(  # noqa: PLR0913 - one parameter an option
    *,
    files: tuple[Path, ...],
    profiles: tuple[Path, ...],
    scenario: str | None,
    overrides: tuple[str, ...],
    gpus: int | None,
    vcpus: int | None,
    whole: bool,
    form: str,
) -> None:
    """Read the utilization of devices from logs, and compare it with a prediction.

    FILE is a log of one run: CSV of nvidia-smi, the table of nvidia-smi dmon or dcgmi dmon, text of
    dcgm-exporter, or JSON of aws cloudwatch get-metric-data. Metrics of CloudWatch are sums over
    GPUs or cores; their numbers are those of the scenario unless given.
    """
    if overrides and scenario is None:
        msg = "--set needs --scenario"
        raise click.UsageError(msg)
    from simulator.importers import utilization as importer
    from simulator.report.utilization import document

    prediction = None
    if scenario is not None:
        from simulator.predict import predict

        prediction = predict(read_job(scenario, overrides, profiles).described)
        host = prediction.scenario.cluster.trainers.host
        gpus = gpus or host.gpu_count or None
        vcpus = vcpus or round(host.cpu.threads)
    found = importer.read(files, gpus=gpus, vcpus=vcpus, whole=whole)
    complain(*(f"warning: {warning}" for warning in found.warnings))
    answer(document(found, prediction), form)


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
    NAME.toml, a measurement set that plan validate compares with the prediction.
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
    """Return the path of the measurement set to write; None if no option asks for one.

    Raises
    ------
    click.UsageError
        If only one of ``--base`` and ``-o`` is given.
    """
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
    """Print the runs, and write them as a measurement set if `output` is given."""
    for run in runs:
        complain(*(f"warning: {run.id}: {warning}" for warning in run.warnings))
    emit("\n\n".join("\n".join([run.id, *run.summary]) for run in runs))
    if base is not None and output is not None:
        _write_set(runs, base, output, files)


def _write_set(runs: list[MeasuredRun], base: str, output: Path, files: SetFiles) -> None:
    """Write the TOML and CSV of a measurement set, after parsing them as a check."""
    from simulator.reading.measured.measurement_set import parse_set

    folder = output.absolute().parent
    if Path(base).is_file():
        base = os.path.relpath(base, folder)
    toml, rows = files(runs, base, output.stem)
    parse_set(toml, rows, str(output), folder)
    write_file(output.with_suffix(".csv"), rows, "--output")
    write_file(output, toml, "--output")
    emit(f"wrote {output} and {output.with_suffix('.csv')}")
