"""The report of every shipped service is the committed text."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from support.stages import sampled

from simulator.cli.main import main
from simulator.cli.output import Exit
from simulator.reading.shipped import service_names
from simulator.report.text import WIDTH

MOST_LINES = 45


@pytest.mark.parametrize("name", sampled(service_names(), 2))
def test_report(
    name: str,
    golden: Callable[[str, str], None],
    capsys: pytest.CaptureFixture[str],
) -> None:
    """``plan simulate`` of a service is one screen, and a changed number shows up in review."""
    code = main(["simulate", name])
    out, err = capsys.readouterr()
    assert err == ""
    assert code in {Exit.FINE, Exit.DOES_NOT_FIT}
    assert len(out.splitlines()) <= MOST_LINES
    assert max(map(len, out.splitlines())) <= WIDTH
    golden(f"service-{name}", out)


def test_explanation(
    golden: Callable[[str, str], None], capsys: pytest.CaptureFixture[str]
) -> None:
    """``plan explain`` of a service."""
    assert main(["explain", "llama3-8b-chat-h100"]) == Exit.FINE
    golden("explain-service", capsys.readouterr().out)
