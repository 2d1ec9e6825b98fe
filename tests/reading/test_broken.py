"""Broken scenarios in tests/data/broken: the first lines of each say what is wrong with it."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.catalogue import each
from support.diagnosis import diagnosis, expected, sentences

from simulator.errors import InputError, Problem
from simulator.reading.scenario import load_scenario
from simulator.reading.search.candidates import CandidateReader

BROKEN = Path(__file__).parents[1] / "data" / "broken"
BROKEN_SEARCHES = BROKEN.with_name("broken_search")
FILES = sorted(BROKEN.glob("*.toml"))
SEARCHES = sorted(BROKEN_SEARCHES.glob("*.toml"))
SENTENCES = BROKEN / "sentences.txt"


def load(file: Path) -> None:
    """Read a scenario, or a search: whichever of its sections is there."""
    if file.parent == BROKEN:
        load_scenario(str(file))
    else:
        reader = CandidateReader(str(file))
        _ = reader.goal, reader.axes


def problems(file: Path) -> tuple[Problem, ...]:
    """Return the problems of a broken file."""
    with pytest.raises(InputError) as caught:
        load(file)
    return caught.value.problems


def test_there_are_enough_of_them() -> None:
    """The issue asks for 40 broken files."""
    assert len(FILES) >= 75


@each("file", [*FILES, *SEARCHES])
def test_every_mistake_is_reported_as_the_file_says(file: Path) -> None:
    """File, line, key, what was found and candidates are the expected ones; none is missing."""
    assert [diagnosis(one, file) for one in problems(file)] == [one for one, _ in expected(file)]


def test_every_kind_of_mistake_has_its_sentences(request: pytest.FixtureRequest) -> None:
    """The wording is in one table, by kind; --update-golden writes it."""
    text = sentences((file, problems(file)) for file in (*FILES, *SEARCHES))
    if request.config.getoption("--update-golden"):
        SENTENCES.write_text(text, encoding="utf-8")
    assert text == SENTENCES.read_text(encoding="utf-8")


def test_the_base_of_the_broken_ones_is_sound() -> None:
    """What they extend loads, so each is broken by its own lines alone."""
    assert load_scenario(str(BROKEN / "base" / "sound.toml")).name == "sound"
