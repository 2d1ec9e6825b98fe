"""The report of every shipped scenario is the committed text."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from support.stages import sampled

from simulator.cli.main import main
from simulator.cli.output import Exit
from simulator.report.text import WIDTH

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "scenarios"
NAMES = sorted(
    path.relative_to(FOLDER).with_suffix("").as_posix() for path in FOLDER.rglob("*.toml")
)
MOST_LINES = 45
LONG = {"gpu-decode", "preprocess-beforehand", "stage-or-stream"}
"""They are simulated many times as long as the others."""


@pytest.mark.parametrize(
    "name",
    sampled([pytest.param(n, marks=[pytest.mark.slow] * (n in LONG)) for n in NAMES], 20),
)
def test_report(
    name: str,
    golden: Callable[[str, str], None],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """``plan simulate --full`` answers, and a changed number shows up in review."""
    monkeypatch.chdir(ROOT)
    code = main(["simulate", f"scenarios/{name}.toml", "--full"])
    out, err = capsys.readouterr()
    assert err == ""
    assert code in {Exit.FINE, Exit.DOES_NOT_FIT}
    golden(f"scenario-{name.replace('/', '-')}", out)


@pytest.mark.parametrize(
    "name",
    sampled(NAMES, 6),
)
def test_short_report(
    name: str,
    golden: Callable[[str, str], None],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What ``plan simulate`` prints is one screen, for every shipped scenario."""
    monkeypatch.chdir(ROOT)
    code = main(["simulate", f"scenarios/{name}.toml"])
    out, err = capsys.readouterr()
    assert err == ""
    assert code in {Exit.FINE, Exit.DOES_NOT_FIT}
    lines = out.splitlines()
    assert len(lines) <= MOST_LINES
    assert max(map(len, lines)) <= WIDTH
    golden(f"short-{name.replace('/', '-')}", out)


def test_no_golden_text_is_left_over() -> None:
    """Every golden report belongs to a scenario that ships."""
    for kind in ("scenario", "short"):
        found = {path.stem for path in Path(__file__).parent.glob(f"{kind}-*.txt")}
        assert found <= {f"{kind}-{name.replace('/', '-')}" for name in NAMES}
