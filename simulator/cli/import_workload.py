"""``plan import`` of workloads: what is trained, on what data, and how a step is spent."""

from __future__ import annotations

from pathlib import Path

import click

from simulator.cli.import_output import (
    check_output,
    deliver,
    file_argument,
    files_argument,
    output_option,
)
from simulator.cli.options import Named, profiles_option, quantity
from simulator.cli.output import Exit, complain, emit, write_file


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
    check_output(output)
    from simulator.importers import huggingface_config as importer

    found = importer.read(file, sequence=sequence, name=name, library=library)
    if found.fragment is None:
        complain(*(f"warning: {warning}" for warning in found.warnings))
        emit("\n".join(found.summary))
        complain(f"not modelled yet: {found.lacking}; no section is written")
        return Exit.DOES_NOT_FIT
    deliver(found.fragment, output)
    return Exit.FINE


@click.command()
@file_argument
@output_option
@profiles_option
@click.option("--machine", default="", metavar="NAME", help="Profile of the machine it runs on.")
@click.option("--storage", default="", metavar="NAME", help="Profile of the store it reads from.")
@click.option(
    "--accelerators", type=click.IntRange(min=1), metavar="N", help="Emulated on each machine."
)
@click.option("--hosts", type=click.IntRange(min=1), default=1, metavar="N", help="Equal machines.")
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
    check_output(output)
    from simulator.importers import dlio as importer
    from simulator.reading.hardware.catalogue import Catalogue

    catalogue = Catalogue.default(profiles)
    if machine:
        catalogue.host(machine)
    if storage:
        catalogue.storage(storage)

    place = importer.Place(machine=machine, storage=storage, accelerators=accelerators, hosts=hosts)
    deliver(importer.read(file, place), output)


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

    FOLDER is what a run leaves behind (summary.json and the files beside it), or a tree of such
    folders. -o writes the CSV that evidence/convert.py of the source tree turns into a measurement
    set.
    """
    check_output(output)
    from simulator.importers import mlperf_storage as importer

    given = importer.Given(system=system, submitter=submitter, version=version or "")
    found = importer.read(folders, given)
    complain(*(f"warning: {warning}" for warning in found.warnings))
    lines = list(found.summary)
    if output is not None:
        write_file(output, found.csv, "--output")
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
    help="Scale to this batch; may be given again.",
)
@click.option("--gpus", type=click.IntRange(min=1), metavar="N", help="Scale to N devices.")
@click.option(
    "--network", metavar="RATE", help="Of a machine, all cards, one way: between machines."
)
@click.option(
    "--per-machine", type=click.IntRange(min=1), metavar="N", help="Devices of one machine."
)
@click.option(
    "--steps",
    type=click.IntRange(min=1),
    metavar="N",
    help="Steps in a trace without ProfilerStep marks.",
)
@click.option("--extends", default="", metavar="SCENARIO", help="Build on this scenario.")
@click.option(
    "--operators",
    type=click.IntRange(min=1),
    default=15,
    show_default=True,
    metavar="N",
    help="How many operators to list.",
)
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
    check_output(output)
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
    deliver(importer.read(files, request), output)


def _check_extended(name: str, output: Path | None) -> None:
    """Refuse to build on a scenario that is not there, seen from where the file will lie."""
    if not name:
        return
    from simulator.errors import UnknownName
    from simulator.reading.shipped import find_scenario, nearest_scenarios

    folder = Path() if output is None else output.parent
    found = find_scenario(name, folder)
    if found is None or not found.exists():
        msg = f"--extends: there is no scenario '{name}'; {nearest_scenarios(name, folder)}"
        raise UnknownName(msg)
