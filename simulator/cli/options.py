"""Options that several verbs take, each worded once."""

from __future__ import annotations

from pathlib import Path

import click

profiles_option = click.option(
    "--profiles",
    "profiles",
    multiple=True,
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="Look for hardware profiles here first; may be given again.",
)
jobs_option = click.option(
    "--jobs", type=click.IntRange(min=1), metavar="N", help="Processes; by default all cores."
)
