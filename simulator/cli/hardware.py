"""``plan hardware``: browse machines and devices with sources, dates and prices."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from simulator.cli import completion
from simulator.cli.options import format_option, profiles_option
from simulator.cli.output import emit
from simulator.cli.prices import prices

if TYPE_CHECKING:
    from simulator.reading.hardware.catalogue import Catalogue


@click.group()
def hardware() -> None:
    """List, show and compare machines and devices, with sources, dates and prices."""


hardware.add_command(prices)


@hardware.command("list")
@click.argument(
    "kind", required=False, default="", metavar="[KIND]", shell_complete=completion.profiles()
)
@format_option
@profiles_option
def list_(*, kind: str, form: str, profiles: tuple[Path, ...]) -> None:
    """List all profiles, or those of KIND.

    KIND is gpu, cpu, link, storage, node or instance, the beginning of a name or text in it, such
    as instance/aws or h100, or a pattern, such as 'instance/*/p4*' or '*a100*'.
    """
    from simulator.report.hardware import list_document
    from simulator.report.render import render

    catalogue = _catalogue(profiles)
    things = [catalogue.load(name) for name in catalogue.listed(kind)]
    emit(render(list_document(things), form))


@hardware.command()
@click.argument("name", metavar="NAME", shell_complete=completion.profiles())
@format_option
@profiles_option
def show(*, name: str, form: str, profiles: tuple[Path, ...]) -> None:
    """Show every figure of the profile NAME with its source and date."""
    from simulator.report.hardware import profile_document
    from simulator.report.render import render

    emit(render(profile_document(_catalogue(profiles).load(name)), form))


@hardware.command()
@click.argument("first", metavar="A", shell_complete=completion.profiles())
@click.argument("second", metavar="B", shell_complete=completion.profiles())
@format_option
@profiles_option
def diff(*, first: str, second: str, form: str, profiles: tuple[Path, ...]) -> None:
    """Show what differs between the profiles A and B, with the ratio of B to A."""
    from simulator.report.hardware import difference_document
    from simulator.report.render import render

    catalogue = _catalogue(profiles)
    emit(render(difference_document(catalogue.load(first), catalogue.load(second)), form))


def _catalogue(profiles: tuple[Path, ...]) -> Catalogue:
    from simulator.reading.hardware.catalogue import Catalogue

    return Catalogue.default(profiles)
