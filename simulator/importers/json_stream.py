"""JSON whose bulk is one long list: read element by element, so that only what counts is kept."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, Final

from simulator.errors import InputError, Problem
from simulator.importers.reading import parse_json
from simulator.reading.reading import fail

_SPACE: Final = re.compile(r"\s*")
# Names of kernels and of source files may hold plain tabs.
_DECODER: Final = json.JSONDecoder(strict=False)


def each_in(text: str, key: str, take: Callable[[Any], None], origin: str) -> dict[str, Any]:
    """Hand each element of the list under `key` to `take`; the other members of the object.

    Parameters
    ----------
    text : str
        One JSON object.
    key : str
        Name of the member that is a list.
    take : callable
        Called with each element as it is read.
    origin : str
        Names the file in messages.

    Returns
    -------
    dict
        All other members; `key` is in it, with None, if the object has such a list.

    Raises
    ------
    InputError
        With the line, for what is no JSON object or is cut off.
    """
    at = _skip(text, 0)
    if not text.startswith("{", at):
        data = parse_json(text, origin)
        fail(origin, f"is not a JSON object but a {_kind(data)}")
    found: dict[str, Any] = {}
    at = _skip(text, at + 1)
    while not text.startswith("}", at):
        name, at = _value(text, at, origin)
        at = _after(text, at, ":", origin)
        if name == key and text.startswith("[", at):
            at = _elements(text, at, take, origin)
            found[key] = None
        else:
            found[str(name)], at = _value(text, at, origin)
        at = _next(text, at, "}", origin)
    if _skip(text, at + 1) < len(text):
        raise _broken(text, at, origin, "goes on after the end of the object")
    return found


def _elements(text: str, at: int, take: Callable[[Any], None], origin: str) -> int:
    at = _skip(text, at + 1)
    while not text.startswith("]", at):
        value, at = _value(text, at, origin)
        take(value)
        at = _next(text, at, "]", origin)
    return at + 1


def _next(text: str, at: int, end: str, origin: str) -> int:
    """Where the next member begins, or the `end`."""
    at = _skip(text, at)
    if text.startswith(end, at):
        return at
    return _after(text, at, ",", origin)


def _after(text: str, at: int, mark: str, origin: str) -> int:
    at = _skip(text, at)
    if text.startswith(mark, at):
        return _skip(text, at + 1)
    raise _broken(text, at, origin, f"is not valid JSON: '{mark}' is missing")


def _value(text: str, at: int, origin: str) -> tuple[Any, int]:
    try:
        return _DECODER.raw_decode(text, at)
    except (ValueError, RecursionError):
        # Empty lines in place of what came before keep the line numbers of the message.
        parse_json("\n" * text.count("\n", 0, at) + text[at:], origin)
    raise _broken(text, at, origin, "is not valid JSON")


def _broken(text: str, at: int, origin: str, message: str) -> InputError:
    if at >= len(text.rstrip()):
        message = "is cut off: the JSON stops before its end"
    line = text.count("\n", 0, at) + 1
    return InputError((Problem(origin=origin, message=message, line=line),))


def _skip(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return at if match is None else match.end()


def _kind(data: object) -> str:
    if isinstance(data, list):
        return "list"
    return "text" if isinstance(data, str) else "single value"
