"""Line numbers of the keys of a TOML text, which the standard library's parser does not keep.

The scanner assumes that `tomllib` accepts the text or reports its errors: at text that it does not
understand it stops, with the lines found so far.
"""

from __future__ import annotations

import re
import tomllib
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import field
from functools import cached_property
from typing import Final, TypeAlias

from simulator.records import dataclass

KeyPath: TypeAlias = tuple[str | int, ...]
"""Location of a value: keys, and positions (from 0) within lists."""

DEEPEST: Final = 32
"""Deepest nesting that is read; files of plan need less than a third of it."""

_BLANK: Final = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_SPACE: Final = re.compile(r"[ \t]*")
_BARE_KEY: Final = re.compile(r"[A-Za-z0-9_-]+")
_BASIC: Final = re.compile(r'"(?:[^"\\\n]|\\.)*"')
_LITERAL: Final = re.compile(r"'[^'\n]*'")
_LONG_BASIC: Final = re.compile(r'"""(?:[^"\\]|\\.|"(?!""))*"{3,5}', re.DOTALL)
_LONG_LITERAL: Final = re.compile(r"'''(?:[^']|'(?!''))*'{3,5}", re.DOTALL)
_SCALAR: Final = re.compile(r"[^,\]}#\r\n]+")
_STRINGS: Final = (_LONG_BASIC, _LONG_LITERAL, _BASIC, _LITERAL)


class TooDeepError(Exception):
    """The text nests further than `DEEPEST`; `line` says where."""

    def __init__(self, line: int) -> None:
        self.line = line
        super().__init__(f"nested too deeply on line {line}")


class _LostError(Exception):
    """The text is not TOML here."""


@dataclass(frozen=True, slots=True)
class Repeat:
    """A key or table stated twice: on `line`, and before on `first`."""

    path: KeyPath
    line: int
    first: int


@dataclass(slots=True)
class KeyLines:
    """Lines (from 1) by key path, and keys that are stated twice.

    Tables are included, also those only implied by a longer header, and so are the items of lists.
    """

    lines: dict[KeyPath, int] = field(default_factory=dict)
    repeats: list[Repeat] = field(default_factory=list)


def key_lines(text: str) -> KeyLines:
    r"""Find the line of every key in a TOML text.

    Parameters
    ----------
    text : str
        TOML; a line ends with a line feed, with or without a carriage return before it.

    Raises
    ------
    TooDeepError
        If tables, lists and dotted keys nest more than `DEEPEST` levels.

    Examples
    --------
    >>> key_lines("a = 1\n[b]\nc.d = 2\n").lines[("b", "c", "d")]
    3
    """
    scanner = _Scanner(text)
    with suppress(_LostError):
        scanner.scan()
    return scanner.found


class LazyLines(Mapping[KeyPath, int]):
    """`key_lines` of a text, computed on first use: most files never need them."""

    def __init__(self, text: str) -> None:
        self._text = text

    @cached_property
    def _lines(self) -> dict[KeyPath, int]:
        return key_lines(self._text).lines

    def __getitem__(self, path: KeyPath) -> int:
        return self._lines[path]

    def __iter__(self) -> Iterator[KeyPath]:
        return iter(self._lines)

    def __len__(self) -> int:
        return len(self._lines)


def is_too_deep(data: object) -> bool:
    """Return whether parsed TOML nests more than `DEEPEST` levels."""
    level = [data]
    for _ in range(DEEPEST + 1):
        level = [
            inner
            for outer in level
            if isinstance(outer, dict | list)
            for inner in (outer.values() if isinstance(outer, dict) else outer)
        ]
    return bool(level)


