"""Run ``plan`` in this process or in one of its own."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from simulator.cli import output
from simulator.cli.main import main

CALL = "import sys; from simulator.cli.main import main; sys.exit(main())"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run of ``plan`` left behind."""

    code: int
    out: str
    err: str


Plan = Callable[..., Outcome]


@pytest.fixture
def plan(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Plan:
    """Call ``plan`` with arguments, a hundred columns wide.

    Nothing is told of progress, which depends on how busy the machine is.
    """
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setattr(output, "WITHOUT_TERMINAL", math.inf)

    def run(*arguments: str) -> Outcome:
        code = main(arguments)
        out, err = capsys.readouterr()
        return Outcome(code, out, err)

    return run


@pytest.fixture
def spawn(root: Path) -> Callable[..., subprocess.Popen[str]]:
    """Start ``plan`` as a process of its own."""

    def start(*arguments: str, **options: object) -> subprocess.Popen[str]:
        variables = {**os.environ, "PYTHONPATH": str(root)}
        return subprocess.Popen(  # noqa: S603 - our own interpreter and code
            [sys.executable, "-c", CALL, *arguments],
            text=True,
            env=variables | options.pop("env", {}),  # type: ignore[operator] # a dict of text
            **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | options,  # type: ignore[call-overload] # options of Popen
        )

    return start
