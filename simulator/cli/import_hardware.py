"""``plan import`` of measured hardware: fio, nccl-tests, nvidia-smi."""

from __future__ import annotations

from pathlib import Path

import click

from simulator.cli.import_output import (
    check_output,
    deliver,
    files_argument,
    named,
    output_option,
)
from simulator.cli.options import Named, profiles_option, quantity


@click.command()
@files_argument
@output_option
@click.option(
    "--scope",
    type=Named(("local", "volume", "network", "object")),
    default="local",
    show_default=True,
    help="How the store is reached, which fio doesn't say.",
)
def fio(*, files: tuple[Path, ...], output: Path | None, scope: str) -> None:
    """Read the JSON of fio runs into a storage profile.

    FILE is what ``fio --output-format=json`` prints; several files make one profile.
    """
    check_output(output)
    from simulator.importers import fio as importer
    from simulator.schema.hardware.storage import Scope

    deliver(importer.read(files, Scope(scope)), output, origin=named(files))


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
    check_output(output)
    from simulator.importers import nccl_tests as importer
    from simulator.reading.hardware.catalogue import Catalogue
    from simulator.schema.hardware.link import LinkKind

    link = None if over is None else Catalogue.default(profiles).link(over)
    chosen = None if kind is None else LinkKind(kind)
    name = operation.removesuffix("_perf")
    found = importer.read(files, kind=chosen, over=link, operation=name)
    deliver(found, output, origin=named(files))


@click.command("nvidia-smi")
@files_argument
@output_option
@profiles_option
@click.option("--ram", metavar="SIZE", help="RAM of the machine, such as '2 TiB'.")
@click.option("--cores", type=click.IntRange(min=1), metavar="N", help="Physical cores.")
@click.option("--threads", type=click.IntRange(min=1), metavar="N", help="Hardware threads.")
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
    cores: int | None,
    threads: int | None,
    network: str | None,
    gpu: str,
) -> None:
    """Read what nvidia-smi shows of a machine into a node profile.

    FILE holds the output of nvidia-smi topo -m, nvidia-smi -q -x or nvidia-smi nvlink -s; give
    all that you have. RAM is in none of them, so --ram is needed.
    """
    check_output(output)
    from simulator import units
    from simulator.importers import nvidia_smi as importer
    from simulator.importers.nvidia_smi import Given
    from simulator.reading.hardware.catalogue import Catalogue

    given = Given(
        ram=quantity(ram, units.BYTE, "--ram"),
        cores=cores,
        threads=threads,
        network=quantity(network, units.BYTE_PER_SECOND, "--network"),
        gpu=gpu,
    )
    found = importer.read(files, Catalogue.default(profiles), given)
    deliver(found, output, origin=named(files), profiles=profiles)
