"""How every verb ends: the code, nothing on standard output but data, messages on standard error.

0 fine, 1 does not fit or misses the goal, 2 bad input, 70 a bug, 130 Ctrl-C, 141 a closed pipe.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from itertools import cycle
from pathlib import Path
from typing import Any, Final

import pytest
from support.catalogue import each
from support.stages import sampled

from simulator.cli import main as console
from simulator.cli.main import VERBS, main
from simulator.cli.output import Exit
from tests.support.answers import SCENARIO, write_evidence
from tests.support.answers import VERBS as ANSWERS

Run = Callable[..., Any]
"""A fixture that runs ``plan``."""

SILENT: Final = frozenset({"report", "plot", "init", "probe"})
"""Verbs whose answer is a file, a script, or other on each machine."""
OF_A_SCENARIO: Final[dict[str, tuple[str, ...]]] = {
    "simulate": ("simulate", "{}"),
    "report": ("report", "{}"),
    "plot": ("plot", "{}"),
    "explain": ("explain", "{}"),
    "advise": ("advise", "input", "{}"),
    "compare": ("compare", "{}", SCENARIO),
    "whatif": ("whatif", "{}"),
    "sweep": ("sweep", "{}", "--over", "input.workers=1,2"),
    "recommend": ("recommend", "{}"),
    "validate": ("validate", "mine.toml", "--near", "{}"),
    "import": ("import", "utilization", "smi.csv", "--beside", "{}"),
}
"""Command lines that read a scenario."""
OF_A_FILE: Final[dict[str, tuple[str, ...]]] = {
    "validate": ("validate", "{}"),
    "calibrate": ("calibrate", "{}", "--fit", "calibration.cpu"),
    "recommend": ("recommend", SCENARIO, "--goal", "{}"),
    "simulate": ("simulate", SCENARIO, "--calibration", "{}"),
    "import fio": ("import", "fio", "{}"),
    "import hf-config": ("import", "hf-config", "{}"),
    "import utilization": ("import", "utilization", "{}"),
}
"""Command lines that read another file."""
WRITING: Final[dict[str, tuple[str, ...]]] = {
    "simulate": ("simulate", SCENARIO, "--trace", "{}"),
    "report": ("report", SCENARIO, "-o", "{}"),
    "plot": ("plot", SCENARIO, "-o", "{}"),
    "whatif": ("whatif", SCENARIO, "--plot", "{}"),
    "sweep csv": ("sweep", SCENARIO, "--over", "input.workers=1,2", "--csv", "{}"),
    "sweep plot": ("sweep", SCENARIO, "--over", "input.workers=1,2", "--plot", "{}"),
    "sweep html": ("sweep", SCENARIO, "--over", "input.workers=1,2", "--html", "{}"),
    "sweep parquet": ("sweep", SCENARIO, "--over", "input.workers=1,2", "--parquet", "{}"),
    "validate html": ("validate", "mine.toml", "--html", "{}"),
    "validate markdown": ("validate", "mine.toml", "--markdown", "{}"),
    "calibrate": ("calibrate", "mine.toml", "--fit", "calibration.cpu", "-o", "{}"),
    "init": ("init", "--yes", "-o", "{}"),
    "import utilization": ("import", "fio", "smi.csv", "-o", "{}"),
}
"""Command lines that write a file."""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with evidence and broken files, in which ``plan`` runs and keeps its results."""
    write_evidence(tmp_path)
    (tmp_path / "folder").mkdir()
    (tmp_path / "broken.toml").write_text('schema = 1\nname = "x', encoding="utf-8")
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe\x00")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PLAN_STORE", str(tmp_path / "store"))
    return tmp_path


def filled(arguments: tuple[str, ...], name: str) -> list[str]:
    """A command line with a name in place of the braces."""
    return [name if argument == "{}" else argument for argument in arguments]


def test_no_verb_is_forgotten() -> None:
    """Whatever verb is added has to say how it ends."""
    answering = {arguments[0] for arguments in ANSWERS.values()}
    assert answering | SILENT == set(VERBS)
    assert answering.isdisjoint(SILENT)


