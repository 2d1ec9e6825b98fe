"""Colours: on a terminal, for people, and nowhere else."""

from __future__ import annotations

import io
import os
import re
import subprocess
from collections.abc import Callable
from typing import Any

import click
import pytest

from simulator.cli.output import coloured, wants_colour

pty = pytest.importorskip("pty", reason="this system has no pseudo-terminals")

SCENARIO = "resnet18-imagenet-hidden"
ESCAPE = re.compile(r"\x1b\[[\d;]*m")
PAINTED = re.compile(r"((?:\x1b\[[1-9]\d*m)+)([^\x1b]+)")
REPORT = """\
mine: How fast is it?
1 x node/some with 8 x gpu/some; reads from storage/some; a step is 8
  x 256 samples in fp16

May not fit: it needs 39 GB of 40 GB. CPU-starved: they wait.

Resources, over steady-state steps
  cpu  98.1%  94 of 96  ####  bottleneck
  gpu  42.5%    3 of 8  ##    next

Memory of one GPU: 39 GB needed of 40 GB, uncertain: within 5% of the capacity
  parameters  39 GB

Host RAM of one machine: 10 GB needed of 5 GB, does not fit
  workers  10 GB

Rests on
  UNVERIFIED a guess
  something read, which fits too"""

Spawn = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def seen(spawn: Spawn) -> Callable[..., str]:
    """What a person at a terminal sees of a command, with the escape codes."""

    def run(*arguments: str, **variables: str) -> str:
        above, below = pty.openpty()
        shown = {"TERM": "xterm-256color", "NO_COLOR": "", "COLUMNS": "100"} | variables
        process = spawn(*arguments, stdout=below, env=shown)
        os.close(below)
        parts: list[bytes] = []
        with open(above, "rb", buffering=0) as terminal:  # noqa: PTH123 - it has no path
            try:
                while part := terminal.read(65536):
                    parts.append(part)
            except OSError:  # how Linux says that the other end is closed
                pass
        process.communicate(timeout=60)
        return b"".join(parts).decode().replace("\r\n", "\n")

    return run


@pytest.mark.slow
def test_a_terminal_has_colours(seen: Callable[..., str], plan: Callable[..., Any]) -> None:
    """Headings are bold and the judgement has a colour; the words are those of a file."""
    shown = seen("simulate", SCENARIO)
    assert click.style("Largest uncertainties", bold=True) in shown
    assert click.style("GPU-bound:", fg="green", bold=True) in shown
    assert ESCAPE.sub("", shown) == plan("simulate", SCENARIO).out


@pytest.mark.slow
@pytest.mark.parametrize("variables", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_colours_can_be_declined(seen: Callable[..., str], variables: dict[str, str]) -> None:
    """NO_COLOR and a terminal without colours get plain text."""
    shown = seen("simulate", SCENARIO, **variables)
    assert "GPU-bound:" in shown
    assert "\x1b" not in shown


@pytest.mark.slow
@pytest.mark.parametrize(
    ("form", "part"),
    [("json", '"step_time_s"'), ("csv", "\nstep_time_s.mean,"), ("markdown", "# ")],
)
def test_data_has_no_colours(seen: Callable[..., str], form: str, part: str) -> None:
    """Output for programs is plain on a terminal too."""
    shown = seen("simulate", SCENARIO, "--format", form)
    assert part in shown
    assert "\x1b" not in shown


def test_what_is_painted() -> None:
    """Title, headings, what limits, what does not fit or may not, what nobody checked."""
    painted = coloured(REPORT)
    found = {match[2]: match[1] for match in re.finditer(PAINTED, painted)}
    plain, red, yellow = "\x1b[1m", "\x1b[31m\x1b[1m", "\x1b[33m\x1b[1m"
    assert found == {
        "mine: How fast is it?": plain,
        "May not fit:": yellow,
        "CPU-starved:": yellow,
        "Resources, over steady-state steps": plain,
        "  cpu  98.1%  94 of 96  ####  bottleneck": yellow,
        "Memory of one GPU: 39 GB needed of 40 GB, ": plain,
        "uncertain: within 5% of the capacity": yellow,
        "Host RAM of one machine: 10 GB needed of 5 GB, ": plain,
        "does not fit": red,
        "Rests on": plain,
        "UNVERIFIED": yellow,
    }
    assert ESCAPE.sub("", painted) == REPORT


def test_a_file_is_no_terminal() -> None:
    """What is kept has no escape codes."""
    assert not wants_colour(io.StringIO())
