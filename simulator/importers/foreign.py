"""Reader for foreign files: bytes, text, JSON or YAML, with limits on size, depth and numbers.

`Entry` is a value of such a file; it collects every problem with the path to the value.
"""

from __future__ import annotations

import codecs
import contextlib
import json
import math
import re
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import yaml

from simulator import units
from simulator.errors import InputError, Problem
from simulator.reading.reading import dotted, fail
from simulator.reading.reading import read_bytes as read_start
from simulator.records import dataclass

MAX_BYTES: Final = int(units.parse("256 MiB", units.BYTE))
"""Maximum size of a file, after decompression [B]."""
MAX_PROBLEMS: Final = 20
"""Maximum number of problems reported for one file."""

_GZIP: Final = b"\x1f\x8b"
_WIDE: Final = {codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
_PART_OF_A_WORD: Final = re.compile(r"[\w.+-]*")


def read_bytes(path: Path, most: int = MAX_BYTES) -> bytes:
    """Return the content of a file, decompressed if it is gzip.

    Parameters
    ----------
    path : pathlib.Path
        The file.
    most : int
        Maximum size, checked before reading and while decompressing [B].

    Raises
    ------
    InputError
        If the file does not exist (the message names the closest match), is a folder, too large,
        empty, truncated within the gzip stream, or unreadable.
    """
    origin, size = str(path), 0
    with contextlib.suppress(OSError, ValueError):  # reported when the file is opened
        size = 0 if path.is_dir() else path.stat().st_size
    if size > most:
        _fail_size(origin, most, units.show(size, units.BYTE))
    content = read_start(path, most)
    if content.startswith(_GZIP):
        content = _unpacked(content, origin, most)
    if len(content) > most:
        _fail_size(origin, most)
    if not content.strip():
        fail(origin, "is empty")
    return content


def _unpacked(content: bytes, origin: str, most: int) -> bytes:
    """Return the content of all members of a gzip file, decompressed up to about `most` bytes."""
    found = b""
    while content.startswith(_GZIP) and len(found) <= most:
        unpack = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
        try:
            found += unpack.decompress(content, most + 1)
        except zlib.error as error:
            fail(origin, f"is damaged: not a gzip stream ({error})")
        if not unpack.eof and len(found) <= most:
            fail(origin, "is cut off: the gzip stream has no end")
        content = unpack.unused_data
    return found


def _fail_size(origin: str, most: int, size: str | None = None) -> None:
    message = f"is larger than {units.show(most, units.BYTE)}"
    hint = "record a shorter run, or take a part of it"
    raise InputError((Problem(origin=origin, message=message, found=size, hint=hint),))


def read_text(path: Path, wanted: str, most: int = MAX_BYTES) -> str:
    """Return the text of a file in UTF-8, or in UTF-16 with a byte order mark (PowerShell).

    Parameters
    ----------
    path : pathlib.Path
        The file; may be gzip.
    wanted : str
        Expected content, for messages, such as ``the output of nccl-tests``.
    most : int
        As for `read_bytes`.

    Raises
    ------
    InputError
        As `read_bytes`, and if it is binary or in another encoding.
    """
    content, origin = read_bytes(path, most), str(path)
    encoding = next((name for mark, name in _WIDE.items() if content.startswith(mark)), "utf-8-sig")
    if encoding != "utf-16" and b"\0" in content:
        fail(origin, f"is a binary file, not {wanted}")
    try:
        text = content.decode(encoding)
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        fail(origin, f"is not text, so not {wanted}", line=line)
    return text.replace("\r\n", "\n")


def parse_json(
    text: str, origin: str, reduce: Callable[[dict[str, Any]], Any] | None = None
) -> Any:  # noqa: ANN401 - a file may hold anything
    """Parse a JSON text.

    Parameters
    ----------
    text : str
        The JSON.
    origin : str
        Name of the file, for messages.
    reduce : callable, optional
        Called with each parsed object; its result replaces the object.

    Raises
    ------
    InputError
        For a syntax error, with its line; truncated text is reported as cut off.
    """
    try:
        # Names of kernels and of source files may hold plain tabs, hence not strict.
        return json.loads(text, strict=False, object_hook=reduce)
    except json.JSONDecodeError as error:
        if _stops_early(text, error):
            last = text.rstrip().count("\n") + 1
            fail(origin, "is cut off: the JSON stops before its end", line=last)
        said = error.msg[0].lower() + error.msg[1:]
        fail(origin, f"is not valid JSON: {said} (column {error.colno})", line=error.lineno)
    except RecursionError:
        fail(origin, "is nested too deeply")
    except ValueError as error:
        # Such as a number with thousands of digits.
        fail(origin, f"holds a value that cannot be read: {error}")


def _stops_early(text: str, error: json.JSONDecodeError) -> bool:
    rest = text[error.pos :].rstrip()
    if error.msg == "Extra data":
        return False
    return error.msg.startswith("Unterminated") or _PART_OF_A_WORD.fullmatch(rest) is not None


def read_json(path: Path, wanted: str, most: int = MAX_BYTES) -> Any:  # noqa: ANN401 - a file may hold anything
    """Parse a JSON file, gzip or not; see `read_text` and `parse_json` for details and errors."""
    return parse_json(read_text(path, wanted, most), str(path))


class Problems(list[Problem]):
    """The problems of one foreign text, in the order of detection."""

    def __init__(self, origin: str) -> None:
        super().__init__()
        self.origin = origin

    def note(
        self,
        message: str,
        *,
        line: int | None = None,
        key: str | None = None,
        found: str | None = None,
        hint: str | None = None,
    ) -> None:
        """Append a problem with this text as its origin."""
        self.append(
            Problem(origin=self.origin, line=line, key=key, message=message, found=found, hint=hint)
        )

    def number(self, text: str, name: str, *, line: int) -> float | None:
        """Parse the number in a cell of column `name`; NaN and infinity are accepted.

        For a negative number or other text, report a problem and return None.
        """
        try:
            value = float(text)
        except ValueError:
            self.note(f"has no number under {name}", line=line, found=repr(text[:40]))
            return None
        if value < 0.0:
            self.note(f"has {name} below zero", line=line, found=text)
            return None
        return value


def refuse(problems: list[Problem]) -> None:
    """Raise an `InputError` with the first `MAX_PROBLEMS` problems and the number of the others.

    Does nothing if `problems` is empty.
    """
    if not problems:
        return
    shown = problems[:MAX_PROBLEMS]
    more = len(problems) - len(shown)
    if more:
        origin = problems[0].origin
        shown = [*shown, Problem(origin=origin, message=f"has {more} problems more")]
    raise InputError(tuple(shown))


def changed(path: Path) -> str:
    """Return the date of the last modification of a file in ISO format, or ``undated``.

    It dates values of files that contain no date.
    """
    try:
        seconds = path.stat().st_mtime
    except OSError:
        return "undated"
    return datetime.fromtimestamp(seconds, tz=UTC).date().isoformat()


MAX_YAML_BYTES: Final = int(units.parse("4 MiB", units.BYTE))
"""Maximum size of a YAML file [B]; its parser is slow."""


def read_yaml(path: Path, wanted: str) -> Any:  # noqa: ANN401 - a file may hold anything
    """Parse a YAML file; only mappings, lists, text and numbers are constructed, never objects.

    Parameters
    ----------
    path : pathlib.Path
        The file.
    wanted : str
        Expected content, for messages.

    Raises
    ------
    InputError
        As `read_text`; and for invalid YAML, with the line.
    """
    text, origin = read_text(path, wanted, MAX_YAML_BYTES), str(path)
    try:
        data = yaml.safe_load(text)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = None if mark is None else mark.line + 1
        fail(origin, f"is not valid YAML: {error.problem or error.context}", line=line)
    except yaml.YAMLError as error:
        fail(origin, f"is not valid YAML: {str(error).splitlines()[0]}")
    except RecursionError:
        fail(origin, "is nested too deeply")
    except (ValueError, OverflowError, TypeError) as error:
        # Such as an impossible date or a number with thousands of digits.
        fail(origin, f"holds a value that cannot be read: {error}")
    if _is_swollen(data):
        fail(origin, "holds aliases that expand to too much data")
    return data


def _is_swollen(data: object) -> bool:
    """Return True if `data` has more values than a file of `MAX_YAML_BYTES` without aliases."""
    waiting, seen = [data], 0
    while waiting and seen <= MAX_YAML_BYTES:
        value = waiting.pop()
        seen += 1
        if isinstance(value, dict):
            waiting += value.values()
        elif isinstance(value, list):
            waiting += value
    return seen > MAX_YAML_BYTES


MISSING = (None, "", "N/A", "[N/A]")
"""Values that count as missing."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A value of a JSON or YAML document with its path, and the problems of the whole document."""

    value: object
    origin: str
    path: tuple[str | int, ...] = ()
    problems: list[Problem] = field(default_factory=list)

    def fault(self, message: str, *, found: object = None, hint: str | None = None) -> None:
        """Report a problem with this value."""
        said = None if found is None else _short(found)
        key = dotted(self.path) or None
        self.problems.append(
            Problem(origin=self.origin, message=message, key=key, found=said, hint=hint)
        )

    def is_mapping(self) -> bool:
        """Return True if the value is an object."""
        return isinstance(self.value, Mapping)

    def get(self, name: str) -> Entry | None:
        """Return the member `name`; None if it is missing or this value is not an object."""
        if not isinstance(self.value, Mapping):
            return None
        value = self.value.get(name)
        if isinstance(value, str | None) and value in MISSING:
            return None
        return Entry(value, self.origin, (*self.path, name), self.problems)

    def need(self, name: str, hint: str | None = None) -> Entry | None:
        """Return the member `name`; report a problem and return None if it is missing."""
        found = self.get(name)
        if found is None:
            self.fault(f"has no '{name}'", hint=hint)
        return found

    def entries(self) -> Iterator[Entry]:
        """Yield the elements of a list or values of an object; report a problem for other types."""
        if isinstance(self.value, Mapping):
            pairs: Iterator[tuple[str | int, object]] = (
                (str(key), value) for key, value in self.value.items()
            )
        elif isinstance(self.value, list):
            pairs = iter(enumerate(self.value))
        else:
            self.fault("is neither a list nor an object", found=self.value)
            return
        for key, value in pairs:
            yield Entry(value, self.origin, (*self.path, key), self.problems)

    def number(self, least: float = 0.0, most: float = math.inf) -> float | None:
        """Return the value as a finite number between `least` and `most`; else report a problem.

        Returns None after a problem. Text that holds a number is accepted, as some tools quote
        numbers.
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

    def whole(self, least: float = 0.0, most: float = math.inf) -> int | None:
        """Return the value as an integer between `least` and `most`; else None, with a problem."""
        number = self.number(least, most)
        if number is not None and number != int(number):
            self.fault("is not a whole number", found=self.value)
        return None if number is None else int(number)

    def number_at(self, name: str, least: float = 0.0, most: float = math.inf) -> float | None:
        """Return the number under `name`; None, without a problem, if it is missing."""
        found = self.get(name)
        return None if found is None else found.number(least, most)

    def text_at(self, name: str) -> str | None:
        """Return the value under `name` as text; None if missing or not text or a number."""
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
