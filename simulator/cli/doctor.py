"""``plan doctor``: what is installed and what this machine has."""

from __future__ import annotations

import json
from pathlib import Path

import click

from simulator.cli.exits import Exit
from simulator.cli.options import profiles_option
from simulator.cli.output import emit


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@profiles_option
def doctor(*, as_json: bool, profiles: tuple[Path, ...]) -> int:
    """Print versions, extras, cores, and where profiles are looked for.

    Exit code 1 says that a package that plan needs is missing. Put the output into a report of a
    problem.
    """
    from simulator.files.catalogue import Catalogue
    from simulator.probe.installation import installation
    from simulator.probe.machine import look
    from simulator.report.doctor import as_object, as_text

    found, machine = installation(), look()
    folders = Catalogue.default(profiles).directories
    if as_json:
        emit(json.dumps(as_object(found, machine, folders), indent=2, ensure_ascii=False))
    else:
        emit(as_text(found, machine, folders))
    return Exit.DOES_NOT_FIT if found.missing else Exit.FINE
