"""Limits that no candidate keeps: the set named is kept by none, and every part of it by some."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.reading.hardware.catalogue import Catalogue
from simulator.reading.search.candidates import CandidateReader
from simulator.schema.goal import Goal, Limits, Objective, Sense
from simulator.studies.baseline import baseline_of
from simulator.studies.recommend.conflicts import NODES_FACTOR, conflict_of, smallest_conflict
from simulator.studies.recommend.search_problem import (
    Search,
    SearchBackend,
    SearchProblem,
    define_problem,
)
from simulator.studies.search.outcome import Status
from simulator.studies.search.workers import local_workers

pytestmark = pytest.mark.slow

CHEAP = Objective(metric="cost.usd_to_train", sense=Sense.MINIMIZE)
WIDE = Limits(nodes=2)


def problem(limits: Limits) -> SearchProblem:
    """A search of a small scenario among the machines of its own cloud."""
    reader = CandidateReader("choose-starved-gpus", overrides=("train.epochs=1",))
    baseline = baseline_of(reader, Catalogue.default())
    few = tuple(machine for machine in baseline.machines if machine.cloud == baseline.own.cloud)
    return define_problem(replace(baseline, machines=few), Goal(objective=CHEAP, limits=limits))


@pytest.fixture(scope="module")
def everything() -> list[dict[str, object]]:
    """Figures of all there is on these machines, predicted one by one."""
    wide = problem(Limits(nodes=2 * NODES_FACTOR))
    with local_workers(1) as workers:
        search = Search(wide, SearchBackend(workers, None))
        search.all_of(search.candidates)
    choices = [wide.judged(outcome) for outcome in search.known.values()]
    return [
        {**choice.figures, "count": choice.count}
        for choice in choices
        if choice.outcome.status is Status.PREDICTED and "input.where" not in choice.settings
    ]


def kept(limits: Limits, rows: list[dict[str, object]], names: tuple[str, ...]) -> bool:
    """Whether some row keeps the limits so named, of as many machines as are looked at."""
    most = {
        "deadline": ("total_time_s", limits.deadline),
        "budget": ("cost.usd_to_train", limits.budget),
        "nodes": ("count", limits.nodes),
    }
    there = [row for row in rows if int(str(row["count"])) <= NODES_FACTOR * (limits.nodes or 1)]
    return any(all(float(str(row[most[n][0]])) <= most[n][1] for n in names) for row in there)  # type: ignore[operator] # those named are there


@pytest.mark.parametrize("tight", ["deadline", "both", "all"])
def test_the_set_is_a_smallest_one_among_everything(
    tight: str, everything: list[dict[str, object]]
) -> None:
    """Held against every prediction there is, not only those that the search made."""
    times = sorted(float(str(row["total_time_s"])) for row in everything)
    money = sorted(float(str(row["cost.usd_to_train"])) for row in everything)
    ones = sorted(float(str(r["total_time_s"])) for r in everything if r["count"] == 1)
    limits = {
        "deadline": replace(WIDE, deadline=times[0] / 2.0, budget=money[-1]),
        "both": replace(WIDE, deadline=times[0], budget=money[0]),
        "all": replace(WIDE, nodes=1, deadline=(times[0] + ones[0]) / 2.0, budget=money[-1]),
    }[tight]
    with local_workers(1) as workers:
        found = conflict_of(problem(limits), ({},), SearchBackend(workers, None), 0)
    names = tuple(text.split(" ")[0] for text in found.limits)
    assert names
    assert not kept(limits, everything, names)
    for part in combinations(names, len(names) - 1):
        assert kept(limits, everything, part)
    assert found.ways_out


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
