"""Plain-text building blocks."""

from __future__ import annotations

import math

import pytest

from simulator.report.text import bar, columns, count, printable, section, wrapped


def test_columns_line_up() -> None:
    """Words lean left, numbers right, and no line ends in blanks."""
    assert columns([("a", "1"), ("long", "100")], "<>") == ["a       1", "long  100"]
    assert columns([("a", "b"), ("c", "")], "<<") == ["a  b", "c"]


def test_no_rows_make_no_section() -> None:
    """A title without content is left out."""
    assert columns([], "<") == []
    assert section("Title", []) == []
    assert section("Title", ["line"]) == ["", "Title", "  line"]


@pytest.mark.parametrize("share", [math.nan, math.inf, -1.0])
def test_a_bar_of_nonsense_is_empty(share: float) -> None:
    """What is no share draws nothing."""
    assert bar(share) == ""


def test_a_bar_never_overflows() -> None:
    """More than the whole is the whole."""
    assert bar(3.0, width=8) == "########"


@pytest.mark.parametrize(
    ("number", "text"), [(27000.0, "27,000"), (99.96, "100"), (12.34, "12.3"), (0.0, "0")]
)
def test_counts_read_well(number: float, text: str) -> None:
    """Large counts are whole with separators, small ones have three digits."""
    assert count(number) == text


def test_control_characters_are_escaped() -> None:
    """Escape sequences and line ends in a name are shown, not obeyed."""
    assert printable("a\x1b[31m\r\nb") == "a\\x1b[31m\\r\\nb"
    assert wrapped("µ × é") == ["µ × é"]
