"""``plan doctor``: what is installed and what this machine has."""

from __future__ import annotations

import json
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
    from simulator.report import doctor as report
    from simulator.report.format.table import Format, rendered

    found, machine = installation(), look()
    folders = Catalogue.default(profiles).directories
    emit(
        rendered(
            Format(form),
            text=lambda: report.as_text(found, machine, folders),
            tree=lambda: json.dumps(
                report.as_object(found, machine, folders), indent=2, ensure_ascii=False
            ),
            table=lambda: report.as_table(found, machine, folders),
        )
    )
    return Exit.DOES_NOT_FIT if found.missing else Exit.FINE
