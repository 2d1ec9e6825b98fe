"""Rows of published articles, asked of `plan` as a user would ask."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from support.mission_cases import FOLDER, Case, cases
from support.stages import sampled

if TYPE_CHECKING:
    from _pytest.mark.structures import ParameterSet


def named(case: Case) -> ParameterSet:
    """A row as a parameter with its name."""
    return pytest.param(case, id=f"{case.id}: {case.what}")


@pytest.mark.parametrize("case", sampled(map(named, cases()), 20))
def test_the_command_answers_as_published(case: Case) -> None:
    """Its figure reads as published, or lies within the band that the row states."""
    assert case.holds, (case.arguments, case.ours, case.published)


def test_every_scenario_is_asked() -> None:
    """No file lies next to the rows that none of them reads."""
    named = {name for case in cases() for name in (case.scenario, case.beside)}
    extended = {"one-device.toml", "cases.toml"}
    assert {path.name for path in FOLDER.glob("*.toml")} - named <= extended


def test_a_row_that_is_off_does_not_hold() -> None:
    """A figure that was not published is distinguished from ours."""
    (first,) = [case for case in cases() if case.what == "vCPUs short"]
    off = Case(id="A1", what="", scenario=first.scenario, of=first.of, published=65.0)
    assert first.holds
    assert not off.holds
