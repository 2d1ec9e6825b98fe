"""Arguments and options shared by commands, and the functions that read their values.

Shells complete names of commands and options by click, and other names by the functions here:
``eval "$(_PLAN_COMPLETE=bash_source plan)"`` in ``~/.bashrc`` turns completion on (``zsh_source``,
``fish_source`` for other shells).
"""

from __future__ import annotations

import difflib
import functools
import shlex
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

import click
from click.shell_completion import CompletionItem

from simulator.cli.output import FORM, check_writable, complain, progress_line, today
from simulator.errors import InputError, PlanError, Problem, UnitError

if TYPE_CHECKING:
    from simulator.results.cost import Listed
    from simulator.schema.measurement import MeasurementSet
    from simulator.schema.scenario import Scenario
    from simulator.studies.subject import JobSubject, Subject
    from simulator.units import Unit
    from simulator.validation.local_coverage import Neighbourhood

Complete: TypeAlias = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]


def complete_scenarios(_: click.Context, __: click.Parameter, prefix: str) -> list[CompletionItem]:
    """Return completions of a scenario: shipped scenarios and services, and files."""
    from simulator.reading.shipped import scenario_names, service_names

    names = (*scenario_names(), *service_names())
    return [CompletionItem(prefix, type="file"), *_matching(names, prefix)]


def complete_measurement_sets(
    _: click.Context, __: click.Parameter, prefix: str
) -> list[CompletionItem]:
    """Return completions of a measurement set: shipped sets, and files."""
    from simulator.reading.shipped import set_names

    return [CompletionItem(prefix, type="file"), *_matching(set_names(), prefix)]


def complete_metrics(_: click.Context, __: click.Parameter, prefix: str) -> list[CompletionItem]:
    """Return completions of a metric."""
    from simulator.results.metrics import METRICS

    return _matching((metric.name for metric in METRICS), prefix)


def complete_models(_: click.Context, __: click.Parameter, prefix: str) -> list[CompletionItem]:
    """Return completions of a model of the library."""
    from simulator.reading.model_library import model_names

    return _matching(model_names(), prefix)


def complete_profiles(*kinds: str) -> Complete:
    """Return a function that completes names of hardware profiles of these kinds (default: all)."""

    def complete(_: click.Context, __: click.Parameter, prefix: str) -> list[CompletionItem]:
        from simulator.reading.hardware.catalogue import KINDS, Catalogue

        try:
            catalogue = Catalogue.default()
        except PlanError:
            return []
        return _matching((n for kind in kinds or KINDS for n in catalogue.names(kind)), prefix)

    return complete


def _matching(names: Iterable[str], prefix: str) -> list[CompletionItem]:
    return [CompletionItem(name) for name in names if name.startswith(prefix)]


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
    """Return a decorator that adds ``--set``, passed to the command as `overrides`."""
    return click.option("--set", "overrides", multiple=True, metavar="KEY=VALUE", help=help_)


def file_option(*names: str, text: str, metavar: str = "FILE") -> Callable[[Verb], Verb]:
    """Return a decorator that adds an option with a path as its value."""
    return click.option(*names, type=click.Path(path_type=Path), metavar=metavar, help=text)


def count_option(
    *names: str,
    text: str,
    metavar: str = "N",
    default: int | None = None,
    show_default: bool = False,
) -> Callable[[Verb], Verb]:
    """Return a decorator that adds an option for a whole number of at least 1."""
    return click.option(
        *names,
        type=click.IntRange(min=1),
        metavar=metavar,
        default=default,
        show_default=show_default,
        help=text,
    )


def output_option(
    *names: str, text: str, default: Path | None = None, is_figure: bool = False
) -> Callable[[Verb], Verb]:
    """Return a decorator that adds an option for a file to write.

    The path is checked while options are parsed; `is_figure`: also its format.
    """

    def check(context: click.Context, parameter: click.Parameter, path: Path | None) -> Path | None:
        del context
        if path is not None:
            check_writable(path, parameter.opts[-1])
        if path is not None and is_figure:
            from simulator.report.plot import check_format

            check_format(path)
        return path

    return click.option(
        *names,
        type=click.Path(path_type=Path),
        metavar="FILE",
        default=default,
        show_default=default is not None,
        callback=check,
        help=text,
    )


calibration_option = file_option(
    "--calibration", text="Apply a file written by plan calibrate; --set takes precedence."
)


class Named(click.Choice[str]):
    """A choice among names; the error for another value suggests the closest name."""

    def get_invalid_choice_message(self, value: object, ctx: click.Context | None) -> str:
        """Return the error for `value`, starting with the closest name."""
        close = difflib.get_close_matches(str(value).lower(), self.choices, n=1, cutoff=0.55)
        meant = f"did you mean '{close[0]}'? " if close else ""
        message = super().get_invalid_choice_message(value, ctx)
        return f"{meant}{message}"


FORMATS: Final = ("table", "json", "csv", "markdown")


def examples(*lines: str) -> str:
    """Return the epilog of a command's help: a list of example command lines."""
    # The mark keeps click from joining the lines.
    return "\n".join(("\b", "Examples:", *(f"  {line}" for line in lines)))


