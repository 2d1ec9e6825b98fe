"""What a reader does with input of any kind: it answers, or it tells problems."""

from __future__ import annotations

from collections.abc import Callable

from simulator.errors import InputError


def refusal(read: Callable[..., object], *arguments: object, **options: object) -> list[str]:
    """Messages with which `read` refuses its arguments; empty if it answers.

    Any other exception is passed on: it is a bug.
    """
    try:
        read(*arguments, **options)
    except InputError as error:
        return [str(problem) for problem in error.problems] or ["no problem told"]
    return []
