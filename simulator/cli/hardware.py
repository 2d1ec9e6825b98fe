"""``plan hardware``: browse machines and devices with sources, dates and prices."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from simulator.cli.options import profiles_option
from simulator.cli.output import emit

if TYPE_CHECKING:
    from simulator.files.catalogue import Catalogue

_json = click.option("--json", "as_json", is_flag=True, help="Print JSON, in SI units.")


@click.group()
def hardware() -> None:
    """List, show and compare machines and devices, with sources, dates and prices."""


@hardware.command("list")
@click.argument("kind", required=False, default="", metavar="[KIND]")
@_json
@profiles_option
def list_(*, kind: str, as_json: bool, profiles: tuple[Path, ...]) -> None:
    """List all profiles, or those of KIND.

    KIND is gpu, cpu, link, storage, node or instance, or the beginning of a name, such as
    instance/aws.
    """
    from simulator.report import hardware as report

    catalogue = _catalogue(profiles)
    things = [catalogue.load(name) for name in catalogue.beginning(kind)]
    emit(report.as_json(things) if as_json else report.as_list(things))


@hardware.command()
@click.argument("name", metavar="NAME")
@_json
@profiles_option
def show(*, name: str, as_json: bool, profiles: tuple[Path, ...]) -> None:
    """Show every figure of the profile NAME with its source and date."""
    from simulator.report import hardware as report

    thing = _catalogue(profiles).load(name)
    emit(report.as_json([thing], one=True) if as_json else report.as_profile(thing))


@hardware.command()
@click.argument("first", metavar="A")
@click.argument("second", metavar="B")
@profiles_option
def diff(*, first: str, second: str, profiles: tuple[Path, ...]) -> None:
    """Show what differs between the profiles A and B, with the ratio of B to A."""
    from simulator.report import hardware as report

    catalogue = _catalogue(profiles)
    emit(report.as_difference(catalogue.load(first), catalogue.load(second)))


def _catalogue(profiles: tuple[Path, ...]) -> Catalogue:
    from simulator.files.catalogue import Catalogue

    return Catalogue.default(profiles)
