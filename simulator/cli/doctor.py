"""``plan doctor``: what is installed and what this machine has."""

from __future__ import annotations

from pathlib import Path

import click

from simulator.cli.options import format_option, profiles_option
from simulator.cli.output import Exit, emit


@click.command()
@format_option
@profiles_option
def doctor(*, form: str, profiles: tuple[Path, ...]) -> int:
    """Print versions, extras, cores, and where profiles are looked for.

    Exit code 1 says that a package that plan needs is missing. Put the output into a report of a
    problem.
    """
    from simulator.probe.machine import installation, look
    from simulator.reading.hardware.catalogue import Catalogue
    from simulator.report.installation import doctor as document
    from simulator.report.render import render

    found, machine = installation(), look()
    folders = Catalogue.default(profiles).directories
    emit(render(document(found, machine, folders), form))
    return Exit.DOES_NOT_FIT if found.missing else Exit.FINE
