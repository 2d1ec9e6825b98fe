"""Cache of function results, keyed by the identity of arguments.

Profiles, sections, models and scenarios never change and are shared by many candidates of a search,
so that comparing identities replaces comparing contents.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Final, ParamSpec, TypeVar

Result = TypeVar("Result")
Arguments = ParamSpec("Arguments")

MAX_CACHED: Final = 20_000
"""Results of a function that are kept by default; with one more all are dropped."""
_PLAIN: Final[tuple[type, ...]] = (str, int, float, type(None))


def cached(
    most: int = MAX_CACHED, *, by_value: tuple[type, ...] = (), ignore: tuple[type, ...] = ()
) -> Callable[[Callable[Arguments, Result]], Callable[Arguments, Result]]:
    """Return a decorator that computes a function once for the same arguments.

    Plain values are compared by equality, other arguments by identity. Arguments are kept with the
    result, so that no other object can take their identities.

    Parameters
    ----------
    most : int, optional
        Results that are kept; with one more all are dropped.
    by_value : tuple of type, optional
        Further types of arguments that are compared by equality. Where one has no hash, as arrays
        and what contains them, the function is called each time.
    ignore : tuple of type, optional
        Types of arguments that the result does not depend on, such as the document of an error.

    Examples
    --------
    >>> @cached()
    ... def copied(words):
    ...     return list(words)
    >>> words = ["a"]
    >>> copied(words) is copied(words), copied(words) is copied(["a"])
    (True, False)
    """
    compared = (*_PLAIN, *by_value)

    def decorate(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
        known: dict[tuple[Any, ...], tuple[Result, tuple[Any, ...]]] = {}

        @wraps(function)
        def call(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
            given = (*args, *kwargs.values()) if kwargs else args
            if ignore:
                given = tuple([arg for arg in given if not isinstance(arg, ignore)])
            key = tuple([arg if isinstance(arg, compared) else id(arg) for arg in given])
            try:
                found = known.get(key)
            except TypeError:  # arrays of candidates, compared by value
                return function(*args, **kwargs)
            if found is None:
                if len(known) >= most:
                    known.clear()
                found = known[key] = function(*args, **kwargs), given
            return found[0]

        return call

    return decorate