def refused(plan: Run, arguments: list[str], said: str = "") -> None:
    """A command line ends with 2, its data are nothing, and a message says why."""
    outcome = plan(*arguments)
    assert (outcome.code, outcome.out) == (Exit.BAD_INPUT, "")
    assert said in outcome.err
    assert outcome.err.strip()
    assert "Traceback" not in outcome.err


@pytest.mark.parametrize("verb", VERBS)
def test_an_unknown_option(plan: Run, verb: str) -> None:
    """What a verb does not know is bad input."""
    refused(plan, [verb, "--no-such-option"], "--no-such-option")


@pytest.mark.parametrize(
    "name",
    ["no-such-scenario", "none/none.toml", "folder", "broken.toml", "binary.toml", "", "x" * 999],
)
@each("arguments", OF_A_SCENARIO.values())
def test_a_scenario_that_cannot_be_read(plan: Run, arguments: tuple[str, ...], name: str) -> None:
    """A name that leads nowhere, a folder, text that is no TOML, bytes that are no text."""
    refused(plan, filled(arguments, name))


@pytest.mark.parametrize("arguments", OF_A_SCENARIO.values(), ids=OF_A_SCENARIO)
def test_standard_input_that_is_closed(
    plan: Run, arguments: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every verb that reads a scenario says that it cannot be read from there."""
    monkeypatch.setattr(sys, "stdin", None)
    refused(plan, filled(arguments, "-"), "standard input")


@pytest.mark.parametrize("name", ["none.toml", "folder", "binary.toml", "x" * 999])
@each("arguments", OF_A_FILE.values())
def test_a_file_that_cannot_be_read(plan: Run, arguments: tuple[str, ...], name: str) -> None:
    """The same for evidence, goals and calibrations."""
    refused(plan, filled(arguments, name))


@pytest.mark.parametrize("name", ["folder", "none/out.html"])
@pytest.mark.parametrize("arguments", WRITING.values(), ids=WRITING)
def test_a_file_that_cannot_be_written(
    plan: Run, arguments: tuple[str, ...], name: str, folder: Path
) -> None:
    """It is refused before the work, and nothing is written."""
    before = sorted(folder.rglob("*"))
    refused(plan, filled(arguments, name), "folder")
    assert sorted(folder.rglob("*")) == before


class Broken(io.StringIO):
    """Standard output that fails at the first word."""

    def __init__(self, error: BaseException) -> None:
        super().__init__()
        self.error = error

    def write(self, _: str) -> int:
        """Fail."""
        raise self.error


ENDS: Final[dict[str, tuple[BaseException, Exit, str]]] = {
    "full disk": (OSError(28, "No space left on device"), Exit.BAD_INPUT, "No space left"),
    "closed pipe": (BrokenPipeError(), Exit.PIPE_CLOSED, ""),
    "Ctrl-C": (KeyboardInterrupt(), Exit.INTERRUPTED, ""),
    "bug": (ZeroDivisionError("division by zero"), Exit.OUR_BUG, "this is a bug in plan"),
}
QUICK: Final = {
    verb: next(arguments for arguments in ANSWERS.values() if arguments[0] == verb)
    for verb in dict.fromkeys(arguments[0] for arguments in ANSWERS.values())
} | {"init": ("init", "--yes", "-o", "-")}


@pytest.mark.parametrize(("verb", "end"), sampled(zip(QUICK, cycle(ENDS), strict=False), 4))
def test_an_answer_that_cannot_be_given(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], verb: str, end: str
) -> None:
    """However the output fails, the code says so, and a message only where it helps.

    All verbs print by the same few lines: each meets one of the failures, each failure several.
    """
    error, code, said = ENDS[end]
    monkeypatch.setattr(sys, "stdout", Broken(error))
    assert main(QUICK[verb]) == code
    err = capsys.readouterr().err
    assert (said in err) if said else (err == "")
    assert "Traceback" not in err


def test_the_codes_are_those_that_scripts_know() -> None:
    """They are part of the interface, and the help names them."""
    assert {code.name: int(code) for code in Exit} == {
        "FINE": 0,
        "DOES_NOT_FIT": 1,
        "BAD_INPUT": 2,
        "OUR_BUG": 70,
        "INTERRUPTED": 130,
        "PIPE_CLOSED": 141,
    }
    told = console.plan.help or ""
    assert all(f"{int(code)} " in told for code in Exit)
