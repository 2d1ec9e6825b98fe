"""The subject of a verb: SCENARIO with its options, read; and what pages compare it with."""

from __future__ import annotations

import functools
import shlex
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from simulator.cli.completion import scenarios
from simulator.cli.options import calibration_option, profiles_option, quantity, set_option
from simulator.cli.output import complain, today
from simulator.cli.progress import progress_line
from simulator.errors import InputError, Problem

if TYPE_CHECKING:
    from simulator.results.cost import Listed
    from simulator.results.prediction import Prediction
    from simulator.schema.scenario import Scenario
    from simulator.studies.subject import JobSubject, Subject
    from simulator.validation.local_coverage import Neighbourhood

Verb = TypeVar("Verb", bound=Callable[..., Any])
_STDIN: Final = "simulator.cli.subjects.stdin"


def subject_arguments(verb: Callable[..., Any]) -> Callable[..., Any]:
    """Add SCENARIO, ``--set``, ``--profiles`` and ``--calibration`` to a verb.

    The verb gets the parameter `subject`, a job or a service. Options that its kind has no answer
    for are refused (`Subject.unavailable`).
    """

    @functools.wraps(verb)
    def on_subject(
        *,
        scenario: str,
        overrides: tuple[str, ...],
        profiles: tuple[Path, ...],
        calibration: Path | None,
        **options: Any,  # noqa: ANN401 - those of the verb
    ) -> Any:  # noqa: ANN401 - that of the verb
        subject = read(scenario, overrides, profiles, calibration)
        refuse_unavailable(subject, options)
        return verb(subject=subject, **options)

    return _with_arguments(on_subject)


def job_arguments(verb: Callable[..., Any]) -> Callable[..., Any]:
    """Add the same to a verb about jobs only; the parameter `subject` is a `JobSubject`."""

    @functools.wraps(verb)
    def on_job(
        *,
        scenario: str,
        overrides: tuple[str, ...],
        profiles: tuple[Path, ...],
        calibration: Path | None,
        **options: Any,  # noqa: ANN401 - those of the verb
    ) -> Any:  # noqa: ANN401 - that of the verb
        return verb(subject=read_job(scenario, overrides, profiles, calibration), **options)

    return _with_arguments(on_job)


def _with_arguments(verb: Verb) -> Verb:
    for add in (
        calibration_option,
        profiles_option,
        set_option("Set a key of the scenario, such as input.workers=8; repeatable."),
        click.argument("scenario", shell_complete=scenarios),
    ):
        verb = add(verb)
    return verb


def refuse_unavailable(subject: Subject[Any, Any], options: Mapping[str, object]) -> None:
    """Refuse options of the running verb that the kind of a subject has no answer for.

    Raises
    ------
    click.UsageError
        If one of them is given.
    """
    command = click.get_current_context().command
    unavailable = subject.unavailable.get(command.name or "", frozenset())
    refuse_given({name: options.get(name) for name in sorted(unavailable)}, subject.plural)


def refuse_given(options: Mapping[str, object], plural: str) -> None:
    """Refuse the options that are given, which have no meaning for a kind of subject.

    Raises
    ------
    click.UsageError
        If one of them is not None, False or ().
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
    """Read the job or service that arguments name; ``-`` is standard input.

    Raises
    ------
    InputError
        If it cannot be read.
    """
    from simulator.studies.subject import read_subject

    return read_subject(
        name,
        overrides=overrides,
        stdin=_standard_input(name),
        profiles=profiles,
        calibration=calibration,
    )


def read_job(
    name: str,
    overrides: tuple[str, ...] = (),
    profiles: tuple[Path, ...] = (),
    calibration: Path | None = None,
) -> JobSubject:
    """Read the job that arguments name.

    Raises
    ------
    InputError
        If it cannot be read, or is a service.
    """
    from simulator.studies import subject

    return subject.read_job(
        name,
        overrides=overrides,
        stdin=_standard_input(name),
        profiles=profiles,
        calibration=calibration,
    )


def _standard_input(name: str) -> bytes | None:
    """Return standard input if it is meant; it can be read once, and is kept for the verb."""
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
    """Return SCENARIO and its settings as the user would type them again."""
    options = (f"--set {shlex.quote(text)}" for text in subject.overrides)
    return " ".join([shlex.quote(subject.name_or_path), *options])


def price_age_option(verb: Verb) -> Verb:
    """Add ``--max-price-age``; the verb gets the parameter `price_age`."""
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
    """Return the day so long ago; the first day of the calendar if that is before it."""
    from simulator.units import SECOND

    seconds = quantity(age, SECOND, "--max-price-age")
    try:
        return today() - timedelta(seconds=seconds or 0.0)
    except OverflowError:
        return date.min


def warn_of_old(prices: Iterable[Listed], age: str | None) -> None:
    """Name each price past the age, with its date, on standard error."""
    if age is None:
        return
    from simulator.report.hardware import old_price_line
    from simulator.results.cost import older

    complain(*(old_price_line(price, age) for price in older(prices, _first_day(age))))


def next_actions(
    subject: Subject[Any, Any],
    base: Any,  # noqa: ANN401 - a prediction of its kind
) -> tuple[tuple[Any, ...], list[str]]:
    """Return what to do next about a subject with this prediction, and internal errors met."""
    with progress_line("looking for what helps"):
        return subject.actions(base)


def near(
    job: Scenario | None, jobs: int | None, profiles: tuple[Path, ...]
) -> Neighbourhood | None:
    """Return the shipped measured runs most like a job, with the errors there."""
    if job is None:
        return None
    from simulator.reading.measured.measurement_set import load_set
    from simulator.reading.shipped import set_names
    from simulator.validation.local_coverage import nearest

    sets = [load_set(name) for name in set_names()]
    with progress_line("comparing with measured runs") as progress:
        return nearest(job, sets, processes=jobs, progress=progress, profiles=profiles)


@dataclass(frozen=True, slots=True, kw_only=True)
class InFull:
    """Predicts the best of many candidates once more with all detail, for a page that shows it."""

    seed: int
    jobs: int | None
    profiles: tuple[Path, ...]
    evidence: bool

    def of(self, scenario: Scenario) -> tuple[Prediction, Neighbourhood | None]:
        """Return the prediction of a candidate, and the measured runs near it if wanted."""
        from simulator.predict import predict

        with progress_line("predicting the best in full") as progress:
            prediction = predict(scenario, seed=self.seed, progress=progress)
        return prediction, near(scenario, self.jobs, self.profiles) if self.evidence else None
