"""The arguments every verb on a scenario takes, and reading the scenario they name."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Sequence
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TypeVar

import click

from simulator.cli.completion import scenarios
from simulator.cli.options import file_option, profiles_option
from simulator.errors import InputError, Problem
from simulator.reading.reading import LARGEST

if TYPE_CHECKING:
    from simulator.reading.search.candidates import CandidateReader
    from simulator.reading.service.scenario import ServiceReader
    from simulator.schema.scenario import Scenario

Verb = TypeVar("Verb", bound=Callable[..., Any])
_KEPT = "simulator.cli.scenarios.standard_input"


def set_option(help_: str) -> Callable[[Verb], Verb]:
    """Add ``--set`` to a verb, which gets it as `overrides`."""
    return click.option("--set", "overrides", multiple=True, metavar="KEY=VALUE", help=help_)


def as_typed(scenario: str, overrides: Sequence[str]) -> str:
    """SCENARIO and its settings as the user would type them again.

    Examples
    --------
    >>> as_typed("my job.toml", ["load.rate=10 /s"])
    "'my job.toml' --set 'load.rate=10 /s'"
    """
    return " ".join([shlex.quote(scenario), *(f"--set {shlex.quote(one)}" for one in overrides)])


def scenario_arguments(verb: Verb) -> Verb:
    """Add SCENARIO, ``--set`` and ``--profiles`` to a verb."""
    for add in (
        profiles_option,
        set_option("Set a key of the scenario, such as input.workers=8; may be given again."),
        click.argument("scenario", shell_complete=scenarios),
    ):
        verb = add(verb)
    return verb


seed_option = click.option(
    "--seed",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    metavar="N",
    help="Seed of all random draws; the same seed gives the same answer.",
)


calibration_option = file_option(
    "--calibration", text="Apply what plan calibrate wrote; --set wins over it."
)


def read_scenario(
    name: str,
    overrides: tuple[str, ...],
    profiles: tuple[Path, ...],
    calibration: Path | None = None,
) -> Scenario:
    """Load what the arguments name; ``-`` is standard input.

    Raises
    ------
    InputError
        With every problem found.
    """
    from simulator.reading.scenario import load_scenario

    return load_scenario(
        name,
        overrides=overrides,
        stdin=_standard_input(name),
        profiles=profiles,
        calibration=calibration,
    )


def service_reader(
    name: str, overrides: tuple[str, ...], profiles: tuple[Path, ...]
) -> ServiceReader | None:
    """What reads the service that the arguments name; None where they name a job.

    Raises
    ------
    InputError
        If it cannot be read.
    """
    from simulator.reading.merge_documents import chain_of
    from simulator.reading.scenario import default_name_of
    from simulator.reading.service.mode import describes_service

    chain = chain_of(name, _standard_input(name))
    if not describes_service(chain):
        return None
    from simulator.reading.service.scenario import ServiceReader

    return ServiceReader(chain, default_name_of(name), overrides=overrides, profiles=profiles)


def _standard_input(name: str) -> BinaryIO | None:
    """Standard input where it is meant; it can be read once, and is kept for the verb."""
    if name != "-":
        return None
    if sys.stdin is None:
        problem = Problem(origin="-", message="cannot be read: standard input is closed")
        raise InputError((problem,))
    context = click.get_current_context(silent=True)
    if context is None:
        return sys.stdin.buffer
    if _KEPT not in context.meta:
        context.meta[_KEPT] = sys.stdin.buffer.read(LARGEST + 1)
    return BytesIO(context.meta[_KEPT])


def candidate_reader(
    name: str,
    overrides: tuple[str, ...],
    profiles: tuple[Path, ...],
    calibration: Path | None = None,
) -> CandidateReader:
    """What reads the scenario that the arguments name, each time with other settings.

    Raises
    ------
    InputError
        If it cannot be read.
    """
    from simulator.reading.search.candidates import CandidateReader

    return CandidateReader(
        name,
        overrides=overrides,
        stdin=_standard_input(name),
        profiles=profiles,
        calibration=calibration,
    )
