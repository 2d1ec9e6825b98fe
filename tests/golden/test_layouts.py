"""Reports of a few varied cases are the committed texts; those of all others keep to one screen.

Numbers of all cases are in ``tests/figures.csv``; the texts here are for the layout.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from simulator.cli.main import main
from simulator.cli.output import Exit
from simulator.reading.shipped import service_names
from simulator.report.text import WIDTH

ROOT = Path(__file__).parents[2]
SCENARIOS = sorted(path.stem for path in (ROOT / "scenarios").glob("*.toml"))
MAX_LINES = 45

FULL = ("resnet50-imagenet-p4d", "llama3-8b-fsdp", "svm-cpu-only", "heterogeneous-tfdata")
"""A CNN that waits for data, a language model, a job without GPU, several groups of nodes."""

SHORT = ("resnet50-imagenet-p4d", "llama3-8b-fsdp")

Golden = Callable[[str, str], None]


def _printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """Run ``plan``, and return what it printed."""
    code = main([*arguments])
    out, err = capsys.readouterr()
    assert err == ""
    assert code in {Exit.FINE, Exit.DOES_NOT_FIT}
    return out


def _over_the_limits(name: str, text: str) -> list[str]:
    """Return what of a text is longer or wider than a screen."""
    lines = text.splitlines()
    filled = sum(bool(line) for line in lines)
    found = [f"{name}: {filled} lines"] * (filled > MAX_LINES)
    return found + [f"{name}: {line}" for line in lines if len(line) > WIDTH]


@pytest.mark.parametrize("name", FULL)
def test_full_report(name: str, golden: Golden, capsys: pytest.CaptureFixture[str]) -> None:
    """``plan simulate --full`` prints the committed text."""
    golden(f"scenario-{name}", _printed(capsys, "simulate", name, "--full"))


@pytest.mark.parametrize("name", SHORT)
def test_short_report(name: str, golden: Golden, capsys: pytest.CaptureFixture[str]) -> None:
    """``plan simulate`` prints the committed text, on one screen."""
    out = _printed(capsys, "simulate", name)
    assert not _over_the_limits(name, out)
    golden(f"short-{name}", out)


def test_report_of_a_service(golden: Golden, capsys: pytest.CaptureFixture[str]) -> None:
    """``plan simulate`` of a service prints the committed text, on one screen."""
    out = _printed(capsys, "simulate", "llama3-8b-chat-h100")
    assert not _over_the_limits("llama3-8b-chat-h100", out)
    golden("service-llama3-8b-chat-h100", out)


def test_explanation_of_a_service(golden: Golden, capsys: pytest.CaptureFixture[str]) -> None:
    """``plan explain`` of a service prints the committed text."""
    golden("explain-service", _printed(capsys, "explain", "llama3-8b-chat-h100"))


@pytest.mark.slow
def test_every_report_is_one_screen(capsys: pytest.CaptureFixture[str]) -> None:
    """Reports of all that ships have 45 lines of text at most, of 100 columns."""
    found = [
        line
        for name in (*SCENARIOS, *service_names())
        for line in _over_the_limits(name, _printed(capsys, "simulate", name))
    ]
    assert not "\n".join(found)
