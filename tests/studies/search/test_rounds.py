"""Which candidates a search predicts: never one less than the front and the best need."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.studies.search.explore import FIRST_ROUND, NEAR_MISSES, Rounds, beaten_by
from simulator.studies.search.scoring import comparable, within
from simulator.studies.search.scoring import front as on_front

NUMBER = st.integers(0, 6).map(float)
POINTS = st.lists(st.tuples(NUMBER, NUMBER), min_size=1, max_size=120)
SLACK = st.lists(st.tuples(NUMBER, NUMBER), min_size=120, max_size=120)


def front(points: list[tuple[float, float]]) -> set[int]:
    """The front, by the definition."""
    return {
        i
        for i, p in enumerate(points)
        if not any(q[0] <= p[0] and q[1] <= p[1] and q != p for q in points)
    }


def searched(least: np.ndarray, truth: list[tuple[float, float]], **options: float) -> set[int]:
    """Rows that a search predicts when they turn out as `truth` says."""
    rounds = Rounds(least, **options)  # type: ignore[arg-type] # options by name
    found: set[int] = set()
    while chosen := rounds.next():
        assert not found & set(chosen)
        found |= set(chosen)
        rounds.tell([truth[row] for row in chosen])
    return found


def looked_at(least: np.ndarray, truth: list[tuple[float, float]], **options: float) -> set[int]:
    """Rows that a search predicts when it looks at each closer, and sees it as it is."""
    rounds = Rounds(least, **options)  # type: ignore[arg-type] # options by name
    found: set[int] = set()
    while chosen := rounds.next():
        rounds.know(chosen, [truth[row] for row in chosen])
        while closest := rounds.closest():
            assert set(closest) <= set(chosen) - found
            found |= set(closest)
            rounds.tell([truth[row] for row in closest])
    return found


def bounds(truth: list[tuple[float, float]], slack: list[tuple[float, float]]) -> np.ndarray:
    """Best cases that are no worse than the truth."""
    return np.array(truth) - np.array(slack[: len(truth)])


@given(POINTS)
def test_front_is_what_none_beats(points: list[tuple[float, float]]) -> None:
    """Equal rows are on the front alike."""
    assert set(np.flatnonzero(on_front(np.array(points)))) == front(points)


@pytest.mark.slow
@given(POINTS, SLACK)
def test_no_member_of_the_front_is_lost(
    truth: list[tuple[float, float]], slack: list[tuple[float, float]]
) -> None:
    """Whatever the best cases, as long as they are best cases; a closer look spares others only."""
    found = searched(bounds(truth, slack), truth)
    assert front(truth) <= found
    assert front(truth) <= looked_at(bounds(truth, slack), truth)


@pytest.mark.slow
@given(POINTS, SLACK, st.integers(1, 10))
def test_none_of_the_best_is_lost(
    truth: list[tuple[float, float]], slack: list[tuple[float, float]], top: int
) -> None:
    """The k best by the first objective are among those predicted, ties by their place too."""
    found = searched(bounds(truth, slack), truth, top=top)
    best = sorted(range(len(truth)), key=lambda i: (truth[i], i))[:top]
    assert set(best) | front(truth) <= found
    assert set(best) | front(truth) <= looked_at(bounds(truth, slack), truth, top=top)


@pytest.mark.slow
@given(POINTS, SLACK)
def test_nothing_within_the_margin_is_lost(
    truth: list[tuple[float, float]], slack: list[tuple[float, float]]
) -> None:
    """Those so close to the front are predicted as well."""
    found = searched(bounds(truth, slack), truth, margin=0.5)
    near = set(np.flatnonzero(within(np.array(truth), 0.5)))
    assert near <= found
    assert near <= looked_at(bounds(truth, slack), truth, margin=0.5)


def test_the_beaten_are_spared() -> None:
    """With exact best cases only the front of two hundred points is predicted in the end."""
    truth = [(float(i % 20), float(i // 20) + float(i % 20 == 0)) for i in range(200)]
    found = searched(np.array(truth), truth)
    assert front(truth) <= found
    assert len(found) <= FIRST_ROUND + len(front(truth))


def test_a_closer_look_spares_predictions() -> None:
    """Of a line of points, one ahead of the next, little but the first is predicted."""
    truth = [(float(i), float(i)) for i in range(200)]
    least = np.zeros((200, 2))
    assert len(searched(least, truth)) == len(truth)
    found = looked_at(least, truth)
    assert 0 in found
    assert len(found) <= FIRST_ROUND + NEAR_MISSES


def test_without_best_cases_all_is_one_round() -> None:
    """An objective of which nothing is known rules nobody out, and nobody waits for a round."""
    least = np.array([[float(i), -np.inf] for i in range(300)])
    rounds = Rounds(least)
    assert rounds.next() == tuple(range(300))
    rounds.tell([(0.0, 0.0)])
    assert rounds.next() == ()


def test_what_beats_a_candidate_is_named() -> None:
    """The first by its name, of those on the front; none where none does."""
    scores = {7: (1.0, 3.0), 4: (2.0, 1.0), 9: (5.0, 5.0)}
    least = np.array([[2.0, 3.0], [1.0, 1.0], [2.0, 1.0]])
    assert beaten_by(least, scores) == (4, -1, -1)


@pytest.mark.parametrize("margin", [0.0, 0.1])
def test_infinite_objectives_are_the_worst(margin: float) -> None:
    """A candidate without a price may be the fastest, and is no better for its price."""
    points = np.array([[1.0, np.inf], [2.0, 5.0], [3.0, np.inf]])
    assert on_front(points).tolist() == [True, True, False]
    assert within(points, margin).tolist() == [True, True, False]


def test_what_has_no_figure_is_compared_with_nothing() -> None:
    """Rows without a price are left out beside rows with one, and kept where none has."""
    rows = np.array([[1.0, np.inf], [2.0, 5.0], [3.0, 4.0]])
    assert comparable(rows).tolist() == [False, True, True]
    assert comparable(rows[:1]).tolist() == [True]