def format_option(verb: Verb) -> Verb:
    """Decorate a command with ``--format``, and ``--json`` as a short form of ``--format json``.

    The value is passed as the argument `form`, one of `FORMATS`.
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


def _note_json(context: click.Context, _: click.Parameter, value: bool) -> None:  # noqa: FBT001 - click's signature
    context.meta["simulator.json"] = value


def _format(context: click.Context, parameter: click.Parameter, value: str) -> str:
    form = context.meta[FORM] = _asked(context, parameter, value)
    return form


def _asked(context: click.Context, parameter: click.Parameter, value: str) -> str:
    if not context.meta.get("simulator.json"):
        return value
    source = context.get_parameter_source(parameter.name or "")
    if source is click.core.ParameterSource.COMMANDLINE and value != "json":
        msg = f"--json and --format {value} exclude each other"
        raise click.UsageError(msg)
    return "json"


def quantity(text: str | None, unit: Unit, option: str) -> float | None:
    """Parse the quantity of an option to SI units; None if the option isn't given.

    Parameters
    ----------
    text : str or None
        Value of the option, such as ``400 Gb/s``.
    unit : Unit
        Unit with the expected dimension.
    option : str
        Name of the option, for messages.

    Raises
    ------
    InputError
        If it has no unit or another dimension, or is not above zero.
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


_STDIN: Final = "simulator.stdin"


