"""The documentation is one site: every page is in it, every link leads somewhere."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import yaml

from simulator.cli.main import VERBS

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"


def navigation() -> list[str]:
    """Pages of the site, in order."""
    settings: dict[str, Any] = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
    return list(_pages(settings["nav"]))


def _pages(entry: Any) -> list[str]:
    if isinstance(entry, str):
        return [entry]
    inside = entry.values() if isinstance(entry, dict) else entry
    return [page for one in inside for page in _pages(one)]


def test_every_page_is_in_the_site_once() -> None:
    """No page is forgotten, none is twice."""
    pages = sorted(path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md"))
    assert sorted(navigation()) == pages


def test_every_command_has_its_help() -> None:
    """The reference of commands shows the help of each."""
    page = (DOCS / "reference" / "cli.md").read_text(encoding="utf-8")
    missing = [verb for verb in VERBS if f"<!-- output of: plan {verb} --help -->" not in page]
    assert missing == []


def test_pictures_are_small_and_shown() -> None:
    """Pictures load quickly, and none lies about unused."""
    shown = "".join(path.read_text(encoding="utf-8") for path in DOCS.rglob("*.md"))
    shown += (ROOT / "README.md").read_text(encoding="utf-8")
    pictures = list((DOCS / "images").iterdir())
    assert pictures
    assert [path.name for path in pictures if f"images/{path.name})" not in shown] == []
    assert [path.name for path in pictures if path.stat().st_size > 200_000] == []


@pytest.mark.slow
@pytest.mark.skipif(
    find_spec("material") is None, reason="mkdocs-material is not installed (extra: docs)"
)
def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    """`mkdocs build --strict` finds no broken link, no missing anchor, no page left out."""
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet"]
    built = subprocess.run(  # noqa: S603 - our own configuration
        [*command, "--config-file", str(ROOT / "mkdocs.yml"), "--site-dir", str(tmp_path)],
        check=False,
        capture_output=True,
        text=True,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
    )
    assert (built.returncode, built.stdout.strip()) == (0, ""), built.stderr
    assert "WARNING" not in built.stderr
    for page in navigation():
        assert (tmp_path / page).with_suffix(".html").exists()
