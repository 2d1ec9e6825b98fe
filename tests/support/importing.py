"""Runs of ``plan import`` in this process, and files cut off anywhere."""

from __future__ import annotations

import contextlib
import io
from dataclasses import dataclass
from pathlib import Path

from simulator.cli.main import main
from simulator.cli.output import Exit

DATA = Path(__file__).parents[1] / "importers" / "data"
ANSWERS = (Exit.FINE, Exit.DOES_NOT_FIT, Exit.BAD_INPUT)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run of ``plan import`` left behind."""

    code: int
    out: str
    err: str


def call(*arguments: str | Path) -> Outcome:
    """Run ``plan import`` with arguments."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(["import", *(str(argument) for argument in arguments)])
    return Outcome(code, out.getvalue(), err.getvalue())


def refused(*arguments: str | Path) -> list[str]:
    """The messages of a run that refuses its input and writes nothing to standard output."""
    outcome = call(*arguments)
    assert outcome.code == Exit.BAD_INPUT, outcome
    assert outcome.out == ""
    return outcome.err.splitlines()


def check_prefix(content: bytes, folder: Path, *arguments: str, name: str = "cut") -> None:
    """A prefix of good evidence is read or refused with messages, and leaves no file behind."""
    path, written = folder / name, folder / "written.toml"
    path.write_bytes(content)
    written.unlink(missing_ok=True)
    outcome = call(*arguments, path, "-o", written)
    assert outcome.code in ANSWERS, outcome
    assert "Traceback" not in outcome.err
    assert (outcome.code == Exit.FINE) == written.exists()
    if outcome.code == Exit.BAD_INPUT:
        assert outcome.err.startswith("plan: ")
        assert outcome.out == ""
    assert {entry.name for entry in folder.iterdir()} <= {name, "written.toml"}
