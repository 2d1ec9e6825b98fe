"""``plan probe``: measure this machine, or a data loader on it."""

from __future__ import annotations

import importlib
import json
import os
import platform
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from simulator.cli.options import examples, file_option, format_option, profiles_option, quantity
from simulator.cli.output import answer, check_writable, complain, emit, write_file
from simulator.errors import InputError, Problem

if TYPE_CHECKING:
    from collections.abc import Mapping

    from simulator.probe.profile import Known
    from simulator.probe.run import Probed, Wanted
    from simulator.probe.store import StoreProbe
    from simulator.reading.hardware.catalogue import Catalogue
    from simulator.torch import WorkloadProfile

DEVICES: Final = "disk,memory,cpu,gpu"


@click.command(
    epilog=examples(
        "plan probe -o profiles",
        "plan probe --loader train:make_loader -o loader.toml",
        "plan probe --store s3://bucket/train --threads 16 -o store.toml",
    )
)
@file_option(
    "-o",
    "--output",
    text="Write profiles below FOLDER; with --loader or --store, the file to write.",
    metavar="FOLDER",
)
@click.option(
    "--seconds",
    type=click.FloatRange(min=1.0, max=3600.0),
    default=30.0,
    show_default=True,
    metavar="N",
    help="Time the measurements take, shared out among devices.",
)
@click.option(
    "--disk",
    type=click.Path(path_type=Path),
    default=Path(),
    metavar="PATH",
    help="A folder on the disk to measure; the current one by default.",
)
@click.option(
    "--disk-space",
    "space",
    default="1 GB",
    show_default=True,
    metavar="SIZE",
    help="Largest test file; it is gone when plan ends, however it ends.",
)
@click.option(
    "--only", default=DEVICES, metavar="LIST", help=f"Devices to measure, some of {DEVICES}."
)
@click.option("--name", metavar="NAME", help="Name of the profiles; the host's name by default.")
@click.option(
    "--loader",
    metavar="MODULE:MAKE",
    help="Measure instead the DataLoader that MAKE() in MODULE returns.",
)
@click.option(
    "--store",
    metavar="URL_OR_FOLDER",
    help="Measure instead reads of a bucket, an http(s) URL or a folder through your client.",
)
@click.option(
    "--client",
    type=click.Choice(["boto3", "fsspec"]),
    help="Library that reads a bucket; boto3 for s3://, else fsspec by default.",
)
@click.option(
    "--threads",
    type=click.IntRange(min=1, max=1000),
    default=16,
    show_default=True,
    metavar="N",
    help="Most threads that read the store at a time.",
)
@format_option
@profiles_option
def probe(  # noqa: PLR0913 - one parameter an option
    *,
    output: Path | None,
    seconds: float,
    disk: Path,
    space: str,
    only: str,
    name: str | None,
    loader: str | None,
    store: str | None,
    client: str | None,
    threads: int,
    form: str,
    profiles: tuple[Path, ...],
) -> None:
    """Measure this machine and write what was found as hardware profiles.

    Disk, memory bandwidth, what decoding a picture costs, how cores and hardware threads slow one
    another, and with PyTorch and a CUDA device its products and copies. With -o FOLDER the figures
    become FOLDER/node/NAME.toml and the profiles of its parts, for --profiles FOLDER.

    With --loader, measure a DataLoader of PyTorch and print the sections of a scenario. With
    --store, read a sample of objects with 1 to N threads and print the keys of the store's client.
    """
    if loader is not None or store is not None:
        option = "--loader" if loader is not None else "--store"
        if loader is not None and store is not None:
            msg = "--loader and --store are measured one at a time"
            raise click.UsageError(msg)
        if form in {"csv", "markdown"}:
            msg = f"{option} prints the sections of a scenario, or JSON, but no {form}"
            raise click.UsageError(msg)
        as_json = form == "json"
        if loader is not None:
            probe_loader(loader, output, seconds, as_json=as_json)
        elif store is not None:
            from simulator.reading.hardware.catalogue import Catalogue

            mounts = _mounts(Catalogue.default(profiles))
            _probe_store(store, client, threads, seconds, output, mounts, as_json=as_json)
        return
    from simulator.probe.profile import profiles as make
    from simulator.probe.profile import slug
    from simulator.probe.run import probe as measure
    from simulator.reading.hardware.catalogue import Catalogue
    from simulator.report.installation import probe as document

    chosen = slug(name or platform.node())
    catalogue = Catalogue.default(profiles)
    if output is not None:
        _check_folder(output, chosen)
    probed = measure(
        _wanted(only, seconds, disk, space), lambda text: complain(f"measuring {text}")
    )
    known, doubts = _known(probed, catalogue)
    texts, warnings = make(probed, chosen, known)
    complain(*(f"warning: {text}" for text in (*probed.found.warnings, *doubts, *warnings)))
    written = {} if output is None else _write(output, texts, profiles)
    use = [] if output is None else _use(written, output)
    answer(document(probed, written, use), form)


