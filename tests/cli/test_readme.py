"""The README says what is so."""

from __future__ import annotations

import re
import subprocess
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from simulator.cli.main import VERBS
from simulator.version import __version__

Run = Callable[..., Any]
"""A fixture that runs ``plan``, or arranges how it runs."""

SCENARIO = "resnet50-imagenet-p4d"
"""Asked by the first command of the README."""


@pytest.fixture
def readme(root: Path) -> Path:
    """The README."""
    return root / "README.md"


def blocks(text: str, language: str) -> list[str]:
    """Contents of the code blocks of a language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)


def test_two_commands_are_the_first_code(readme: Path) -> None:
    """A visitor copies two lines: one that predicts, one that tests."""
    first = blocks(readme.read_text(encoding="utf-8"), "sh")[0].splitlines()
    assert len(first) == 2
    assert first[0].endswith(f".venv/bin/plan simulate {SCENARIO}")
    assert first[1].endswith(".venv/bin/python -m pytest -n auto")
    assert all(line.startswith("python3 -m venv .venv && .venv/bin/pip install ") for line in first)


def test_the_check_runs_those_two_commands(root: Path) -> None:
    """`.ci/run` takes the commands from the README; it can be executed and parsed."""
    script = root / ".ci" / "run"
    assert script.stat().st_mode & 0o111
    text = script.read_text(encoding="utf-8")
    assert "README.md | head -n 2" in text
    bash = ["bash", "-n", str(script)]
    assert subprocess.run(bash, check=False).returncode == 0  # noqa: S603 - our own script


def test_commands_that_are_named_exist(readme: Path, root: Path) -> None:
    """Every ``plan verb scenario`` in the text names a verb and a shipped scenario."""
    named = re.findall(
        r"plan ([a-z]+)(?: ([a-z0-9][a-z0-9-]*)(?![\w.-]))?", readme.read_text(encoding="utf-8")
    )
    verbs = {verb for verb, _ in named if verb in VERBS}
    assert verbs >= {"simulate", "explain", "schema", "hardware"}
    scenarios = {name for verb, name in named if verb in {"simulate", "explain"} and name}
    assert all((root / "scenarios" / f"{name}.toml").exists() for name in scenarios)


def test_links_lead_somewhere(root: Path) -> None:
    """Relative links of the documents point at files that exist."""
    pages = sorted(path.relative_to(root).as_posix() for path in (root / "docs").rglob("*.md"))
    for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", *pages):
        document = root / name
        links = re.findall(r"\]\(([^)#:]+)\)", document.read_text(encoding="utf-8"))
        missing = [link for link in links if not (document.parent / link).exists()]
        assert missing == [], name


def test_toml_examples_parse(root: Path) -> None:
    """The profile that shows how to add one is TOML in which every figure has source and date."""
    page = (root / "docs" / "adding.md").read_text(encoding="utf-8")
    example = tomllib.loads(blocks(page, "toml")[0])
    figures = [v for v in (*example.values(), *example["peak"].values()) if isinstance(v, dict)]
    stated = [figure for figure in figures if "value" in figure]
    assert stated
    assert all({"source", "date"} <= set(figure) for figure in stated)


def test_the_changelog_says_whether_numbers_change(root: Path) -> None:
    """Entries are one line each, under a heading that says whether predictions change."""
    lines = (root / "CHANGELOG.md").read_text(encoding="utf-8").split("## [", 1)[1].splitlines()
    entries = [line for line in lines if line and not line.startswith(("#", "[", "None of"))]
    assert __version__ in lines[0]
    assert all(re.match(r"- [A-Z].{10,130}[^.]$", entry) for entry in entries[1:]), entries
    headings = [line for line in lines if line.startswith("### ")]
    assert all(
        "numbers" in heading or heading in {"### Removed", "### Figures that moved"}
        for heading in headings
    )
