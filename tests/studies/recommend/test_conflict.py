"""Contradictory limits: the smallest set of them that nothing keeps."""

from __future__ import annotations

from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from simulator.studies.recommend.conflict import smallest_conflict

NAMES = ("nodes", "gpus", "deadline", "budget", "where")
BROKEN = st.lists(st.sets(st.sampled_from(NAMES)), min_size=1, max_size=12)


def test_two_limits_exclude_each_other() -> None:
    """Fast enough needs more machines than allowed, and few machines are too slow."""
    assert smallest_conflict(NAMES, [{"nodes"}, {"deadline"}]) == ("nodes", "deadline")


def test_a_limit_that_nothing_keeps_stands_alone() -> None:
    """Where all break the budget, nothing else is to blame."""
    assert smallest_conflict(NAMES, [{"budget", "nodes"}, {"budget"}]) == ("budget",)


def test_no_conflict_where_one_keeps_all() -> None:
    """A candidate that breaks nothing is an answer."""
    assert smallest_conflict(NAMES, [{"nodes"}, set()]) is None


@given(BROKEN)
def test_the_set_is_minimal(broken: list[set[str]]) -> None:
    """Every candidate breaks the set, and no smaller set is broken by all."""
    found = smallest_conflict(NAMES, broken)
    if set() in broken:
        assert found is None
        return
    assert found is not None
    assert all(one & set(found) for one in broken)
    smaller = combinations(NAMES, len(found) - 1)
    assert not any(all(one & set(names) for one in broken) for names in smaller)
