"""Sections of a report that documents name exist in what the commands print."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    path
    for path in (
        ROOT / "README.md",
        *(ROOT / "docs").glob("*.md"),
        *(ROOT / "docs").glob("how-to/*.md"),
    )
    if path.name not in {"accuracy.md", "published-cases.md"}
)
SOURCES = [
    path.read_text(encoding="utf-8")
    for folder in ("report", "cli", "studies", "results")
    for path in (ROOT / "simulator" / folder).rglob("*.py")
]
QUOTED = re.compile(r'"([A-Z][a-z]+(?: [a-z]+){0,4})"')
"""A name of a section as documents write it: "Rent or buy"."""


def prose(page: Path) -> str:
    """Return a page without code blocks, inline code and comments."""
    text = re.sub(
        r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE
    )
    return re.sub(r"`[^`]*`|<!--.*?-->|^    .*$", "", text, flags=re.DOTALL | re.MULTILINE)


def test_named_sections_exist() -> None:
    """Each quoted name of a section is a text of the code that prints."""
    missing = [
        f"{page.name}: {name}"
        for page in PAGES
        for name in QUOTED.findall(prose(page))
        if not any(name in text for text in SOURCES)
    ]
    assert missing == []
    assert any(QUOTED.search(prose(page)) for page in PAGES)


def test_a_missing_section_is_found() -> None:
    """A name that no command prints would be reported."""
    assert QUOTED.findall('see "Rent or buy" there') == ["Rent or buy"]
    assert not any("Rests on rumours" in text for text in SOURCES)
