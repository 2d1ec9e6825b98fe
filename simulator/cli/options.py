"""Options that several verbs take, each declared once."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from simulator.errors import InputError, Problem, UnitError

if TYPE_CHECKING:
    from simulator.units import Unit

Verb = TypeVar("Verb", bound=Callable[..., Any])

profiles_option = click.option(
    "--profiles",
    "profiles",
    multiple=True,
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="Directory of hardware profiles, searched before the built-in ones; repeatable.",
)
jobs_option = click.option(
    "--jobs",
    type=click.IntRange(min=1),
    metavar="N",
    help="Number of processes; one per core by default.",
)


seed_option = click.option(
    "--seed",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    metavar="N",
    help="Seed of all random draws; the same seed gives the same answer.",
)


def set_option(help_: str) -> Callable[[Verb], Verb]:
    """Add ``--set`` to a verb, which gets it as `overrides`."""
    return click.option("--set", "overrides", multiple=True, metavar="KEY=VALUE", help=help_)


def evidence_option(of_page: str) -> Callable[[Verb], Verb]:
    """Add ``--evidence`` to a verb; `of_page` says what it compares."""
    return click.option(
        "--evidence/--no-evidence",
        default=True,
        show_default=True,
        help=f"{of_page} with the most similar measured runs (slow).",
    )


def file_option(*names: str, text: str, metavar: str = "FILE") -> Callable[[Verb], Verb]:
    """Return an option of these names that takes a path."""
    return click.option(*names, type=click.Path(path_type=Path), metavar=metavar, help=text)


calibration_option = file_option(
    "--calibration", text="Apply a file written by plan calibrate; --set takes precedence."
)


class Named(click.Choice[str]):
    """One of a few names; the refusal of another says which was probably meant."""

    def get_invalid_choice_message(self, value: object, ctx: click.Context | None) -> str:
        """Return what is wrong with `value`, with the nearest name in front of all."""
        close = difflib.get_close_matches(str(value).lower(), self.choices, n=1, cutoff=0.55)
        meant = f"did you mean '{close[0]}'? " if close else ""
        message = super().get_invalid_choice_message(value, ctx)
        return f"{meant}{message}"


FORMATS: Final = ("table", "json", "csv", "markdown")
_JSON: Final = "simulator.json"
_FORM: Final = "simulator.form"


def examples(*lines: str) -> str:
    """Return the end of a verb's help: command lines to start from."""
    # The mark keeps click from joining the lines.
    return "\n".join(("\b", "Examples:", *(f"  {line}" for line in lines)))


def format_option(verb: Verb) -> Verb:
    """Add ``--format``, and ``--json`` as the short form of its most used value.

    The verb gets the parameter `form`, one of `FORMATS`.
    """
    verb = click.option(
        "--json",
        is_flag=True,
        expose_value=False,
        is_eager=True,
        callback=_note_json,
        help="Same as --format json: one JSON object, in SI units.",
    )(verb)
    return click.option(
        "--format",
        "form",
        type=Named(FORMATS),
        default=FORMATS[0],
        show_default=True,
        callback=_format,
        help="Output format: table is the report in plain text.",
    )(verb)


def is_report() -> bool:
    """Return whether the running verb prints a report to read, not data for programs."""
    context = click.get_current_context(silent=True)
    return context is not None and context.meta.get(_FORM) == FORMATS[0]


def _note_json(context: click.Context, _: click.Parameter, value: bool) -> None:  # noqa: FBT001 - click's signature
    context.meta[_JSON] = value


def _format(context: click.Context, parameter: click.Parameter, value: str) -> str:
    form = _asked(context, parameter, value)
    context.meta[_FORM] = form
    return form


def _asked(context: click.Context, parameter: click.Parameter, value: str) -> str:
    if not context.meta.get(_JSON):
        return value
    source = context.get_parameter_source(parameter.name or "")
    if source is click.core.ParameterSource.COMMANDLINE and value != "json":
        msg = f"--json and --format {value} exclude each other"
        raise click.UsageError(msg)
    return "json"


def quantity(text: str | None, unit: Unit, option: str) -> float | None:
    """Return the quantity an option gives, in SI; None if it isn't given.

    Raises
    ------
    InputError
        If it has no unit, another dimension, or isn't above zero.
    """
    if text is None:
        return None
    from simulator.units import parse

    try:
        value = parse(text, unit)
    except UnitError as error:
        message, _, hint = str(error).partition("; ")
        problem = Problem(origin=option, message=message, found=repr(text), hint=hint or None)
        raise InputError((problem,)) from None
    if value <= 0.0:
        message = "has to be above zero"
        raise InputError((Problem(origin=option, message=message, found=repr(text)),))
    return value
