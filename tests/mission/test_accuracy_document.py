"""docs/accuracy.md has a table for every set that ships, as ``plan validate --markdown`` writes it.

Series that nothing was fitted to come first; the sets follow under one heading.

Its figures are those of the last run; whether they still hold is what the tolerances are for.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from simulator.reading.measured.measurement_set import load_set
from simulator.reading.shipped import set_names
from simulator.report.evidence import HEAD, INTERPOLATION, WORST_HEAD
from simulator.report.unseen import TITLE

CHAPTER = re.compile(r"^## (.+)$", re.MULTILINE)
SECTION = re.compile(r"^### (.+)$", re.MULTILINE)


def parts_by_title(text: str, heading: re.Pattern[str]) -> dict[str, str]:
    """What follows each heading, up to the next one of its level."""
    parts = heading.split(text)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


@pytest.fixture
def chapters(root: Path) -> dict[str, str]:
    """The text of the document by chapter."""
    text = (root / "docs" / "accuracy.md").read_text(encoding="utf-8")
    return parts_by_title(text, CHAPTER)


@pytest.fixture
def sections(chapters: dict[str, str]) -> dict[str, str]:
    """The text of the document by set."""
    return parts_by_title(chapters[INTERPOLATION], SECTION)


def test_unseen_series_come_first(chapters: dict[str, str]) -> None:
    """A reader meets the errors on jobs like their own before those of fitted series."""
    unseen, interpolation = chapters
    assert interpolation == INTERPOLATION
    assert unseen == TITLE


def test_every_shipped_set_has_its_section(sections: dict[str, str]) -> None:
    """No set is missing and none is left over."""
    assert tuple(sections) == set_names()


@pytest.mark.parametrize("name", set_names())
def test_a_section_has_every_metric_and_family(sections: dict[str, str], name: str) -> None:
    """A table a metric with the agreed columns, a line for each family, and tolerances."""
    found, text = load_set(name), sections[name].replace("\\", "")
    assert text.count(f"| {' | '.join(HEAD)} |") == len(found.metrics)
    for metric in found.metrics:
        assert f"`{metric}`" in text
    for family in {row.family for row in found.rows}:
        assert re.search(rf"^\| {re.escape(family[:20])}", text, re.MULTILINE), family
    assert ("| family | metric | error |" in text) == bool(found.tolerance)
    assert f"{len(found.rows):,} rows" in text
    assert f"| {' | '.join(WORST_HEAD[1:])} |" in text
