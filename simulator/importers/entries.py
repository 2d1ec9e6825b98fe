"""A walk through JSON data that collects every problem with its place."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from simulator.errors import Problem
from simulator.reading.reading import dotted

MISSING = (None, "", "N/A", "[N/A]")
"""Values that say that there is none."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A value of a JSON document, where it stands, and the problems of the whole document."""

    value: object
    origin: str
    path: tuple[str | int, ...] = ()
    problems: list[Problem] = field(default_factory=list)

    def fault(self, message: str, *, found: object = None, hint: str | None = None) -> None:
        """Note a problem with this value."""
        said = None if found is None else _short(found)
        key = dotted(self.path) or None
        self.problems.append(
            Problem(origin=self.origin, message=message, key=key, found=said, hint=hint)
        )

    def is_mapping(self) -> bool:
        """Whether this is an object."""
        return isinstance(self.value, Mapping)

    def get(self, name: str) -> Entry | None:
        """What the object holds under `name`; None if nothing, or if this is no object."""
        if not isinstance(self.value, Mapping):
            return None
        value = self.value.get(name)
        if isinstance(value, str | None) and value in MISSING:
            return None
        return Entry(value, self.origin, (*self.path, name), self.problems)

    def need(self, name: str, hint: str | None = None) -> Entry | None:
        """What the object holds under `name`; a problem if nothing."""
        found = self.get(name)
        if found is None:
            self.fault(f"has no '{name}'", hint=hint)
        return found

    def entries(self) -> Iterator[Entry]:
        """The elements of a list, or the values of an object; a problem if this is neither."""
        if isinstance(self.value, Mapping):
            pairs: Iterator[tuple[str | int, object]] = (
                (str(key), value) for key, value in self.value.items()
            )
        elif isinstance(self.value, list):
            pairs = iter(enumerate(self.value))
        else:
            self.fault("is no list and no object", found=self.value)
            return
        for key, value in pairs:
            yield Entry(value, self.origin, (*self.path, key), self.problems)

    def number(self, least: float = 0.0, most: float = math.inf) -> float | None:
        """The value as a finite number of at least `least`; a problem and None if it isn't.

        Text that holds a plain number counts as one: some tools write all values as text.
        """
        value = self.value
        if isinstance(value, str):
            value = _plain_number(value)
        if isinstance(value, bool) or not isinstance(value, int | float):
            self.fault("is not a number", found=self.value)
            return None
        number = _float(value)
        if not math.isfinite(number):
            self.fault("is not a finite number", found=self.value)
            return None
        if number < least:
            said = "is negative" if least == 0.0 and number < 0.0 else f"is below {least:g}"
            self.fault(said, found=self.value)
            return None
        if number > most:
            self.fault(f"is above {most:g}", found=self.value)
            return None
        return number

    def number_at(self, name: str, least: float = 0.0, most: float = math.inf) -> float | None:
        """The number under `name`; None, without a problem, if there is nothing."""
        found = self.get(name)
        return None if found is None else found.number(least, most)

    def text_at(self, name: str) -> str | None:
        """The text under `name` (a number as it prints); None if there is nothing of the kind."""
        found = self.get(name)
        if found is None or isinstance(found.value, bool | list | Mapping):
            return None
        return str(found.value)


def _plain_number(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


def _float(value: float) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf


def _short(value: object) -> str:
    text = repr(value)
    longest = 60
    return text if len(text) <= longest else f"{text[:longest]}..."
