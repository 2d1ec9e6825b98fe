"""Broken scenarios in tests/data/broken: each says in its first lines what it has to be told."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.catalogue import each

from simulator.errors import PlanError
from simulator.reading.scenario import load_scenario

BROKEN = Path(__file__).parents[1] / "data" / "broken"
FILES = sorted(BROKEN.glob("*.toml"))
MARK = "# expect: "


def expected(file: Path) -> list[str]:
    """The messages a file asks for; an ellipsis ends the part that is compared."""
    lines = file.read_text(encoding="utf-8").splitlines()
    return [line.removeprefix(MARK) for line in lines if line.startswith(MARK)]


def test_there_are_enough_of_them() -> None:
    """The issue asks for 40 broken files."""
    assert len(FILES) >= 75


@each("file", FILES)
def test_every_mistake_is_reported_as_the_file_says(file: Path) -> None:
    """The message is exactly the expected lines: file, line, key, found, hint; none is missing."""
    with pytest.raises(PlanError) as caught:
        load_scenario(str(file))
    told = str(caught.value).replace(f"{BROKEN}/", "").splitlines()
    wanted = expected(file)
    assert len(told) == len(wanted), told
    for line, want in zip(told, wanted, strict=True):
        start, dots, _ = want.partition("...")
        assert line.startswith(start) if dots else line == want


def test_the_base_of_the_broken_ones_is_sound() -> None:
    """What they extend loads, so each is broken by its own lines alone."""
    assert load_scenario(str(BROKEN / "base" / "sound.toml")).name == "sound"
