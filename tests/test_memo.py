"""Answers that are kept: found by the objects they are of, not by what those hold."""

from __future__ import annotations

from simulator.memo import Memo


def test_an_answer_is_worked_out_once() -> None:
    """For the same objects and words; equal objects are others."""
    kept, one, equal = Memo[int](10), [1], [1]
    numbers = iter(range(10))

    def work() -> int:
        return next(numbers)

    assert kept.of((one,), work) == kept.of((one,), work) == 0
    assert kept.of((equal,), work) == 1
    assert kept.of((one,), work, "word") == 2
    assert kept.of((one, equal), work) == 3
    assert kept.of((one,), work) == 0


def test_no_more_are_kept_than_asked_for() -> None:
    """All go when there is no room, and are worked out anew."""
    kept, things = Memo[object](2), [[0], [1], [2]]
    first = [kept.of((thing,), object) for thing in things[:2]]
    assert kept.of((things[1],), object) is first[1]
    kept.of((things[2],), object)
    assert kept.of((things[0],), object) is not first[0]


def test_an_object_that_is_asked_about_stays() -> None:
    """So that no other can have its identity."""
    kept = Memo[list[int]](1000)
    found = [kept.of((thing := [number],), lambda own=thing: own) for number in range(100)]  # type: ignore[misc] # the default is the object
    assert [one[0] for one in found] == list(range(100))