def _wanted(only: str, seconds: float, disk: Path, space: str) -> Wanted:
    from simulator import units
    from simulator.probe.disk import Place
    from simulator.probe.run import DEVICES as KNOWN
    from simulator.probe.run import Wanted

    devices = tuple(dict.fromkeys(part.strip() for part in only.split(",") if part.strip()))
    unknown = [device for device in devices if device not in KNOWN]
    if unknown or not devices:
        found = f"'{unknown[0]}' is not a device" if unknown else "there is nothing to measure"
        msg = f"{found}; --only takes some of {', '.join(KNOWN)}"
        raise click.UsageError(msg)
    size = quantity(space, units.BYTE, "--disk-space") or 0.0
    return Wanted(devices=devices, seconds=seconds, place=Place(folder=disk, space=size))


def _known(probed: Probed, catalogue: Catalogue) -> tuple[Known, list[str]]:
    """Return the catalogue profiles of the measured accelerator and its links, and warnings."""
    from simulator.importers.nvidia_smi import matching
    from simulator.probe.profile import Known

    found = probed.accelerator
    if found is None:
        return Known(), []
    every = [catalogue.gpu(name) for name in catalogue.names("gpu")]
    gpus = matching(found.product, found.memory, every)
    if len(gpus) != 1:
        names = ", ".join(gpu.name for gpu in gpus)
        return Known(), [f"{found.product} may be {names}: a profile of its own"] if gpus else []
    gpu = gpus[0]
    link = None if gpu.host_link is None else catalogue.link(gpu.host_link)
    peer = None if gpu.peer_link is None else catalogue.link(gpu.peer_link)
    return Known(gpu=gpu, link=link, peer=peer), []


def _check_folder(folder: Path, name: str) -> None:
    """Raise an `InputError` if a folder is not writable, or has other profiles of this name."""
    from simulator.probe.profile import MARK

    above = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    if not above.is_dir() or not os.access(above, os.W_OK):
        message = "cannot be written" if above.is_dir() else "is not a folder"
        raise InputError((Problem(origin="--output", message=message, found=str(above)),))
    kept = [
        path
        for kind in ("node", "storage")
        if (path := folder / kind / f"{name}.toml").is_file()
        and not path.read_text(encoding="utf-8", errors="replace").startswith(f"# {MARK}")
    ]
    if kept:
        hint = "give another --name, or move it away"
        message = "is not a profile that plan probe wrote"
        raise InputError(
            tuple(
                Problem(origin="--output", message=message, found=str(path), hint=hint)
                for path in kept
            )
        )


def _write(folder: Path, texts: dict[str, str], profiles: tuple[Path, ...]) -> dict[str, str]:
    """Write profiles to a temporary folder, load them as a check, then move them to `folder`.

    Returns the written paths by name of the profile.
    """
    from simulator.reading.hardware.catalogue import Catalogue

    written = {}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder, prefix=".plan-probe-") as draft:
            for path, text in texts.items():
                part = Path(draft) / path
                part.parent.mkdir(exist_ok=True)
                part.write_text(text, encoding="utf-8")
            catalogue = Catalogue.default((Path(draft), folder, *profiles))
            for path in texts:
                catalogue.load(path.removesuffix(".toml"))
            for path in texts:
                target = folder / path
                target.parent.mkdir(exist_ok=True)
                (Path(draft) / path).replace(target)
                written[path.removesuffix(".toml")] = str(target)
    except OSError as error:
        message = f"cannot be written: {error.strerror}"
        raise InputError(
            (Problem(origin="--output", message=message, found=str(folder)),)
        ) from error
    return written


