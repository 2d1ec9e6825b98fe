"""``plan init``: a first scenario of one's own, from a few questions or from flags."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from simulator.cli.exits import Exit
from simulator.cli.options import profiles_option
from simulator.cli.output import check_writable, complain, emit, write_file

Command = TypeVar("Command", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One thing to ask: the key it answers, its flag, what is asked, and what Enter stands for."""

    key: str
    flag: str
    text: str
    default: str

    @property
    def name(self) -> str:
        """What the flag's value is called in Python."""
        return self.flag.removeprefix("--").replace("-", "_")


QUESTIONS: Final = (
    Question(
        key="hardware.machine",
        flag="--machine",
        text="Machine (plan hardware list node, plan hardware list instance)",
        default="node/dgx-a100-80gb",
    ),
    Question(key="hardware.count", flag="--count", text="How many of them", default="1"),
    Question(
        key="hardware.storage",
        flag="--storage",
        text="Where the data lies (plan hardware list storage; Enter: the machine's own drives)",
        default="",
    ),
    Question(key="data.samples", flag="--samples", text="Samples in an epoch", default="1000000"),
    Question(
        key="data.bytes_per_sample",
        flag="--bytes",
        text="Size of a sample on the store",
        default="100 kB",
    ),
    Question(
        key="input.workers", flag="--workers", text="DataLoader workers a process", default="8"
    ),
    Question(
        key="input.decode",
        flag="--decode",
        text="CPU time to decode one sample (plan probe loader measures it)",
        default="5 ms",
    ),
    Question(key="model.name", flag="--model", text="Model (plan models)", default="resnet50"),
    Question(
        key="train.batch_size", flag="--batch-size", text="Samples a GPU takes", default="256"
    ),
    Question(key="train.epochs", flag="--epochs", text="Passes over the data", default="10"),
    Question(
        key="train.precision", flag="--precision", text="fp32, tf32, fp16, bf16 ...", default="bf16"
    ),
)
ALWAYS: Final[Mapping[str, str]] = {
    "input.loader": "pytorch",
    "input.pin_memory": "true",
    "software.framework": "pytorch",
}
"""What is not asked, but stands in the file to be changed."""


def _flags(command: Command) -> Command:
    for question in reversed(QUESTIONS):
        command = click.option(
            question.flag,
            question.name,
            metavar="VALUE",
            help=f"{question.text} [{question.default or 'none'}]",
        )(command)
    return command


@click.command()
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
@click.option("-y", "--yes", is_flag=True, help="Ask nothing: what no flag says is as in brackets.")
@profiles_option
def init(  # noqa: PLR0913 - one parameter an option
    *,
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
    target = Path(f"{name}.toml") if output is None else output
    to_file = str(target) != "-"
    if to_file:
        check_writable(target, "--output")
        if target.exists() and not force:
            msg = f"{target} exists; choose another --output, or --force to replace it"
            raise click.UsageError(msg)
    answers = _answers(flags, ask=sys.stdin is not None and sys.stdin.isatty() and not yes)
    text = _checked(name, title, answers, profiles)
    if not to_file:
        emit(text.rstrip("\n"))
        return Exit.FINE
    write_file(target, text, "--output")
    complain(f"wrote {target}; next: plan simulate {target}")
    return Exit.FINE


def _answers(flags: Mapping[str, str | None], *, ask: bool) -> dict[str, str]:
    """The answer to each question: its flag, what is typed, or the default."""
    answers = {}
    for question in QUESTIONS:
        given = flags[question.name]
        if given is None and ask:
            given = click.prompt(question.text, default=question.default, err=True)
        answers[question.key] = question.default if given is None else given.strip()
    return {key: answer for key, answer in (answers | dict(ALWAYS)).items() if answer}


def _checked(name: str, title: str, answers: Mapping[str, str], profiles: tuple[Path, ...]) -> str:
    """The scenario's text, once it has been read back without a mistake."""
    from simulator.files.scenario import load_scenario
    from simulator.files.starter import starter_text

    text = starter_text(name, title, answers)
    load_scenario("-", stdin=io.StringIO(text), profiles=profiles)
    return text
