"""``plan hardware``: list, show, compare machines and devices; ``plan prices``: import prices."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from simulator.cli.import_ import file_argument
from simulator.cli.options import complete_profiles, file_option, format_option, profiles_option
from simulator.cli.output import answer, complain, emit, today, write_files
from simulator.errors import InputError, Problem

if TYPE_CHECKING:
    from simulator.importers.prices import Prices
    from simulator.reading.hardware.catalogue import Catalogue


@click.group()
def hardware() -> None:
    """List, show and compare machines and devices, with sources, dates and prices."""


@hardware.command("list")
@click.argument(
    "kind", required=False, default="", metavar="[KIND]", shell_complete=complete_profiles()
)
@format_option
@profiles_option
def list_(*, kind: str, form: str, profiles: tuple[Path, ...]) -> None:
    """List all profiles, or those of KIND.

    KIND is gpu, cpu, link, storage, node or instance, the beginning of a name or text in it, such
    as instance/aws or h100, or a pattern, such as 'instance/*/p4*' or '*a100*'.
    """
    from simulator.reading.hardware.catalogue import KINDS
    from simulator.report.hardware import list_document

    catalogue = _catalogue(profiles)
    things = [catalogue.load(name) for name in catalogue.listed(kind)]
    answer(list_document(things), form)
    hint = "name it with letters, digits, '-', '.', '_' and '+'"
    for known in KINDS if kind not in KINDS else (kind,):
        complain(*(f"warning: {path} is left out: {hint}" for path in catalogue.misnamed(known)))


@hardware.command()
@click.argument("name", metavar="NAME", shell_complete=complete_profiles())
@format_option
@profiles_option
def show(*, name: str, form: str, profiles: tuple[Path, ...]) -> None:
    """Show every figure of the profile NAME with its source and date."""
    from simulator.report.hardware import profile_document

    answer(profile_document(_catalogue(profiles).load(name)), form)


@hardware.command()
@click.argument("first", metavar="A", shell_complete=complete_profiles())
@click.argument("second", metavar="B", shell_complete=complete_profiles())
@format_option
@profiles_option
def diff(*, first: str, second: str, form: str, profiles: tuple[Path, ...]) -> None:
    """Show what differs between the profiles A and B, with the ratio of B to A."""
    from simulator.report.hardware import difference_document

    catalogue = _catalogue(profiles)
    answer(difference_document(catalogue.load(first), catalogue.load(second)), form)


def _catalogue(profiles: tuple[Path, ...]) -> Catalogue:
    from simulator.reading.hardware.catalogue import Catalogue

    return Catalogue.default(profiles)


_OUTPUT: Final = "--output"


@click.group()
def prices() -> None:
    """Read prices of machines from a catalogue of a cloud."""


@prices.command("import")
@file_argument
@click.option(
    "--cloud",
    metavar="NAME",
    default="",
    help="Whose machines: aws, gcp, azure, ...; by default the folder that FILE lies in.",
)
@click.option("--region", "regions", multiple=True, metavar="NAME", help="Only these regions.")
@click.option(
    "--date",
    "read",
    metavar="DATE",
    default="",
    help="When the prices held, such as 2026-08-22; the day FILE was last written by default.",
)
@click.option("--source", metavar="TEXT", default="", help="Who states them; FILE by default.")
@file_option(
    "-o",
    _OUTPUT,
    text="Folder of your own profiles; hardware_profiles by default.",
    metavar="FOLDER",
)
@profiles_option
def import_(  # noqa: PLR0913 - one parameter an option
    *,
    file: Path,
    cloud: str,
    regions: tuple[str, ...],
    read: str,
    source: str,
    output: Path | None,
    profiles: tuple[Path, ...],
) -> None:
    """Write the prices in FILE to your own profiles.

    FILE is a CSV with columns like those of SkyPilot's vms.csv: InstanceType, Price, Region, and
    SpotPrice, AvailabilityZone, vCPUs, AcceleratorName, AcceleratorCount where it has them. Rows
    with errors that such catalogues are known for are left out and listed. Prices for other regions
    and purchases (on-demand, spot) stay; a job without a region uses the price of the latest date.
    All profiles are written, or none.
    """
    from simulator.importers.foreign import changed
    from simulator.importers.prices import read_prices
    from simulator.reading.hardware.catalogue import FOLDER
    from simulator.schema.provenance import Source

    folder = Path(FOLDER) if output is None else output
    own = _own(folder, profiles)
    day = _day(read) or changed(file)
    stated = Source(reference=source or "/".join(file.absolute().parts[-2:]), date=day)
    found = read_prices(file, own, cloud=_cloud(cloud, file, own), source=stated, regions=regions)
    texts = _texts(found, folder)
    _check(texts, own)
    write_files({folder / name: text for name, text in texts.items()}, _OUTPUT)
    emit("\n".join(_told(found, folder, day)))


def _own(folder: Path, profiles: tuple[Path, ...]) -> Catalogue:
    """Return the default catalogue with the output folder in front.

    Raises
    ------
    InputError
        If `folder` is the folder of plan's shipped profiles, or is a file.
    """
    from simulator.reading.hardware.catalogue import Catalogue, packaged

    if folder.resolve() == packaged().resolve():
        message, hint = "is the folder of the profiles that come with plan", "name one of your own"
        raise InputError((Problem(origin=_OUTPUT, message=message, found=str(folder), hint=hint),))
    if folder.exists() and not folder.is_dir():
        raise InputError((Problem(origin=_OUTPUT, message="is not a folder", found=str(folder)),))
    there = (folder,) if folder.is_dir() else ()
    return Catalogue.default((*there, *profiles))


def _cloud(given: str, file: Path, catalogue: Catalogue) -> str:
    """Return the cloud given by option, or the name of the folder that contains the file."""
    clouds = sorted({name.split("/")[1] for name in catalogue.names("instance")})
    cloud = given or file.absolute().parent.name
    if cloud in clouds:
        return cloud
    message = "has no machines in the catalogue" if given else "is needed"
    hint = f"one of {', '.join(clouds)}"
    problem = Problem(origin="--cloud", message=message, found=given or None, hint=hint)
    raise InputError((problem,))


def _day(given: str) -> str:
    """Return the given date in ISO format; an empty string if none is given."""
    if not given:
        return ""
    try:
        day = date.fromisoformat(given)
    except ValueError:
        problem = Problem(
            origin="--date", message="is not a date", found=given, hint="write 2026-08-22"
        )
        raise InputError((problem,)) from None
    if day > today():
        raise InputError((Problem(origin="--date", message="lies in the future", found=given),))
    return day.isoformat()


def _texts(found: Prices, folder: Path) -> dict[str, str]:
    """Return the new text of each profile by its path relative to `folder`."""
    from simulator.reading.hardware.profile_text import price_blocks, with_prices
    from simulator.reading.reading import decode, read_bytes

    texts = {}
    for name, listed in found.machines.items():
        path = folder / f"{name}.toml"
        if path.exists():
            text = decode(read_bytes(path), str(path))
            texts[f"{name}.toml"] = with_prices(text, listed, str(path))
        else:
            texts[f"{name}.toml"] = f"schema = 1\noverlay = true\n\n{price_blocks(listed)}"
    return texts


def _check(texts: Mapping[str, str], own: Catalogue) -> None:
    """Load every new profile from a temporary folder, before any is written."""
    from simulator.reading.hardware.catalogue import Catalogue

    with tempfile.TemporaryDirectory() as made:
        for name, text in texts.items():
            path = Path(made) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        staged = Catalogue((Path(made), *own.directories))
        for name in texts:
            staged.host(name.removesuffix(".toml"))


def _told(found: Prices, folder: Path, day: str) -> list[str]:
    from simulator.importers.prices import MAX_SHOWN
    from simulator.reading.hardware.catalogue import Catalogue
    from simulator.report.hardware import moved_price_line

    lines = [f"read {found.read} prices of {len(found.machines)} machines, of {day}"]
    lines += (moved_price_line(*moved) for moved in found.moved[:MAX_SHOWN])
    if len(found.moved) > MAX_SHOWN:
        lines.append(f"and so for {len(found.moved) - MAX_SHOWN} more prices")
    if found.unknown:
        lines.append(f"{found.unknown} machines of the file have no profile")
    if found.left_out:
        lines += ["left out:", *(f"  {line}" for line in found.left_out)]
    lines.append(f"wrote {len(found.machines)} profiles below {folder}")
    if folder.resolve() not in {path.resolve() for path in Catalogue.default().directories}:
        lines.append(f"use them with --profiles {folder}, or name the folder in $PLAN_PROFILES")
    return lines


hardware.add_command(prices)