def _use(written: dict[str, str], folder: Path) -> list[str]:
    lines = ["", *(f"wrote {path}" for path in written.values())]
    node = next((name for name in written if name.startswith("node/")), None)
    store = next((name for name in written if name.startswith("storage/")), None)
    if node is not None:
        lines.append(f"use it with: --profiles {folder} --set hardware.machine={node}")
    elif store is not None:
        lines.append(f"use it with: --profiles {folder} --set hardware.storage={store}")
    return lines


def probe_loader(spec: str, output: Path | None, seconds: float, *, as_json: bool) -> None:
    """Create a data loader, measure it, and print or write the scenario sections.

    Parameters
    ----------
    spec : str
        ``MODULE:MAKE``, a function (or object) of a module.
    output : pathlib.Path or None
        File to write; printed if None.
    seconds : float
        Time to measure [s].
    as_json : bool
        Print JSON instead of TOML.

    Raises
    ------
    click.UsageError
        If `spec` is invalid or fails.
    PlanError
        If the loader fails.
    """
    if output is not None:
        check_writable(output, "--output")
    loader = _made(spec)
    from simulator.torch import profile_loader

    complain("measuring the loader with one worker")
    found = profile_loader(loader, seconds=seconds)
    complain(*(f"note: {note}" for note in found.notes))
    _show(found, output, as_json=as_json)


def _probe_store(  # noqa: PLR0913, PLR0917 - one parameter an option
    store: str,
    client: str | None,
    threads: int,
    seconds: float,
    output: Path | None,
    mounts: Mapping[str, str],
    *,
    as_json: bool,
) -> None:
    """Measure the reads of a store, and print or write the keys of a scenario."""
    from simulator.probe.store import probe_store

    if output is not None:
        check_writable(output, "--output")
    found = probe_store(
        store, client, threads, seconds, lambda text: complain(f"measuring {text}"), mounts
    )
    complain(*(f"note: {note}" for note in found.notes))
    _show(found, output, as_json=as_json)


def _mounts(catalogue: Catalogue) -> dict[str, str]:
    """Return the clients that mount buckets, by the name of their file system."""
    from simulator.schema.machines import short_name

    clients = [catalogue.client(name) for name in catalogue.names("client")]
    return {mount: short_name(client.name) for client in clients for mount in client.mounts}


def _show(found: WorkloadProfile | StoreProbe, output: Path | None, *, as_json: bool) -> None:
    """Print the sections of a scenario that were measured, or write them to a file."""
    text = _json(found) if as_json else found.toml().rstrip("\n")
    if output is None:
        emit(text)
        return
    write_file(output, found.toml(), "--output")
    emit(text if as_json else f"wrote {output}: sections for a scenario")


def _json(found: WorkloadProfile | StoreProbe) -> str:
    return json.dumps({"schema": 1, **asdict(found), "toml": found.toml()}, indent=2)


def _made(spec: str) -> Any:  # noqa: ANN401 - whatever the user's code returns
    """Return the data loader that the user's function creates."""
    module_name, _, name = spec.partition(":")
    if not module_name or not name:
        msg = f"--loader takes MODULE:MAKE, such as train:make_loader, found {spec!r}"
        raise click.UsageError(msg)
    # As for `python -m`: the user's module is in the current folder.
    if str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    try:
        module = importlib.import_module(module_name)
        thing = getattr(module, name)
        return thing() if callable(thing) else thing
    except Exception as error:
        # The user's code may raise anything.
        msg = f"--loader {spec}: {type(error).__name__}: {error}"
        raise click.UsageError(msg) from error
