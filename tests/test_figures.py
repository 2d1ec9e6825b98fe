"""Every shipped scenario and service gives the figures of the committed table."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

FIGURES = runpy.run_path(str(Path(__file__).parents[1] / "benchmarks" / "figures.py"))
TABLE = FIGURES["read_table"]()
CASES = FIGURES["cases"]()


def _differences(cases: list[str]) -> list[str]:
    """Return the differences of cases, a line each."""
    return [
        str(difference)
        for case in cases
        for difference in FIGURES["differences"](
            case, TABLE[case], FIGURES["figures_of"](case), FIGURES["TOLERANCE"]
        )
    ]


def test_table_has_every_shipped_case() -> None:
    """Cases of the table are the shipped scenarios and services, in the same order."""
    assert list(TABLE) == CASES


@pytest.mark.parametrize("case", FIGURES["QUICK"])
def test_figures_of_cheap_cases(case: str) -> None:
    """No figure differs by more than 1e-9; `benchmarks/figures.py --write` accepts a change."""
    assert not "\n".join(_differences([case]))


@pytest.mark.slow
def test_figures_of_all_other_cases() -> None:
    """No figure differs by more than 1e-9; `benchmarks/figures.py --write` accepts a change."""
    assert not "\n".join(_differences([case for case in CASES if case not in FIGURES["QUICK"]]))


def test_differences_are_found() -> None:
    """A changed number, a changed name, a missing and a new figure are reported; 1e-10 is not."""
    was = {"a": "1.0", "b": "cpu", "c": "2", "d": "0.5"}
    now = {"a": "1.0000000001", "b": "gpu", "d": "0.6", "e": "1"}
    found = list(FIGURES["differences"]("case", was, now, 1e-9))
    assert [one.figure for one in found] == ["b", "c", "d", "e"]
    assert str(found[2]).endswith("was 0.5, is 0.6 (+0.2)")
