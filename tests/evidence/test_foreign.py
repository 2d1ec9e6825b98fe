"""`evidence/foreign.py`: what lies outside of its interval is reported, or the program says so."""

from __future__ import annotations

import pytest

import foreign


@pytest.mark.parametrize(
    ("published", "warned", "silent"),
    [(100.0, False, False), (130.0, True, False), (130.0, False, True), (70.0, False, True)],
)
def test_a_value_outside_of_its_interval_has_a_warning(
    published: float, *, warned: bool, silent: bool
) -> None:
    """An interval of 90 to 110: inside nothing has to be said, outside a warning has to."""
    one = foreign.Scored(
        name="some",
        family="d storage",
        metric="MB_s",
        published=published,
        predicted=100.0,
        low=90.0,
        high=110.0,
        warned=warned,
    )
    assert foreign.untold([one]) == (["some MB_s"] if silent else [])


def test_where_there_is_no_interval_nothing_lies_outside() -> None:
    """A figure without one is neither inside nor outside."""
    one = foreign.Scored(
        name="some",
        family="e memory",
        metric="mem_gb",
        published=1.0,
        predicted=2.0,
        low=None,
        high=None,
        warned=False,
    )
    assert foreign.untold([one]) == []
