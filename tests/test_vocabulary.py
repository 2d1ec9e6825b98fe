"""Words to avoid become fewer in docstrings, messages and documents.

The words and the ceilings of each package are in ``benchmarks/house.toml``;
``python benchmarks/house.py --words PACKAGE`` prints where they are.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from support.house import HOUSE


def test_no_package_has_more_words_to_avoid_than_its_ceiling() -> None:
    """Each package has no more of them in docstrings and messages, each folder in documents."""
    assert not "\n".join(HOUSE["words_over_the_ceiling"](HOUSE["word_counts"]()))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Nobody is told\napart.", ["nobody", "told"]),
        ("The service keeps the limits, and so many requests.", ["keeps the limits", "so many"]),
        ("It keeps its place; no doubt, there is no X beside it.", ["beside"]),
        ("bf16 is no format of it, and is no longer used.", ["is no "]),
        ("Each life has outages as long as a spell.", ["each life", "spell"]),
        ("A life cycle, spelled out and retold.", []),
    ],
)
def test_words_are_found(tmp_path: Path, text: str, words: list[str]) -> None:
    """Whole words count, in any case; ordinary uses of "keeps", "doubt" and "is no" do not."""
    package = tmp_path / "simulator"
    package.mkdir()
    (package / "one.py").write_text(f'"""{text}"""\n', encoding="utf-8")
    (tmp_path / "README.md").touch()
    found = HOUSE["hits"](tmp_path)
    assert [hit.word for hit in found] == [word.strip() for word in words]
    assert {hit.path for hit in found} <= {"simulator/one.py"}


def test_strings_of_code_are_messages_and_help_is_one(tmp_path: Path) -> None:
    """Docstrings of commands and strings with a blank, of f-strings too, are what users see."""
    package = tmp_path / "simulator" / "cli"
    package.mkdir(parents=True)
    (tmp_path / "README.md").write_text("whoever\n", encoding="utf-8")
    (package / "verb.py").write_text(
        '@click.command()\ndef verb():\n    """Say whoever."""\n'
        'def other(x):\n    """Whoever."""\n    return f"{x} is told", "whoever"\n',
        encoding="utf-8",
    )
    counts = HOUSE["word_counts"](tmp_path)
    assert counts["messages"] == {"cli": 2}
    assert counts["docstrings"] == {"cli": 1}
    assert counts["documents"] == {"README": 1}