def subject_arguments(verb: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate a command with SCENARIO, ``--set``, ``--profiles`` and ``--calibration``.

    The job or service is passed as the argument `subject`. Options that are not available for its
    kind of scenario are rejected (`Subject.unavailable`).
    """
    return _on_subject(verb, read)


def job_arguments(verb: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate a command for jobs with the options of `subject_arguments`.

    `subject` is a `JobSubject`; services are rejected.
    """
    return _on_subject(verb, read_job)


def _on_subject(verb: Callable[..., Any], reader: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(verb)
    def on_subject(
        *,
        scenario: str,
        overrides: tuple[str, ...],
        profiles: tuple[Path, ...],
        calibration: Path | None,
        **options: Any,  # noqa: ANN401 - those of the verb
    ) -> Any:  # noqa: ANN401 - that of the verb
        subject = reader(scenario, overrides, profiles, calibration)
        refuse_unavailable(subject, options)
        return verb(subject=subject, **options)

    for add in (
        calibration_option,
        profiles_option,
        set_option("Set a key of the scenario, such as input.workers=8; repeatable."),
        click.argument("scenario", shell_complete=complete_scenarios),
    ):
        on_subject = add(on_subject)
    return on_subject


def scenarios_arguments(help_of_set: str) -> Callable[[Verb], Verb]:
    """Return a decorator that adds SCENARIO... and the options that `read_all` takes.

    `help_of_set` is the help text of ``--set``.
    """

    def add_all(verb: Verb) -> Verb:
        for add in (calibration_option, profiles_option, set_option(help_of_set)):
            verb = add(verb)
        argument = click.argument(
            "scenarios",
            nargs=-1,
            required=True,
            metavar="SCENARIO...",
            shell_complete=complete_scenarios,
        )
        return argument(verb)

    return add_all


def read_all(
    scenarios: Iterable[Sequence[str]],
    overrides: tuple[str, ...],
    profiles: tuple[Path, ...],
    calibration: Path | None,
    refusal: str,
) -> list[Subject[Any, Any]]:
    """Read several jobs or several services.

    Parameters
    ----------
    scenarios : iterable
        For each scenario its name or path, followed by its own overrides.
    overrides : tuple of str
        Overrides for all scenarios, as ``key=value``.
    profiles : tuple of pathlib.Path
        Folders of hardware profiles.
    calibration : pathlib.Path or None
        Overlay of fitted factors.
    refusal : str
        Error message for a mixture of jobs and services.

    Raises
    ------
    InputError
        If a scenario cannot be read.
    click.UsageError
        If jobs and services are mixed.
    """
    subjects = [
        read(name, (*overrides, *settings), profiles, calibration) for name, *settings in scenarios
    ]
    if len({subject.noun for subject in subjects}) > 1:
        raise click.UsageError(refusal)
    return subjects


def refuse_unavailable(subject: Subject[Any, Any], options: Mapping[str, object]) -> None:
    """Raise an error for options of the current command that the kind of scenario doesn't support.

    `options` maps parameter names to values.

    Raises
    ------
    click.UsageError
        If such an option is given.
    """
    command = click.get_current_context().command
    unavailable = subject.unavailable.get(command.name or "", frozenset())
    refuse_given({name: options.get(name) for name in sorted(unavailable)}, subject.plural)


def refuse_given(options: Mapping[str, object], plural: str) -> None:
    """Raise an error if one of these options is given.

    `options` maps parameter names to values; `plural` names the kind of scenario in the message.

    Raises
    ------
    click.UsageError
        If a value is other than None, False or ().
    """
    given = [name for name, value in options.items() if value not in (None, False, ())]
    if not given:
        return
    name, command = given[0], click.get_current_context().command
    parameter = next(one for one in command.params if one.name == name)
    shown = parameter.opts[0] if parameter.opts[0].startswith("-") else name.upper()
    msg = f"{shown} is not available for {plural}"
    raise click.UsageError(msg)


def read(
    name: str,
    overrides: tuple[str, ...] = (),
    profiles: tuple[Path, ...] = (),
    calibration: Path | None = None,
) -> Subject[Any, Any]:
    """Read a job or service by name or path; ``-`` is standard input.

    Raises
    ------
    InputError
        If it cannot be read.
    """
    from simulator.studies.subject import read_subject

    text = _standard_input(name)
    return read_subject(
        name, overrides=overrides, stdin=text, profiles=profiles, calibration=calibration
    )


def read_job(
    name: str,
    overrides: tuple[str, ...] = (),
    profiles: tuple[Path, ...] = (),
    calibration: Path | None = None,
) -> JobSubject:
    """Read a job by name or path; ``-`` is standard input.

    Raises
    ------
    InputError
        If it cannot be read, or is a service.
    """
    from simulator.studies import subject

    text = _standard_input(name)
    return subject.read_job(
        name, overrides=overrides, stdin=text, profiles=profiles, calibration=calibration
    )


def read_sets(names: Iterable[str], scenario: str | None = None) -> list[MeasurementSet]:
    """Read each measurement set once, and report the errors in all of them together.

    `scenario` is the scenario that the rows of plain CSV tables are runs of.

    Raises
    ------
    InputError
        If a set cannot be read.
    """
    from simulator.reading.measured.measurement_set import load_set

    found: list[MeasurementSet] = []
    problems: list[Problem] = []
    for name in dict.fromkeys(names):
        try:
            found.append(load_set(name, scenario))
        except InputError as error:
            problems += error.problems
    if problems:
        raise InputError(tuple(problems))
    return found


def _standard_input(name: str) -> bytes | None:
    """Return the content of standard input if `name` is ``-``, else None; it is read only once."""
    if name != "-":
        return None
    if sys.stdin is None:
        problem = Problem(origin="-", message="cannot be read: standard input is closed")
        raise InputError((problem,))
    from simulator.reading.reading import LARGEST

    context = click.get_current_context()
    if _STDIN not in context.meta:
        context.meta[_STDIN] = sys.stdin.buffer.read(LARGEST + 1)
    text: bytes = context.meta[_STDIN]
    return text


def as_typed(subject: Subject[Any, Any]) -> str:
    """Return the scenario and its ``--set`` options as command-line arguments."""
    options = (f"--set {shlex.quote(text)}" for text in subject.overrides)
    return " ".join([shlex.quote(subject.name_or_path), *options])


def price_age_option(verb: Verb) -> Verb:
    """Decorate a command with ``--max-price-age``, passed as the argument `price_age`."""
    return click.option(
        "--max-price-age",
        "price_age",
        callback=_checked_age,
        metavar="TIME",
        help="Warn about prices older than TIME, such as 180d.",
    )(verb)


def _checked_age(context: click.Context, parameter: click.Parameter, age: str | None) -> str | None:
    del context, parameter
    if age is not None:
        _first_day(age)
    return age


def _first_day(age: str) -> date:
    """Return the date `age` before today; the first day of the calendar if it is out of range."""
    from simulator.units import SECOND

    seconds = quantity(age, SECOND, "--max-price-age")
    try:
        return today() - timedelta(seconds=seconds or 0.0)
    except OverflowError:
        return date.min


def warn_of_old(prices: Iterable[Listed], age: str | None) -> None:
    """Write a warning for each price older than `age` to standard error."""
    if age is None:
        return
    from simulator.report.hardware import old_price_line
    from simulator.results.cost import older

    complain(*(old_price_line(price, age) for price in older(prices, _first_day(age))))


def evidence_option(of_page: str) -> Callable[[Verb], Verb]:
    """Return a decorator that adds ``--evidence``; `of_page` begins its help text."""
    return click.option(
        "--evidence/--no-evidence",
        default=True,
        show_default=True,
        help=f"{of_page} with the most similar measured runs (slow).",
    )


def next_actions(
    subject: Subject[Any, Any],
    base: Any,  # noqa: ANN401 - a prediction of its kind
) -> tuple[tuple[Any, ...], list[str]]:
    """Return the recommended changes to a job or service, and internal errors that occurred.

    `base` is its prediction.
    """
    with progress_line("looking for what helps"):
        return subject.actions(base)


def near(
    job: Scenario | None, jobs: int | None, profiles: tuple[Path, ...]
) -> Neighbourhood | None:
    """Return the measured runs most similar to a job, with their errors; None if `job` is None.

    `jobs` is the number of processes, `profiles` are folders of hardware profiles.
    """
    if job is None:
        return None
    from simulator.reading.shipped import set_names
    from simulator.validation.local_coverage import nearest

    with progress_line("comparing with measured runs") as progress:
        sets = read_sets(set_names())
        return nearest(job, sets, processes=jobs, progress=progress, profiles=profiles)
