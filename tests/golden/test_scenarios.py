"""The report of every shipped scenario is the committed text."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from simulator.cli.exits import Exit
from simulator.cli.main import main

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "scenarios"
NAMES = sorted(
    path.relative_to(FOLDER).with_suffix("").as_posix() for path in FOLDER.rglob("*.toml")
)
LONG = {"gpu-decode", "preprocess-beforehand", "stage-or-stream"}
"""They are simulated many times as long as the others."""


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.untraced] * (name in LONG)) for name in NAMES],
)
def test_report(
    name: str,
    golden: Callable[[str, str], None],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """``plan simulate`` answers, and a changed number shows up in review."""
    monkeypatch.chdir(ROOT)
    code = main(["simulate", f"scenarios/{name}.toml"])
    out, err = capsys.readouterr()
    assert err == ""
    assert code in {Exit.FINE, Exit.DOES_NOT_FIT}
    golden(f"scenario-{name.replace('/', '-')}", out)


def test_no_golden_text_is_left_over() -> None:
    """Every golden report belongs to a scenario that ships."""
    found = {path.stem for path in Path(__file__).parent.glob("scenario-*.txt")}
    assert found <= {f"scenario-{name.replace('/', '-')}" for name in NAMES}