class _Scanner:
    """One pass over the text; `position` moves on only."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.position = 0
        self.found = KeyLines()
        self.given: dict[KeyPath, int] = {}
        self.tables_in: dict[KeyPath, int] = {}
        self.breaks = [match.start() for match in re.finditer("\n", text)]

    def scan(self) -> None:
        """Read statements to the end of the text."""
        table: KeyPath = ()
        self.skip(_BLANK)
        while self.position < len(self.text):
            if self.text.startswith("[", self.position):
                table = self.header()
            else:
                self.statement(table)
            self.skip(_BLANK)

    def header(self) -> KeyPath:
        """Read ``[a.b]`` or ``[[a.b]]`` and return the path of the table that begins."""
        line = self.line()
        brackets = 2 if self.text.startswith("[[", self.position) else 1
        self.position += brackets
        keys = self.keys()
        self.expect("]" * brackets)
        path: KeyPath = ()
        for key in keys[:-1]:
            path = self.enter((*path, key), line)
        path = (*path, keys[-1])
        if brackets == 1:
            self.give(path, line)
            return path
        index = self.tables_in.get(path, 0)
        if index == 0:
            self.give(path, line)
        self.tables_in[path] = index + 1
        self.record((*path, index), line)
        return (*path, index)

    def enter(self, path: KeyPath, line: int) -> KeyPath:
        """Return the path of the table that a header opens: the last one of an array of tables."""
        self.record(path, line)
        if path in self.tables_in:
            return (*path, self.tables_in[path] - 1)
        return path

    def statement(self, table: KeyPath) -> None:
        """Read ``key = value`` within `table`."""
        line = self.line()
        keys = self.keys()
        for end in range(1, len(keys)):
            self.record(table + tuple(keys[:end]), line)
        path = table + tuple(keys)
        self.give(path, line)
        self.expect("=")
        self.value(path)

    def keys(self) -> list[str]:
        """Read a dotted key."""
        keys = [self.key()]
        while self.text.startswith(".", self.position):
            self.position += 1
            keys.append(self.key())
            if len(keys) > DEEPEST:
                raise TooDeepError(self.line())
        return keys

    def key(self) -> str:
        """Read one part of a key, with the space around it."""
        self.skip(_SPACE)
        for pattern in (_BARE_KEY, _LITERAL, _BASIC):
            match = pattern.match(self.text, self.position)
            if match is not None:
                self.position = match.end()
                self.skip(_SPACE)
                return _unquoted(match.group())
        raise _LostError

    def value(self, path: KeyPath) -> None:
        """Read a value of any kind; those inside it are recorded under `path`."""
        self.skip(_SPACE)
        if self.text.startswith("[", self.position):
            self.array(path)
            return
        if self.text.startswith("{", self.position):
            self.inline_table(path)
            return
        for pattern in (*_STRINGS, _SCALAR):
            match = pattern.match(self.text, self.position)
            if match is not None:
                self.position = match.end()
                return
        raise _LostError

    def array(self, path: KeyPath) -> None:
        """Read ``[value, ...]``, over as many lines as it takes."""
        self.position += 1
        index = 0
        while not self.closes("]"):
            self.record((*path, index), self.line())
            self.value((*path, index))
            index += 1
            self.comma("]")

    def inline_table(self, path: KeyPath) -> None:
        """Read ``{key = value, ...}``."""
        self.position += 1
        while not self.closes("}"):
            self.statement(path)
            self.comma("}")

    def closes(self, bracket: str) -> bool:
        """Skip blanks, and `bracket` if it is next; return whether it was."""
        self.skip(_BLANK)
        if self.text.startswith(bracket, self.position):
            self.position += 1
            return True
        return False

    def comma(self, bracket: str) -> None:
        """Skip blanks and a comma, which is required unless `bracket` is next."""
        self.skip(_BLANK)
        if not self.text.startswith(bracket, self.position):
            self.expect(",")

    def expect(self, token: str) -> None:
        """Skip `token`, with blanks before it."""
        self.skip(_SPACE)
        if not self.text.startswith(token, self.position):
            raise _LostError
        self.position += len(token)

    def skip(self, pattern: re.Pattern[str]) -> None:
        """Skip the text that `pattern` matches, which may be empty."""
        match = pattern.match(self.text, self.position)
        if match is not None:
            self.position = match.end()

    def line(self) -> int:
        """Return the line the scanner is on."""
        return bisect_right(self.breaks, self.position - 1) + 1

    def record(self, path: KeyPath, line: int) -> None:
        """Record the line of `path`, if it is the first."""
        if len(path) > DEEPEST:
            raise TooDeepError(line)
        self.found.lines.setdefault(path, line)

    def give(self, path: KeyPath, line: int) -> None:
        """Record the line of a stated `path`, and whether it was stated before."""
        self.record(path, line)
        if path in self.given:
            self.found.repeats.append(Repeat(path, line, self.given[path]))
        self.given.setdefault(path, line)


def _unquoted(key: str) -> str:
    if key[0] == "'" or (key[0] == '"' and "\\" not in key):
        return key[1:-1]
    if key[0] != '"':
        return key
    try:
        return str(tomllib.loads(f"key = {key}")["key"])
    except tomllib.TOMLDecodeError:
        raise _LostError from None
