"""The pictures of the documentation show today's numbers."""

from __future__ import annotations

import pytest
from support.pictures import (
    BELOW,
    COMMAND,
    REPORT,
    TERMINAL,
    described,
    draw,
    report,
    terminal,
    text_of,
)

from simulator.cli.main import main


def test_the_terminal_shows_what_is_printed_now(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> None:
    """The drawing made of today's output is the committed one."""
    monkeypatch.setenv("COLUMNS", "100")
    assert main(COMMAND) == 0
    drawn = terminal(capsys.readouterr().out)
    if request.config.getoption("--update-golden"):
        TERMINAL.write_text(drawn, encoding="utf-8")
    assert drawn == TERMINAL.read_text(encoding="utf-8")
    assert "#7ee787" in drawn


def test_the_report_shows_what_is_predicted_now(request: pytest.FixtureRequest) -> None:
    """The text of today's page, as far as it is pictured, is the one that the picture was made of.

    ``--update-golden`` draws it anew, with Chromium.
    """
    page = report()
    text = text_of(page)
    if request.config.getoption("--update-golden"):
        draw(page)
    assert f"\n{BELOW}" not in text
    assert "samples/s" in text
    assert text.splitlines() == described(REPORT).splitlines()
