"""Results of functions that are cached by the identity of their arguments."""

from __future__ import annotations

from itertools import count

from simulator.memo import cached


def test_a_result_is_computed_once() -> None:
    """For the same objects and equal plain values; equal objects are others."""
    numbers, first, equal = count(), [1], [1]

    @cached()
    def number(thing: object, word: str = "") -> int:  # noqa: ARG001
        return next(numbers)

    assert number(first) == number(first) == 0
    assert number(equal) == 1
    assert number(first, "word") == number(first, "word") == 2
    assert number(first, word="word") == 2


def test_types_may_be_compared_by_value() -> None:
    """Equal tuples are the same argument where that is asked for."""
    numbers = count()

    @cached(by_value=(tuple,))
    def number(pair: tuple[int, int]) -> int:  # noqa: ARG001
        return next(numbers)

    assert number((1, 2)) == number((1, 2)) == 0
    assert number((1, 3)) == 1


def test_no_more_results_are_kept_than_stated() -> None:
    """All are dropped when there is no room."""
    things = [[0], [1], [2]]

    @cached(most=2)
    def made(thing: list[int]) -> object:  # noqa: ARG001
        return object()

    first = [made(thing) for thing in things[:2]]
    assert made(things[1]) is first[1]
    made(things[2])
    assert made(things[0]) is not first[0]


def test_arguments_are_kept() -> None:
    """So that no other object can take their identity."""

    @cached()
    def itself(thing: list[int]) -> list[int]:
        return thing

    assert [itself([number])[0] for number in range(100)] == list(range(100))
