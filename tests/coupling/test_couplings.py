"""What parts share, three ways: by hand, by max(compute, input), by the simulation."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest
from coupling.cases import cases

CASES = {case.name: case for case in cases()}
BY_HAND = 0.02
"""How far the simulation may be from the hand calculation."""
BY_SPREADSHEET = 0.1
"""How far a formula of separate parts is at least."""
AS_PRINTED = 0.005
"""How far a figure of the published table may be from the one it stands for."""
HEADER = ["coupling", "by hand", "hand", "max(compute, input)", "simulation"]
UNITS = {"s": 1.0, "ms": 1e-3}
each = pytest.mark.parametrize("name", CASES)


@cache
def simulated(name: str) -> float:
    """What the simulation says about a case [s]."""
    return CASES[name].simulated()


@each
def test_simulation_agrees_with_the_hand_calculation(name: str) -> None:
    """The simulated figure lies within 2% of the one worked out by hand."""
    assert simulated(name) == pytest.approx(CASES[name].hand, rel=BY_HAND)


@each
def test_separate_parts_give_another_answer(name: str) -> None:
    """max(compute, input) misses the simulated figure by 10% or more."""
    missed = abs(CASES[name].spreadsheet - simulated(name))
    assert missed >= BY_SPREADSHEET * simulated(name)


def table(root: Path) -> list[list[str]]:
    """The cells of the table in docs/couplings.md, its header first."""
    text = (root / "docs" / "couplings.md").read_text(encoding="utf-8")
    rows = [line for line in text.splitlines() if line.startswith("|")]
    cells = [[cell.strip() for cell in row.strip("|").split(" | ")] for row in rows]
    return [cells[0], *cells[2:]]


def seconds(cell: str) -> float:
    """A printed time [s]."""
    number, unit = cell.split()
    return float(number) * UNITS[unit]


def test_the_published_table_has_every_case(root: Path) -> None:
    """The rows of docs/couplings.md are the cases, in their order, with their formulas."""
    header, *rows = table(root)
    assert header == HEADER
    assert [row[:2] for row in rows] == [[case.name, case.formula] for case in CASES.values()]


@each
def test_the_published_table_says_what_the_simulation_says(name: str, root: Path) -> None:
    """The figures of a row of docs/couplings.md are what its case gives today."""
    (row,) = [row for row in table(root) if row[0] == name]
    expected = [CASES[name].hand, CASES[name].spreadsheet, simulated(name)]
    assert [seconds(cell) for cell in row[2:]] == pytest.approx(expected, rel=AS_PRINTED)
