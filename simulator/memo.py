"""Answers kept for the next who asks about the same objects.

Objects are told apart by identity, which is quicker than comparing what they hold: profiles,
sections and models are shared by many scenarios and never change.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import wraps
from typing import Generic, TypeVar

Answer = TypeVar("Answer")
Subject = TypeVar("Subject")


class Memo(Generic[Answer]):
    """Answers by the objects that were asked about.

    The objects are kept with their answer: as long as they are, no others can have their
    identities.

    Parameters
    ----------
    most : int
        Answers that are kept; with one more all are dropped.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._known: dict[tuple[Hashable, ...], tuple[tuple[object, ...], Answer]] = {}

    def of(
        self, objects: tuple[object, ...], work: Callable[[], Answer], *words: Hashable
    ) -> Answer:
        """What `work` made of these objects and words when it was first asked.

        Parameters
        ----------
        objects : tuple
            Frozen ones, told apart by identity.
        work : callable
            Makes the answer, from nothing but `objects` and `words`.
        *words : hashable
            Plain values, told apart by equality.
        """
        key = (*map(id, objects), *words)
        found = self._known.get(key)
        if found is None:
            if len(self._known) >= self._most:
                self._known.clear()
            found = self._known[key] = objects, work()
        return found[1]


def remembered(most: int) -> Callable[[Callable[[Subject], Answer]], Callable[[Subject], Answer]]:
    """Keep a function's answers for the last frozen objects that it was called with, by identity.

    Parameters
    ----------
    most : int
        Answers that are kept; with one more all are dropped.
    """

    def decorate(function: Callable[[Subject], Answer]) -> Callable[[Subject], Answer]:
        answers: Memo[Answer] = Memo(most)

        @wraps(function)
        def answer(subject: Subject) -> Answer:
            return answers.of((subject,), lambda: function(subject))

        return answer

    return decorate
