"""The console script ``plan``: the table of commands, and the exit code of each kind of failure."""

from __future__ import annotations

import atexit
import contextlib
import difflib
import errno
import gc
import io
import keyword
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any, Final

import click
from click.shell_completion import CompletionItem

from simulator.cli.output import REPORT_BUG, Exit, complain
from simulator.errors import (
    InputError,
    PlanError,
    StepProgramError,
    cut_names,
    first_problems,
)
from simulator.version import __version__

Table = Mapping[str, tuple[str, str]]
"""Commands by name: (module with a click command of this name, one line of help)."""


class LateGroup(click.Group):
    """A click group that imports its commands when they are called.

    `table` maps names to module and summary; `kind` is the word for a command in errors; `sections`
    are headings of the help with the commands below each.
    """

    def __init__(
        self,
        *args: Any,  # noqa: ANN401 - click's signature
        table: Table,
        kind: str = "command",
        sections: Mapping[str, Iterable[str]] | None = None,
        **kwargs: Any,  # noqa: ANN401 - click's signature
    ) -> None:
        super().__init__(*args, **kwargs)
        self.table = table
        self.kind = kind
        self.sections = {"Commands": tuple(table)} if sections is None else sections

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Return the names of all commands, in the order of the table."""
        return list(self.table)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - click's signature
        """Import and return a command; None if there is no such command."""
        if cmd_name not in self.table:
            return None
        module, summary = self.table[cmd_name]
        command: click.Command = getattr(import_module(module), attribute(cmd_name))
        command.short_help = summary
        return command

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Return completions of commands, without importing them, and of the group's options."""
        names = [
            CompletionItem(name, help=summary)
            for name, (_, summary) in self.table.items()
            if name.startswith(incomplete)
        ]
        return [*names, *click.Command.shell_complete(self, ctx, incomplete)]

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command; the error for an unknown name suggests the closest one."""
        name = args[0]
        if name in self.table or name.startswith("-"):
            return super().resolve_command(ctx, args)
        close = difflib.get_close_matches(name, self.table, n=1)
        every = f"; {ctx.command_path} --help lists them"
        if len(self.table) == 1:
            every = f"; usage: {ctx.command_path} {next(iter(self.table))} {' '.join(args)}"
        hint = f"; did you mean '{close[0]}'?" if close else every
        msg = f"unknown {self.kind} '{name}'{hint}"
        raise click.UsageError(msg, ctx=ctx)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - click's signature
        """Write the table of commands to the help, without importing them."""
        width = max(map(len, self.table))
        for title, names in self.sections.items():
            with formatter.section(title):
                formatter.write_dl([(f"{name:{width}}", self.table[name][1]) for name in names])


def attribute(name: str) -> str:
    """Return the Python name of a command, such as ``hf_config`` for ``hf-config``."""
    plain = name.replace("-", "_")
    return f"{plain}_" if keyword.iskeyword(plain) else plain


GC_THRESHOLD: Final = 50_000
"""Allocations between two garbage collections: a run makes few cycles, and collecting after every
700, as Python does, takes a tenth of its time."""
_SHOWN: Final = 40
"""Number of characters shown of a file name that is too long."""

SECTIONS: Final[dict[str, dict[str, tuple[str, str]]]] = {
    "Predict": {
        "simulate": ("simulator.cli.simulate", "Speed, bottleneck, memory and cost of a scenario."),
        "report": ("simulator.cli.simulate", "Write the prediction as one HTML file with charts."),
        "plot": ("simulator.cli.simulate", "Write a chart of a scenario as PNG, SVG or PDF."),
        "goodput": (
            "simulator.cli.goodput",
            "Completion time and cost of a run with failures.",
        ),
        "campaign": (
            "simulator.cli.goodput",
            "Queueing, completion and cost of jobs that share machines.",
        ),
        "explain": (
            "simulator.cli.simulate",
            "How a number is computed, with equations and sources.",
        ),
    },
    "Choose": {
        "advise": ("simulator.cli.advise", "Recommend settings, such as workers and prefetch."),
        "compare": ("simulator.cli.compare", "Show scenarios side by side."),
        "whatif": ("simulator.cli.whatif", "Predict the effect of more of each resource."),
        "sweep": ("simulator.cli.sweep", "Predict many variants of a scenario and find the best."),
        "size": (
            "simulator.cli.size",
            "Find the least storage, network, CPU or RAM that is enough.",
        ),
        "recommend": ("simulator.cli.recommend", "Find the best machines for a goal."),
    },
    "Accuracy": {
        "validate": ("simulator.cli.validate", "Measure the accuracy of predictions."),
        "calibrate": ("simulator.cli.calibrate", "Fit model parameters to your measurements."),
        "probe": ("simulator.cli.probe", "Measure this machine, or a data loader on it."),
        "import": (
            "simulator.cli.import_",
            "Convert output of other tools into profiles and scenarios.",
        ),
    },
    "Scenarios and reference data": {
        "init": ("simulator.cli.init", "Write a first scenario of your own."),
        "scenarios": ("simulator.cli.facts", "List the scenarios that come with plan."),
        "hardware": ("simulator.cli.hardware", "List, show and compare machines and devices."),
        "models": ("simulator.cli.facts", "List the models that plan knows."),
        "metrics": ("simulator.cli.facts", "List all metrics, with units."),
        "schema": ("simulator.cli.facts", "Print the JSON Schema of scenario files."),
        "doctor": ("simulator.cli.facts", "Show installed components and this machine's hardware."),
    },
}
"""Commands by purpose: (module with a click command of this name, one line of help)."""
VERBS: Final[dict[str, tuple[str, str]]] = {
    name: entry for verbs in SECTIONS.values() for name, entry in verbs.items()
}


@click.group(
    cls=LateGroup,
    table=VERBS,
    sections=SECTIONS,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name="plan", message="%(prog)s %(version)s")
@click.option(
    "--debug", is_flag=True, expose_value=False, help="Show the traceback of an internal error."
)
def plan() -> None:
    """Predict what hardware a machine-learning job needs.

    A scenario is a TOML file, the name of a shipped one (resnet50-imagenet-p4d), or - for
    standard input.

    Exit codes: 0 success; 1 the job does not fit, or a goal or SLO is missed; 2 invalid input or
    usage; 70 internal error; 130 interrupted by Ctrl-C; 141 broken pipe.
    """


def main(argv: Sequence[str] | None = None) -> int:
    """Run ``plan`` and return its exit code.

    Parameters
    ----------
    argv : sequence of str, optional
        Arguments without the program's name; by default those of the process.

    Returns
    -------
    int
        One of `Exit`.
    """
    arguments = sys.argv[1:] if argv is None else list(argv)
    wanted = [argument for argument in arguments if argument != "--debug"]
    _accept_any_character()
    gc.set_threshold(GC_THRESHOLD)
    _leave_at_once()
    try:
        with _user_mistakes_are_messages():
            return _invoke(wanted)
    except BrokenPipeError:
        _drop_output()
        return Exit.PIPE_CLOSED
    except (KeyboardInterrupt, EOFError, click.Abort):
        return Exit.INTERRUPTED
    except _Reported as reported:
        return reported.code
    except Exception as error:  # noqa: BLE001 - the last resort is what this function is for
        if _by_interruption(error):
            return Exit.INTERRUPTED
        return _confess(error, debug=len(wanted) < len(arguments))


def _by_interruption(error: BaseException) -> bool:
    """Return True if an error was caused by Ctrl-C, such as during an import."""
    before = error.__cause__ or error.__context__
    return before is not None and (
        isinstance(before, KeyboardInterrupt) or _by_interruption(before)
    )


class _Reported(Exception):  # noqa: N818 - control flow, not a mistake
    """An error whose message is already printed; `code` is the exit code."""

    def __init__(self, code: Exit) -> None:
        self.code = code
        super().__init__(code)


@contextlib.contextmanager
def _user_mistakes_are_messages() -> Iterator[None]:
    try:
        yield
    except click.ClickException as error:
        error.show()
        raise _Reported(Exit.BAD_INPUT) from None
    except InputError as error:
        complain(*(str(problem) for problem in first_problems(error.problems)))
        raise _Reported(Exit.BAD_INPUT) from None
    except PlanError as error:
        complain(*map(cut_names, str(error).splitlines()))
        raise _Reported(Exit.BAD_INPUT) from None
    except OSError as error:
        if error.errno != errno.ENAMETOOLONG:
            raise
        complain(f"{str(error.filename)[:_SHOWN]}...: file name too long")
        raise _Reported(Exit.BAD_INPUT) from None


def _invoke(arguments: list[str]) -> int:
    """Run the command and return its exit code; unlike click's `main`, don't catch errors."""
    if "_PLAN_COMPLETE" in os.environ:  # set by a shell that completes a command line
        plan.main(arguments, prog_name="plan")
    try:
        with plan.make_context("plan", arguments, obj=tuple(arguments)) as context:
            code = plan.invoke(context)
    except click.exceptions.Exit as ended:
        code = ended.exit_code
    if sys.stdout is not None:
        sys.stdout.flush()
    return code if isinstance(code, int) else Exit.FINE


def _leave_at_once() -> None:
    """Skip the final garbage collection, as the operating system frees all memory."""
    atexit.unregister(gc.freeze)
    atexit.register(gc.freeze)


def _accept_any_character() -> None:
    """Print characters that the terminal's encoding lacks as question marks."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def _drop_output() -> None:
    """Redirect standard output to /dev/null, so that the flush at exit does not fail."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _confess(error: Exception, *, debug: bool) -> int:
    if debug:
        import traceback

        traceback.print_exception(error)
    if isinstance(error, StepProgramError):
        complain(str(error))
        return Exit.OUR_BUG
    complain(
        f"this is a bug in plan {__version__}, not in your input: {type(error).__name__}: {error}",
        REPORT_BUG,
        *(() if debug else ("run again with --debug for the traceback",)),
    )
    return Exit.OUR_BUG
