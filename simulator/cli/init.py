"""``plan init``: a first scenario of one's own, from a few questions or from flags."""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from simulator.cli import completion
from simulator.cli.exits import Exit
from simulator.cli.options import examples, profiles_option
from simulator.cli.output import check_writable, complain, emit, write_file
from simulator.errors import InputError, NotModelled, PlanError

Command = TypeVar("Command", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One thing to ask: the key it answers, its flag, and what is asked."""

    key: str
    flag: str
    text: str

    @property
    def name(self) -> str:
        """What the flag's value is called in Python."""
        return self.flag.removeprefix("--").replace("-", "_")


QUESTIONS: Final = (
    Question(
        key="hardware.machine",
        flag="--machine",
        text="Machine (plan hardware list node, plan hardware list instance)",
    ),
    Question(key="hardware.count", flag="--count", text="How many of them"),
    Question(
        key="hardware.storage",
        flag="--storage",
        text="Where the data lies (plan hardware list storage; Enter: the machine's own drives)",
    ),
    Question(key="data.samples", flag="--samples", text="Samples in an epoch"),
    Question(
        key="data.bytes_per_sample",
        flag="--bytes",
        text="Size of a sample on the store",
    ),
    Question(key="input.workers", flag="--workers", text="DataLoader workers a process"),
    Question(
        key="input.decode",
        flag="--decode",
        text="CPU time to decode one sample (plan probe --loader measures it)",
    ),
    Question(
        key="model.name",
        flag="--model",
        text="Model (plan models; on a machine without accelerator none prepares data)",
    ),
    Question(
        key="model.step_time",
        flag="--step-time",
        text="Time of a batch on the device, if measured (Enter: as the model computes)",
    ),
    Question(key="train.batch_size", flag="--batch-size", text="Samples a GPU takes"),
    Question(key="train.epochs", flag="--epochs", text="Passes over the data"),
    Question(key="train.precision", flag="--precision", text="fp32, tf32, fp16, bf16 ..."),
)

_MEASURED: Final = "model.step_time"
_ALWAYS: Final = frozenset({"hardware.storage", "model.name", _MEASURED})
"""What is asked though nothing stands there by default."""
_MEANT: Final = re.compile(r"did you mean '([^']+)'\?$")
"""How a message ends that knows just one name like the answer."""

COMPLETE: Final[Mapping[str, completion.Complete]] = {
    "hardware.machine": completion.profiles("node", "instance"),
    "hardware.storage": completion.profiles("storage"),
    "model.name": completion.models,
}
"""What a shell may put in place of a question's value."""


def _flags(command: Command) -> Command:
    for question in reversed(QUESTIONS):
        command = click.option(
            question.flag,
            question.name,
            metavar="VALUE",
            shell_complete=COMPLETE.get(question.key),
            help=question.text,
        )(command)
    return command


@click.command(
    epilog=examples(
        "plan init",
        "plan init --yes --workers 16 --batch-size 512 -o mine.toml",
    )
)
@click.argument("misplaced", nargs=-1, metavar="")
@_flags
@click.option("--name", default="my-job", show_default=True, help="What the scenario is called.")
@click.option("--title", default="How fast is my job, and what limits it?", help="What it asks.")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Where it goes; NAME.toml by default, - for standard output.",
)
@click.option("--force", is_flag=True, help="Replace a file that is there.")
@click.option("-y", "--yes", is_flag=True, help="Ask nothing: flags and defaults.")
@profiles_option
def init(  # noqa: PLR0913 - one parameter an option
    *,
    misplaced: tuple[str, ...],
    name: str,
    title: str,
    output: Path | None,
    force: bool,
    yes: bool,
    profiles: tuple[Path, ...],
    **flags: str | None,
) -> int:
    """Write a first scenario of your own, with every key explained.

    Asks a few questions on a terminal; flags answer them beforehand.
    """
    if misplaced:
        msg = f"where it goes is an option: plan init --output {misplaced[0]}"
        raise click.UsageError(msg)
    target = Path(f"{name}.toml") if output is None else output
    to_file = str(target) != "-"
    if to_file:
        check_writable(target, "--output")
        if target.exists() and not force:
            msg = f"{target} exists; choose another --output, or --force to replace it"
            raise click.UsageError(msg)
    ask = sys.stdin is not None and sys.stdin.isatty() and not yes
    answers = _answers(flags, profiles, ask=ask)
    text = _checked(name, title, answers, profiles)
    if not to_file:
        emit(text.rstrip("\n"))
        return Exit.FINE
    write_file(target, text, "--output")
    complain(f"wrote {target}; next: plan simulate {target}")
    return Exit.FINE


def _answers(
    flags: Mapping[str, str | None], profiles: tuple[Path, ...], *, ask: bool
) -> dict[str, str]:
    """The answer to each question, a flag or what is typed, over the defaults."""
    said = {q.key: given.strip() for q in QUESTIONS if (given := flags[q.name]) is not None}
    asked = [question for question in QUESTIONS if ask and question.key not in said]
    for question in asked:
        usual = _usual(said, profiles)
        if question.key in _ALWAYS or question.key in usual:
            said[question.key] = _asked(question, usual, said, profiles)
    return _joined(_usual(said, profiles), said)


def _usual(said: Mapping[str, str], profiles: tuple[Path, ...]) -> Mapping[str, str]:
    """What stands where nothing is said, on the machine that was named."""
    from simulator.files.catalogue import Catalogue
    from simulator.files.starter import defaults

    machine = said.get("hardware.machine")
    try:
        host = None if machine is None else Catalogue.default(profiles).host(machine)
    except PlanError:  # the file is read back, and that says what is wrong
        host = None
    return defaults(host, said.get("model.name", "") or said.get("model.step_time", ""))


def _joined(usual: Mapping[str, str], said: Mapping[str, str]) -> dict[str, str]:
    return {key: answer for key, answer in {**usual, **said}.items() if answer}


def _asked(
    question: Question,
    usual: Mapping[str, str],
    said: Mapping[str, str],
    profiles: tuple[Path, ...],
) -> str:
    """An answer that the key may have; after a mistake Enter takes what was meant."""
    default = usual.get(question.key, "")
    while True:
        given: str = click.prompt(question.text, default=default, err=True)
        now = {**said, question.key: given.strip()}
        try:
            _checked("", "", _joined(_usual(now, profiles), now), profiles)
        except InputError as error:
            wrong = [one for one in error.problems if one.key == question.key]
            if wrong:
                complain(str(wrong[0]))
                meant = _MEANT.search(str(wrong[0]))
                default = meant[1] if meant else default
                continue
        except NotModelled as error:
            if question.key == _MEASURED:
                complain(str(error))
                continue
        return given.strip()


def _checked(name: str, title: str, answers: Mapping[str, str], profiles: tuple[Path, ...]) -> str:
    """The scenario's text, once it has been read back without a mistake.

    Raises
    ------
    InputError
        With the flags whose answers are wrong.
    NotModelled
        If nothing is known of how long the machine takes for the model.
    """
    from simulator.files.scenario import load_scenario
    from simulator.files.starter import starter_text
    from simulator.pipeline.limits import check_modelled

    text = starter_text(name, title, answers)
    try:
        check_modelled(load_scenario("-", stdin=io.StringIO(text), profiles=profiles))
    except InputError as error:
        flag = {question.key: question.flag for question in QUESTIONS}
        raise InputError(
            tuple(
                replace(one, origin=flag.get(one.key or "", "plan init"), line=None)
                for one in error.problems
            )
        ) from None
    return text
