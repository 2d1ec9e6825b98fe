"""Axes of a search as text: ``input.workers=1..16``, ``train.batch_size=32,64``.

docs/search.md has the grammar. `expand`, which knows the names, resolves patterns; everything else
is checked here.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Any, Final, NoReturn

from simulator import units
from simulator.errors import InputError, Problem, UnitError
from simulator.reading.document import shown
from simulator.reading.settings import (
    NAMED,
    choices_of,
    marker_of,
    mistake,
    setting_from_text,
    setting_names,
    unknown_hint,
)
from simulator.records import dataclass
from simulator.schema.fields import Number, Quantity, nearest_hint
from simulator.schema.goal import Axes, Axis, Plain, Span

OPTION: Final = "--over"
MOST_VALUES: Final = 500_000
"""Largest number of values along one axis."""
DIGITS: Final = 9
"""Significant digits of the values of a range."""

_SLACK: Final = 0.1**DIGITS
"""Tolerance of the end of a range, as a fraction of a step, for rounding errors."""
_RANGE: Final = re.compile(
    r"(?P<low>.+?)\s*\.\.\s*(?P<high>.+?)"
    r"(?:\s+(?:step\s+(?P<step>\S.*)|x\s*(?P<factor>\S+)|(?P<log>log)))?\s*"
)
_NUMBER: Final = re.compile(r"[+-]?(?:\d[\d_]*\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")
_PATTERN: Final = frozenset("*?[")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """The option or file and line that states an axis, for error messages."""

    origin: str
    line: int | None = None
    key: str | None = None

    def refuse(self, message: str, found: object = None, hint: str = "") -> NoReturn:
        """Raise an `InputError` with one problem of the axis."""
        problem = Problem(
            origin=self.origin,
            line=self.line,
            key=self.key,
            message=message,
            found=None if found is None else shown(found),
            hint=hint or None,
        )
        raise InputError((problem,))


def parse_axis(text: str, origin: str = OPTION) -> Axis:
    """Parse the argument of ``--over``.

    Parameters
    ----------
    text : str
        ``key=values`` or ``key,key=value:value,value:value`` for keys that vary together.
    origin : str
        Name of the option in messages.

    Raises
    ------
    InputError
        If a key or value is invalid, a range is empty, or keys and values differ in number.

    Examples
    --------
    >>> parse_axis("train.batch_size=32..128 x2").values
    ((32,), (64,), (128,))
    >>> parse_axis("hardware.storage_bandwidth=1 GB/s..10 GB/s").span.high
    10.0
    """
    names, equals, raw = text.partition("=")
    longest = 100
    asked = _Asked(origin=f"{origin} {text if len(text) <= longest else text[:longest] + '...'}")
    if not equals or not raw.strip():
        asked.refuse("has no values", hint="write key=values, such as input.workers=1..16")
    points = [part.strip() for part in raw.split(",")]
    keys = _keys(names, asked)
    if len(keys) == 1:
        return _single(keys[0], points, asked)
    rows = [[part.strip() for part in point.split(":")] for point in points]
    return _zipped(keys, rows, asked, "separate the values of one point by colons")


def axis_of(names: str, given: object, *, origin: str, line: int | None, key: str) -> Axis:
    """Return the axis that an entry of a table of axes describes.

    Parameters
    ----------
    names : str
        The entry's key: a dotted key of a scenario, or several joined by commas.
    given : object
        Text as after the equals sign in `parse_axis`, a number, or a list of values; a list of
        lists for several keys.
    origin, line, key :
        File, line and key of the entry, for messages.

    Raises
    ------
    InputError
        In the same cases as `parse_axis`.
    """
    asked = _Asked(origin=origin, line=line, key=key)
    keys = _keys(names, asked)
    points: list[Any] = given if isinstance(given, list) else [given]
    if isinstance(given, str) and ".." not in given:
        points = [part.strip() for part in given.split(",")]
    if not points:
        asked.refuse("is an empty list", hint="give at least one value")
    if len(keys) == 1:
        return _single(keys[0], points, asked)
    return _zipped(keys, points, asked, "write a list of values for every point")


def with_axes(axes: Axes | None, given: Sequence[Axis]) -> Axes:
    """Return `axes` with those of the command line, which replace axes with the same keys.

    Raises
    ------
    InputError
        If a key is given twice.
    """
    asked = _Asked(origin=OPTION)
    _refuse_twice((key for axis in given for key in axis.keys), asked)
    taken = {key for axis in given for key in axis.keys}
    before = () if axes is None else axes.axes
    kept = tuple(axis for axis in before if not taken & set(axis.keys))
    return replace(Axes(axes=()) if axes is None else axes, axes=(*kept, *given))


def is_pattern(value: object) -> bool:
    """Return whether a value is a pattern of names."""
    return isinstance(value, str) and not _PATTERN.isdisjoint(value)


def matching(pattern: str, names: Iterable[str]) -> tuple[str, ...]:
    """Return the names that match a pattern: ``*`` any text, ``?`` a letter, ``[ab]``."""
    return tuple(name for name in names if fnmatchcase(name, pattern))


@dataclass(frozen=True, slots=True, kw_only=True)
class LostPattern:
    """A pattern of an axis that matches no name, with a message and a hint."""

    pattern: str
    message: str
    hint: str


def lost_pattern(axis: Axis, names: Callable[[str], Sequence[str]]) -> LostPattern | None:
    """Return the first pattern of an axis that matches no name; None if all match.

    `names` returns the valid names of a key.
    """
    for values in axis.values:
        for key, value in zip(axis.keys, values, strict=True):
            if isinstance(value, str) and is_pattern(value) and not matching(value, names(key)):
                hint = _meant(value, names(key))
                return LostPattern(pattern=value, message=f"{key} matches nothing", hint=hint)
    return None


def _meant(pattern: str, names: Sequence[str]) -> str:
    """Return a hint for a pattern: the most similar folder."""
    start = pattern[: min(pattern.find(mark) for mark in _PATTERN if mark in pattern)]
    folders = dict.fromkeys(f"{name.rpartition('/')[0]}/*" for name in names if "/" in name)
    return nearest_hint(f"{start}*", tuple(folders) or tuple(names))


def _keys(names: str, asked: _Asked) -> tuple[str, ...]:
    keys = tuple(name.strip() for name in names.split(","))
    for key in keys:
        if key not in setting_names():
            asked.refuse("is not a key that can be varied", key, unknown_hint(key))
    _refuse_twice(keys, asked)
    return keys


def _refuse_twice(keys: Iterable[str], asked: _Asked) -> None:
    seen = set[str]()
    for key in keys:
        if key in seen:
            asked.refuse("is varied twice", key, "give each key once")
        seen.add(key)


def _single(key: str, points: Sequence[object], asked: _Asked) -> Axis:
    ranges = [_as_range(key, point, asked) for point in points]
    spans = [found for found in ranges if isinstance(found, Span)]
    if spans and len(points) > 1:
        hint = "give the range alone, or with a step"
        asked.refuse("is a continuous range among single values", points[0], hint)
    if spans:
        return Axis(keys=(key,), span=spans[0])
    values: list[Plain] = []
    for point, found in zip(points, ranges, strict=True):
        values += found if isinstance(found, tuple) else _values(key, point, asked)
    unique = {(type(value), value): (value,) for value in values}
    return Axis(keys=(key,), values=tuple(unique.values()))


def _zipped(keys: tuple[str, ...], rows: Sequence[Any], asked: _Asked, hint: str) -> Axis:
    points = []
    for row in rows:
        if not isinstance(row, list) or len(row) != len(keys):
            found = len(row) if isinstance(row, list) else 1
            asked.refuse(f"has {found} values for {len(keys)} keys", row, hint)
        points.append(tuple(_one(key, part, asked) for key, part in zip(keys, row, strict=True)))
    return Axis(keys=keys, values=tuple(points))


def _one(key: str, point: object, asked: _Asked) -> Plain:
    found = _values(key, point, asked)
    if len(found) > 1 or is_pattern(found[0]):
        asked.refuse(f"{key} matches several values", point, "list each of them")
    return found[0]


def _values(key: str, point: object, asked: _Asked) -> tuple[Plain, ...]:
    """Return the values of a point: the value itself, or the few choices that a pattern matches."""
    value = setting_from_text(key, point) if isinstance(point, str) else point
    if isinstance(value, str) and is_pattern(value):
        if key in NAMED:
            return (value,)
        choices = choices_of(key)
        found = matching(value, choices)
        if choices and not found:
            asked.refuse(f"{key} matches nothing", value, f"allowed: {', '.join(choices)}")
        if found:
            return found
    wrong = mistake(key, value)
    if wrong is not None:
        asked.refuse(f"{key} {wrong[0]}", point, wrong[1])
    if not isinstance(value, str | int | float):
        asked.refuse(f"{key} is not a single value", point)
    return (value,)


def _as_range(key: str, point: object, asked: _Asked) -> tuple[Plain, ...] | Span | None:
    """Return the values of a range, or the span of a continuous one; None for any other point."""
    marker = marker_of(key)
    if not isinstance(point, str) or not isinstance(marker, Quantity | Number):
        return None
    match = _RANGE.fullmatch(point.strip())
    if match is None:
        if ".." in point:
            asked.refuse(f"{key} is not a range", point, "write it like 1..16 or 0..64 step 8")
        return None
    return _Range(key, marker, match, asked).read()


@dataclass(frozen=True, slots=True)
class _Range:
    """A parser of a range of numbers or quantities."""

    key: str
    marker: Quantity | Number
    match: re.Match[str]
    asked: _Asked

    def read(self) -> tuple[Plain, ...] | Span:
        """Return the values of the range, or its span if continuous."""
        high, low = self._end("high"), self._end("low")
        if low > high:
            self._refuse("is an empty range", "write the smaller end first")
        step, factor = self.match["step"], self.match["factor"]
        if step is not None:
            return self._points(low, high, step=self._step(step))
        if factor is not None:
            return self._points(low, high, factor=self._factor(factor, low))
        logarithmic = self.match["log"] is not None
        if self._steps_by_one() and not logarithmic:
            return self._points(low, high, step=1.0)
        if low == high:
            self._refuse("is a range of a single value", "write the value alone")
        if logarithmic and low <= 0.0:
            self._refuse("is logarithmic and begins at zero", "begin above zero")
        whole = isinstance(self.marker, Number) and self.marker.whole
        return Span(low=low, high=high, unit=self._unit(), whole=whole, logarithmic=logarithmic)

    def _steps_by_one(self) -> bool:
        """Return whether the range is over integers: of a count, or without decimal points."""
        if isinstance(self.marker, Quantity):
            return False
        return self.marker.whole or not re.search(r"[.eE]", self.match["low"] + self.match["high"])

    def _unit(self) -> str:
        """Return the unit of the upper end as written; a dollar sign comes first."""
        if isinstance(self.marker, Number):
            return ""
        return _NUMBER.sub("", self.match["high"], count=1).replace(" ", "")

    def _end(self, name: str) -> float:
        text = self.match[name]
        wrong = mistake(self.key, setting_from_text(self.key, text))
        if wrong is not None:
            self.asked.refuse(f"{self.key} {wrong[0]}", text, wrong[1])
        return self._number(text)

    def _number(self, text: str) -> float:
        """Return a quantity in the unit of the upper end, or a plain number."""
        if isinstance(self.marker, Number):
            return float(text)
        one = units.parse(with_unit(1.0, self._unit()), self.marker.unit)
        return _rounded(units.parse(text, self.marker.unit) / one)

    def _step(self, text: str) -> float:
        try:
            step = self._number(text)
        except (ValueError, UnitError) as error:
            said = str(error) if isinstance(error, UnitError) else "is not a number"
            self.asked.refuse(f"the step of {self.key} {said}", text)
        if not 0.0 < step < math.inf:
            self.asked.refuse(f"the step of {self.key} is not above zero", text)
        return step

    def _factor(self, text: str, low: float) -> float:
        try:
            factor = float(text)
        except ValueError:
            factor = 0.0
        if not 1.0 < factor < math.inf:
            hint = "write it like 1..64 x2"
            self.asked.refuse(f"the factor of {self.key} is not a number above 1", text, hint)
        if low <= 0.0:
            self._refuse("is multiplied from zero", "begin above zero")
        return factor

    def _points(
        self, low: float, high: float, *, step: float = 0.0, factor: float = 1.0
    ) -> tuple[Plain, ...]:
        count = (high - low) / step if step else math.log(high / low) / math.log(factor)
        if count >= MOST_VALUES:
            self._refuse("has too many values", f"at most {MOST_VALUES:,}; take a larger step")
        most = int(count + _SLACK) + 1
        numbers = (low + i * step if step else low * factor**i for i in range(most))
        return tuple(dict.fromkeys(self._plain(number) for number in numbers))

    def _plain(self, value: float) -> Plain:
        if isinstance(self.marker, Quantity):
            return with_unit(value, self._unit())
        number = _rounded(value)
        is_count = self.marker.whole
        if is_count and not number.is_integer() and self.match["step"] is not None:
            self._refuse("leaves the whole numbers", "take a whole step")
        return round(number) if is_count or number.is_integer() else number

    def _refuse(self, message: str, hint: str) -> NoReturn:
        self.asked.refuse(f"{self.key} {message}", self.match[0], hint)


def with_unit(value: float, unit: str) -> str:
    """Return a number with its unit as text; a dollar sign comes first: ``$3.2/h``."""
    number = f"{value:.{DIGITS}g}"
    return f"${number}{unit[1:]}" if unit.startswith("$") else f"{number} {unit}"


def _rounded(value: float) -> float:
    return float(f"{value:.{DIGITS}g}")
