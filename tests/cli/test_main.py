"""The console script: verbs, exit codes, and how failures end."""

from __future__ import annotations

import shlex
import signal
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import click
import pytest
from support.catalogue import each

from simulator import predict as door
from simulator.cli.main import SECTIONS, VERBS, main
from simulator.cli.main import plan as console
from simulator.cli.output import Exit
from simulator.errors import InputError, NotModelled, Problem, UnknownName
from simulator.report.text import WIDTH
from simulator.version import __version__

Run = Callable[..., Any]
"""A fixture that runs ``plan``, or arranges how it runs."""

HEAVY = ("numpy", "pandas", "scipy", "matplotlib", "simpy")
SCENARIO = "resnet50-imagenet-p4d"


@each("verb", ["", *VERBS])
def test_help_has_its_parts(plan: Run, verb: str) -> None:
    """Help names the verb in its usage line, says what the verb and each option do, and fits."""
    outcome = plan(*([verb] if verb else []), "--help")
    assert (outcome.code, outcome.err) == (Exit.FINE, "")
    lines = outcome.out.splitlines()
    assert lines[0].startswith(f"Usage: plan {verb}".rstrip())
    assert lines[2].startswith("  ")
    assert lines[2].strip()[0].isupper()
    assert [line for line in lines if len(line) > WIDTH] == []
    context = click.Context(console, **console.context_settings)
    command = console.get_command(context, verb) if verb else console
    assert command is not None
    for option in command.params:
        if isinstance(option, click.Option) and not option.hidden:
            assert option.help, option.name
            assert all(name in outcome.out for name in option.opts)
            assert option.help[0].isupper(), option.help


def test_every_verb_is_in_the_help(plan: Run) -> None:
    """The table of verbs is the list under Commands."""
    text = plan("--help").out
    assert all(f"  {verb} " in text and summary in text for verb, (_, summary) in VERBS.items())


def test_the_sections_of_the_help_hold_every_verb_once() -> None:
    """A verb stands under one heading."""
    named = [verb for verbs in SECTIONS.values() for verb in verbs]
    assert sorted(named) == sorted(VERBS)


@each("verb", VERBS)
def test_examples_of_the_help_are_sound(verb: str) -> None:
    """Every example is a command line that the verb takes."""
    # click keeps a command's help option as its first context had it: this one is as in use
    whole = click.Context(console, **console.context_settings)
    command: click.Command | None = console.get_command(whole, verb)
    assert command is not None
    parts = getattr(command, "table", {}) if verb == "advise" else {}
    owners = [command, *(command.get_command(whole, part) for part in parts)]  # type: ignore[attr-defined] # a group
    for owner in owners:
        for line in (owner.epilog or "").splitlines()[2:]:
            words = shlex.split(line)
            assert words[:2] == ["plan", verb]
            owner.make_context(verb, words[3 if owner is not command else 2 :], parent=whole)


def test_help_imports_nothing_heavy(root: Path) -> None:
    """The help loads no verb and none of the libraries that take their time."""
    code = (
        "import sys; from simulator.cli.main import main; main(['--help']);"
        f"print([m for m in {HEAVY!r} if m in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run(  # noqa: S603 - our own interpreter and code
        [sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True
    )
    assert done.stderr.strip() == "[]"


def test_version(plan: Run) -> None:
    """The version is that of the code."""
    assert plan("--version").out == f"plan {__version__}\n"


def test_the_script_is_installed_as_plan() -> None:
    """The console script leads to `main`, where the package is installed."""
    found = [e for e in entry_points(group="console_scripts") if e.value.startswith("simulator.")]
    assert [(e.name, e.value) for e in found] in ([], [("plan", "simulator.cli.main:main")])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "Usage: plan"),
        (["simulat", "x"], "did you mean 'simulate'?"),
        (["xyzzy"], "unknown command 'xyzzy'"),
        (["simulate"], "SCENARIO"),
        (["simulate", SCENARIO, "--sed", "1"], "--seed"),
        (["simulate", SCENARIO, "--seed", "-1"], "--seed"),
        (["simulate", SCENARIO, "--seed", "x"], "--seed"),
        (["simulate", SCENARIO, "--steps", "0"], "--steps"),
        (["simulate", SCENARIO, "more"], "more"),
        (["simulate", SCENARIO, "--json", "--log", "9"], "exclude each other"),
        (["explain", SCENARIO, "step_tme_s.mean"], "step_time_s.mean"),
        (["schema", "--now"], "--now"),
    ],
)
def test_bad_usage(plan: Run, arguments: list[str], message: str) -> None:
    """Wrong usage exits with 2, says what is wrong on standard error, and nothing else."""
    outcome = plan(*arguments)
    assert outcome.code == Exit.BAD_INPUT
    assert outcome.out == ""
    assert message in outcome.err
    assert "Traceback" not in outcome.err


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> Callable[[BaseException], None]:
    """Make the prediction fail."""

    def arrange(error: BaseException) -> None:
        def fail(*_: object, **__: object) -> None:
            raise error

        monkeypatch.setattr(door, "predict", fail)

    return arrange


def test_every_problem_has_a_line(plan: Run, failing: Run) -> None:
    """All mistakes are printed, one a line, and no input can break the line."""
    first = Problem(origin="a.toml", line=3, message="is wrong", found="'x\ny\x1b[2J'")
    failing(InputError((first, Problem(origin="--set", message="is wrong too"))))
    outcome = plan("simulate", SCENARIO)
    assert (outcome.code, outcome.out) == (Exit.BAD_INPUT, "")
    assert outcome.err == (
        "plan: a.toml:3: is wrong, found 'x\\ny\\x1b[2J'\nplan: --set: is wrong too\n"
    )


