"""Answers kept for the next who asks about the same objects.

Objects are told apart by identity, which is quicker than comparing what they hold: profiles,
sections and models are shared by many scenarios and never change.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import wraps
from typing import Any, Final, Generic, ParamSpec, TypeVar

Answer = TypeVar("Answer")
Arguments = ParamSpec("Arguments")


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


MAX_SHARED: Final = 20_000
"""Results of a shared function that are kept."""
_PLAIN: Final = (str, int, float, type(None))


def remembered(
    most: int,
) -> Callable[[Callable[Arguments, Answer]], Callable[Arguments, Answer]]:
    """Keep a function's last results, of which callers with the same arguments get the same one.

    Arguments are positional. Plain values are compared by what they are, objects by identity: they
    are kept with the result, so that no others can have their identities.

    Parameters
    ----------
    most : int
        Results that are kept; with one more all are dropped.
    """

    def decorate(function: Callable[Arguments, Answer]) -> Callable[Arguments, Answer]:
        known: dict[tuple[Any, ...], tuple[Answer, tuple[Any, ...]]] = {}

        @wraps(function)
        def call(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Answer:
            key = tuple([arg if isinstance(arg, _PLAIN) else id(arg) for arg in args])
            found = known.get(key)
            if found is None:
                if len(known) >= most:
                    known.clear()
                found = known[key] = function(*args, **kwargs), args
            return found[0]

        return call

    return decorate


def shared(function: Callable[Arguments, Answer]) -> Callable[Arguments, Answer]:
    """Give all callers with the same arguments the same result, as `remembered` does."""
    return remembered(MAX_SHARED)(function)