@pytest.mark.parametrize("error", [NotModelled("no such thing"), UnknownName("no such thing")])
def test_user_mistakes_exit_with_2(plan: Run, failing: Run, error: Exception) -> None:
    """What a user can mend is one message without a traceback."""
    failing(error)
    outcome = plan("simulate", SCENARIO)
    assert (outcome.code, outcome.out) == (Exit.BAD_INPUT, "")
    assert outcome.err == "plan: no such thing\n"


def test_our_own_bug_says_so(plan: Run, failing: Run) -> None:
    """An unforeseen failure exits with 70, asks for a report, and hides the traceback."""
    failing(ZeroDivisionError("float division by zero"))
    outcome = plan("simulate", SCENARIO)
    assert (outcome.code, outcome.out) == (Exit.OUR_BUG, "")
    assert "this is a bug in plan" in outcome.err
    assert "issue tracker" in outcome.err
    assert "Traceback" not in outcome.err


def test_an_error_that_comes_of_ctrl_c_is_no_bug(plan: Run, failing: Run) -> None:
    """A library that is interrupted while it is imported says that the import failed."""
    error = ImportError("cannot import name 'multiarray'")
    error.__cause__ = KeyboardInterrupt()
    failing(error)
    outcome = plan("simulate", SCENARIO)
    assert (outcome.code, outcome.out) == (Exit.INTERRUPTED, "")
    assert "bug" not in outcome.err


@pytest.mark.parametrize(
    "arguments", [["--debug", "simulate", SCENARIO], ["simulate", SCENARIO, "--debug"]]
)
def test_debug_shows_the_traceback(plan: Run, failing: Run, arguments: list[str]) -> None:
    """With --debug, before or after the verb, the traceback is printed."""
    failing(ZeroDivisionError("float division by zero"))
    outcome = plan(*arguments)
    assert outcome.code == Exit.OUR_BUG
    assert "Traceback" in outcome.err


def test_interruption_is_quiet(plan: Run, failing: Run) -> None:
    """Ctrl-C ends with the code a shell expects and no words."""
    failing(KeyboardInterrupt())
    outcome = plan("simulate", SCENARIO)
    assert (outcome.code, outcome.out) == (Exit.INTERRUPTED, "")
    assert "Traceback" not in outcome.err
    assert "bug" not in outcome.err


@pytest.mark.slow
def test_a_real_interruption(root: Path) -> None:
    """A process that gets SIGINT while it simulates ends quietly with 130."""
    code = (
        "import sys, time; from simulator import predict as door;"
        "from simulator.cli.main import main;"
        "door.predict = lambda *_, **__: print('ready', flush=True) or time.sleep(60);"
        f"sys.exit(main(['simulate', {SCENARIO!r}]))"
    )
    process = subprocess.Popen(  # noqa: S603 - our own interpreter and code
        [sys.executable, "-c", code],
        cwd=root,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert (process.returncode, out, err) == (Exit.INTERRUPTED, "", "")


def test_a_closed_pipe_is_quiet(spawn: Run) -> None:
    """``plan schema | head -0`` prints no complaint."""
    process = spawn("schema")
    process.stdout.close()
    err = process.stderr.read()
    process.stderr.close()
    assert (process.wait(timeout=30), err) == (Exit.PIPE_CLOSED, "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full on this system")
def test_a_full_disk_is_said(spawn: Run) -> None:
    """Output that cannot be written is the user's to mend, not a bug."""
    with Path("/dev/full").open("w", encoding="utf-8") as full:
        process = spawn("schema", stdout=full)
        _, err = process.communicate(timeout=30)
    assert process.returncode == Exit.BAD_INPUT
    assert err.startswith("plan: cannot write to standard output")


@pytest.mark.slow
def test_any_encoding_will_do(spawn: Run) -> None:
    """A terminal that knows only ASCII gets question marks, not a failure."""
    process = spawn("simulate", SCENARIO, env={"PYTHONIOENCODING": "ascii"})
    out, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (Exit.FINE, "")
    assert SCENARIO in out


def test_main_takes_the_process_arguments(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without an argument `main` reads those of the process."""
    monkeypatch.setattr(sys, "argv", ["plan", "--version"])
    assert main() == Exit.FINE


def test_the_shell_can_complete(spawn: Run) -> None:
    """A shell that asks gets the verbs that begin with what was typed."""
    asked = {"_PLAN_COMPLETE": "bash_complete", "COMP_WORDS": "plan sim", "COMP_CWORD": "1"}
    out, _ = spawn(env=asked).communicate(timeout=30)
    assert out.strip() == "plain,simulate"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("redirection", "arguments", "message"),
    [("<&-", ["simulate", "-"], "standard input is closed"), (">&-", ["schema"], "it is closed")],
)
def test_closed_streams(root: Path, redirection: str, arguments: list[str], message: str) -> None:
    """A stream that the shell closed is said to be closed."""
    code = "import sys; from simulator.cli.main import main; sys.exit(main())"
    shell = f'exec "$0" -c "$1" {" ".join(arguments)} {redirection}'
    done = subprocess.run(  # noqa: S603 - our own interpreter and code
        ["bash", "-c", shell, sys.executable, code],  # noqa: S607 - the shell on the path
        cwd=root,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    assert done.returncode == Exit.BAD_INPUT
    assert message in done.stderr
    assert "Traceback" not in done.stderr
